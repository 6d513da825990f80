"""The page in Airflow's navigation: of an API server without a history, and with a month of one."""

from __future__ import annotations

import json
import re
import urllib.parse
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser import recorded_flights
from tests.browser.auth_manager import DENIED_DAG, DENIED_USER
from tests.browser.conftest import ADMIN, READER
from tests.browser.recorded_flights import DAG_ID, DAY, DENIED_DAY, FLIGHTS
from tests.browser.settled import at_rest

API = "/sparklineage/api/history"
DATASETS, HEALTH = f"{API}/datasets", f"{API}/health"
PARTITION = {**FLIGHTS, "partition": f"flight_date={DAY}"}
TO_CLEAR = {
    ("daily_delays", DAY),
    *(("weekly_report", f"2013-01-{day}") for day in range(15, 22)),
}


@pytest.fixture
def url(archive):
    """Give the store's URL, where there is nothing."""
    return f"{archive.url}-history"


@pytest.fixture
def no_history(url):
    store = Path(url.removeprefix("file://"))
    aside = store.with_suffix(".aside")
    if store.exists():
        store.rename(aside)
    yield
    if aside.exists():
        aside.rename(store)


@pytest.fixture
def history(url):
    """Build the month, once."""
    if not Path(url.removeprefix("file://")).exists():
        recorded_flights.build(url, recorded_flights.denied(), *recorded_flights.of_no_dag())


def asked(what, **query):
    return f"{API}/{what}?{urllib.parse.urlencode(query)}"


def page_of(server, **place):
    return f"{server.url}/plugin/spark-lineage-history?{urllib.parse.urlencode(place)}"


# --- without a history ----------------------------------------------------------------------------


def test_the_page_is_in_the_navigation_and_names_what_to_run(new_page, session, server, no_history):
    page = new_page(session(ADMIN))
    page.goto(server.url)
    link = page.get_by_role("link", name="Lineage", exact=True)
    expect(link.locator("img")).to_have_attribute("src", re.compile("^data:image/svg"))
    link.click()
    root = page.locator("[data-sparklineage-page] main")
    expect(root.get_by_role("heading", name="Lineage", exact=True)).to_be_visible()
    expect(root.get_by_role("status")).to_contain_text("There is no history at")
    expect(root.locator("pre")).to_have_text("airflow sparklineage history build")


def test_tab_and_page_do_not_take_each_other_s_place(new_page, session, server, no_history):
    page = new_page(session(ADMIN))
    page.goto(server.tab("revenue"))
    expect(page.locator("[data-sparklineage] main h2")).to_be_visible()
    page.get_by_role("link", name="Lineage", exact=True).click()
    expect(page.locator("[data-sparklineage-page] main h1")).to_be_visible()


def test_the_endpoints_want_a_session(server):
    assert server.get(DATASETS)[0] == 401
    assert server.get(DATASETS, server.token(DENIED_USER))[0] == 200


# --- with the month of flights --------------------------------------------------------------------


def test_names_of_a_dag_that_a_user_may_not_see_are_in_no_answer(server, history):
    questions = [
        DATASETS,
        asked("partitions", **FLIGHTS),
        asked("partitions", **FLIGHTS, quick="true"),
        asked("graph", **FLIGHTS),
        asked("graph", **PARTITION),
        asked("plan", **FLIGHTS),
    ]
    answers = {
        user: [server.get(question, server.token(user)) for question in questions]
        for user in (ADMIN, DENIED_USER)
    }
    assert {status for found in answers.values() for status, _ in found} == {200}
    of_admin, of_visitor = (json.dumps(answers[user]) for user in (ADMIN, DENIED_USER))
    assert [(name in of_admin, name in of_visitor) for name in (DENIED_DAG, DENIED_DAY)] == [
        (True, False),
        (True, False),
    ]
    hidden = asked("graph", **{**FLIGHTS, "partition": f"flight_date={DENIED_DAY}"})
    assert server.get(hidden, server.token(DENIED_USER))[0] == 404
    assert server.get(hidden, server.token(ADMIN))[0] == 200


def test_runs_that_belong_to_no_dag_are_for_those_who_may_read_all_dags(server, history):
    seen = {
        user: json.dumps([server.get(one, server.token(user)) for one in (DATASETS, HEALTH)])
        for user in (ADMIN, READER, DENIED_USER)
    }
    for name in ("delays_by_dbt", "delays_by_deleted"):
        assert [user for user, text in seen.items() if name in text] == [ADMIN, READER]
    of_dbt = asked("partitions", namespace="file", name="/lake/delays_by_dbt", dag_id=DAG_ID)
    assert server.get(of_dbt, server.token(READER))[0] == 200
    assert server.get(of_dbt, server.token(DENIED_USER))[0] == 404


def test_the_page_opens_on_what_is_stale_and_a_click_keeps_its_address(
    new_page, session, server, history
):
    page = new_page(session(ADMIN))
    page.goto(f"{server.url}/plugin/spark-lineage-history")
    root = page.locator("[data-sparklineage-page] main")
    expect(root.get_by_role("button", name="stale 8", exact=True)).to_be_visible()
    troubled = root.get_by_role("listbox", name="Datasets that need you")
    troubled.get_by_role("option", name="daily_delays").click()
    expect(root.get_by_role("button", name="stale 1", exact=True)).to_be_visible()
    address = f"{server.url}/plugin/spark-lineage-history?namespace=file&name="
    expect(page).to_have_url(re.compile(f"^{re.escape(address)}"))
    page.reload()
    expect(root.get_by_role("button", name="stale 1", exact=True)).to_be_visible()
    page.go_back()
    expect(troubled).to_be_visible()
    root.get_by_role("button", name="What to run again").click()
    expect(root.get_by_role("button", name="Clear 8 task instances")).to_be_visible()


def test_lists_fill_the_window_of_airflow_which_gets_no_scroll_bar(
    new_page, session, server, history
):
    page = new_page(session(ADMIN))
    page.goto(f"{server.url}/plugin/spark-lineage-history")
    root = page.locator("[data-sparklineage-page] main")
    listed = root.get_by_role("listbox", name="Datasets that need you")
    expect(root.get_by_role("button", name="stale 8", exact=True)).to_be_visible()
    expect(listed).to_be_visible()
    at_rest(page)
    box = listed.bounding_box()
    height = page.viewport_size["height"]
    assert height - 80 <= box["y"] + box["height"] <= height
    host = page.locator("[data-sparklineage-page]")
    assert host.evaluate("host => host.scrollHeight <= host.clientHeight")


def test_who_may_not_clear_has_no_button_and_airflow_refuses(new_page, session, server, history):
    page = new_page(session(DENIED_USER))
    page.goto(page_of(server, **PARTITION))
    page.get_by_role("button", name="Run again").click()
    plan = page.locator(".plan").get_by_role("table")
    expect(plan.get_by_text("You may not clear it.")).to_have_count(len(TO_CLEAR))
    expect(plan.get_by_role("button", name="Clear")).to_have_count(0)
    body = {"dry_run": False, "dag_run_id": DAY, "task_ids": ["daily_delays"]}
    path = f"/api/v2/dags/{DAG_ID}/clearTaskInstances"
    assert server.post(path, body, server.token(DENIED_USER)) == 403
    assert cleared(server) == set()


def test_a_day_that_was_written_anew_is_found_and_what_was_made_of_it_cleared(
    new_page, session, server, history
):
    page = new_page(session(ADMIN))
    page.goto(f"{server.url}/plugin/spark-lineage-history")
    root = page.locator("[data-sparklineage-page] main")
    root.get_by_role("searchbox", name="Find a dataset").fill("daily delays")
    root.get_by_role("searchbox", name="Find a dataset").fill("daily_delays")
    found = root.get_by_role("listbox", name="Datasets", exact=True)
    expect(found.get_by_role("option")).to_have_count(1)
    found.get_by_role("option", name="daily_delays").click()
    expect(root.get_by_role("button", name="fresh 29")).to_be_visible()
    expect(root.get_by_role("button", name="stale 1", exact=True)).to_be_visible()
    root.get_by_role("gridcell", name=f"{DAY}, stale").click()
    expect(root.get_by_text("was written again")).to_contain_text(f"flights flight_date={DAY}")
    expect(root.locator(".react-flow__node").first).to_be_visible()

    page.goto(page_of(server, **PARTITION))
    root.get_by_role("button", name="Run again").click()
    plan = root.locator(".plan").get_by_role("table")
    expect(plan.get_by_role("checkbox")).to_have_count(len(TO_CLEAR))
    plan.get_by_role("button", name="Clear 8 task instances").click()
    assert cleared(server) == set()
    page.get_by_role("dialog").get_by_role("button", name="Clear", exact=True).click()
    expect(plan.get_by_role("status")).to_have_text("Cleared 8 task instances.")
    assert cleared(server) == TO_CLEAR


def cleared(server):
    """Give the task instances that are to run, of those that had all succeeded."""
    path = f"/api/v2/dags/{DAG_ID}/dagRuns/~/taskInstances?limit=1000"
    status, found = server.get(path, server.token(ADMIN))
    assert (status, found["total_entries"]) == (200, 90)
    return {
        (one["task_id"], one["dag_run_id"])
        for one in found["task_instances"]
        if one["state"] != "success"
    }
