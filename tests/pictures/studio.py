"""What pictures are taken with; each is started when the first picture needs it."""

from __future__ import annotations

from contextlib import ExitStack
from functools import cached_property
from typing import TYPE_CHECKING

from tests.browser.serving import chromium, find_chromium
from tests.pictures.airflow import demo_airflow
from tests.pictures.history import month_of_flights
from tests.pictures.marquez import demo_marquez
from tests.pictures.screen import new_context

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from tests.pictures.airflow import Airflow
    from tests.pictures.history import Month
    from tests.pictures.marquez import Marquez


class Studio(ExitStack):
    """A browser and what it looks at; all of it ends with the studio."""

    @cached_property
    def browser(self) -> Browser:
        """Start Debian's Chromium."""
        found = find_chromium()
        if found is None:
            message = "There is no Chromium on the PATH; on Debian: apt install chromium"
            raise FileNotFoundError(message)
        return self.enter_context(chromium(found))

    @cached_property
    def airflow(self) -> Airflow:
        """Start the API server of the demo's Airflow."""
        return self.enter_context(demo_airflow(self.browser))

    @cached_property
    def history(self) -> Month:
        """Build the history of the recorded month of flights."""
        return self.enter_context(month_of_flights(self.browser))

    @cached_property
    def marquez(self) -> Marquez:
        """Send the demo's events to the Marquez that the environment names."""
        return self.enter_context(demo_marquez(self.browser))

    def page_of(self, html: str) -> Page:
        """Open a page that is one file."""
        context = new_context(self.browser)
        self.callback(context.close)
        page = context.new_page()
        page.set_content(html)
        # Its script unpacks the events, and draws, when the file has been loaded.
        page.locator("main > *").first.wait_for()
        return page
