"""The page for people with weak eyes, with keys or a screen reader: axe-core's rules."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.browser.events import partitioned_event, source, wide_event
from tests.browser.lists import option
from tests.conftest import Recorded

pytestmark = pytest.mark.long

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
THEMES = ["light", pytest.param("dark", marks=pytest.mark.long)]
STAGING = Recorded("staging_chain").event
CHECKED = {"named": [{"dt": "2024-05-06"}], "missing": {"summary": "dt=2024-05-05", "count": 1}}
CHECKED |= {"status": "missing", "from": [source("2024-05-05")]}
EVENTS = {
    "complete": STAGING,
    "failed": STAGING | {"eventType": "FAIL"},
    "nothing written": STAGING | {"outputs": []},
    "partitions missing": partitioned_event({"orders": CHECKED}, {"revenue": {"status": "other"}}),
}


@pytest.fixture(params=THEMES)
def show_themed(show, request):
    """Open an event with the theme of the system."""

    def open_themed(event):
        page = show(event)
        page.emulate_media(color_scheme=request.param)
        expect(page.locator("h2")).to_be_visible()
        return page

    return open_themed


def broken(page):
    """Give the rules that are broken, and where: among them a contrast below 4.5:1."""
    found = Axe().run(page, options={"runOnly": RULES}).response
    assert found["passes"]
    return listed(found["violations"])


def unclear(page):
    """Give the texts whose contrast cannot be judged; an arrow alone is no text."""
    options = {"runOnly": {"type": "rule", "values": ["color-contrast"]}}
    found = listed(Axe().run(page, options=options).response["incomplete"])
    return [entry for entry in found if "non-text characters" not in entry[2]]


def listed(rules):
    return [(r["id"], n["html"], n["failureSummary"]) for r in rules for n in r["nodes"]]


@pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS)
def test_an_event_keeps_to_all_rules(show_themed, event):
    page = show_themed(event)
    assert broken(page) == []
    assert unclear(page) == []


def chosen(page):
    option(page, "written", "revenue").click()


def source_chosen(page):
    option(page, "read", "rate").click()


def filtered(page):
    chosen(page)
    page.get_by_role("searchbox").fill("segment")


def nothing_found(page):
    page.get_by_role("searchbox").fill("xyz")


STATES = [chosen, source_chosen, filtered, nothing_found]


@pytest.mark.parametrize("change", STATES, ids=lambda change: change.__name__)
def test_so_does_each_state_of_it(show_themed, change):
    page = show_themed(STAGING)
    change(page)
    assert broken(page) == []
    assert unclear(page) == []


def test_so_does_what_is_folded(show_themed):
    page = show_themed(wide_event(datasets=15, columns=20))
    option(page, "written", "column_3 ").click()
    expect(page.locator(".card")).to_have_count(20)
    # Not all can be judged here: text that is half scrolled out of a list.
    assert broken(page) == []


def test_text_that_is_too_pale_is_found(show_themed):
    """The rules look at what is dimmed as well: here at a card and a column."""
    page = show_themed(STAGING)
    chosen(page)
    page.add_style_tag(
        content=".sparklineage { --quiet: light-dark(#a0a0a0, #555555) !important; }"
    )
    found = broken(page)
    assert {rule for rule, _, _ in found} == {"color-contrast"}
    for dimmed in ("customers", "email"):
        assert any(f">{dimmed}</bdi>" in html for _, html, _ in found)
