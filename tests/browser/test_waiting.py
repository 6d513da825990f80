"""The tab while it waits: for its files, for an answer, for the end of a try, for other runs.

Airflow is played by answers of the test: only so can each of them be late.
"""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import expect

from tests.browser.airflow_double import NO_OTHERS, RUNNING, FakeAirflow, done, name_of
from tests.browser.events import partitioned_event, source
from tests.browser.settled import until
from tests.browser.test_accessibility import THEMES, broken, unclear
from tests.conftest import Recorded, long_after

LOOK_AGAIN_MS = 5000
EXPECTED = {
    "try_number": 1,
    "entries": [
        {
            "side": "write",
            "status": "expected",
            "dataset": {"namespace": "s3://lake", "name": "shop/revenue"},
            "expected": {"summary": "dt=2024-05-06"},
            "from": [source("2024-05-06")],
        },
        {
            "side": "either",
            "status": "expected",
            "dataset": {"namespace": "s3://lake", "name": "shop/orders"},
            "expected": {"summary": "dt=2024-05-05"},
        },
        {"side": "write", "status": "expected", "expected": {"summary": "dt=2024-05-06"}},
        {"side": "either", "status": "inferred", "from": [source("2024-05-06", "inferred", "")]},
    ],
    "unlisted": 2,
}


@pytest.fixture(scope="module")
def staging():
    return Recorded("staging_chain").event


def last_of(event, **more):
    more = {"run_id": "of 5", "try_number": 1, "map_index": -1, **more}
    return {"event": event, "links": {}, "date": "2024-05-05T00:00:00+00:00", **more}


# --- for files and the first answer ---------------------------------------------------------------


@pytest.mark.parametrize("late", long_after(1, ["lineage", "TaskTab", "shared"]))
def test_a_skeleton_shows_until_there_is_an_answer(airflow, staging, late):
    late = late if late == "lineage" else name_of(late)
    airflow.answers["lineage"] = done(staging)
    airflow.withhold(late)
    airflow.open()
    airflow.is_asked_for(late)
    expect(airflow.root.locator(".skeleton")).to_be_visible()
    expect(airflow.root).to_have_attribute("aria-busy", "true")
    expect(airflow.root.get_by_role("status")).to_have_text("Loading the lineage …")
    airflow.let_go(late)
    expect(airflow.root.locator("h2")).to_contain_text("staging_chain")
    expect(airflow.root.locator(".skeleton")).to_have_count(0)
    expect(airflow.root).to_have_attribute("aria-busy", "false")


def test_the_tab_is_busy_until_the_answer_is_drawn(airflow, staging):
    airflow.answers["lineage"] = done(staging)
    airflow.withhold("lineage")
    airflow.open()
    expect(airflow.root).to_have_attribute("aria-busy", "true")
    drawn = airflow.root.evaluate_handle("""main => ({ text: new Promise((resolve) => {
        const look = () => main.ariaBusy === "false" && resolve(main.innerText);
        new MutationObserver(look).observe(main, { attributeFilter: ["aria-busy"] });
    }) })""")
    airflow.let_go("lineage")
    assert "staging_chain" in drawn.evaluate("({ text }) => text")


def test_the_skeleton_is_still_for_who_wants_no_motion(airflow):
    airflow.withhold("lineage")
    airflow.open()
    skeleton = airflow.root.locator(".skeleton")
    expect(skeleton).to_have_css("animation-name", "skeleton")
    assert broken(airflow.page) == []
    airflow.page.emulate_media(reduced_motion="reduce")
    expect(skeleton).to_have_css("animation-name", "none")


def test_the_answer_is_asked_for_without_waiting_for_other_files(airflow):
    airflow.withhold(name_of("TaskTab"), name_of("shared"))
    airflow.open()
    airflow.is_asked_for("lineage")


def test_files_that_cannot_be_loaded_are_reported(chromium):
    page = chromium.new_page()  # whose console reports the file
    airflow = FakeAirflow(page)
    page.route(f"**/{name_of('TaskTab')}", lambda route: route.abort())
    airflow.open()
    expect(airflow.root).to_contain_text("could not be loaded")
    expect(airflow.root).to_have_attribute("aria-busy", "false")
    page.close()


def test_the_try_that_is_asked_for_is_the_one_that_is_chosen(airflow, staging):
    tries = {"tries": [1, 2], "latest": 2, "try_number": 2}
    airflow.answers["lineage"] = done(staging) | tries
    airflow.open()
    chosen = airflow.root.get_by_label("Try")
    expect(chosen).to_have_value("2")
    airflow.withhold("lineage")
    chosen.select_option("1")
    expect(airflow.root).to_have_attribute("aria-busy", "true")
    expect(chosen).to_have_value("1")


def test_what_cannot_be_drawn_is_a_sentence_until_another_try_is_chosen(chromium, staging):
    page = chromium.new_page()  # whose console reports what cannot be drawn
    airflow = FakeAirflow(page)
    tries = {"tries": [1, 2], "latest": 2, "try_number": 2}
    airflow.answers["lineage"] = RUNNING | tries | {"last": last_of(staging, date="never")}
    airflow.open()
    expect(airflow.root.get_by_role("status")).to_contain_text("The lineage cannot be shown (")
    airflow.answers["lineage"] = done(staging) | tries | {"try_number": 1}
    airflow.root.get_by_label("Try").select_option("1")
    expect(airflow.root.locator("h2")).to_contain_text("staging_chain")
    page.close()


# --- for the end of a try -------------------------------------------------------------------------


def test_while_a_try_runs_what_is_expected_shows(airflow):
    airflow.answers["lineage"] = RUNNING | {"expected": EXPECTED}
    airflow.open()
    expect(airflow.root.get_by_role("status")).to_have_text("This try has not ended.")
    rows = airflow.root.locator(".partitions tbody tr")
    expect(rows).to_have_count(4)
    cells = [row.locator("td").all_inner_texts()[:4] for row in rows.all()]
    assert cells == [
        ["shop/revenue", "to be written", "expected", "dt=2024-05-06"],
        ["shop/orders", "to be read or written", "expected", "dt=2024-05-05"],
        ["any output", "to be written", "expected", "dt=2024-05-06"],
        ["dates among the arguments", "", "inferred", "2024-05-06"],
    ]
    expect(rows.first).to_contain_text("{{ ds }}")
    expect(airflow.root.locator(".partitions")).to_contain_text("2 more are not listed.")


@pytest.mark.parametrize(
    ("last", "title"),
    long_after(
        1,
        [
            pytest.param({}, "Last run: 2024-05-05, until this one has ended", id="a day"),
            pytest.param(
                {"date": "2024-05-05T13:30:00+00:00"},
                "Last run: 2024-05-05 13:30 UTC, until this one has ended",
                id="a time",
            ),
            pytest.param(
                {"date": None},
                "Last run: of 5, until this one has ended",
                id="a run without a date",
            ),
            pytest.param(
                {"run_id": "of 6", "date": None},
                "Try 1 of this run, until this one has ended",
                id="an earlier try",
            ),
            pytest.param(
                {"run_id": "of 6", "map_index": 7},
                "Mapped instance 7 of this run, until this one has ended",
                id="a sibling",
            ),
        ],
    ),
)
def test_the_last_run_is_shown_as_what_it_is(airflow, staging, last, title):
    airflow.answers["lineage"] = RUNNING | {"last": last_of(staging, **last)}
    airflow.open()
    expect(airflow.root.locator(".last > h3")).to_have_text(title)
    expect(airflow.root.locator(".last .card")).to_have_count(5)


def test_the_last_run_leads_to_its_own_tab(airflow, staging):
    airflow.map_index = "7"
    airflow.answers["lineage"] = RUNNING | {"last": last_of(staging, try_number=2, map_index=7)}
    airflow.open()
    link = airflow.root.locator(".last > h3").get_by_role("link")
    of_last = "/runs/of%205/tasks/revenue/mapped/7/plugin/spark-lineage?try_number=2"
    expect(link).to_have_attribute("href", re.compile(f"{re.escape(of_last)}$"))


def test_a_queued_retry_shows_the_try_before(airflow, staging):
    message = "Try 2 is queued and has not begun; below is the lineage of try 1."
    before = last_of(staging | {"eventType": "FAIL"}, run_id="of 6", date=None)
    waits = {"state": "queued", "message": message, "last": before, "latest": 2, "try_number": 2}
    airflow.answers["lineage"] = RUNNING | waits
    airflow.open()
    expect(airflow.root.locator(".top .sentence")).to_have_text(message)
    expect(airflow.root.locator(".last > h3")).to_contain_text("Try 1 of this run")
    expect(airflow.root.locator(".last .card")).to_have_count(5)


def test_a_try_that_did_nothing_shows_what_was_expected_and_the_last_run(airflow, staging):
    nothing = staging | {"eventType": "FAIL", "inputs": [], "outputs": []}
    message = "Below is what was expected of this try, and the last run that succeeded."
    answer = {"state": "failed", "message": message, "expected": EXPECTED, "last": last_of(staging)}
    airflow.answers["lineage"] = done(nothing) | answer
    airflow.open()
    failed = "staging_chain failed before it read or wrote anything that is known."
    expect(airflow.root.locator("h2").first).to_contain_text(failed)
    expect(airflow.root.locator(".top .sentence")).to_have_text(message)
    expect(airflow.root.get_by_role("region", name="Missing or assumed")).to_have_count(2)
    expect(airflow.root.locator(".partitions tbody tr")).to_have_count(4)
    expect(airflow.root.locator(".last > h3")).to_have_text("Last run: 2024-05-05")
    expect(airflow.root.locator(".card")).to_have_count(5)  # of the last run alone
    assert broken(airflow.page) == []


def test_a_path_that_an_argument_names_is_not_expected(airflow):
    entry = {"dataset": {"namespace": "file", "name": "/lake/planes"}, "from": []}
    entries = [{**entry, "side": "either", "status": "named"}]
    airflow.answers["lineage"] = RUNNING | {"expected": EXPECTED | {"entries": entries}}
    airflow.open()
    cells = airflow.root.locator(".partitions tbody td")
    expect(cells).to_have_text(["/lake/planes", "", "named by an argument", "", ""])


def test_a_mapped_try_that_waits_has_its_index(airflow):
    airflow.map_index = "7"
    airflow.open()
    expect(airflow.root.get_by_role("status")).to_have_text("Map index 7. This try has not ended.")


def test_after_a_failure_nothing_is_awaited(airflow, staging):
    failed = {"state": "failed", "has_ended": True, "last": last_of(staging)}
    airflow.answers["lineage"] = RUNNING | failed
    airflow.open()
    expect(airflow.root.locator(".last > h3")).to_have_text("Last run: 2024-05-05")


def test_a_task_without_lineage_has_one_sentence(airflow):
    airflow.answers["lineage"] = RUNNING | {"message": "No Spark lineage.", "has_ended": True}
    airflow.open()
    expect(airflow.root.get_by_role("status")).to_have_text("No Spark lineage.")
    expect(airflow.root.locator("section, h2, h3, table")).to_have_count(0)


@pytest.mark.parametrize("theme", THEMES)
def test_grey_can_be_read(airflow, staging, theme):
    airflow.answers["lineage"] = RUNNING | {"last": last_of(staging), "expected": EXPECTED}
    airflow.open()
    airflow.page.evaluate(f"document.documentElement.className = '{theme}'")
    expect(airflow.root).to_have_attribute("data-theme", theme)
    written = airflow.root.get_by_role("listbox", name="Columns written")
    for column in ("revenue", "amount_eur"):
        written.get_by_role("option", name=column).first.click()
        assert broken(airflow.page) == []
        assert unclear(airflow.page) == []


def test_what_was_chosen_stays_chosen_when_the_try_has_ended(airflow, staging):
    airflow.page.clock.install()
    airflow.answers["lineage"] = RUNNING | {"last": last_of(staging)}
    airflow.open()
    written = airflow.root.get_by_role("listbox", name="Columns written")
    written.get_by_role("option", name="revenue").click()
    airflow.answers["lineage"] = done(staging)
    airflow.page.clock.run_for(LOOK_AGAIN_MS)
    expect(airflow.root.locator(".state")).to_have_text("COMPLETE")
    expect(airflow.root.locator(".greyed")).to_have_count(0)
    expect(airflow.root.get_by_role("option", selected=True)).to_contain_text("revenue")


def test_what_is_expected_appears_when_the_job_has_begun(airflow):
    airflow.page.clock.install()
    airflow.open()
    expect(airflow.root.get_by_role("status")).to_have_text("This try has not ended.")
    airflow.answers["lineage"] = RUNNING | {"expected": EXPECTED, "expected_at": "2024-05-06"}
    airflow.page.clock.run_for(LOOK_AGAIN_MS)
    expect(airflow.root.locator(".partitions tbody tr")).to_have_count(4)


def test_nothing_is_asked_for_again_while_nothing_changes(airflow):
    airflow.page.clock.install()
    airflow.open()
    expect(airflow.root.get_by_role("status")).to_have_text("This try has not ended.")

    def is_state_known():
        airflow.page.clock.run_for(LOOK_AGAIN_MS)
        return airflow.asked.count("state") > 2  # so that two answers have been looked at

    until(airflow.page, is_state_known, lambda: f"asked for: {airflow.asked}")
    assert airflow.asked.count("lineage") == 1


# --- for other runs -------------------------------------------------------------------------------


@pytest.fixture
def days():
    """Make an event that wrote one day, and the answer of other runs that wrote others."""
    event = partitioned_event({}, {"shop/revenue": {"named": [{"dt": "2024-05-06"}]}})
    written = [{"dt": f"2024-05-{n:02}"} for n in (1, 2, 3, 5, 7)]
    of_revenue = {"side": "written", "namespace": "s3://lake", "name": "shop/revenue"}
    others = {"runs": 5, "datasets": [{**of_revenue, "partitions": written}], "note": ""}
    return event, others


ALONE = "dt from 2024-04-07 to 2024-05-06. written: 2024-05-06."
WITH_OTHERS = (
    "dt from 2024-04-08 to 2024-05-07. written: 2024-05-06; written by other runs: "
    "2024-05-01 to 2024-05-03, 2024-05-05, 2024-05-07."
)


def test_the_strip_gets_other_runs_when_they_are_known(airflow, days):
    event, others = days
    airflow.answers |= {"lineage": done(event), "partitions": others}
    airflow.withhold("partitions")
    airflow.open()
    strip = airflow.root.locator(".card .strip svg")
    expect(strip).to_have_attribute("aria-label", ALONE)
    airflow.is_asked_for("partitions")
    expect(airflow.root.locator(".legend")).not_to_contain_text("by another run")
    airflow.let_go("partitions")
    expect(strip).to_have_attribute("aria-label", WITH_OTHERS)
    expect(airflow.root.locator(".legend")).to_contain_text("by another run of this task")
    expect(airflow.root.locator(".legend .note")).to_have_text("Other runs that are known: 5.")
    assert broken(airflow.page) == []


@pytest.mark.parametrize(
    ("answer", "note"),
    long_after(
        1,
        [
            pytest.param(
                NO_OTHERS | {"note": "The archive is away."}, "The archive is away.", id="note"
            ),
            pytest.param(NO_OTHERS, "Other runs that are known: 0.", id="none"),
        ],
    ),
)
def test_without_other_runs_the_strip_is_of_this_one(airflow, days, answer, note):
    airflow.answers |= {"lineage": done(days[0]), "partitions": answer}
    airflow.open()
    expect(airflow.root.locator(".legend .note")).to_have_text(note)
    expect(airflow.root.locator(".card .strip svg")).to_have_attribute("aria-label", ALONE)


def test_a_server_that_fails_is_reported_next_to_the_strip(chromium, days):
    page = chromium.new_page()  # whose console reports the 500
    airflow = FakeAirflow(page)
    airflow.answers |= {"lineage": done(days[0]), "partitions": 500}
    airflow.open()
    expect(airflow.root.locator(".legend .note")).to_have_text(
        "Other runs are not shown (Airflow answered 500)."
    )
    page.close()


def test_nobody_asks_for_other_runs_of_what_has_no_dates(airflow, staging):
    text = re.sub(r"2024-05(-06)?", "eu", json.dumps(staging))
    airflow.answers["lineage"] = done(json.loads(text))
    airflow.open()
    expect(airflow.root.locator("h2")).to_be_visible()
    airflow.page.wait_for_load_state("networkidle")
    assert "partitions" not in airflow.asked
