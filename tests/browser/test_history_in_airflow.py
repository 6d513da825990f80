"""The page in Airflow's navigation, of an API server that has no history yet."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.auth_manager import DENIED_USER
from tests.browser.conftest import ADMIN

DATASETS = "/sparklineage/api/history/datasets"


def test_the_page_is_in_the_navigation_and_names_what_to_run(new_page, session, server):
    page = new_page(session(ADMIN))
    page.goto(server.url)
    page.get_by_role("link", name="Spark lineage").click()
    root = page.locator("[data-sparklineage-page] main")
    expect(root.get_by_role("heading", name="Spark lineage")).to_be_visible()
    expect(root.get_by_role("status")).to_contain_text("There is no history at")
    expect(root.locator("pre")).to_have_text("airflow sparklineage history build")


def test_tab_and_page_do_not_take_each_other_s_place(new_page, session, server):
    page = new_page(session(ADMIN))
    page.goto(server.tab("revenue"))
    expect(page.locator("[data-sparklineage] main h2")).to_be_visible()
    page.get_by_role("link", name="Spark lineage").first.click()
    expect(page.locator("[data-sparklineage-page] main h1")).to_be_visible()


def test_the_endpoints_want_a_session(server):
    assert server.get(DATASETS)[0] == 401
    assert server.get(DATASETS, server.token(DENIED_USER))[0] == 200
