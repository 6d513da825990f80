"""The page as one file, in a browser: what is hostile, what is missing, and what is large."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import expect

from airflow_provider_sparklineage.plugins import page as page_files
from tests.browser.airflow_double import done
from tests.browser.events import wide_event
from tests.browser.lists import listbox, option
from tests.browser.settled import at_rest
from tests.conftest import Recorded, long_after

HOSTILE = long_after(
    1,
    [
        pytest.param("<img src=x onerror=alert(1)>", id="markup"),
        pytest.param("</script><script>alert(1)</script>", id="end of script"),
        pytest.param("\"'`&amp;{{ds}}", id="quotes"),
        pytest.param("a\0b\x1b[31m", id="control characters"),
        pytest.param("\u202egnp.exe", id="right to left"),
        pytest.param("x" * 20_000, id="very long"),
        pytest.param("\ud800", id="half a character"),
        pytest.param("__proto__", id="prototype"),
        pytest.param("", id="empty"),
    ],
)


def nested(key, depth):
    """Nest a value in itself so often."""
    value = {"type": "binary", "name": "x", "operator": "AND"}
    for _ in range(depth):
        inner = [value] if key == "fields" else value
        value = {"type": "binary", "name": "x", "operator": "AND", key: inner}
    return value


@pytest.fixture(scope="module")
def staging():
    return Recorded("staging_chain").event


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_text_whatever_they_are(show, staging, name):
    text = json.dumps(staging).replace("amount", json.dumps(name)[1:-1])
    text = text.replace("/lake/orders", json.dumps(name)[1:-1]).replace(
        "nothing says", json.dumps(name)[1:-1]
    )
    page = show(json.loads(text))
    expect(page.locator(".card")).to_have_count(5)
    option(page, "written", "revenue").click()
    expect(page.locator(".row.lit")).to_have_count(2)
    assert page.locator("main img, main script").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280


@pytest.mark.parametrize(
    "change",
    long_after(
        2,
        [
            pytest.param({"inputs": None, "outputs": None}, id="nothing accessed"),
            pytest.param(
                {"outputs": [{"namespace": "n", "name": "x", "facets": []}]}, id="no facets"
            ),
            pytest.param(
                {"outputs": [{"facets": {"columnLineage": {"fields": {"a": 1}}}}]}, id="1"
            ),
            pytest.param(
                {"run": {"facets": {"sparkLineage_partitionCheck": {"reads": [1]}}}}, id="2"
            ),
            pytest.param(
                {"run": {"facets": {"sparkLineage_capture": {"degradations": 1}}}}, id="3"
            ),
            pytest.param({"outputs": [{"facets": {"schema": {"fields": [None, 1]}}}]}, id="4"),
            pytest.param({"job": {"name": {"constructor": []}}}, id="a name that is none"),
            pytest.param(
                {"inputs": [{"facets": {"schema": nested("fields", 300)}}]}, id="deep schema"
            ),
            pytest.param(
                {"inputs": [{"inputFacets": {"subset": {"inputCondition": nested("left", 300)}}}]},
                id="deep condition",
            ),
        ],
    ),
)
def test_what_is_missing_from_an_event_is_shown_empty(show, staging, change):
    page = show(staging | change)
    expect(page.locator("h2")).to_contain_text(
        "constructor" if "job" in change else "staging_chain"
    )


def test_where_nothing_was_accessed_there_is_nothing_to_search(show, staging):
    page = show(staging | {"inputs": [], "outputs": []})
    expect(page.locator(".side").first).to_contain_text("Nothing was read.")
    expect(page.get_by_role("searchbox")).to_have_count(0)


def test_words_that_every_object_of_the_browser_knows_are_words(show, staging):
    check = {"dataset": staging["inputs"][0] | {"facets": {}}, "status": "constructor"}
    check["from"] = [{"dimension": "dt", "value": str(n), "expressions": ["ds"]} for n in range(99)]
    facets = staging["run"]["facets"] | {"sparkLineage_partitionCheck": {"reads": [check]}}
    page = show(staging | {"run": {"facets": facets}})
    expect(page.locator("tbody .badge").first).to_have_text("constructor")
    expect(page.locator(".origin")).to_have_count(24)
    expect(page.locator(".partitions")).to_contain_text("and 75 more")


def test_two_events_can_be_chosen_from(show, staging):
    page = show(staging, staging | {"job": {"namespace": "n", "name": "second"}})
    page.get_by_label("Task").select_option("1")
    expect(page.locator("h2")).to_contain_text("second")


def test_a_masked_column_is_shown_as_masked(show):
    page = show(wide_event(datasets=1, columns=3))
    option(page, "written", "column_0 ").click()
    expect(page.locator(".details")).to_contain_text("masked")


def test_what_only_the_type_of_a_column_says_is_shown_of_its_sources(show):
    event = wide_event(1, 2)
    for field in event["outputs"][0]["facets"]["columnLineage"]["fields"].values():
        field["transformationType"] = "DIRECT:AGGREGATION"
        for source in field["inputFields"]:
            del source["transformations"]
    page = show(event)
    option(page, "written", "column_1").click()
    expect(page.locator(".row.lit .kind").first).to_have_text("aggregation")
    expect(page.locator("td", has_text="AGGREGATION")).to_have_count(2)


def test_a_dataset_has_its_part_and_a_mark_where_one_saw_it_alone(show):
    observed = Recorded("staging_chain").event
    entries = observed["run"]["facets"]["sparkLineage_capture"]["datasets"]
    accesses = [("part", "listener"), ("all", "both")]
    for entry, (accessed, witness) in zip(entries, accesses, strict=False):
        entry.update(accessed=accessed, witness=witness)
    written = show(observed).locator(".side").last.locator(".card")
    expect(written.nth(0)).to_contain_text("dt=2024-05-06")
    expect(written.nth(0)).to_contain_text("not seen by the observer")
    expect(written.nth(1)).to_contain_text("unpartitioned")
    expect(written.nth(1)).not_to_contain_text("observer")


def test_what_was_only_planned_and_what_failed_are_shown_as_that(show):
    event = Recorded("staging_chain").event
    entries = event["run"]["facets"]["sparkLineage_capture"]["datasets"]
    entries[0]["planned"], entries[1]["failed"] = 2, True
    written = show(event).locator(".side").last.locator(".card")
    expect(written.nth(0)).to_contain_text("2 only planned")
    expect(written.nth(1)).to_contain_text("was to be written, which failed")


def test_nothing_is_asked_of_any_server(new_page, tmp_path, staging):
    asked = []
    file = tmp_path / "lineage.html"
    file.write_text(page_files.self_contained([staging]), encoding="utf-8")
    page = new_page()
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri())
    expect(page.locator("h2")).to_be_visible()
    assert asked == [file.as_uri()]


# --- what is large -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def large():
    return wide_event(datasets=150, columns=200)


def elements(page):
    at_rest(page)
    return page.evaluate("document.getElementsByTagName('*').length")


def test_of_many_datasets_the_first_are_shown_until_all_are_asked_for(show, large):
    page = show(large)
    read = page.locator(".side").first
    expect(read.locator("h3")).to_have_text("Read150 datasets")
    expect(read.locator(".card")).to_have_count(10)
    read.get_by_role("button", name="Show all 150 datasets").click()
    expect(read.locator(".card")).to_have_count(150)
    read.get_by_role("button", name="Show the first 10 datasets").click()
    expect(read.locator(".card")).to_have_count(10)
    pane = page.locator(".pane").first
    row = pane.get_by_role("option").first
    expect(row).to_have_attribute("aria-setsize", "2000")
    pane.get_by_role("button", name="Show all 150 datasets").click()
    expect(row).to_have_attribute("aria-setsize", "30000")


def test_a_large_page_has_few_elements_whatever_is_done_with_it(show, large):
    page = show(large)
    assert elements(page) < 1000
    for button in reversed(page.get_by_role("button", name="Show all").all()):
        button.click()
    expect(page.locator(".card")).to_have_count(300)
    assert elements(page) < 5000
    written = listbox(page, "written")
    written.focus()
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    expect(page.locator(".row.lit").first).to_be_visible()
    assert elements(page) < 5000
    page.get_by_role("searchbox").fill("column_1")
    expect(page.get_by_role("search").get_by_role("status")).to_have_text(
        "300 datasets, 33,300 columns"
    )
    assert elements(page) < 5000


def test_cards_out_of_view_are_drawn_when_they_come_into_it(show, large):
    page = show(large)
    page.get_by_role("button", name="Show all").first.click()
    last = page.locator(".side").first.locator(".card").last
    expect(last).to_have_text("in_149")
    last.scroll_into_view_if_needed()
    expect(last).to_contain_text("200 columns")
    first = page.locator(".side").first.locator(".card").first
    expect(first).to_have_text("in_0")


def test_a_large_event_takes_little_of_a_file(large):
    assert len(page_files.self_contained([large])) < 2_000_000


def test_a_browser_that_cannot_inflate_says_so(new_page, tmp_path, staging):
    file = tmp_path / "lineage.html"
    file.write_text(page_files.self_contained([staging]), encoding="utf-8")
    page = new_page()
    page.add_init_script("delete globalThis.DecompressionStream")
    page.goto(file.as_uri())
    expect(page.get_by_role("status")).to_contain_text("This browser is too old for this page")


def test_in_airflow_each_partition_leads_to_its_history(airflow, staging):
    airflow.answers["lineage"] = done(staging)
    airflow.open()
    link = airflow.root.get_by_role("link", name="dt=2024-05-06").first
    of_history = re.compile(r"/plugin/spark-lineage-history\?.*partition=dt%3D2024-05-06")
    expect(link).to_have_attribute("href", of_history)
