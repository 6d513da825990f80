"""The page as one file, in a browser: what is large, what is hostile, and keys."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import expect

from airflow_provider_sparklineage.plugins import page as page_files
from tests.browser.events import wide_event
from tests.conftest import Recorded

HOSTILE = [
    pytest.param("<img src=x onerror=alert(1)>", id="markup"),
    pytest.param("</script><script>alert(1)</script>", id="end of script"),
    pytest.param("\"'`&amp;{{ds}}", id="quotes"),
    pytest.param("a\0b\x1b[31m", id="control characters"),
    pytest.param("\u202egnp.exe", id="right to left"),
    pytest.param("x" * 20_000, id="very long"),
    pytest.param("\ud800", id="half a character"),
    pytest.param("__proto__", id="prototype"),
    pytest.param("", id="empty"),
]


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


def option(page, side, name):
    box = page.get_by_role("listbox", name=f"Columns {side}")
    return box.get_by_role("option", name=name).first


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
    [
        pytest.param({"inputs": None, "outputs": None}, id="nothing accessed"),
        pytest.param({"outputs": [{"namespace": "n", "name": "x", "facets": []}]}, id="no facets"),
        pytest.param({"outputs": [{"facets": {"columnLineage": {"fields": {"a": 1}}}}]}, id="1"),
        pytest.param({"run": {"facets": {"sparkLineage_partitionCheck": {"reads": [1]}}}}, id="2"),
        pytest.param({"run": {"facets": {"sparkLineage_capture": {"degradations": 1}}}}, id="3"),
        pytest.param({"outputs": [{"facets": {"schema": {"fields": [None, 1]}}}]}, id="4"),
        pytest.param({"job": {"name": {"constructor": []}}}, id="a name that is none"),
        pytest.param({"inputs": [{"facets": {"schema": nested("fields", 300)}}]}, id="deep schema"),
        pytest.param(
            {"inputs": [{"inputFacets": {"subset": {"inputCondition": nested("left", 300)}}}]},
            id="deep condition",
        ),
    ],
)
def test_what_is_missing_from_an_event_is_shown_empty(show, staging, change):
    page = show(staging | change)
    expect(page.locator("h2")).to_contain_text(
        "constructor" if "job" in change else "staging_chain"
    )


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


def test_all_of_it_works_by_keys(show, staging):
    page = show(staging)
    page.get_by_role("searchbox").focus()
    page.keyboard.press("Tab")  # the checkbox
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    chosen = page.get_by_role("option", selected=True)
    expect(chosen).to_contain_text("revenue")
    page.keyboard.press("ArrowLeft")
    focused = page.evaluate("document.activeElement.querySelector('.column').textContent")
    assert focused == "amount"
    page.keyboard.press("Escape")
    expect(chosen).to_have_count(0)


def test_a_source_shows_what_is_made_of_it(show, staging):
    page = show(staging)
    option(page, "read", "rate").click()
    expect(page.locator(".row.lit .column")).to_have_text(["revenue", "amount_eur"])
    expect(page.locator(".details")).to_contain_text("Goes into")


def test_many_columns_are_narrowed_to_what_matters(show):
    page = show(wide_event(datasets=5, columns=100))
    expect(page.get_by_role("option")).to_have_count(500 * 2)
    option(page, "written", "column_42 ").click()
    visible = page.locator(".pane").first.locator(".row:visible")
    expect(visible).to_have_count(3)
    page.get_by_role("checkbox").uncheck()
    assert page.locator(".pane").first.locator(".row:visible").count() == 500
    page.get_by_role("searchbox").fill("column_99")
    expect(page.locator(".pane").first.locator(".row:visible")).to_have_count(5)


def test_a_source_far_down_comes_into_sight(show):
    page = show(wide_event(datasets=5, columns=100))
    page.get_by_role("checkbox").uncheck()
    written = page.get_by_role("listbox", name="Columns written")
    written.get_by_role("group", name="out_3").get_by_role("option", name="column_42").click()
    expect(page.locator(".row.lit").first).to_be_in_viewport(ratio=1)
    expect(page.locator(".row.lit").first).to_contain_text("column_42")


def test_a_masked_column_is_shown_as_masked(show):
    page = show(wide_event(datasets=1, columns=3))
    option(page, "written", "column_0 ").click()
    expect(page.locator(".details")).to_contain_text("masked")


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
