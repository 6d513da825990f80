"""The tab on a task instance, in a browser: what the operator pushed is what a person sees."""

from __future__ import annotations

import re
import urllib.request

import pytest
from playwright.sync_api import expect

from tests.browser.auth_manager import DENIED_DAG, DENIED_USER
from tests.browser.conftest import ADMIN, logged_in
from tests.browser.dag_runs import OTHER_WEB_URL

# As red, green and blue, in whatever form the browser gives it.
BACKGROUND = """element => {
    const drawing = new OffscreenCanvas(1, 1).getContext("2d");
    drawing.fillStyle = getComputedStyle(element).backgroundColor;
    drawing.fillRect(0, 0, 1, 1);
    return [...drawing.getImageData(0, 0, 1, 1).data].slice(0, 3);
}"""
# Airflow's own names of some of its colours and fonts, with ours.
NAMES = {
    "--chakra-colors-bg": "--back",
    "--chakra-colors-fg": "--ink",
    "--chakra-fonts-body": "--font",
}
VALUES = """(element, names) => {
    const look = getComputedStyle(element);
    return names.map((name) => look.getPropertyValue(name));
}"""


@pytest.fixture
def tab(new_page, session, server):
    """Open the tab of a task instance; gives what is inside of it."""

    def open_tab(task_id, user=ADMIN, scheme="light"):
        page = new_page(session(user))
        page.emulate_media(color_scheme=scheme)
        page.goto(server.tab(task_id))
        return page.locator("[data-sparklineage] main")

    return open_tab


# --- in the browser -------------------------------------------------------------------------------


def test_the_tab_shows_what_the_operator_pushed(tab):
    root = tab("revenue")
    expect(root.locator("h2")).to_contain_text("lineage_shown.revenue")
    expect(root.locator(".state")).to_have_text("COMPLETE")
    expect(root.locator(".card .label bdi")).to_have_text(
        ["customers", "orders", "rates", "revenue", "enriched_orders"]
    )
    expect(root.locator(".partitions tbody tr")).to_have_count(1)
    expect(root.locator(".partitions")).to_contain_text("{{ ds }}")


def test_a_column_that_is_clicked_highlights_its_sources(tab):
    root = tab("revenue")
    written = root.get_by_role("listbox", name="Columns written")
    written.get_by_role("option", name="revenue").click()
    read = root.get_by_role("listbox", name="Columns read")
    expect(read.locator(".row.lit .column")).to_have_text(["amount", "rate"])
    expect(read.locator(".row.lit").last.locator(".kind")).to_have_text(["aggregation"])
    details = root.locator(".details")
    expect(details).to_contain_text("DIRECT")
    expect(details).to_contain_text("sum((amount * rate))")
    expect(root.locator(".card.lit .label bdi")).to_have_text(["orders", "rates", "revenue"])


def test_datasets_and_job_lead_to_the_lineage_backend(tab):
    root = tab("revenue")
    job = root.locator("nav").get_by_role("link", name="in Marquez: latest run")
    url = re.compile("^http://marquez.example:3000/lineage/job/tests/lineage_shown.revenue")
    expect(job).to_have_attribute("href", url)
    expect(root.locator(".card").get_by_text("in Marquez: latest run")).to_have_count(5)


def test_they_lead_to_the_one_of_the_task_s_own_connection(tab):
    job = tab("mapped/mapped/0").locator("nav").get_by_role("link", name="in Marquez")
    expect(job).to_have_attribute("href", re.compile(f"^{OTHER_WEB_URL}/lineage/job/tests/"))


def test_an_earlier_try_is_shown_from_the_archive(tab):
    root = tab("revenue")
    expect(root.locator(".state")).to_have_text("COMPLETE")
    root.get_by_label("Try").select_option("1")
    expect(root.locator(".state")).to_have_text("FAIL")


def test_the_try_and_the_column_are_in_the_address(tab):
    root = tab("revenue")
    root.get_by_label("Try").select_option("1")
    expect(root.locator(".state")).to_have_text("FAIL")
    written = root.get_by_role("listbox", name="Columns written")
    written.get_by_role("option", name="revenue").click()
    address = (
        "/tasks/revenue/plugin/spark-lineage?try_number=1&side=to&namespace=file"
        "&name=%2Flake%2Frevenue&column=revenue"
    )
    expect(root.page).to_have_url(re.compile(f"{re.escape(address)}$"))
    root.page.reload()
    expect(root.locator(".state")).to_have_text("FAIL")
    expect(root.locator(".row[aria-selected=true]")).to_contain_text("revenue")
    root.page.go_back()
    expect(root.locator(".row[aria-selected=true]")).to_have_count(0)
    expect(root.locator(".state")).to_have_text("FAIL")
    root.page.go_back()
    expect(root.locator(".state")).to_have_text("COMPLETE")


def test_a_card_leads_to_its_dataset_in_the_history(tab):
    root = tab("revenue")
    link = root.get_by_role("link", name="all partitions, of all runs of orders", exact=True)
    expect(link).to_have_count(1)
    path = "/plugin/spark-lineage-history?namespace=file&name=%2Flake%2Forders"
    expect(link).to_have_attribute("href", re.compile(f"{re.escape(path)}$"))


def test_each_instance_of_a_mapped_task_has_its_own_lineage(tab):
    first, second = tab("mapped/mapped/0"), tab("mapped/mapped/1")
    for index, root in enumerate((first, second)):
        expect(root.locator("h2")).to_contain_text(f"lineage_shown.mapped [{index}] read ")
    assert (
        first.locator("header .facts").inner_text() != second.locator("header .facts").inner_text()
    )


def test_what_another_instance_accessed_is_in_the_strip(tab):
    root = tab("mapped/mapped/0")
    text = "Of 1 of 1 other runs some partitions are not known."
    expect(root.locator(".legend .note")).to_have_text(text)
    expect(root.locator(".legend")).to_contain_text("by another run of this task")


def test_a_task_without_spark_lineage_has_one_sentence(tab):
    root = tab("plain")
    expect(root.get_by_role("status")).to_contain_text("This task has no Spark lineage")
    expect(root.locator("h2")).to_have_count(0)


def test_a_session_that_has_ended_is_reported(chromium, server):
    context = logged_in(chromium, server.url, ADMIN)
    page = context.new_page()  # whose console reports the 401
    page.goto(server.tab("revenue"))
    root = page.locator("[data-sparklineage] main")
    expect(root.locator(".state")).to_have_text("COMPLETE")
    context.clear_cookies()
    root.get_by_label("Try").select_option("1")
    expect(root.locator(".sentence")).to_contain_text("Your session has ended")
    context.close()


@pytest.mark.parametrize(("scheme", "dark"), [("dark", True), ("light", False)])
def test_the_tab_has_the_theme_of_airflow(tab, scheme, dark):
    root = tab("revenue", scheme=scheme)
    expect(root.locator("h2")).to_be_visible()
    assert (max(root.evaluate(BACKGROUND)) < 64) is dark
    of_airflow, ours = (root.evaluate(VALUES, [*names]) for names in (NAMES, NAMES.values()))
    assert ours == of_airflow
    assert all(of_airflow)


# --- what the API server answers ------------------------------------------------------------------


def test_without_a_session_there_is_no_lineage(server):
    status, body = server.get(server.lineage("revenue"))
    assert (status, "event" in body) == (401, False)


def test_nor_with_one_that_is_made_up(server):
    status, body = server.get(server.lineage("revenue"), "made.up.token")
    assert (status, "event" in body) == (403, False)  # as of all of Airflow's API


def test_a_user_without_access_to_the_dag_is_refused(server):
    visitor, admin = server.token(DENIED_USER), server.token(ADMIN)
    path = server.lineage("revenue", DENIED_DAG)
    status, body = server.get(path, visitor)
    assert (status, "event" in body) == (403, False)
    assert server.get(path, admin)[1]["event"]["job"]["name"] == f"{DENIED_DAG}.revenue"
    assert server.get(server.lineage("revenue"), visitor)[0] == 200
    partitions = path.replace("/lineage?", "/partitions?")
    assert [server.get(partitions, token)[0] for token in (None, visitor, admin)] == [401, 403, 200]


def test_the_permission_is_that_of_the_dag_whose_lineage_is_shown(server):
    """A second DAG's name next to the one in the path opens nothing."""
    path = server.lineage("revenue", DENIED_DAG) + "&dag_id=lineage_shown"
    assert server.get(path, server.token(DENIED_USER))[0] == 403


def test_a_task_instance_that_is_not_there(server):
    assert server.get(server.lineage("nosuch"), server.token(ADMIN))[0] == 404


def test_an_event_is_of_the_try_that_is_asked_for(server):
    token = server.token(ADMIN)
    _, latest = server.get(server.lineage("revenue"), token)
    _, first = server.get(server.lineage("revenue", try_number=1), token)
    _, third = server.get(server.lineage("revenue", try_number=3), token)
    assert (latest["try_number"], latest["tries"]) == (2, [1, 2])
    assert latest["event"]["run"]["runId"] != first["event"]["run"]["runId"]
    assert (third["event"], third["message"][:13]) == (None, "This task has")


def test_only_files_of_the_page_are_served(server):
    with urllib.request.urlopen(f"{server.url}/sparklineage/page/tab.js") as answer:
        assert answer.headers["content-type"].startswith("text/javascript")
    for name in ("__init__.py", "file.js", "..%2Fsettings.py", "docs", ""):
        assert server.get(f"/sparklineage/page/{name}")[0] == 404
    for path in ("docs", "openapi.json", "redoc"):
        assert server.get(f"/sparklineage/{path}")[0] == 404
