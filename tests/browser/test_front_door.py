"""Questions of a newcomer, from the first view of the page to the answer, on the month of flights.

Each has as many clicks and typed texts as it may have; a click on the search does not count, as
typing goes there by the Tab key, too.
"""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser import month
from tests.browser.conftest import VIEWPORT
from tests.browser.recorded_flights import DAY


@pytest.fixture(scope="module")
def flights(chromium, tmp_path_factory):
    with month.served(tmp_path_factory.mktemp("month")) as client:
        context = chromium.new_context(viewport=VIEWPORT)
        yield month.Month(client, context)
        context.close()


class Newcomer:
    """A person at the first view, whose clicks and typed texts are counted."""

    def __init__(self, page):
        self.page = page
        self.main = page.locator("main")
        self.clicks = 0

    def click(self, locator):
        self.clicks += 1
        locator.click()

    def find_column(self, text):
        """Type a text, and choose the first column that is found."""
        self.page.get_by_role("searchbox").first.fill(text)
        self.clicks += 1
        self.click(
            self.page.get_by_role("listbox", name="Found columns").get_by_role("option").first
        )

    def sees(self, title, column, source, how=""):
        """Expect a row of the table below the picture, and the columns in the picture."""
        table = self.main.get_by_role("region", name=title, exact=True)
        row = table.get_by_role("row").filter(has_text=source).filter(has_text=column)
        expect(row.first).to_contain_text(how)


@pytest.fixture
def newcomer(flights):
    person = Newcomer(flights.open())
    # All that needs a person is known by then, and the lists change no more.
    expect(person.main.get_by_role("button", name="stale 8", exact=True)).to_be_visible()
    yield person
    person.page.close()


def test_where_does_avg_visibility_come_from(newcomer):
    newcomer.find_column("avg_visibility")
    newcomer.sees("Made of", "daily_delays.avg_visibility", "weather.visib", "round(avg(visib), 1)")
    newcomer.sees("Made of", "weather.visib", "weather.csv.visib", "copy")
    assert newcomer.clicks == 2


def test_who_uses_dep_delay_of_flights(newcomer):
    newcomer.find_column("flights.dep_delay")
    newcomer.sees("Used for", "daily_delays.avg_dep_delay", "flights.dep_delay", "avg(")
    picture = newcomer.main.locator(".react-flow__node")
    expect(picture.filter(has_text="weekly_report")).to_have_count(1)
    assert newcomer.clicks == 2


def test_on_which_conditions_does_a_column_depend(newcomer):
    newcomer.find_column("avg_visibility")
    expect(newcomer.main.locator(".react-flow__edge.condition")).to_have_count(0)
    newcomer.click(newcomer.page.get_by_role("checkbox", name="Conditions"))
    expect(newcomer.main.locator(".react-flow__edge.condition").first).to_be_attached()
    newcomer.sees("Conditions", "daily_delays.*", "flights.carrier", "group by")
    assert newcomer.clicks == 3


def test_which_partition_was_a_column_of_a_day_made_of(newcomer):
    newcomer.click(
        newcomer.main.get_by_role("listbox", name="Datasets that need you")
        .get_by_role("option")
        .last
    )
    newcomer.click(newcomer.main.get_by_role("gridcell", name=f"{DAY}, stale"))
    newcomer.click(newcomer.main.get_by_role("button", name="Columns").last)
    newcomer.page.get_by_role("combobox", name="Column").select_option("avg_visibility")
    newcomer.clicks += 1
    weather = (
        newcomer.main.locator(".react-flow__node")
        .filter(has_text="visib")
        .filter(has_text=f"observed_date={DAY}")
    )
    expect(weather).to_have_count(1)
    assert newcomer.clicks == 4


def test_which_tables_has_a_source_gone_into_step_by_step(newcomer):
    newcomer.find_column("flights.csv dep_delay")
    expect(newcomer.page.get_by_label("Steps")).to_have_value("3")
    newcomer.sees("Used for", "weekly_report.avg_dep_delay", "flights.dep_delay")
    newcomer.page.get_by_label("Steps").select_option("1")
    report = newcomer.main.locator(".react-flow__node").filter(has_text="weekly_report")
    expect(report).to_have_count(0)
    newcomer.click(
        newcomer.main.get_by_role("button", name="Show what dep_delay of flights is used for")
    )
    expect(report).to_have_count(1)
    url = newcomer.page.url
    newcomer.page.reload()
    expect(report).to_have_count(1)
    expect(newcomer.page).to_have_url(url)


def test_what_is_stale_and_what_do_i_run_again(newcomer):
    expect(newcomer.main.get_by_role("button", name="stale 8", exact=True)).to_be_visible()
    newcomer.click(newcomer.main.get_by_role("button", name="What to run again"))
    clear = newcomer.main.get_by_role("button", name="Clear 8 task instances")
    expect(clear).to_be_visible()
    assert newcomer.clicks == 1
