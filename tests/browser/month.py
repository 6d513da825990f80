"""The page "Lineage" on the recorded month of flights: the real application, without Airflow.

The user may see all. Airflow's own frame and its log-in are in :mod:`.test_history_in_airflow`.
"""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING
from unittest.mock import patch
from urllib.parse import urlencode, urlsplit

from airflow_provider_sparklineage.plugins import page as page_files
from airflow_provider_sparklineage.plugins.history.permissions import Visibility
from tests.browser import recorded_flights

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fastapi.testclient import TestClient
    from playwright.sync_api import BrowserContext, Page, Route

ORIGIN = "http://airflow:8080"
ROUTE = f"{ORIGIN}/plugin/spark-lineage-history"
BUILT_AT = "2013-02-01T06:00:00Z"
ALL = Visibility(lambda _: True, lambda _: True, frozenset, lambda: True)
HTML = """<!doctype html><html lang="en" class="{theme}"><head><title>Airflow</title>
<base href="/"></head><body style="margin: 0">
<div id="host" style="height: 100vh; overflow: auto"></div><script type="module">
import {{ open }} from "/sparklineage/history/page.js";
const api = new URL("/sparklineage/api/history/", location.href);
open(document.getElementById("host"), api);
</script></body></html>"""


def with_fixed_time(answer: str) -> str:
    """Replace the time at which the history was built, in an answer as JSON."""
    return re.sub(r'("built_at": ?)"[^"]*"', rf'\g<1>"{BUILT_AT}"', answer)


@contextmanager
def served(folder: Path) -> Iterator[TestClient]:
    """Build the month's history below a folder, and serve the application that answers from it."""
    from fastapi.testclient import TestClient

    from airflow_provider_sparklineage.plugins import app

    url = f"{folder.as_uri()}/history"
    recorded_flights.build(url)
    made = app.make_app()
    made.dependency_overrides[app.visibility] = lambda: ALL
    settings = {
        "AIRFLOW__SPARKLINEAGE__HISTORY_URL": url,
        "AIRFLOW__SPARKLINEAGE__HISTORY_MERGED_BY": "command",
    }
    with patch.dict(os.environ, settings):
        yield TestClient(made)


class Month:
    """The page, in a window of a browser.

    :param client: as :func:`served` gives it
    """

    def __init__(self, client: TestClient, context: BrowserContext) -> None:
        self._client = client
        self._context = context
        context.route(f"{ORIGIN}/**", self._answer)

    def open(self, **address: str) -> Page:
        """Open the page at an address: its first view, or a ``name``, a ``partition`` of it, …."""
        page = self._context.new_page()
        page.goto(f"{ROUTE}?{urlencode(address)}" if address else ROUTE)
        return page

    def _answer(self, route: Route) -> None:
        url = urlsplit(route.request.url)
        file = url.path.rpartition("/")[2]
        if file in page_files.files():
            route.fulfill(body=page_files.content(file), content_type=page_files.files()[file])
        elif url.path.startswith("/sparklineage/api/"):
            asked = f"{url.path.removeprefix('/sparklineage')}?{url.query}"
            answer = self._client.get(asked)
            body = with_fixed_time(answer.text)
            route.fulfill(status=answer.status_code, body=body, content_type="application/json")
        else:
            route.fulfill(body=HTML.format(theme="light"), content_type="text/html")
