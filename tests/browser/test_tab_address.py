"""The tab's state in the page's address, where its links lead, and the order in which it is read.

Airflow is played by answers of the test.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser.airflow_double import RUNNING, TAB, done
from tests.browser.events import partitioned_event, source
from tests.browser.test_waiting import last_of
from tests.conftest import Recorded, long_after

TRIES = {"tries": [1, 2], "latest": 2, "try_number": 2}
REVENUE = "side=to&namespace=file&name=%2Flake%2Frevenue&column=revenue"
HISTORY = "http://airflow.example/plugin/spark-lineage-history"
MARQUEZ = "http://marquez.example"


@pytest.fixture(scope="module")
def staging():
    return Recorded("staging_chain").event


@pytest.fixture
def opened(airflow, staging):
    """Open the tab of a task of which two tries have lineage; the first one failed."""

    def open_tab(query=""):
        of_address = "1" if "try_number=1" in query else "2"
        airflow.answers["lineage"] = done(staging) | TRIES | {"try_number": int(of_address)}
        airflow.open(query)
        expect(airflow.root.locator("h2")).to_be_visible()
        return airflow

    return open_tab


def has_query(page, query):
    expect(page).to_have_url(f"{TAB}?{query}")


def chosen(airflow):
    return airflow.root.locator(".row[aria-selected=true]")


def written(airflow, name):
    listed = airflow.root.get_by_role("listbox", name="Columns written")
    return listed.get_by_role("option", name=name).first


# --- the address ----------------------------------------------------------------------------------


def test_the_try_of_the_address_is_asked_for_first(opened):
    airflow = opened("?try_number=1")
    assert airflow.tries == ["1"]
    expect(airflow.root.get_by_label("Try")).to_have_value("1")


@pytest.mark.parametrize("number", long_after(1, ["", "0", "-1", "x", "1e3", "99999999999"]))
def test_what_is_no_number_of_a_try_is_the_latest(opened, number):
    assert opened(f"?try_number={number}").tries == [None]


def test_a_try_that_has_no_lineage_can_be_left_again(airflow):
    airflow.answers["lineage"] = RUNNING | TRIES | {"try_number": 5, "has_ended": True}
    airflow.open("?try_number=5")
    expect(airflow.root.get_by_label("Try")).to_have_value("5")
    airflow.root.get_by_label("Try").select_option("1")
    has_query(airflow.page, "try_number=1")


def test_a_chosen_try_is_in_the_address_and_the_latest_is_not(opened):
    airflow = opened("?tab=x&empty=")
    airflow.root.get_by_label("Try").select_option("1")
    has_query(airflow.page, "tab=x&empty=&try_number=1")
    airflow.root.get_by_label("Try").select_option("2")
    has_query(airflow.page, "tab=x&empty=")
    airflow.is_asked_for_tries(None, "1", None)


def test_back_shows_the_try_before(opened):
    airflow = opened()
    airflow.root.get_by_label("Try").select_option("1")
    airflow.page.go_back()
    airflow.page.wait_for_url(re.compile("spark-lineage$"))
    airflow.page.go_forward()
    airflow.page.wait_for_url(re.compile("try_number=1$"))
    expect(airflow.root.locator("h2")).to_be_visible()
    airflow.is_asked_for_tries(None, "1", None, "1")


def test_a_chosen_column_is_in_the_address(opened):
    airflow = opened("?try_number=2")
    written(airflow, "revenue").click()
    has_query(airflow.page, f"try_number=2&{REVENUE}")
    airflow.page.keyboard.press("Escape")
    has_query(airflow.page, "try_number=2")


def test_a_link_to_a_column_shows_it_chosen(opened):
    airflow = opened(f"?{REVENUE}")
    expect(chosen(airflow)).to_contain_text("revenue")
    expect(airflow.root.locator(".details")).to_contain_text("sum((amount * rate))")
    read = airflow.root.get_by_role("listbox", name="Columns read")
    expect(read.locator(".row.lit .column")).to_have_text(["amount", "rate"])
    airflow.page.reload()
    expect(chosen(airflow)).to_contain_text("revenue")


def test_back_shows_the_column_before(opened):
    airflow = opened()
    written(airflow, "segment").click()
    written(airflow, "revenue").click()
    expect(chosen(airflow)).to_contain_text("revenue")
    airflow.page.go_back()
    expect(chosen(airflow)).to_contain_text("segment")
    airflow.page.go_back()
    expect(chosen(airflow)).to_have_count(0)


@pytest.mark.parametrize(
    "query",
    long_after(
        1,
        [
            pytest.param(REVENUE.replace("side=to", "side=x"), id="no side"),
            pytest.param(REVENUE.replace("column=revenue", "column=nosuch"), id="no such column"),
            pytest.param("column=revenue", id="no dataset"),
        ],
    ),
)
def test_an_address_of_no_column_has_none_chosen(opened, query):
    expect(chosen(opened(f"?{query}"))).to_have_count(0)


def test_the_numbers_of_airflow_s_router_go_on(opened):
    airflow = opened()
    airflow.page.evaluate("history.replaceState({ idx: 4, key: 'k' }, '')")
    written(airflow, "revenue").click()
    has_query(airflow.page, REVENUE)
    assert airflow.page.evaluate("history.state") == {"idx": 5, "key": "k"}


# --- links ----------------------------------------------------------------------------------------


def links_to(staging, show):
    datasets = [*staging["inputs"], *staging["outputs"]]
    names = [{"namespace": d["namespace"], "name": d["name"]} for d in datasets]
    pages = [{**name, "url": f"{MARQUEZ}/{n}"} for n, name in enumerate(names)]
    return {"backend": "Marquez", "show": show, "job": f"{MARQUEZ}/job", "datasets": pages}


@pytest.mark.parametrize(
    ("show", "text"),
    long_after(
        1,
        [
            pytest.param("latest run", "in Marquez: latest run", id="the latest run"),
            pytest.param("", "in Marquez", id="all runs"),
        ],
    ),
)
def test_links_to_the_backend_say_where_they_lead(airflow, staging, show, text):
    airflow.answers["lineage"] = done(staging) | {"links": links_to(staging, show)}
    airflow.open()
    links = airflow.root.locator(f"a[href^='{MARQUEZ}']")
    expect(links).to_have_text([text] * 6)
    expect(links.nth(1)).to_have_attribute("aria-label", f"{text}, customers")
    names = {link.get_attribute("aria-label") for link in links.all()[1:]}
    assert len(names) == 5


def places(airflow, name):
    """Give the states of the page of the history to which a dataset's card leads."""
    card = airflow.root.locator(".card", has=airflow.page.get_by_text(name, exact=True))
    urls = [
        link.get_attribute("href") for link in card.first.locator(f"a[href^='{HISTORY}']").all()
    ]
    return [{key: one for key, (one,) in parse_qs(urlsplit(url).query).items()} for url in urls]


def test_cards_lead_to_states_of_the_page_of_the_history(opened):
    airflow = opened()
    of_orders = {"namespace": "file", "name": "/lake/orders"}
    assert places(airflow, "orders") == [{**of_orders, "partition": "dt=2024-05-06"}, of_orders]


def test_so_do_those_of_the_last_run(airflow, staging):
    airflow.answers["lineage"] = RUNNING | {"last": last_of(staging)}
    airflow.open()
    expect(airflow.root.locator(".card")).to_have_count(5)
    assert len(places(airflow, "orders")) == 2


def test_links_stay_in_an_airflow_that_is_served_below_a_path(airflow, staging):
    airflow.base = "/data/airflow/"
    airflow.answers["lineage"] = RUNNING | {"last": last_of(staging)}
    airflow.open()
    links = airflow.root.locator("a")
    expect(links).to_have_count(1 + 5 + 3)  # of the last run, of datasets, of partitions
    urls = [link.get_attribute("href") for link in links.all()]
    assert {url.partition("/data/airflow/")[0] for url in urls} == {"http://airflow.example"}
    assert all("/data/airflow/" in url for url in urls)


def test_the_chosen_column_is_in_these_states(opened):
    airflow = opened(f"?{REVENUE}")
    expect(chosen(airflow)).to_have_count(1)
    assert [place.get("column") for place in places(airflow, "revenue")] == ["revenue"] * 2
    assert [place.get("column") for place in places(airflow, "orders")] == [None] * 2


# --- the order in which it is read ----------------------------------------------------------------


def sentence(page):
    return page.locator("h2 span").first


@pytest.mark.parametrize(
    ("reads", "writes", "change", "text"),
    long_after(
        1,
        [
            pytest.param(
                ["a", "b", "c"], ["out"], {}, "read a, b and c, and wrote out.", id="three and one"
            ),
            pytest.param(list("abcd"), [], {}, "read 4 datasets.", id="many"),
            pytest.param([], ["out"], {}, "wrote out.", id="only written"),
            pytest.param([], [], {}, "read and wrote nothing that is known.", id="nothing"),
            pytest.param(
                ["a"],
                ["b"],
                {"eventType": "FAIL"},
                "read a, and wrote b, and then failed.",
                id="fail",
            ),
            pytest.param(
                [],
                [],
                {"eventType": "FAIL"},
                "failed before it read or wrote anything that is known.",
                id="failed early",
            ),
        ],
    ),
)
def test_a_sentence_says_what_was_read_and_written(show, reads, writes, change, text):
    event = partitioned_event({name: {} for name in reads}, {name: {} for name in writes}) | change
    event["run"]["facets"].pop("sparkLineage_partitionCheck", None)
    job = event["job"]["name"]
    expect(sentence(show(event))).to_have_text(f"{job} {text}")


@pytest.mark.parametrize(
    ("status", "text"),
    long_after(
        1,
        [
            pytest.param("missing", "read a; not as expected: a.", id="missing"),
            pytest.param("unexpected", "read a; not as expected: a.", id="unexpected"),
            pytest.param("matched", "read a, as expected.", id="matched"),
            pytest.param("undeclared", "read a.", id="nothing expected"),
            pytest.param("unobserved", "read a, and wrote b.", id="not all is known"),
        ],
    ),
)
def test_it_says_whether_that_was_expected(show, status, text):
    day = {"named": [{"dt": "2024-05-06"}], "from": [source("2024-05-06")]}
    of_unknown = {"b": {**day, "status": "matched"}} if status == "unobserved" else {}
    event = partitioned_event({"a": {**day, "status": status}}, of_unknown)
    expect(sentence(show(event))).to_have_text(f"{event['job']['name']} {text}")


@pytest.mark.parametrize("code", long_after(1, ["last_known", "not_submitted"]))
def test_datasets_of_the_last_run_were_not_read_in_this_try(show, staging, code):
    capture = {"degradations": [{"code": code, "message": "m"}]}
    event = staging | {"eventType": "FAIL", "run": {"facets": {"sparkLineage_capture": capture}}}
    page = show(event)
    expect(sentence(page)).to_contain_text("failed before it read or wrote anything")
    expect(page.locator(".card").first).to_contain_text("of the last run, not seen in this try")


def test_a_mapped_task_has_its_index(airflow, staging):
    airflow.map_index = "7"
    airflow.answers["lineage"] = done(staging)
    airflow.open()
    expect(sentence(airflow.root)).to_contain_text("staging_chain [7] read customers")


READ_IN_ORDER = "h2, nav.tries, [role=search], .flow, .partitions, .columns, .gaps"


def test_the_sentence_comes_first_and_no_button_before_it(opened):
    root = opened().root
    order = root.locator(READ_IN_ORDER).evaluate_all("all => all.map((one) => one.className)")
    assert order == ["", "tries", "search", "flow", "columns", "gaps"]
    first = root.locator("h2, button, select, input, a").first
    assert first.evaluate("one => one.localName") == "h2"


def test_what_can_be_done_stands_at_the_right_end(opened):
    airflow = opened()
    frame = airflow.root.bounding_box()
    for tools in (airflow.root.locator("nav.tries"), airflow.root.get_by_role("searchbox")):
        box = tools.bounding_box()
        assert box["x"] > frame["x"] + frame["width"] / 2
        assert box["x"] + box["width"] == pytest.approx(frame["x"] + frame["width"] - 16, abs=1)
