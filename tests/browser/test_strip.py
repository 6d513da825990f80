"""The partition strip, in a browser: which square stands for what, and what else shows of it."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.events import counted, partitioned_event, source
from tests.browser.settled import at_rest
from tests.browser.test_page import HOSTILE
from tests.conftest import long_after

DAY = "2024-05-06"
MONTH_OF_DAYS = "dt from 2024-04-07 to 2024-05-06."


def days(*numbers, **more):
    return [{"dt": f"2024-05-{n:02}", **more} for n in numbers]


def of_regions(day, regions):
    return [{"dt": day, "region": region} for region in regions]


FIVE_REGIONS = of_regions("2024-05-05", "ab") + of_regions(DAY, "abc")

STRIPS = {
    "one day": ({"named": days(6)}, f"{MONTH_OF_DAYS} read: {DAY}."),
    "days without dashes": (
        {"named": [{"dt": "20240505"}, {"dt": "20240506"}]},
        f"{MONTH_OF_DAYS} read: 2024-05-05 to 2024-05-06.",
    ),
    "a gap": (
        {"named": days(3, 5, 6)},
        f"{MONTH_OF_DAYS} read: 2024-05-03, 2024-05-05 to 2024-05-06.",
    ),
    "more than thirty": (
        {"named": [{"dt": f"2024-{m:02}-{d:02}"} for m in (3, 4) for d in range(1, 31)]},
        "dt from 2024-04-01 to 2024-04-30. read: 2024-04-01 to 2024-04-30.",
    ),
    "months": (
        {"named": [{"month": "2024-01"}]},
        "month from 2021-08 to 2024-01. read: 2024-01.",
    ),
    "years": ({"named": [{"year": "2024"}]}, "year from 1995 to 2024. read: 2024."),
    "hours": (
        {"named": [{"ts_hour": "2024-05-06-00"}]},
        "ts_hour from 2024-05-04 19:00 to 2024-05-06 00:00. read: 2024-05-06 00:00.",
    ),
    "an hour of its own": (
        {"named": [{"dt": DAY, "hour": "7"}]},
        "dt/hour from 2024-05-05 02:00 to 2024-05-06 07:00. read: 2024-05-06 07:00.",
    ),
    "year, month and day": (
        {"named": [{"year": "2024", "month": "5", "day": "6"}]},
        "year/month/day from 2024-04-07 to 2024-05-06. read: 2024-05-06.",
    ),
    "midnights": (
        {"named": [{"ts": "2024-05-05 00:00:00"}, {"ts": "2024-05-06 00:00:00"}]},
        "ts from 2024-04-07 to 2024-05-06. read: 2024-05-05 to 2024-05-06.",
    ),
    "leap day": (
        {"named": [{"dt": "2024-02-29"}, {"dt": "2024-03-01"}]},
        "dt from 2024-02-01 to 2024-03-01. read: 2024-02-29 to 2024-03-01.",
    ),
    "before 1970": (
        {"named": [{"dt": "1969-12-31"}]},
        "dt from 1969-12-02 to 1969-12-31. read: 1969-12-31.",
    ),
    "a number next to days": (
        {"named": [{"customer": "10023344", "dt": DAY}]},
        f"{MONTH_OF_DAYS} read: {DAY}.",
    ),
    "a number that could be a month": (
        {"named": [{"bucket": "200001", "dt": DAY}]},
        f"{MONTH_OF_DAYS} read: {DAY}.",
    ),
    "a number that could be one, and a year": (
        {"named": [{"bucket": "200001", "year": "2024"}]},
        "year from 1995 to 2024. read: 2024.",
    ),
    "null next to days": (
        {"named": [{"dt": DAY}, {"dt": "__HIVE_DEFAULT_PARTITION__"}]},
        f"{MONTH_OF_DAYS} read: {DAY}.",
    ),
    "one is missing": (
        {"named": days(6), "status": "missing", "missing": counted(days(5))},
        f"{MONTH_OF_DAYS} read: {DAY}; expected, but not read: 2024-05-05.",
    ),
    "nothing was read": (
        {"status": "missing", "missing": counted(days(6)), "observed": {"count": 0}},
        f"{MONTH_OF_DAYS} expected, but not read: {DAY}.",
    ),
    "missing ones by declared values": (
        {
            "named": days(6),
            "status": "missing",
            "missing": counted(days(1, 5), count=3),
            "from": [source(f"2024-05-0{n}") for n in (1, 3, 5, 6)],
        },
        f"{MONTH_OF_DAYS} read: {DAY}; expected, but not read: 2024-05-01, 2024-05-03, 2024-05-05.",
    ),
    "missing ones in a row": (
        {"named": days(6), "status": "missing", "missing": counted(days(1, 4), count=4)},
        f"{MONTH_OF_DAYS} read: {DAY}; expected, but not read: 2024-05-01 to 2024-05-04.",
    ),
    "one is not expected": (
        {"named": days(5, 6), "status": "unexpected", "unexpected": counted(days(5))},
        f"{MONTH_OF_DAYS} read: {DAY}; read, but not expected: 2024-05-05.",
    ),
    "several regions of a day are not": (
        {
            "named": FIVE_REGIONS,
            "status": "unexpected",
            "unexpected": counted(of_regions(DAY, "abc")),
            "from": [source("2024-05-05")],
        },
        f"{MONTH_OF_DAYS} read: 2024-05-05; read, but not expected: {DAY}.",
    ),
    "a part of a day is missing": (
        {
            "named": of_regions(DAY, "a"),
            "status": "missing",
            "missing": counted(of_regions(DAY, "b")),
        },
        f"{MONTH_OF_DAYS} read: {DAY}; expected, but not read: {DAY}.",
    ),
    "nobody knows which are missing": (
        {"named": days(6), "status": "missing", "missing": counted(days(1, 5), count=3)},
        f"{MONTH_OF_DAYS} read: {DAY}; expected, but not read: 2024-05-01, 2024-05-05, "
        "among others.",
    ),
    "too many to be named, without a gap": (
        {"observed": counted([{"dt": "2020-01-01"}, {"dt": DAY}], count=1588)},
        f"{MONTH_OF_DAYS} read: 2024-04-07 to 2024-05-06.",
    ),
}
NO_STRIP = {
    "regions": {"named": [{"region": "eu"}]},
    "numbers": {"named": [{"id": "2024"}, {"id": "123456789"}]},
    "for ever": {"named": [{"dt": "9999-12-31"}]},
    "no such day": {"named": [{"dt": "2024-02-30"}, {"dt": "20241301"}]},
    "minutes": {"named": [{"ts": "2024-05-06 03:15:00"}]},
    "all of it": {},
    "of a week": {"named": [{"weekday": "5"}]},
}


def labels_of(page):
    """Give what each strip says, by the name of its dataset."""
    labels = {}
    for card in page.locator(".card").all():
        strip = card.locator(".strip svg")
        if strip.count():
            labels[card.locator(".label bdi").inner_text()] = strip.get_attribute("aria-label")
    return labels


def test_a_strip_has_the_last_dates_of_its_dataset(show):
    entries = [(name, entry) for name, (entry, _) in STRIPS.items()] + [*NO_STRIP.items()]
    labels = {}
    for start in range(0, len(entries), 8):  # of more, a page shows the first ones
        labels |= labels_of(show(partitioned_event(dict(entries[start : start + 8]))))
    assert labels == {name: label for name, (_, label) in STRIPS.items()}


def test_a_square_says_what_it_stands_for(show):
    entry = {
        "named": FIVE_REGIONS,
        "status": "unexpected",
        "unexpected": counted(of_regions("2024-05-05", "ab")),
        "missing": counted(days(4)),
    }
    page = show(partitioned_event({"orders": entry}))
    strip = page.locator(".card .strip")
    width = strip.locator("svg").bounding_box()["width"]
    titles = [
        "2024-05-06: 3 partitions read",
        "2024-05-05: read, which was not expected",
        "2024-05-04: expected, and not read",
        "2024-05-03: not read",
    ]
    for back, title in enumerate(titles):
        strip.locator("svg").hover(position={"x": width - (back + 0.5) * width / 30, "y": 6})
        expect(strip).to_have_attribute("title", title)


def test_squares_differ_by_more_than_their_colour(show):
    entry = {
        "named": days(5, 6),
        "unexpected": counted(days(5)),
        "missing": counted(days(4)),
    }
    page = show(partitioned_event({"orders": entry}))
    paths = page.locator(".legend path")
    expect(paths).to_have_count(4)
    forms = {
        re.sub(r"[\d.,-]+", "", d)
        for d in paths.evaluate_all("all => all.map(p => p.getAttribute('d'))")
    }
    assert len(forms) == 3  # a full and an empty square have one form
    fills = paths.evaluate_all("all => all.map(p => getComputedStyle(p).fill === 'none')")
    assert fills == [False, False, True, True]


def test_a_strip_is_a_few_elements(show):
    page = show(partitioned_event({"orders": {"named": days(*range(1, 31))}}))
    assert page.locator(".card .strip").evaluate("e => e.querySelectorAll('*').length") < 8


@pytest.mark.parametrize(
    ("first", "last", "span"),
    long_after(
        1,
        [
            pytest.param(
                {"dt": "2021-01-01"}, {"dt": DAY}, " from 2021-01-01 to 2024-05-06", id="by date"
            ),
            pytest.param(
                {"region": "eu", "dt": DAY},
                {"region": "us", "dt": "2021-01-01"},
                "",
                id="by region",
            ),
            pytest.param({"dt": "?"}, {"dt": DAY}, "", id="no date"),
        ],
    ),
)
def test_what_the_event_does_not_name_is_a_number(show, first, last, span):
    many = counted([first, last], count=1204)
    page = show(partitioned_event({"orders": {"observed": many}}))
    expect(page.locator(".card .strip")).to_have_text(
        f"1,204 partitions{span}, more than the event names"
    )


def test_as_many_partitions_as_there_may_be_are_drawn(show):
    named = [
        {"dt": f"{y}-{m:02}-{d:02}"}
        for y in range(1900, 2200)
        for m in range(1, 13)
        for d in range(1, 29)
    ]
    many = counted([{"ts": "1900-01-01-00"}, {"ts": "2199-12-31-23"}], count=2_629_752)
    page = show(partitioned_event({"days": {"named": named}, "hours": {"observed": many}}))
    labels = labels_of(page)
    assert labels["days"] == "dt from 2199-11-29 to 2199-12-28. read: 2199-12-01 to 2199-12-28."
    assert labels["hours"].endswith("read: 2199-12-30 18:00 to 2199-12-31 23:00.")


def test_a_value_that_was_inferred_is_shown_as_inferred(show):
    entry = {"named": days(6), "from": [source(DAY, "inferred"), source(DAY, "inferred")]}
    page = show(partitioned_event({"orders": entry}))
    row = page.locator(".partitions tbody tr")
    expect(row.locator("td").nth(2)).to_have_text("as expected")
    expect(row.locator("td").nth(3)).to_have_text("dt=2024-05-06 inferred")


def test_nothing_is_expected_because_a_date_is_among_the_arguments(show):
    entry = {"named": days(6), "status": "undeclared", "from": [source(DAY, "inferred")]}
    page = show(partitioned_event({"orders": entry}))
    expect(page.locator(".partitions tbody td").nth(3)).to_have_text("")


@pytest.mark.parametrize("name", HOSTILE)
def test_names_of_dimensions_are_text_whatever_they_are(show, name):
    named = [{name: DAY, "region": name}]
    entry = {"named": named, "expected": counted(named), "from": [source(name, dimension=name)]}
    page = show(partitioned_event({"orders": entry}))
    label = page.locator(".card .strip svg").get_attribute("aria-label")
    assert label.endswith(f"from 2024-04-07 to 2024-05-06. read: {DAY}.") or len(label) > 2000
    assert page.locator("main img, main script").count() == 0
    assert not re.search("[\u202e\x00\x1b]", page.locator("main").inner_text() + label)
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280


@pytest.mark.parametrize("width", long_after(1, [905, 500, 1280]))
def test_names_and_values_break_only_where_there_is_no_room(show, width):
    """905 pixels are what Airflow leaves for the tab in a window of 1280."""
    named = [{"flight_date": f"2013-01-0{n}"} for n in (2, 8)]
    made = [source("2013-01-08", dimension="flight_date")]
    entry = {"named": named, "expected": counted(named), "from": made}
    page = show(partitioned_event({"carrier_delays": entry}))
    page.set_viewport_size({"width": width, "height": 800})
    at_rest(page)
    texts = page.locator(".partitions td:first-child bdi, .partitions .values bdi")
    expect(texts).to_have_count(5)
    lines = texts.evaluate_all(
        "all => all.map(e => Math.round(e.getBoundingClientRect().height / 18))"
    )
    assert width == 500 or set(lines) == {1}
    assert page.evaluate("document.documentElement.scrollWidth") <= width


MANY = 300


def test_of_many_checks_those_that_need_a_person_come_first(show):
    entries = {f"table_{n}": {"named": days(6), "from": [source(DAY)] * 9} for n in range(MANY)}
    entries["table_200"] |= {"status": "missing", "missing": counted(days(5))}
    entries["table_100"] |= {"status": "unexpected", "unexpected": counted(days(6))}
    page = show(partitioned_event({}, entries))
    table = page.locator(".partitions")
    names = table.locator("tbody tr td:first-child")
    expect(names).to_have_text(["table_100", "table_200", *(f"table_{n}" for n in range(8))])
    table.get_by_role("button", name=f"Show all {MANY} datasets").click()
    expect(table.locator("tbody tr")).to_have_count(MANY)
    at_rest(page)
    height = table.bounding_box()["height"]
    last = table.locator("tbody tr").last
    last.scroll_into_view_if_needed()
    expect(last).to_contain_text("table_299")
    at_rest(page)
    assert table.bounding_box()["height"] == pytest.approx(height, rel=0.02)  # nothing has moved
    expect(names.first).not_to_have_text(
        "table_100"
    )  # which is not drawn, far from what is in view
    assert page.evaluate("document.getElementsByTagName('*').length") < 5000
    table.get_by_role("button", name="Show the first 10 datasets").click()
    expect(names).to_have_count(10)


def test_a_page_of_many_strips_has_few_elements(show):
    entries = {
        f"table_{n}": {"named": days(5, 6), "missing": counted(days(4))} for n in range(MANY)
    }
    page = show(partitioned_event(entries, entries))
    for button in reversed(page.get_by_role("button", name="Show all").all()):
        button.click()
    expect(page.locator(".card .strip svg").first).to_be_visible()
    at_rest(page)
    assert page.evaluate("document.getElementsByTagName('*').length") < 5000
    cards = page.locator(".side").first
    height = cards.bounding_box()["height"]
    last = cards.locator(".card").last
    last.scroll_into_view_if_needed()
    expect(last.locator(".strip svg")).to_be_visible()
    at_rest(page)
    assert cards.bounding_box()["height"] == pytest.approx(height, rel=0.02)  # nothing has moved
