"""The page "Lineage" on the recorded month of flights, as a user sees it who may see all."""

from __future__ import annotations

import re
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from playwright.sync_api import expect

from tests.browser import month
from tests.pictures.screen import new_context

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Locator, Page

WIDTH, HEIGHT = 1180, 1400
_INCOMPLETE = re.compile("(Looking for|Loading) ")


class Month(month.Month):
    """The page, in a window of a browser for pictures."""

    def page(self, table: str, **chosen: str) -> Page:
        """Open a table of the lake, with a ``partition`` and a ``column`` of it."""
        page = self.open(namespace="file", name=f"/flights/lake/{table}", **chosen)
        page.get_by_role("heading", level=2).wait_for()
        await_states(page)
        return page


@contextmanager
def month_of_flights(browser: Browser) -> Iterator[Month]:
    """Build the history, and answer the page from it; Airflow's own frame is in no picture."""
    with (
        tempfile.TemporaryDirectory(prefix="history-") as folder,
        month.served(Path(folder)) as client,
    ):
        context = new_context(browser, WIDTH, HEIGHT)
        yield Month(client, context)
        context.close()


def await_states(page: Page) -> None:
    """Wait until all states are known; partitions are shown before."""
    expect(page.get_by_text(_INCOMPLETE)).to_have_count(0)


def part(page: Page, selector: str) -> Locator:
    """Find a part of the page."""
    return page.locator(f"main {selector}").first
