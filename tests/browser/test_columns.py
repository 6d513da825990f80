"""The columns of the page: keys, what is chosen, and the search."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.airflow_double import done
from tests.browser.events import wide_event
from tests.browser.lists import current, is_uncovered, listbox, option
from tests.conftest import Recorded, long_after


@pytest.fixture(scope="module")
def staging():
    return Recorded("staging_chain").event


# --- keys ----------------------------------------------------------------------------------------


def test_all_of_it_works_by_keys(show, staging):
    page = show(staging)
    page.get_by_role("searchbox").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    chosen = page.get_by_role("option", selected=True)
    expect(chosen).to_contain_text("revenue")
    page.keyboard.press("ArrowLeft")
    assert current(page) == "amount"
    page.keyboard.press("Escape")
    expect(chosen).to_have_count(0)


def test_the_keys_reach_every_row_and_keep_it_in_view(show):
    page = show(wide_event(datasets=1, columns=1000))
    page.set_viewport_size({"width": 1280, "height": 400})  # the page has to be scrolled, too
    listbox(page, "written").focus()
    for key, expected in [
        ("End", "column_999"),
        ("ArrowDown", "column_999"),
        ("PageUp", "column_992"),
        ("PageDown", "column_999"),
        ("Home", "column_0"),
        ("ArrowUp", "column_0"),
        ("ArrowDown", "column_1"),
    ]:
        page.keyboard.press(key)
        assert (key, current(page)) == (key, expected)
        row = page.locator(".row.current").last
        expect(row).to_be_in_viewport(ratio=0.9)
        assert is_uncovered(row)


def test_the_place_of_the_keys_survives_scrolling(show):
    page = show(wide_event(datasets=1, columns=1000))
    written = listbox(page, "written")
    written.focus()
    page.keyboard.press("ArrowDown")
    written.evaluate("list => list.scrollTop = 15000")
    expect(option(page, "written", "column_1 ")).to_have_count(0)
    expect(written).to_be_focused()
    page.keyboard.press("ArrowDown")
    assert current(page) == "column_2"


def test_a_row_says_its_place_among_all(show):
    page = show(wide_event(datasets=2, columns=1000))
    row = listbox(page, "read").get_by_role("option").nth(2)
    for name, value in (("aria-posinset", "3"), ("aria-setsize", "2000")):
        expect(row).to_have_attribute(name, value)
    group = listbox(page, "read").get_by_role("group", name="in_0, 1,000 columns")
    expect(group.get_by_role("option").first).to_contain_text("column_0")


def test_a_heading_stays_in_view_with_its_rows(show):
    page = show(wide_event(datasets=3, columns=100))
    read = listbox(page, "read")
    read.evaluate("list => list.scrollTop = 3200")  # of the second dataset's rows
    expect(option(page, "read", "column_21")).to_be_in_viewport()
    expect(read.locator(".heading", has_text="in_1")).to_be_in_viewport(ratio=0.9)


# --- what is chosen ------------------------------------------------------------------------------


def test_a_source_shows_what_is_made_of_it(show, staging):
    page = show(staging)
    option(page, "read", "rate").click()
    expect(page.locator(".row.lit .column")).to_have_text(["revenue", "amount_eur"])
    expect(page.locator(".details")).to_contain_text("Goes into")


def test_sources_of_a_chosen_column_come_first_and_go_back(show):
    page = show(wide_event(datasets=3, columns=100))
    read = listbox(page, "read")
    read.evaluate("list => list.scrollTop = 900")
    page.get_by_role("searchbox").fill("out_2 column_42")
    option(page, "written", "column_42").click()
    page.get_by_role("searchbox").fill("")
    headings = read.locator(".heading bdi")
    expect(headings.nth(0)).to_have_text("Sources of column_42")
    expect(headings.nth(1)).to_have_text("in_2")
    expect(headings.nth(2)).to_have_text("Influence every row of out_2")
    expect(headings.nth(4)).to_have_text("Other columns")
    expect(read.locator(".row.lit .column")).to_have_text(["column_42", "column_43"])
    expect(read.locator(".row.faint .column")).to_have_text(["column_99"])
    expect(read.locator(".row.lit").first).to_be_in_viewport(ratio=1)
    expect(read.locator(".row.plain .column").first).to_have_text("column_0")
    page.get_by_role("button", name="Back to the usual order").click()
    expect(page.get_by_role("option", selected=True)).to_have_count(0)
    expect(headings.first).to_have_text("in_0")


def test_a_screen_reader_hears_what_came_first(show, staging):
    page = show(staging)
    option(page, "written", "revenue").click()
    groups = listbox(page, "read").get_by_role("group")
    names = [
        "Sources of revenue, orders, 1 of 4 columns",
        "Sources of revenue, rates, 1 of 2 columns",
        "Influence every row of revenue, customers, 2 of 4 columns",
    ]
    for n, name in enumerate(names):
        expect(groups.nth(n)).to_have_attribute("aria-label", name)


def test_a_search_leaves_what_is_explained_as_it_is(show, staging):
    page = show(staging)
    option(page, "written", "revenue").click()
    page.get_by_text("5 columns influence every row").click()
    page.get_by_role("searchbox").fill("segment")
    expect(page.locator("details td", has_text="rates.currency")).to_be_visible()
    # What was found is among the sources.
    expect(page.locator(".pane .none").first).to_be_hidden()


def test_a_list_is_where_it_was_once_nothing_is_chosen(show):
    page = show(wide_event(datasets=3, columns=100))
    read = listbox(page, "read")
    read.evaluate("list => list.scrollTop = 900")
    option(page, "written", "column_3 ").click()
    assert read.evaluate("list => list.scrollTop") == 0
    page.keyboard.press("Escape")
    assert read.evaluate("list => list.scrollTop") == 900


def test_a_source_that_is_chosen_next_is_in_view_in_its_usual_place(show):
    page = show(wide_event(datasets=1, columns=300))
    listbox(page, "written").focus()
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    option(page, "read", "column_299").click()
    chosen = page.get_by_role("option", selected=True)
    expect(chosen).to_have_attribute("aria-posinset", "300")
    expect(chosen).to_be_in_viewport(ratio=0.9)
    written = listbox(page, "written")
    expect(written.locator(".heading").first).to_have_text("Made of column_299")
    expect(written.locator(".row.lit .column")).to_have_text(["column_298", "column_299"])


def test_a_chosen_column_s_datasets_are_shown_though_folded_away(show):
    page = show(wide_event(datasets=30, columns=3))
    page.get_by_role("searchbox").fill("out_29")
    option(page, "written", "column_1").click()
    page.get_by_role("searchbox").fill("")
    expect(page.locator(".card.lit .label bdi")).to_have_text(["in_29", "out_29"])
    expect(page.locator(".card")).to_have_count(20)
    expect(listbox(page, "written").get_by_role("option", selected=True)).to_have_count(1)


# --- the search ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "read", "written"),
    long_after(
        1,
        [
            pytest.param("orders", 4, 3, id="a dataset, with all of its columns"),
            pytest.param("segment", 1, 2, id="columns"),
            pytest.param("customers segment", 1, 0, id="both"),
            pytest.param("customers.segment", 1, 0, id="as it is written in SQL"),
            pytest.param("SEGMENT", 1, 2, id="whatever its case"),
            pytest.param("  ", 10, 5, id="nothing"),
        ],
    ),
)
def test_the_search_finds_datasets_and_columns(show, staging, text, read, written):
    page = show(staging)
    page.get_by_role("searchbox").fill(text)
    for side, count in (("read", read), ("written", written)):
        options = page.get_by_label(f"Columns {side}").locator(".row")
        expect(options).to_have_count(count)


def test_the_search_finds_cards_and_says_how_much_it_found(show, staging):
    page = show(staging)
    page.get_by_role("searchbox").fill("segment")
    expect(page.locator(".card .label bdi")).to_have_text(
        ["customers", "revenue", "enriched_orders"]
    )
    expect(page.get_by_role("search").get_by_role("status")).to_have_text("3 datasets, 3 columns")


def test_a_search_without_a_hit_says_so(show, staging):
    page = show(staging)
    page.get_by_role("searchbox").fill("xyz")
    status = page.get_by_role("search").get_by_role("status")
    expect(status).to_have_text("No dataset and no column has “xyz” in its name.")
    expect(page.locator(".pane").first).to_contain_text(
        "Nothing that was read has “xyz” in its name."
    )
    expect(page.locator(".side").last).to_contain_text(
        "Nothing that was written has “xyz” in its name."
    )
    expect(page.get_by_role("listbox")).to_have_count(0)
    expect(page.locator(".card")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(page.locator(".card")).to_have_count(5)


def test_a_search_finds_what_is_folded_away(show):
    page = show(wide_event(datasets=30, columns=3))
    page.get_by_role("searchbox").fill("in_29")
    expect(page.locator(".card .label bdi")).to_have_text(["in_29"])
    expect(listbox(page, "read").get_by_role("option")).to_have_count(3)


# --- when the tab draws again --------------------------------------------------------------------


@pytest.fixture
def drawn_again(airflow):
    """Draw events in one tab after each other, each of another try; gives the page and how to."""
    drawn = []

    def draw(event):
        number = 2 - len(drawn) % 2
        drawn.append(event)
        tries = {"tries": [1, 2], "latest": 2, "try_number": number}
        airflow.answers["lineage"] = done(event) | tries
        if len(drawn) == 1:
            airflow.open()
        else:
            airflow.root.get_by_label("Try").select_option(str(number))
        expect(airflow.root.get_by_label("Try")).to_have_value(str(number))
        expect(airflow.root).to_have_attribute("aria-busy", "false")
        return airflow.page

    return draw


def test_what_was_chosen_searched_and_scrolled_to_stays(drawn_again):
    event = wide_event(datasets=12, columns=50)
    page = drawn_again(event)
    for button in reversed(page.get_by_role("button", name="Show all").all()):
        button.click()
    page.get_by_role("searchbox").fill("column_4")
    option(page, "written", "column_41").click()
    read, written = listbox(page, "read"), listbox(page, "written")
    read.evaluate("list => list.scrollTop = 700")
    written.evaluate("list => list.scrollTop = 400")
    drawn_again(event | {"eventTime": "2024-05-07T00:00:00Z"})
    expect(page.locator("header")).to_contain_text("2024-05-07")
    expect(page.get_by_role("searchbox")).to_have_value("column_4")
    expect(page.locator(".details .title")).to_contain_text("out_0.column_41")
    assert [e.evaluate("list => list.scrollTop") for e in (read, written)] == [700, 400]
    page.keyboard.press("Escape")
    page.get_by_role("searchbox").fill("")
    expect(page.locator(".card")).to_have_count(24)


def test_a_list_goes_back_to_where_it_was_before_a_column_was_chosen(drawn_again):
    event = wide_event(datasets=3, columns=100)
    page = drawn_again(event)
    listbox(page, "read").evaluate("list => list.scrollTop = 900")
    option(page, "written", "column_3 ").click()
    drawn_again(event)
    page.get_by_role("button", name="Back to the usual order").click()
    assert listbox(page, "read").evaluate("list => list.scrollTop") == 900


def test_the_keys_are_where_they_were_at_the_chosen_column(drawn_again):
    event = wide_event(datasets=2, columns=50)
    page = drawn_again(event)
    listbox(page, "written").focus()
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    drawn_again(event)
    listbox(page, "written").focus()
    page.keyboard.press("ArrowUp")
    assert current(page) == "column_48"


def test_a_column_that_is_no_more_is_chosen_no_more(drawn_again):
    page = drawn_again(wide_event(datasets=1, columns=5))
    option(page, "written", "column_4").click()
    drawn_again(wide_event(datasets=1, columns=3))
    expect(page.locator(".row.chosen")).to_have_count(0)
    expect(page.locator(".details")).to_contain_text("Choose a column")
