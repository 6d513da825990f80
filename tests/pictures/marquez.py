"""A real Marquez in a browser: what it shows of the demo, whatever else it has seen."""

from __future__ import annotations

import json
import os
import re
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.event.backends.marquez import Marquez as Pages
from airflow_provider_sparklineage.model.datasets import DatasetName
from tests.integration.marquez_server import MarquezServer
from tests.pictures import demo
from tests.pictures.screen import new_context, take_part

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, BrowserContext, Page, Route

API_URL, WEB_URL = "SPARKLINEAGE_TEST_MARQUEZ_URL", "SPARKLINEAGE_TEST_MARQUEZ_WEB_URL"
_RUN_ID = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# The lake and the namespace, in JSON and in URLs.
_NAME = re.compile('(?<=[/:F"])(?:lake|demo)(?=[/:%"])')
_MENU_PX, _SEARCH_PX = 80, 66
_DRAWER_PX = 800  # whatever the window's width is
# Marquez's pages load their fonts from another machine, where they find one.
_FONTS = """
@font-face { font-family: Karla; src: local("Liberation Sans"), local("Arial"); }
@font-face { font-family: "Source Code Pro"; src: local("Liberation Mono"), local("Courier New"); }
"""


def is_there() -> bool:
    """Whether the environment names a Marquez, with its web pages."""
    return bool(os.environ.get(API_URL) and os.environ.get(WEB_URL))


class _OwnNames:
    """Names that no other run has sent, which pages show without what makes them so.

    Marquez never forgets: it would draw what earlier runs of the demo have sent.
    """

    def __init__(self) -> None:
        self._id = uuid.uuid4()
        self._suffix = f"-{self._id.hex[:8]}"

    def sent(self, text: str) -> str:
        """Rename what an event names."""
        text = _RUN_ID.sub(lambda found: str(uuid.uuid5(self._id, found[0])), text)
        return self._renamed(text)

    def answer(self, route: Route) -> None:
        """Ask for the renamed, and give what a page asked for."""
        answer = route.fetch(url=self._renamed(route.request.url))
        route.fulfill(response=answer, body=answer.text().replace(self._suffix, ""))

    def _renamed(self, text: str) -> str:
        return _NAME.sub(rf"\g<0>{self._suffix}", text)


@contextmanager
def demo_marquez(browser: Browser) -> Iterator[Marquez]:
    """Send the demo's events to the Marquez that the environment names."""
    names = _OwnNames()
    server = MarquezServer(os.environ[API_URL])
    for event in demo.events():
        server.send(json.loads(names.sent(json.dumps(event))))
    context = new_context(browser, _DRAWER_PX + 400, 960)
    context.route("**/api/v1/**", names.answer)
    yield Marquez(os.environ[WEB_URL], context)
    context.close()


class Marquez:
    """Marquez's pages in a window of a browser."""

    def __init__(self, web_url: str, context: BrowserContext) -> None:
        self._web_url = web_url
        self._context = context

    def job(self, task_id: str) -> Page:
        """Open the page where the link of a task leads, with its drawer."""
        job = f"{demo.DAG_ID}.{task_id}"
        return self._open(Pages().job_page(self._web_url, "demo", job), "Latest run")

    def dataset(self, table: str) -> Page:
        """Open the page of a table, with its drawer."""
        return self._open(Pages().dataset_page(self._web_url, _table(table)), "Latest schema")

    def columns(self, table: str, column: str) -> Page:
        """Open what a column is made of."""
        return self._open(Pages().columns_page(self._web_url, _table(table), column), column)

    def _open(self, url: str | None, text: str) -> Page:
        page = self._context.new_page()
        page.goto(url or "about:blank")
        page.add_style_tag(content=_FONTS)
        page.get_by_text(text).first.wait_for()
        page.wait_for_load_state("networkidle")
        return page


def take_graph(file: Path, page: Page) -> None:
    """Take the graph, without the search above it, in which letters come and go."""
    take_part(file, page, _MENU_PX, _SEARCH_PX)


def take_drawer(file: Path, page: Page) -> None:
    """Take the drawer."""
    window = page.viewport_size or {"width": _DRAWER_PX}
    take_part(file, page, window["width"] - _DRAWER_PX, _SEARCH_PX)


def _table(name: str) -> DatasetName:
    return DatasetName("file", f"/lake/{name}")
