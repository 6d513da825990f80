"""The demo's Airflow in a browser: the tab of a task, the page, and the form of a connection.

The page answers from the history of the recorded month of flights, in which something is stale.
"""

from __future__ import annotations

import re
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from playwright.sync_api import expect

from tests.browser import month, recorded_flights
from tests.browser.serving import api_server
from tests.pictures import demo
from tests.pictures.screen import TIMEOUT_S, new_context

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from playwright.sync_api import Browser, BrowserContext, Locator, Page, Route

_SETTINGS = {
    "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
    "AIRFLOW__OPENLINEAGE__NAMESPACE": "flights",  # that of the recorded month
    "AIRFLOW__SPARKLINEAGE__HISTORY_MERGED_BY": "command",
    "AIRFLOW__SPARKLINEAGE__WEB_URL": "http://marquez:3000",
}
# As the README makes it.
_CONNECTION = {
    "connection_id": "sparklineage_default",
    "conn_type": "sparklineage",
    "host": "http://marquez:5000",
    "extra": '{"web_url": "http://marquez:3000", '
    '"transport": {"type": "http", "url": "http://marquez:5000"}}',
}


@contextmanager
def demo_airflow(browser: Browser) -> Iterator[Airflow]:
    """Start an API server on what the demo has left."""
    history = (demo.FOLDER / "month").as_uri()
    recorded_flights.build(history)
    settings = _SETTINGS | {"AIRFLOW__SPARKLINEAGE__HISTORY_URL": history}
    with api_server(demo.environment() | settings, demo.FOLDER / "api_server.log") as url:
        context = new_context(browser)
        yield Airflow(url, context)
        context.close()


class Airflow:
    """An API server that knows the demo's runs, in a window of a browser."""

    def __init__(self, url: str, context: BrowserContext) -> None:
        self._url = url
        self._context = context
        context.route("**/sparklineage/api/**", _equal_everywhere)
        page = context.new_page()
        page.goto(url)  # which logs in
        page.get_by_text("Dags", exact=True).first.wait_for()
        page.close()

    def tab(self, task_id: str, day: datetime, dag_id: str = demo.DAG_ID) -> Page:
        """Open the tab of a task in the run of a day."""
        page = self._context.new_page()
        run_id = quote(self._run_id(day, dag_id), safe="")
        page.goto(f"{self._url}/dags/{dag_id}/runs/{run_id}/tasks/{task_id}")
        # The navigation has a link of that name as well.
        page.get_by_test_id("main-content").get_by_role("link", name="Spark lineage").click()
        lineage(page).locator("h2, [role=status]").first.wait_for()
        return page

    def page(self) -> Page:
        """Open the page as people do: by its entry in the navigation."""
        page = self._context.new_page()
        page.goto(self._url)
        page.get_by_role("link", name="Lineage", exact=True).click()
        return page

    def tab_while_running(self, task_id: str) -> Page:
        """Open the tab of a task of the next day, as soon as it runs."""
        deadline = time.monotonic() + TIMEOUT_S
        while self._state(task_id, demo.NEXT_DAY) != "running":
            if time.monotonic() > deadline:
                message = f"{task_id} did not run within {TIMEOUT_S} s."
                raise TimeoutError(message)
            time.sleep(0.2)
        return self.tab(task_id, demo.NEXT_DAY)

    def connection_form(self) -> Locator:
        """Open the form of the connection that the README makes."""
        connections = f"{self._url}/api/v2/connections"
        self._context.request.delete(f"{connections}/{_CONNECTION['connection_id']}")
        self._context.request.post(connections, data=_CONNECTION)
        page = self._context.new_page()
        page.goto(f"{self._url}/connections")
        page.get_by_role("button", name="Edit Connection").click()
        return page.get_by_role("dialog")

    def _run_id(self, day: datetime, dag_id: str = demo.DAG_ID) -> str | None:
        runs = self._get(f"{dag_id}/dagRuns")["dag_runs"]
        of_day = [r["dag_run_id"] for r in runs if r["logical_date"].startswith(f"{day:%Y-%m-%d}")]
        return of_day[0] if of_day else None

    def _state(self, task_id: str, day: datetime) -> str | None:
        run_id = self._run_id(day)
        if run_id is None:
            return None
        path = f"{demo.DAG_ID}/dagRuns/{quote(run_id, safe='')}/taskInstances/{task_id}"
        return self._get(path)["state"]

    def _get(self, path: str) -> Any:
        return self._context.request.get(f"{self._url}/api/v2/dags/{path}").json()


def lineage(page: Page) -> Locator:
    """Find what the tab has drawn."""
    return page.locator("[data-sparklineage] main")


def await_other_runs(page: Page) -> None:
    """Wait for what other runs did; the tab asks for it when all else is drawn."""
    expect(lineage(page).locator(".legend .note")).not_to_be_empty()


def tabs(page: Page) -> Locator:
    """Find the row of tabs that Airflow has on a task instance."""
    return page.get_by_role("link", name=re.compile("^Logs")).first.locator("xpath=..")


def _equal_everywhere(route: Route) -> None:
    answer = route.fetch()
    body = demo.equal_everywhere(month.with_fixed_time(answer.text()))
    route.fulfill(response=answer, body=body)
