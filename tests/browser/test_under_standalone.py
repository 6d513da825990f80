"""The tab under ``airflow standalone``: a task that fails, is tried again and succeeds."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

TASK_TIMEOUT_S = 180  # of two tries under a scheduler, each in a process of its own


@pytest.fixture
def tab(new_page, standalone, standalone_session):
    """Open the task instance, and its tab; gives the page and what is in the tab."""

    def open_tab():
        page = new_page(standalone_session)
        page.goto(standalone.task_instance(TASK_TIMEOUT_S))
        # Not the page of that name in the navigation.
        page.locator("a[href$='/plugin/spark-lineage']").first.click()
        return page, page.locator("[data-sparklineage] main")

    return open_tab


@pytest.mark.long
def test_an_open_tab_follows_its_task(tab, standalone):
    _, latest = tab()
    # Of the second try, which runs until it is released.
    expect(latest.get_by_label("Try")).to_have_value("2", timeout=TASK_TIMEOUT_S * 1000)
    expect(latest.get_by_role("status")).to_contain_text("has not ended")
    # Pushed by the worker when the try began, some time after Airflow had set it to running.
    because = "dt=2024-05-06 ← literal writes[0], declared"
    row = ["/lake/revenue", "to be written", "expected", "dt=2024-05-06", because]
    expect(latest.locator(".partitions tbody td")).to_have_text(row)
    page, earlier = tab()
    earlier.get_by_label("Try").select_option("1")
    expect(earlier.locator(".state")).to_have_text("FAIL")
    written = earlier.get_by_role("listbox", name="Columns written")
    written.get_by_role("option", name="revenue").click()
    earlier.get_by_role("searchbox").fill("re")

    # The other tab asks for its lineage again when the task has ended.
    with page.expect_response("**/lineage?*", timeout=TASK_TIMEOUT_S * 1000):
        standalone.release()
    # The one shows what there is now; the other one what its reader has made of it.
    expect(latest.locator(".state")).to_have_text("COMPLETE", timeout=TASK_TIMEOUT_S * 1000)
    expect(earlier.get_by_label("Try")).to_have_value("1")
    expect(written.get_by_role("option", selected=True)).to_contain_text("revenue")
    expect(earlier.get_by_role("searchbox")).to_have_value("re")
    # Nobody asks for what will not change any more.
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_timeout(7_000)
    assert [url for url in asked if "/sparklineage/" in url] == []
