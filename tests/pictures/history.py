"""The page "Spark lineage" on the recorded month of flights, as a user sees it who may see all."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlencode, urlsplit

from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.plugins import page as page_files
from airflow_provider_sparklineage.plugins.history import answers
from airflow_provider_sparklineage.plugins.history.catalog import Catalog
from airflow_provider_sparklineage.plugins.history.permissions import Visibility
from tests.browser import recorded_flights
from tests.pictures.screen import new_context

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, BrowserContext, Locator, Page, Route

    from airflow_provider_sparklineage.plugins.history.opened import OpenedHistory

ORIGIN = "http://airflow:8080"
BUILT_AT = "2013-02-01T06:00:00Z"
WIDTH, HEIGHT = 1180, 1400
_STATE = {
    "generation": 1,
    "built_at": BUILT_AT,
    "waiting": 0,
    "since": None,
    "is_merging": False,
    "problem": "",
}
_ALL = Visibility(lambda _: True, lambda _: True, frozenset, lambda: True)
_HTML = """<!doctype html><html lang="en" class="light"><base href="/"><body style="margin: 0">
<div id="host"></div><script type="module">
import { open } from "/sparklineage/history/page.js";
open(document.getElementById("host"), new URL("/sparklineage/api/history/", location.href));
</script></body></html>"""


@contextmanager
def month_of_flights(browser: Browser) -> Iterator[Month]:
    """Build the history, and answer the page from it; Airflow's own frame is in no picture."""
    from airflow_provider_sparklineage.plugins.history.opened import OpenedHistory

    with tempfile.TemporaryDirectory(prefix="history-") as folder:
        recorded_flights.build(f"{folder}/history")
        history = OpenedHistory(f"{folder}/history")
        context = new_context(browser, WIDTH, HEIGHT)
        yield Month(history, context)
        context.close()
        history.close()


class Month:
    """The page, in a window of a browser."""

    def __init__(self, history: OpenedHistory, context: BrowserContext) -> None:
        self._history = history
        self._context = context
        context.route(f"{ORIGIN}/**", self._answer)

    def page(self, table: str, **chosen: str) -> Page:
        """Open a table of the lake, with a ``partition`` and a ``column`` of it."""
        page = self._context.new_page()
        place = {"namespace": "file", "name": f"/flights/lake/{table}", **chosen}
        page.goto(f"{ORIGIN}/plugin/spark-lineage-history?{urlencode(place)}")
        page.get_by_role("grid").wait_for()
        return page

    def _answer(self, route: Route) -> None:
        url = urlsplit(route.request.url)
        what = url.path.rpartition("/")[2]
        if what in page_files.files():
            route.fulfill(body=page_files.content(what), content_type=page_files.files()[what])
        elif url.path.startswith("/sparklineage/api/history/"):
            asked = {name: values[0] for name, values in parse_qs(url.query).items()}
            route.fulfill(json=self._found(what, asked))
        else:
            route.fulfill(body=_HTML, content_type="text/html")

    def _found(self, what: str, asked: dict[str, str]) -> dict[str, Any]:
        if what == "datasets":
            found = Catalog(self._history).search(asked.get("q", ""), _ALL)
            return {"unavailable": None, "built_at": BUILT_AT, **found}
        if what == "state":
            return _STATE
        dataset = DatasetName(asked["namespace"], asked["name"])
        if what == "partitions":
            return answers.partition_states(dataset, self._history, _ALL)
        depth = int(asked.get("depth", 3))
        wanted = answers.Selection(dataset, asked.get("partition"), asked.get("column"), depth)
        question = {
            "graph": answers.partition_graph,
            "plan": answers.rerun_plans,
            "changes": answers.run_changes,
        }[what]
        return question(wanted, self._history, _ALL)


def part(page: Page, selector: str) -> Locator:
    """Find a part of the page."""
    return page.locator(f"main {selector}").first
