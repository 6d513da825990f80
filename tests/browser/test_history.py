"""The page "Lineage": its files as they are shipped, with answers made up here."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from itertools import combinations, product
from urllib.parse import parse_qs

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from airflow_provider_sparklineage.plugins import page as page_files
from tests.browser.month import HTML
from tests.browser.settled import at_rest, until
from tests.browser.test_accessibility import RULES, THEMES, listed
from tests.conftest import long_after

ORIGIN = "http://airflow.example"
ROUTE = f"{ORIGIN}/plugin/spark-lineage-history"
NARROW, WIDE = {"width": 900, "height": 700}, {"width": 1600, "height": 1000}
SIZES = [
    pytest.param(NARROW, id="900"),
    pytest.param(WIDE, id="1600", marks=pytest.mark.long),
]
CSP = "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'unsafe-inline'; "
CSP += "connect-src 'self'; img-src data:"
LAKE = {"namespace": "file", "name": "/lake/orders"}
PLACE = f"{ROUTE}?namespace=file&name=%2Flake%2Forders"


def run(n, task="orders", **other):
    ids = {"run_id": f"{task}-{n}", "job": f"shop.{task}", "dag_id": "shop", "task_id": task}
    when = {"dag_run_id": f"run {n}", "logical_date": "2024-05-06T00:00:00Z", "ended": None}
    return {**ids, **when, "map_index": -1, "state": "COMPLETE", **other}


def partitions(count, states="fffffsmxnu"):
    first = datetime(1900, 1, 1, tzinfo=UTC)
    names = [f"dt={(first + timedelta(days=n)).date()}" for n in range(count)]
    letters = [states[n % len(states)] for n in range(count)]
    cause = {"dataset": {"namespace": "file", "name": "/lake/raw"}, "partition": "dt=1900-01-06"}
    cause |= {"at": "2024-05-07T00:00:00Z", "how": "overwrite", "run": run(2, "raw")}
    return {
        "short": "orders",
        "partitions": {
            "names": names,
            "states": "".join(letters),
            "written": [1_714_953_600 + n for n in range(count)],
            "runs": [0] * count,
        },
        "runs": [run(1)],
        "unjudged": ["1 run wrote an unknown part of it."],
        "causes": {n: cause for n, letter in zip(names, letters, strict=True) if letter == "s"},
    }


def hop(depth, name, partition, made_by, via=(), **other):
    change = [{"type": "DIRECT", "subtype": "AGGREGATION", "masking": False, "description": ""}]
    at = {"depth": depth, "dataset": {"namespace": "file", "name": f"/lake/{name}"}}
    return {
        **at,
        "partition": partition,
        "column": None,
        "transformations": change,
        "is_certain": True,
        "note": None,
        "via": list(via),
        "run": made_by,
        "is_hidden": False,
        **other,
    }


GRAPH = {
    "upstream": {
        "hops": [
            hop(0, "orders", "dt=1900-01-06", run(1)),
            *[hop(1, "raw", f"dt=1900-01-0{n}", run(n, "raw"), ["orders-1"]) for n in range(1, 7)],
            hop(1, "rates", "", None, ["orders-1"], is_hidden=True),
        ],
        "hidden": 2,
        "more": 0,
    },
    "downstream": {
        "hops": [hop(1, "weekly", "week=1900-01", run(1, "weekly"))],
        "hidden": 0,
        "more": 0,
    },
    "columns": ["amount", "customer"],
    "is_more": False,
}


def step(n, task, wave, **other):
    reasons = ["file /lake/orders dt=1900-01-06"]
    known = {"may_clear": True, "is_elsewhere": False, "is_certain": True}
    return {"run": run(n, task), "wave": wave, "reasons": reasons, **known, **other}


NO_PLAN = {"steps": [], "by_hand": [], "hidden": 0, "left_out": 0}
PLANS = {
    "refresh": NO_PLAN,
    "impact": {
        "steps": [
            step(1, "weekly", 0),
            step(1, "report", 1),
            step(2, "report", 1, may_clear=False),
            step(4, "report", 1, may_clear=False, is_elsewhere=True, is_certain=False),
        ],
        "by_hand": [{**step(3, "dbt", 0), "may_clear": False}],
        "hidden": 3,
        "left_out": 2,
    },
}
OF_ALL = {**PLANS["impact"], "more": 0}
DATASETS = {
    "unavailable": None,
    "built_at": "2024-05-07T01:00:00Z",
    "datasets": [
        {
            **LAKE,
            "short": "orders",
            "partitions": 5,
            "last_written": "2024-05-06T01:00:00Z",
            "troubles": {"s": 2},
        }
    ],
    "count": 1,
}
HEALTH = {
    "totals": {"s": 1200, "m": 1, "w": 2, "n": 3},
    "datasets": [
        {**LAKE, "short": "orders", "counts": {"s": 1200}, "newest": "2024-05-07T00:00:00Z"},
        {
            "namespace": "file",
            "name": "/other/orders",
            "short": "other/orders",
            "counts": {"m": 1, "w": 2, "n": 3},
            "newest": None,
        },
    ],
    "more": 0,
    "fine": 7,
    "is_stale_known": True,
    "looked": {"done": 9, "of": 9, "left_out": 0},
}
QUICK_HEALTH = {
    **HEALTH,
    "totals": {"m": 1},
    "datasets": [{**HEALTH["datasets"][1], "counts": {"m": 1}}],
    "looked": {"done": 0, "of": 9, "left_out": 0},
}

STATE = {
    "generation": 1,
    "built_at": DATASETS["built_at"],
    "waiting": 0,
    "since": None,
    "is_merging": False,
    "problem": "",
}
CHANGES = {
    "tasks": ["shop.orders"],
    "hidden": 1,
    "changes": [
        {
            "run": run(n, ended="2024-05-06T01:02:03Z"),
            "kind": "input_went",
            "dataset": {"namespace": "file", "name": "/lake/rates"},
            "column": None,
            "message": f"file:///lake/rates{n} is no longer read.",
        }
        for n in range(60)
    ],
    "more": 0,
}


COLUMNS = {"columns": [], "count": 0, "is_cut": False}


def column(name, of, short=None):
    return {"namespace": "file", "name": f"/lake/{of}", "short": short or of, "column": name}


def edge(side, source, target, **how):
    kind = {"type": "DIRECT", "subtype": "AGGREGATION", "masking": False, "description": "sum(x)"}
    return {"run": "orders-1", "side": side, "source": source, "target": target, **kind, **how}


COLUMN_GRAPH = {
    "short": "orders",
    "edges": [
        edge("upstream", column("price", "raw"), column("amount", "orders")),
        edge("upstream", column("day", "raw"), column(None, "orders"), type="INDIRECT"),
        edge("downstream", column("amount", "orders"), column("total", "weekly")),
    ],
    "runs": {"orders-1": run(1)},
    "parts": [{**LAKE, "run": "orders-1", "partitions": 2, "partition": "dt=1900-01-06"}],
    "columns": ["amount", "customer"],
    "further": [{"side": "downstream", **column("total", "weekly")}],
    "hidden": 1,
    "is_cut": False,
}


class Answers:
    """What the API server answers, and what it was asked."""

    def __init__(self, **changed):
        given = {"datasets": DATASETS, "partitions": partitions(10), "graph": GRAPH, "plan": PLANS}
        given |= {"changes": CHANGES, "state": STATE, "health": HEALTH, "health/plan": OF_ALL}
        given |= {"quick health": QUICK_HEALTH, "columns": COLUMNS, "columns/graph": COLUMN_GRAPH}
        self.of = {**given, **changed}
        self.of.setdefault("quick", self.of["partitions"])
        self.asked = []
        self.cleared = []
        self.status = 200
        self.theme = "light"
        self.slow = ""  # what is answered late
        self.late = []

    def answer_late(self):
        """Give the answers that took long."""
        for route in self.late:
            route.fulfill(json=self.of[self.slow])

    def __call__(self, route):
        request = route.request
        self.asked.append(request.url)
        path = request.url.removeprefix(ORIGIN).partition("?")[0]
        headers = {"Content-Security-Policy": CSP}
        if path.startswith("/plugin/"):
            html = HTML.format(theme=self.theme)
            route.fulfill(body=html, content_type="text/html", headers=headers)
        elif path.startswith("/sparklineage/history/"):
            file = path.rpartition("/")[2]
            route.fulfill(body=page_files.content(file), content_type=page_files.files()[file])
        elif path.startswith("/sparklineage/api/history/"):
            self._found(route, path.removeprefix("/sparklineage/api/history/"))
        elif path.endswith("/clearTaskInstances"):
            self.cleared.append((path, json.loads(request.post_data)))
            route.fulfill(status=self.status, json={})
        else:
            route.fulfill(status=404)

    def _found(self, route, what):
        if "quick=true" in route.request.url:
            what = "quick" if what == "partitions" else f"quick {what}"
        if what == self.slow:
            self.late.append(route)
        else:
            route.fulfill(json=self.of[what])


@pytest.fixture
def show(new_page):
    def show_page(answers, url=ROUTE, size=None):
        page = new_page()
        if size:  # before anything is laid out
            page.set_viewport_size(size)
        page.route(re.compile(".*"), answers)
        page.goto(url)
        expect(page.get_by_role("heading", name="Lineage", exact=True)).to_be_visible()
        return page

    return show_page


def found(page):
    """Give the dataset that the search finds."""
    return page.get_by_role("listbox", name="Datasets", exact=True).get_by_role("option")


def choose(page, name="dt=1900-01-06"):
    page.get_by_role("option", name=name).click()
    expect(page.get_by_role("heading", level=3)).to_contain_text(name)


def plan_of(page):
    """Give the table of what to run again."""
    return page.locator(".plan").get_by_role("table")


def step_of(page, n):
    """Give the row that begins a step of the plan, which has the button that clears it."""
    return plan_of(page).get_by_role("row", name=f"Step {n}")


def scroll_to_end(table):
    table.evaluate("table => { table.scrollTop = table.scrollHeight; }")


def reach(page, wanted):
    """Go on with the tab key until something has the focus."""
    expect(wanted).to_be_visible()
    for _ in range(60):
        if wanted.evaluate("element => element.getRootNode().activeElement === element"):
            return
        page.keyboard.press("Tab")
    pytest.fail(f"no way by the tab key to {wanted}")


def test_a_dataset_is_found_and_its_partitions_are_a_calendar(show):
    page = show(Answers())
    found(page).click()
    stale = page.get_by_role("gridcell", name="1900-01-06, stale")
    expect(stale).to_be_visible()
    stale.click()
    expect(page.get_by_role("heading", level=3)).to_contain_text("dt=1900-01-06")
    expect(page.locator("main")).to_contain_text("raw dt=1900-01-06 was written again")
    expect(page).to_have_url(re.compile("partition=dt%3D1900-01-06"))
    page.go_back()
    expect(page.get_by_role("heading", level=3)).to_have_count(0)


def test_an_open_page_follows_what_tasks_deliver(new_page):
    answers = Answers(partitions=partitions(7))
    page = new_page()
    page.clock.install()
    page.route(re.compile(".*"), answers)
    page.goto(PLACE)
    choose(page)
    page.get_by_role("button", name="Table").click()

    answers.of["state"] = {**STATE, "waiting": 2, "is_merging": True}
    page.clock.fast_forward(11_000)
    expect(page.locator("header")).to_contain_text("2 newer events of tasks are being added …")
    at = "2024-05-08T01:00:00Z"
    answers.of |= {
        "state": {**STATE, "generation": 2, "built_at": at},
        "datasets": {**DATASETS, "built_at": at},
        "partitions": partitions(10),
    }
    page.clock.fast_forward(11_000)
    expect(page.locator("header")).to_contain_text("as of 2024-05-08 01:00 UTC")
    expect(page.locator("header")).not_to_contain_text("newer")
    expect(page.get_by_role("option", name="dt=1900-01-10")).to_be_visible()
    # What was chosen is there as before.
    expect(page.get_by_role("heading", level=3)).to_contain_text("dt=1900-01-06")
    expect(page.get_by_role("table", name="Lineage, step by step")).to_be_visible()


def test_why_nothing_is_added_is_named(show):
    problem = "error: the disk is full"
    answers = Answers(state={**STATE, "waiting": 1, "problem": problem})
    page = show(answers)
    expect(page.get_by_role("status").first).to_have_text(
        f"1 newer event of tasks is not in it yet. {problem}"
    )


# --- the health of all datasets -------------------------------------------------------------------


def test_the_page_opens_on_what_needs_a_person(show):
    page = show(Answers())
    health = page.get_by_role("article", name="Health of all datasets")
    expect(health.get_by_role("heading", name="2 datasets need you")).to_be_visible()
    expect(health.get_by_role("button", name="stale 1,200")).to_be_visible()
    expect(health.get_by_role("button", name="write failed 2")).to_be_visible()
    expect(health.get_by_role("button", name="missing 0")).to_be_visible()
    expect(health.get_by_role("status").first).to_have_text("7 datasets are fine.")
    troubled = page.get_by_role("listbox", name="Datasets that need you").get_by_role("option")
    expect(troubled).to_have_count(2)
    expect(troubled.first).to_contain_text("orders")
    expect(troubled.last).to_contain_text("other/orders")
    health.get_by_role("button", name="mismatched 1").click()
    expect(troubled).to_have_count(1)
    troubled.click()
    expect(page.get_by_role("button", name="mismatched", pressed=True)).to_be_visible()
    expect(page).to_have_url(re.compile("states=m"))


def test_what_is_stale_and_what_to_run_again_are_two_clicks_away(show):
    answers = Answers()
    page = show(answers)
    page.get_by_role("button", name="What to run again").click()
    step = step_of(page, 2)
    step.get_by_role("button", name="Clear 1 task instance").click()
    page.get_by_role("dialog").get_by_role("button", name="Clear", exact=True).click()
    expect(step.get_by_role("status")).to_have_text("Cleared 1 task instance.")
    assert len(answers.cleared) == 1


def test_health_is_shown_as_far_as_it_is_known_and_followed(show):
    some = {**HEALTH, "looked": {"done": 4, "of": 9, "left_out": 2}}
    answers = Answers(health=some)
    page = show(answers)
    status = page.get_by_role("article").get_by_role("status").first
    expect(status).to_contain_text("Looking for what was never written: 4 of 9 datasets …")
    expect(status).to_contain_text("In 2 other datasets, never written partitions are not")
    expect(page.get_by_role("button", name="never written 3+")).to_be_visible()
    answers.of["health"] = {**HEALTH, "is_stale_known": False, "totals": {"n": 5}}
    expect(page.get_by_role("button", name="never written 5", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="stale too many")).to_be_visible()
    expect(status).to_contain_text("Too many partitions are stale to count them")


def test_where_nothing_needs_a_person_the_page_says_so(show):
    fine = {**HEALTH, "totals": {}, "datasets": [], "fine": 1}
    page = show(Answers(health=fine, **{"quick health": fine}))
    expect(page.get_by_role("heading", name="Nothing needs you")).to_be_visible()
    expect(page.get_by_role("article").get_by_role("status")).to_have_text(
        "1 dataset is fine. Choose one, or find a column, to see what it was made of."
    )
    expect(page.get_by_role("button", name="What to run again")).to_have_count(0)


# --- a range of time ------------------------------------------------------------------------------


OF_RANGE = {"refresh": {**NO_PLAN, "steps": [step(1, "orders", 0)]}}


def ends(page):
    return [page.get_by_role("slider", name=name) for name in ("From", "To")]


def expect_range(page, first, last):
    for end, text in zip(ends(page), (first, last), strict=True):
        expect(end).to_have_attribute("aria-valuetext", text)


def track_of(page):
    """Give where the bar is, when nothing above of it moves it any more."""
    track = page.locator(".track")
    expect(track).to_be_visible()
    expect(page.get_by_text("Looking for")).to_have_count(0)
    at_rest(page)
    return track.bounding_box()


def test_a_range_of_the_bar_limits_the_list_the_calendar_and_a_plan(show):
    answers = Answers(partitions=partitions(1000))
    page = show(answers, PLACE)
    expect_range(page, "1900-01-01", "1902-09-27")
    track = track_of(page)
    y = track["y"] + 10
    page.mouse.move(track["x"] + 0.25 * track["width"], y)
    page.mouse.down()
    page.mouse.move(track["x"] + 0.5 * track["width"], y, steps=3)
    page.mouse.up()
    listed = page.locator(".names [role=status]")
    expect(listed).to_have_text(re.compile("25[01] partitions"))
    expect_range(page, re.compile("^1900-09"), re.compile("^1901-05"))
    first, last = (end.get_attribute("aria-valuetext") for end in ends(page))
    expect(page.get_by_role("row")).to_have_count(1 + 9)  # its head, and nine months
    expect(page).to_have_url(re.compile(r"from=-\d+&to=-\d+"))

    page.get_by_role("button", name="stale 100").click()
    expect(listed).to_have_text("25 partitions")
    page.reload()
    expect(listed).to_have_text("25 partitions")
    expect_range(page, first, last)

    answers.of["plan"] = OF_RANGE
    page.get_by_role("button", name="What to run again").click()
    expect(page.get_by_role("button", name="Clear 1 task instance")).to_be_visible()
    [asked] = [url for url in answers.asked if "/plan?" in url]
    assert asked.count("first=") == asked.count("last=") == 1  # one span of the sorted names
    page.get_by_role("button", name="All time").click()
    expect(listed).to_have_text("100 partitions")


def asked_spans(answers):
    """Give the spans of each plan that was asked for: their first and last names."""
    queries = [parse_qs(url.partition("?")[2]) for url in answers.asked if "/plan?" in url]
    return [(query["first"], query["last"]) for query in queries]


def plan_of_a_range(show):
    """Choose a range of the bar, and ask for its plan."""
    answers = Answers(partitions=partitions(1000), plan=OF_RANGE)
    page = show(answers, PLACE)
    start, _ = ends(page)
    start.press("PageUp")
    page.get_by_role("button", name="What to run again").click()
    clear = page.get_by_role("button", name="Clear 1 task instance")
    expect(clear).to_be_visible()
    return answers, page, start, clear


def test_a_plan_of_a_range_has_an_address_that_shows_the_same_again(show):
    answers, page, start, clear = plan_of_a_range(show)
    expect(page).to_have_url(re.compile(r"view=plan&from=-\d+&to=-\d+$"))
    url, texts = page.url, [one.get_attribute("aria-valuetext") for one in ends(page)]
    [spans] = asked_spans(answers)

    page.reload()
    expect(clear).to_be_visible()
    expect_range(page, *texts)
    assert (page.url, asked_spans(answers)) == (url, [spans, spans])

    of_colleague = Answers(partitions=partitions(1000), plan=OF_RANGE)
    other = show(of_colleague, url)
    expect(other.get_by_role("button", name="Clear 1 task instance")).to_be_visible()
    expect_range(other, *texts)
    assert asked_spans(of_colleague) == [spans]

    # Another range by the mouse, and back.
    track = track_of(page)
    page.mouse.move(track["x"] + 0.6 * track["width"], track["y"] + 10)
    page.mouse.down()
    page.mouse.move(track["x"] + 0.8 * track["width"], track["y"] + 10, steps=3)
    page.mouse.up()
    expect(clear).to_be_visible()
    expect(start).not_to_have_attribute("aria-valuetext", texts[0])
    page.go_back()
    expect_range(page, *texts)
    expect(clear).to_be_visible()
    expect(page).to_have_url(url)
    until(
        page,
        lambda: asked_spans(answers)[-1] == spans,
        lambda: f"plans were asked for: {asked_spans(answers)}",
    )
    page.go_back()
    expect(clear).to_have_count(0)
    expect_range(page, *texts)


@pytest.mark.parametrize("way", long_after(1, ["button", "keys"]))
def test_a_plan_ends_with_its_range(show, way):
    _, page, start, clear = plan_of_a_range(show)
    if way == "button":
        page.get_by_role("button", name="All time").click()
    else:
        start.press("Home")
    expect(clear).to_have_count(0)
    expect(page).to_have_url(PLACE)
    start.press("PageUp")
    expect(page.get_by_role("button", name="What to run again")).to_be_visible()
    expect(clear).to_have_count(0)


def test_a_click_on_the_bar_changes_nothing_and_an_end_can_be_dragged(show):
    page = show(Answers(partitions=partitions(1000)), PLACE)
    track = track_of(page)
    page.mouse.click(track["x"] + 0.3 * track["width"], track["y"] + 10)
    at_rest(page)
    expect_range(page, "1900-01-01", "1902-09-27")
    _, to = ends(page)
    at = to.bounding_box()
    page.mouse.move(at["x"] + 12, at["y"] + 10)
    page.mouse.down()
    page.mouse.move(track["x"] + 0.3 * track["width"], at["y"] + 10, steps=3)
    page.mouse.up()
    expect(page.locator(".names [role=status]")).to_have_text(re.compile("30[0-2] partitions"))


# The pointer's last move and its end, before the browser has drawn the one.
LET_GO = """(track, x) => ["pointermove", "pointerup"].forEach((name) =>
    track.dispatchEvent(new PointerEvent(name, { clientX: x, bubbles: true })))"""


@pytest.mark.long
def test_a_range_ends_where_the_pointer_is_let_go_however_slow_the_browser_is(show):
    page = show(Answers(partitions=partitions(1000)), PLACE)
    track = track_of(page)
    page.mouse.move(track["x"] + 0.25 * track["width"], track["y"] + 10)
    page.mouse.down()
    page.locator(".track").evaluate(LET_GO, track["x"] + 0.5 * track["width"])
    expect(page.locator(".names [role=status]")).to_have_text(re.compile("25[01] partitions"))


def test_a_range_is_chosen_by_keys(show):
    page = show(Answers(partitions=partitions(1200)), PLACE)
    start, end = ends(page)
    reach(page, start)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("PageUp")
    expect(start).to_have_attribute("aria-valuetext", "1900-04-12")
    reach(page, end)
    page.keyboard.press("Home")
    expect(end).to_have_attribute("aria-valuetext", "1900-04-12")
    page.keyboard.press("ArrowUp")
    expect(end).to_have_attribute("aria-valuetext", "1900-04-13")
    expect(end).to_be_focused()
    expect(page.locator(".names [role=status]")).to_have_text("2 partitions")
    page.keyboard.press("End")
    start.press("Home")
    expect(page.locator(".names [role=status]")).to_have_text("1,200 partitions")
    expect(page).not_to_have_url(re.compile("from="))


def test_of_another_dataset_all_time_is_shown(show):
    page = show(Answers(), f"{PLACE}&from=-25560&to=-25558")
    expect(page.locator(".names [role=status]")).to_have_text("3 partitions")
    page.get_by_role("link", name="All datasets").click()
    found(page).click()
    expect(page.locator(".names [role=status]")).to_have_text("10 partitions")


def test_a_plan_of_a_range_names_the_stale_partitions_of_each_region(show):
    days = [f"2024-05-0{day}" for day in range(1, 10)]
    of = partitions(18, "s")
    of["partitions"]["names"] = [f"region={r}/dt={day}" for r in ("eu", "us") for day in days]
    answers = Answers(partitions=of, plan=OF_RANGE)
    page = show(answers, PLACE)
    start, end = ends(page)
    for _ in range(3):
        start.press("ArrowRight")
    end.press("ArrowLeft")
    page.get_by_role("button", name="What to run again").click()
    expect(page.get_by_role("button", name="Clear 1 task instance")).to_be_visible()
    [asked] = [url for url in answers.asked if "/plan?" in url]
    query = parse_qs(asked.partition("?")[2])
    assert query["first"] == [f"region={r}/dt=2024-05-04" for r in ("eu", "us")]
    assert query["last"] == [f"region={r}/dt=2024-05-08" for r in ("eu", "us")]


def test_the_bar_shows_the_worst_state_by_form_and_years_below_it(show):
    page = show(Answers(partitions=partitions(6000, "f" * 1999 + "s")), PLACE)
    paths = page.locator(".track path")
    expect(paths).to_have_count(2)  # fresh and stale
    forms = [one.get_attribute("d") for one in paths.all()]
    assert sorted(len(re.findall("M", form)) for form in forms) == [3, 3]
    assert {re.search(r"V(\d)H", form)[1] for form in forms} == {"0", "7"}  # stale is the highest
    expect(page.locator(".ticks span")).to_have_text(["1900", "1905", "1910", "1915"])


# --- addresses ------------------------------------------------------------------------------------


def states_of(page):
    """Give what is seen: the pressed buttons, the chosen partition, the options and texts."""
    expect(page.get_by_role("button", pressed=True)).to_have_count(2)
    at_rest(page)
    return [
        page.get_by_role("button", pressed=True).all_inner_texts(),
        page.get_by_role("heading", level=3).all_inner_texts(),
        page.get_by_role("combobox").evaluate_all("all => all.map(one => one.value)"),
        page.get_by_role("searchbox").evaluate_all("all => all.map(one => one.value)"),
    ]


def test_every_state_has_an_address_that_shows_the_same_again(show):
    page = show(Answers())
    page.get_by_label("Sorted by").select_option("name")
    page.get_by_role("searchbox", name="Find a dataset").fill("ord")
    found(page).click()
    page.get_by_role("button", name="stale 1").click()
    page.get_by_role("searchbox", name="Find a partition").fill("1900")
    choose(page)
    page.get_by_role("combobox", name="Column").select_option("amount")
    page.get_by_label("Steps").select_option("5")
    page.get_by_role("button", name="Table").click()
    expect(page.get_by_role("table")).to_be_visible()
    expect(page).to_have_url(re.compile(f"^{re.escape(ROUTE)}\\?.*view=Table"))
    seen, url = states_of(page), page.url
    page.reload()
    expect(page.get_by_role("table")).to_be_visible()
    assert states_of(page) == seen

    other = show(Answers(), url)
    expect(other.get_by_role("table")).to_be_visible()
    assert states_of(other) == seen

    page.go_back()
    expect(page.get_by_role("button", name="Graph", pressed=True)).to_be_visible()
    page.go_forward()
    expect(page.get_by_role("table")).to_be_visible()
    expect(page).to_have_url(url)
    assert states_of(page) == seen


def test_back_leads_from_a_dataset_to_the_health_of_all(show):
    page = show(Answers())
    found(page).click()
    expect(page.get_by_role("heading", level=2, name="orders")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("heading", name="2 datasets need you")).to_be_visible()
    expect(page).to_have_url(ROUTE)
    page.go_forward()
    page.get_by_role("link", name="All datasets").click()
    expect(page.get_by_role("heading", name="2 datasets need you")).to_be_visible()


def test_an_address_that_airflow_itself_opens_is_shown(show):
    page = show(Answers(), f"{PLACE}&partition=dt%3D1900-01-01")
    expect(page.get_by_role("heading", level=3)).to_contain_text("dt=1900-01-01")
    page.evaluate("history.pushState(null, '', location.pathname)")
    expect(page.get_by_role("heading", name="2 datasets need you")).to_be_visible()


def test_a_link_to_a_partition_shows_it(show):
    page = show(Answers(), f"{PLACE}&partition=dt%3D1900-01-01")
    expect(page.get_by_role("heading", level=3)).to_contain_text("dt=1900-01-01")


def test_the_graph_has_a_box_for_what_a_task_wrote_of_a_dataset(show):
    page = show(Answers(), PLACE)
    choose(page)
    expect(page.locator(".react-flow__node")).to_have_count(7)
    raw = page.locator(".react-flow__node", has_text="raw6 partitions")
    expect(raw).to_be_visible()
    raw.click()
    expect(page.get_by_label("Partitions of the chosen box").get_by_role("option")).to_have_count(6)
    expect(
        page.locator(".react-flow__node", has_text="by a run that you may not see")
    ).to_be_visible()
    expect(page.locator("main")).to_contain_text("2 more are of DAGs that you may not see.")


def test_the_same_is_a_table_with_links_to_task_instances(show):
    page = show(Answers(), PLACE)
    choose(page)
    page.get_by_role("button", name="Table").click()
    table = page.get_by_role("table", name="Lineage, step by step")
    expect(table.get_by_role("row")).to_have_count(10)
    link = table.get_by_role("link", name="weekly · shop")
    address = f"{ORIGIN}/dags/shop/runs/run%201/tasks/weekly/plugin/spark-lineage"
    expect(link).to_have_attribute("href", address)


def test_a_step_is_cleared_after_confirmation_and_only_what_may_be(show):
    answers = Answers()
    page = show(answers, PLACE)
    choose(page)
    page.get_by_role("button", name="Run again").click()
    expect(page.get_by_text("there was no time to look in 2 datasets")).to_have_count(1)
    second = step_of(page, 2)
    expect(plan_of(page).get_by_text("You may not clear it.")).to_have_count(1)
    elsewhere = plan_of(page).get_by_role("row", name="Another Airflow ran it; clear it there.")
    expect(elsewhere).to_contain_text("Perhaps: something of this is assumed.")
    second.get_by_role("button", name="Clear 1 task instance").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert answers.cleared == []
    second.get_by_role("button", name="Clear 1 task instance").click()
    page.get_by_role("dialog").get_by_role("button", name="Clear", exact=True).click()
    expect(second.get_by_role("status")).to_have_text("Cleared 1 task instance.")
    [(path, body)] = answers.cleared
    assert path == "/api/v2/dags/shop/clearTaskInstances"
    assert (body["dag_run_id"], body["task_ids"]) == ("run 1", ["report"])
    assert (body["dry_run"], body["only_failed"]) == (False, False)


def test_what_changed_from_run_to_run_is_asked_for_when_it_is_wanted(show):
    answers = Answers()
    page = show(answers, PLACE)
    page.get_by_text("fresh", exact=False).first.wait_for()
    assert not any("/changes" in url for url in answers.asked)
    page.get_by_text("What changed from run to run").click()
    section = page.locator("details.changes")
    expect(section.get_by_role("table")).to_have_attribute("aria-rowcount", "61")
    expect(section).to_contain_text("orders · shop 2024-05-06")
    expect(section).to_contain_text("file:///lake/rates0 is no longer read.")
    expect(section).to_contain_text("Written, too, by 1 task of DAGs that you may not see.")
    scroll_to_end(section.get_by_role("table"))
    expect(section).to_contain_text("file:///lake/rates59 is no longer read.")


def test_where_nothing_changed_the_page_says_so(show):
    page = show(Answers(changes={**CHANGES, "changes": [], "hidden": 0}), PLACE)
    page.get_by_text("What changed from run to run").press("Enter")
    section = page.locator("details.changes")
    expect(section).to_contain_text("Each run of shop.orders did what the one before it did.")


def test_what_is_missing_is_named_with_what_to_run(show):
    missing = {"message": "DuckDB is not installed.", "commands": ["pip install x[history]"]}
    page = show(Answers(datasets={**DATASETS, "unavailable": missing, "datasets": [], "count": 0}))
    expect(page.get_by_role("status").first).to_have_text("DuckDB is not installed.")
    expect(page.locator("pre")).to_have_text("pip install x[history]")


def test_names_are_text_whatever_they_are(show):
    name = "<img src=x onerror=alert(1)>\u202egnp"
    one = {**DATASETS["datasets"][0], "name": name, "short": name}
    page = show(Answers(datasets={**DATASETS, "datasets": [one]}))
    expect(found(page)).to_contain_text("<img src=x onerror=alert(1)>\ufffdgnp")


def test_nothing_is_asked_of_another_server(show):
    answers = Answers()
    page = show(answers, PLACE)
    choose(page)
    expect(page.locator(".react-flow__node").first).to_be_visible()
    assert [url for url in answers.asked if not url.startswith(f"{ORIGIN}/")] == []


# --- columns --------------------------------------------------------------------------------------


def test_columns_have_lines_and_conditions_only_if_they_are_wanted(show):
    page = show(Answers(), f"{PLACE}&view=Columns&column=amount")
    boxes = page.locator(".react-flow__node")
    expect(boxes).to_have_count(3)
    expect(page.locator(".react-flow__edge")).to_have_count(2)
    expect(boxes.filter(has_text="orders2 partitions")).to_contain_text("by orders")
    made = page.get_by_role("region", name="Made of", exact=True)
    expect(made.get_by_role("row")).to_have_count(2)
    expect(made).to_contain_text("aggregation sum(x)")
    expect(page.locator("main")).to_contain_text("1 run of DAGs that you may not see")
    page.get_by_role("checkbox", name="Conditions (1)").check()
    expect(page.locator(".react-flow__edge")).to_have_count(3)
    expect(page.get_by_role("region", name="Conditions")).to_contain_text("orders.*")
    expect(page).to_have_url(re.compile("conditions=1"))


HOWS = ["aggregation", "transformation", "group by", "filter"]


def crossing_lines():
    """Give 20 lines between three tables of ten columns each, ten to a column, and conditions."""
    kinds = ["AGGREGATION", "TRANSFORMATION"]
    pairs = [("raw", "clean", "upstream"), ("clean", "weekly", "upstream")]
    lines = [
        edge(side, column(f"{of}_{n}", of), column(f"{to}_{3 * n % 10}", to), subtype=kinds[n % 2])
        for of, to, side in pairs
        for n in range(10)
    ]
    # The column that is asked for is made of ten columns.
    lines += [edge("upstream", column(f"clean_{n}", "clean"), column("amount", "orders"),
                   subtype=kinds[n % 2]) for n in range(10)]  # fmt: skip
    whole = [
        edge("upstream", column(f"{of}_{n}", of), column(None, to), type="INDIRECT", subtype=kind)
        for of, to, _ in pairs
        for n, kind in enumerate(["GROUP_BY", "FILTER"])
    ]
    return lines + whole


def are_apart(one, other):
    return any(
        one[at] + one[size] <= other[at] + 0.5 or other[at] + other[size] <= one[at] + 0.5
        for at, size in (("x", "width"), ("y", "height"))
    )


@pytest.mark.long
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("conditions", [pytest.param("", marks=pytest.mark.long), "1"])
def test_texts_of_lines_that_lie_close_are_apart(show, size, conditions):
    graph = {**COLUMN_GRAPH, "edges": crossing_lines(), "further": []}
    address = f"{PLACE}&view=Columns&column=amount&conditions={conditions}"
    page = show(Answers(**{"columns/graph": graph}), address, size=size)
    picture = page.locator(".columnpicture")
    expect(picture.locator(".react-flow__edge")).to_have_count(34 if conditions else 30)
    at_rest(page)
    pattern = re.compile(f"^({'|'.join(HOWS)})(, ({'|'.join(HOWS)}))?$")
    texts = picture.locator("span, text").filter(has_text=pattern)
    # One at each column where lines end, and one at each table that has conditions.
    expect(texts).to_have_count(23 if conditions else 21)
    expect(texts.filter(has_text="aggregation, transformation")).to_have_count(1)
    drawn = [one.bounding_box() for one in texts.all()]
    boxes = [one.bounding_box() for one in picture.locator(".box").all()]
    assert [(a, b) for a, b in combinations(drawn, 2) if not are_apart(a, b)] == []
    assert [(a, b) for a, b in product(drawn, boxes) if not are_apart(a, b)] == []


def test_a_column_of_a_box_becomes_the_one_that_is_asked_for(show):
    answers = Answers()
    page = show(answers, f"{PLACE}&view=Columns&column=amount")
    page.locator(".react-flow__node").get_by_role("button", name="price", exact=True).click()
    expect(page.get_by_role("heading", level=2)).to_contain_text("price")
    expect(page).to_have_url(re.compile("name=%2Flake%2Fraw&"))
    is_asked = re.compile("columns/graph.*column=price").search
    until(page, lambda: any(map(is_asked, answers.asked)), lambda: f"asked: {answers.asked}")
    page.go_back()
    expect(page.get_by_role("heading", level=2)).to_contain_text("amount")


def test_until_another_column_is_known_the_one_before_is_shown_as_itself(show):
    answers = Answers()
    page = show(answers, f"{PLACE}&view=Columns&column=amount")
    made = page.get_by_role("region", name="Made of", exact=True)
    expect(made).to_contain_text("raw.price")
    many = [edge("upstream", column("x", f"csv{n}"), column("price", "raw")) for n in range(12)]
    answers.of["columns/graph"] = {**COLUMN_GRAPH, "short": "raw", "edges": many, "further": []}
    answers.slow = "columns/graph"
    page.locator(".react-flow__node").get_by_role("button", name="price", exact=True).click()
    expect(page).to_have_url(re.compile("column=price"))
    until(page, lambda: answers.late, lambda: f"asked: {answers.asked}")
    at_rest(page)
    expect(page.get_by_role("heading", level=2)).to_have_text(re.compile("^orders.*amount"))
    expect(made).to_contain_text("raw.price")
    answers.answer_late()
    expect(page.get_by_role("heading", level=2)).to_have_text(re.compile("^raw.*price"))
    expect(made).to_contain_text("csv11.x")
    at_rest(page)
    assert is_inside(page.locator(".box.chosen"), page.locator(".picture"))


def test_without_a_column_its_columns_are_listed(show):
    page = show(Answers(), f"{PLACE}&view=Columns")
    columns = page.get_by_role("listbox", name="Columns").get_by_role("option")
    expect(columns).to_have_text(["amount", "customer"])
    columns.last.click()
    expect(page).to_have_url(re.compile("column=customer"))


@pytest.mark.parametrize(
    ("count", "is_cut", "sentence"),
    long_after(
        1,
        [
            pytest.param(50, False, "50 columns", id="all"),
            pytest.param(
                950, False, "The first 50 of 950 columns. Type more to see others.", id="more"
            ),
            pytest.param(
                1000,
                True,
                "The first 50 of more than 1,000 columns. Type more to see others.",
                id="many",
            ),
        ],
    ),
)
def test_if_more_columns_match_than_are_listed_the_page_says_what_to_do(
    show, count, is_cut, sentence
):
    columns = [column(f"amount_{n}", "raw") for n in range(50)]
    page = show(Answers(columns={"columns": columns, "count": count, "is_cut": is_cut}))
    page.get_by_role("searchbox").first.fill("amount")
    expect(page.locator(".finder").get_by_role("status").last).to_have_text(sentence)


def test_names_of_columns_are_text_whatever_they_are(show):
    name = "<img src=x onerror=alert(1)>"
    odd = [
        edge("upstream", column(name, "raw", name), column("amount", "orders"), description=name)
    ]
    columns = {"columns": [column(name, "raw", name)], "count": 1, "is_cut": False}
    page = show(Answers(columns=columns, **{"columns/graph": {**COLUMN_GRAPH, "edges": odd}}))
    page.get_by_role("searchbox").first.fill("img")
    page.get_by_role("listbox", name="Found columns").get_by_role("option").click()
    expect(page.get_by_role("region", name="Made of", exact=True)).to_contain_text(f"{name}.{name}")


# --- keys, themes, rules --------------------------------------------------------------------------


def test_the_calendar_and_the_list_have_the_keys(show):
    page = show(Answers(), PLACE)
    last = page.get_by_role("gridcell", name="1900-01-10, writer unknown")
    last.focus()
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("gridcell", name="1900-01-09, never written")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=3)).to_contain_text("dt=1900-01-09")
    page.get_by_role("listbox", name="Partitions").focus()
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=3)).to_contain_text("dt=1900-01-01")


def test_from_a_dataset_to_what_is_cleared_the_keys_are_enough(show):
    answers = Answers()
    page = show(answers)
    page.keyboard.press("Tab")
    reach(page, page.get_by_role("searchbox"))
    page.keyboard.type("orders")
    reach(page, page.get_by_role("listbox", name="Datasets", exact=True))
    page.keyboard.press("Enter")
    reach(page, page.get_by_role("gridcell", name="1900-01-10, writer unknown"))
    page.keyboard.press("Enter")
    reach(page, page.get_by_role("button", name="Run again"))
    page.keyboard.press("Enter")
    clear = step_of(page, 2).get_by_role("button", name="Clear 1 task")
    reach(page, clear)
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(clear).to_be_focused()
    assert answers.cleared == []
    page.keyboard.press("Enter")
    reach(page, page.get_by_role("dialog").get_by_role("button", name="Clear", exact=True))
    page.keyboard.press("Enter")
    expect(step_of(page, 2)).to_contain_text("Cleared 1 task instance.")
    assert len(answers.cleared) == 1


# The views of a partition, and what each of them has.
VIEWS = {
    "Table": ".partition [role=row]",
    "Run again": ".plan [role=row]",
    "Graph": ".react-flow__node",
}


def show_view(page, view):
    page.get_by_role("button", name=view, exact=True).click()
    expect(page.locator(VIEWS[view]).first).to_be_visible()
    at_rest(page)


def broken(page):
    """Give the rules that are broken, and where."""
    at_rest(page)
    found = Axe().run(page, options={"runOnly": RULES}).response
    assert found["passes"]
    return listed(found["violations"])


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("view", long_after(1, VIEWS))
def test_each_view_keeps_to_all_rules(show, theme, view, size):
    answers = Answers(partitions=partitions(90))
    answers.theme = theme
    page = show(answers, PLACE, size=size)
    choose(page, "dt=1900-03-31")
    start = page.get_by_role("slider", name="From")
    start.press("PageUp")
    page.get_by_text("What changed from run to run").click()
    expect(page.locator("details.changes").get_by_role("row").nth(1)).to_be_visible()
    show_view(page, view)
    assert broken(page) == []


@pytest.mark.long
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("view", ["list", "plan"])
def test_so_does_the_health_of_all_datasets(show, theme, view, size):
    answers = Answers()
    answers.theme = theme
    page = show(answers, size=size)
    expect(page.get_by_role("heading", name="2 datasets need you")).to_be_visible()
    if view == "plan":
        page.get_by_role("button", name="What to run again").click()
        expect(step_of(page, 2)).to_be_visible()
    assert broken(page) == []


def test_from_the_health_of_all_datasets_to_the_plan_the_keys_are_enough(show):
    answers = Answers()
    page = show(answers)
    reach(page, page.get_by_role("button", name="What to run again"))
    page.keyboard.press("Enter")
    clear = step_of(page, 2).get_by_role("button", name="Clear 1 task")
    reach(page, clear)
    page.keyboard.press("Enter")
    reach(page, page.get_by_role("dialog").get_by_role("button", name="Clear", exact=True))
    page.keyboard.press("Enter")
    expect(step_of(page, 2)).to_contain_text("Cleared 1 task instance.")
    assert len(answers.cleared) == 1

    reach(page, page.get_by_role("listbox", name="Datasets that need you"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=2, name="orders")).to_be_visible()
    reach(page, page.get_by_role("listbox", name="Partitions", exact=True))
    page.keyboard.press("Enter")
    reach(page, page.get_by_role("button", name="Run again"))
    page.keyboard.press("Enter")
    expect(step_of(page, 2)).to_be_visible()


# --- the size of the window -----------------------------------------------------------------------


IN_PAGE = "document.getElementById('host').shadowRoot"
# Everything that scrolls sideways, apart from what has a scroll bar of its own for that.
SIDEWAYS = f"""[document.documentElement, document.getElementById('host'),
    ...{IN_PAGE}.querySelectorAll('main, main *')]
    .filter(one => one === document.documentElement ||
        /auto|scroll/.test(getComputedStyle(one).overflowX))
    .filter(one => one.scrollWidth > one.clientWidth && !one.closest('.calendar'))
    .map(one => one.className || one.tagName)"""
LONG = "example_report_flight_delays"


def long_named():
    """Give a graph whose tasks and DAG have names that are longer than the room for them."""
    made = run(1, "aggregate_daily_delays_per_carrier_and_airport", dag_id=f"{LONG}_{LONG}")
    far = [
        hop(n, f"delays_{n}_of_each_carrier_{LONG}_by_airport", "dt=1900-01-06", run(n, f"t{n}"))
        for n in range(1, 6)
    ]
    for before, one in zip([made, *[hop["run"] for hop in far]], far, strict=False):
        one["via"] = [before["run_id"], one["run"]["run_id"]]
    up = {**GRAPH["upstream"], "hops": [hop(0, "orders", "dt=1900-01-06", made)]}
    return {**GRAPH, "upstream": up, "downstream": {**GRAPH["downstream"], "hops": far}}


@pytest.mark.parametrize("size", SIZES)
def test_nothing_but_the_calendar_ever_scrolls_sideways(show, size):
    page = show(Answers(graph=long_named(), partitions=partitions(400)), size=size)
    expect(page.get_by_role("heading", name="2 datasets need you")).to_be_visible()
    at_rest(page)
    assert page.evaluate(SIDEWAYS) == []
    found(page).click()
    expect(page.get_by_role("grid")).to_be_visible()
    at_rest(page)
    assert page.evaluate(SIDEWAYS) == []
    page.get_by_role("option", name="dt=1901-02-04").click()
    for view in VIEWS:
        show_view(page, view)
        assert (view, page.evaluate(SIDEWAYS)) == (view, [])


def bottom(locator):
    box = locator.bounding_box()
    return box["y"] + box["height"]


@pytest.mark.parametrize("size", SIZES)
def test_lists_have_the_height_that_there_is_and_the_page_has_no_scroll_bar(show, size):
    many = [{**DATASETS["datasets"][0], "name": f"/lake/orders{n}"} for n in range(100)]
    needy = [{**HEALTH["datasets"][0], "name": f"/lake/orders{n}"} for n in range(100)]
    page = show(
        Answers(
            partitions=partitions(2000),
            datasets={**DATASETS, "datasets": many},
            health={**HEALTH, "datasets": needy},
        ),
        size=size,
    )
    height = size["height"]
    datasets = page.get_by_role("listbox", name="Datasets", exact=True)
    troubled = page.get_by_role("listbox", name="Datasets that need you")
    expect(troubled.get_by_role("option").nth(2)).to_be_visible()  # those of the full answer
    expect(datasets).to_be_visible()
    at_rest(page)
    for one in (datasets, troubled):
        assert height - 40 <= bottom(one) <= height
    found(page).first.click()
    partitioned = page.get_by_role("listbox", name="Partitions", exact=True)
    expect(partitioned).to_be_visible()
    expect(page.get_by_text("Looking for")).to_have_count(0)
    at_rest(page)
    assert height - 90 <= bottom(partitioned) <= height  # below it: what is not judged, changes
    assert height - 40 <= bottom(datasets) <= height
    for one in ("document.documentElement", "document.getElementById('host')",
                f"{IN_PAGE}.querySelector('.dataset')"):  # fmt: skip
        assert page.evaluate(f"{one}.scrollHeight <= {one}.clientHeight"), one


def test_a_box_that_is_chosen_stays_in_the_picture_when_its_details_open(show):
    page = show(Answers(graph=long_named()), PLACE, size=NARROW)
    choose(page)
    boxes = page.locator(".react-flow__node")
    expect(boxes).to_have_count(12)
    at_rest(page)
    rightmost = max(boxes.all(), key=lambda box: box.bounding_box()["x"])
    rightmost.focus()  # which brings it into the middle of the picture
    at_rest(page)
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Chosen")).to_be_visible()
    at_rest(page)
    assert is_inside(rightmost, page.locator(".picture"))


def is_inside(inner, outer):
    one, other = inner.bounding_box(), outer.bounding_box()
    return all(
        other[side] <= one[side] and one[side] + one[size] <= other[side] + other[size]
        for side, size in (("x", "width"), ("y", "height"))
    )


@pytest.mark.long
def test_a_box_that_is_in_the_picture_already_does_not_move_when_it_is_chosen(show):
    page = show(Answers(), PLACE)
    choose(page)
    raw = page.locator(".react-flow__node", has_text="raw6 partitions")
    expect(raw).to_be_visible()
    at_rest(page)
    before = raw.bounding_box()
    raw.click()
    expect(page.get_by_role("region", name="Chosen")).to_be_visible()
    at_rest(page)
    assert raw.bounding_box() == before


# The texts that are cut at their end: each begins with a task, or is the DAG after it.
CUT = f"""[...{IN_PAGE}.querySelectorAll('.hops .run .task, .hops .run .dag')]
    .filter(one => one.scrollHeight > one.clientHeight + 1).map(one => one.textContent)"""


@pytest.mark.long
def test_a_task_comes_before_its_dag_which_is_shortened_first(show):
    graph = long_named()
    graph["upstream"]["hops"][0]["run"] = run(1, "daily_delays", dag_id=f"{LONG}_{LONG}")
    page = show(Answers(graph=graph), PLACE, size=NARROW)
    choose(page)
    task = page.locator(".react-flow__node", has_text="daily_delays")
    expect(task).to_have_text(f"daily_delays{LONG}_{LONG} · 1 run")
    page.get_by_role("button", name="Table").click()
    link = page.get_by_role("link", name="daily_delays")
    expect(link).to_have_text(f"daily_delays · {LONG}_{LONG}")
    at_rest(page)
    assert page.evaluate(CUT) == [f" · {LONG}_{LONG}"]
    row, cell = link.locator("xpath=../.."), link.locator("xpath=..")
    assert cell.evaluate("cell => cell.scrollHeight <= cell.clientHeight")
    assert is_inside(link, row)


# The letters on both sides of each end of a line of a name.
BREAKS = f"""[...{IN_PAGE}.querySelectorAll('.react-flow__node .name')].flatMap(name => {{
    const letters = [...name.childNodes].filter(node => node.nodeType === 3)
        .flatMap(node => [...node.data].map((letter, n) => {{
            const range = document.createRange();
            range.setStart(node, n); range.setEnd(node, n + 1);
            return [letter, range.getBoundingClientRect().top];
        }}));
    return letters.slice(1).flatMap(([letter, top], n) =>
        top > letters[n][1] + 2 ? [letters[n][0] + letter] : []);
}})"""


@pytest.mark.long
def test_a_name_breaks_between_its_words(show):
    page = show(Answers(graph=long_named()), PLACE)
    choose(page)
    expect(page.locator(".react-flow__node")).to_have_count(12)
    at_rest(page)
    breaks = page.evaluate(BREAKS)
    assert breaks
    assert [one for one in breaks if not re.match(r"[-_./=]\w", one)] == []


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("size", SIZES)
def test_the_columns_keep_to_all_rules_and_to_the_window(show, theme, size):
    answers = Answers()
    answers.theme = theme
    page = show(answers, f"{PLACE}&view=Columns&column=amount&conditions=1", size=size)
    expect(page.locator(".react-flow__node")).to_have_count(3)
    assert broken(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


# --- what is large, and what takes long ----------------------------------------------------------


def test_what_is_known_at_once_is_shown_while_the_rest_is_looked_for(show):
    answers = Answers()
    known = answers.of["partitions"]
    checked = {**known["partitions"], "states": "c" * 10}
    answers.of["quick"] = {**known, "partitions": checked, "causes": {}}
    answers.slow = "partitions"
    page = show(answers)
    found(page).click()
    expect(page.get_by_role("button", name="being checked 10")).to_be_visible()
    expect(page.get_by_text("Looking for what is stale")).to_be_visible()
    answers.answer_late()
    expect(page.get_by_role("button", name="fresh 5")).to_be_visible()
    expect(page.get_by_text("Looking for what is stale")).to_have_count(0)


def test_of_a_few_partitions_each_is_named_and_nothing_is_left_out(show):
    page = show(Answers(partitions=partitions(6, "fsmwxn")))
    found(page).click()
    names = page.get_by_role("listbox", name="Partitions").get_by_role("option")
    expect(names).to_have_count(6)
    states = ("fresh", "stale", "mismatched", "write failed", "missing", "never written")
    for n, state in enumerate(states, 1):
        expect(page.get_by_role("gridcell", name=f"1900-01-0{n}, {state}")).to_be_visible()
        expect(page.get_by_role("button", name=f"{state} 1")).to_be_visible()


def test_partitions_without_a_date_are_a_list(show):
    of = partitions(5, "fffss")
    of["partitions"]["names"] = [f"region={name}" for name in ("at", "de", "eu", "pl", "us")]
    page = show(Answers(partitions=of), PLACE)
    choose(page, "region=pl")
    expect(page.get_by_role("gridcell")).to_have_count(0)


MOST_ELEMENTS = 1000
NEEDY = {"s": 1200, "m": 1, "x": 7, "n": 3}


def elements(page):
    at_rest(page)
    return page.evaluate(f"{IN_PAGE}.querySelectorAll('*').length")


def named(n):
    return {"namespace": "file", "name": f"/lake/daily_delays_of_carrier_{n}"} | {
        "short": f"daily_delays_of_carrier_{n}"
    }


MANY = 3000


def long_step(n, wave):
    one = step(n, f"aggregate_daily_delays_per_carrier_{n}", wave)
    return {
        **one,
        "reasons": [f"file /lake/flights_of_carrier_{k} dt=1900-01-06" for k in range(5)],
    }


def every_row(page, table, last):
    """Go through a table from its first row to the last, and look at how much is drawn there."""
    expect(table.get_by_role("row").nth(1)).to_be_visible()
    most = elements(page)
    for _ in range(500):
        if table.get_by_text(last, exact=True).count():
            return most
        table.evaluate("table => { table.scrollTop += 50 * table.clientHeight; }")
        most = max(most, elements(page))
    return pytest.fail(f"{last} is not in the table")


@pytest.mark.long
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("waves", long_after(1, [1, MANY]), ids=["one step", "a step each"])
def test_of_a_long_plan_the_rows_in_view_are_drawn(show, size, waves):
    steps = [long_step(n, wave=n % waves) for n in range(MANY)]
    by_hand = [long_step(n, wave=0) for n in range(MANY, 2 * MANY)]
    page = show(
        Answers(**{"health/plan": {**OF_ALL, "steps": steps, "by_hand": by_hand}}), size=size
    )
    page.get_by_role("button", name="What to run again").click()
    last = f"aggregate_daily_delays_per_carrier_{2 * MANY - 1}"
    assert every_row(page, plan_of(page), last) <= MOST_ELEMENTS


@pytest.mark.long
@pytest.mark.parametrize("size", SIZES)
def test_of_many_changes_of_one_run_the_rows_in_view_are_drawn(show, size):
    one = CHANGES["changes"][0]
    changes = [{**one, "message": f"file:///lake/rates{n} is no longer read."} for n in range(MANY)]
    page = show(Answers(changes={**CHANGES, "changes": changes}), PLACE, size=size)
    page.get_by_text("What changed from run to run").click()
    table = page.get_by_role("table", name="Changes")
    last = f"file:///lake/rates{MANY - 1} is no longer read."
    assert every_row(page, table, last) <= MOST_ELEMENTS


def made_of(lines):
    """Give columns of 150 tables of which one column is made."""
    edges = [
        edge("upstream", column(f"price_in_{n}", f"raw_{n % 150}"), column("amount", "orders"))
        for n in range(lines)
    ]
    return {"columns/graph": {**COLUMN_GRAPH, "edges": edges, "further": []}}


@pytest.mark.long
@pytest.mark.parametrize("size", SIZES)
def test_of_many_columns_the_boxes_in_view_are_drawn_and_the_one_that_is_asked_for(show, size):
    page = show(Answers(**made_of(150)), f"{PLACE}&view=Columns&column=amount", size=size)
    asked = page.locator(".box.chosen")
    expect(asked).to_be_visible()
    at_rest(page)
    assert is_inside(asked, page.locator(".picture"))
    assert elements(page) <= MOST_ELEMENTS


@pytest.mark.long
def test_of_more_columns_than_can_be_read_there_is_a_table(show):
    page = show(Answers(**made_of(MANY)), f"{PLACE}&view=Columns&column=amount")
    expect(page.get_by_text("3,000 lines are too many to draw")).to_be_visible()
    table = page.get_by_role("table", name="Made of")
    last = f"raw_{(MANY - 1) % 150}.price_in_{MANY - 1}"
    assert every_row(page, table, last) <= MOST_ELEMENTS


@pytest.mark.long
def test_the_keys_go_through_a_long_plan_and_a_row_with_the_focus_stays(show):
    steps = [step(n, f"task_{n}", 0) for n in range(MANY)]
    page = show(Answers(**{"health/plan": {**OF_ALL, "steps": steps, "by_hand": []}}))
    page.get_by_role("button", name="What to run again").click()
    table = plan_of(page)
    reach(page, table.get_by_role("checkbox").first)
    for n in range(30):
        expect(page.get_by_role("checkbox", name=f"task_{n} ·")).to_be_focused()
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")  # the link of the row
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Shift+Tab")
    left = page.get_by_role("checkbox", name="task_29 ·")
    page.keyboard.press("Space")
    scroll_to_end(table)
    expect(table.get_by_text(f"task_{MANY - 1}", exact=True)).to_be_visible()
    expect(left).to_be_focused()
    expect(left).not_to_be_checked()
    table.evaluate("table => { table.scrollTop = 0; }")
    expect(page.get_by_role("button", name="Clear 2,999 task instances")).to_be_visible()
    row = left.locator("xpath=../..")
    assert row.get_attribute("aria-rowindex") == "32"  # after the titles and the step


@pytest.mark.parametrize("size", SIZES)
def test_of_50_000_partitions_and_5_000_datasets_what_is_in_view_is_drawn(show, size):
    found_ = {"partitions": 5, "last_written": "2024-05-06T01:00:00Z", "troubles": NEEDY}
    every = [{**DATASETS["datasets"][0]}, *({**named(n), **found_} for n in range(4999))]
    troubled = [{**named(n), "counts": NEEDY, "newest": None} for n in range(1000)]
    steps = [long_step(n, wave=n % 5) for n in range(5000)]
    answers = Answers(
        partitions=partitions(50_000),
        datasets={**DATASETS, "datasets": every, "count": 5000},
        health={**HEALTH, "datasets": troubled},
        **{"health/plan": {**OF_ALL, "steps": steps, "by_hand": []}},
    )
    page = show(answers, size=size)
    expect(page.get_by_role("heading", name="1,000 datasets need you")).to_be_visible()
    assert elements(page) <= MOST_ELEMENTS
    page.get_by_role("button", name="What to run again").click()
    expect(plan_of(page)).to_have_attribute("aria-rowcount", "5006")  # and titles, and five steps
    assert elements(page) <= MOST_ELEMENTS
    found(page).first.click()
    expect(page.get_by_role("button", name="fresh 25,000")).to_be_visible()
    assert elements(page) <= MOST_ELEMENTS
    page.get_by_role("button", name="stale 5,000").click()
    expect(page.locator(".names [role=status]")).to_contain_text("5,000 partitions")
    page.get_by_role("searchbox", name="Find a partition").fill("2000-")
    expect(page.locator(".names [role=status]")).to_have_text(re.compile("3[67] partitions"))
    page.get_by_role("slider", name="From").press("PageUp")
    page.get_by_role("listbox", name="Partitions", exact=True).press("Enter")
    for view in VIEWS:
        show_view(page, view)
        assert (view, elements(page) <= MOST_ELEMENTS) == (view, True)


@pytest.mark.parametrize("size", SIZES)
def test_of_a_large_graph_the_boxes_in_view_are_drawn_and_can_be_read(show, size):
    tasks = [f"raw_{n}" for n in range(99)]
    made = [hop(1, task, "dt=1900-01-06", run(1, task), ["orders-1"]) for task in tasks]
    up = {"hops": [GRAPH["upstream"]["hops"][0], *made], "hidden": 0, "more": 0}
    page = show(
        Answers(graph={**GRAPH, "upstream": up}, partitions=partitions(50_000)), PLACE, size=size
    )
    page.get_by_role("listbox", name="Partitions", exact=True).press("Enter")
    asked = page.locator(".react-flow__node", has_text="orders")
    expect(asked.first).to_be_visible()
    assert elements(page) <= MOST_ELEMENTS
    assert page.locator(".box.chosen").bounding_box()["width"] >= 0.6 * 220


def test_a_day_of_any_month_is_chosen_by_the_mouse(show):
    page = show(Answers(partitions=partitions(400)), PLACE)
    row = page.get_by_role("row", name=re.compile("1900-12"))
    row.get_by_role("gridcell").first.hover()
    expect(row.get_by_role("gridcell")).to_have_count(31)
    row.get_by_role("gridcell", name="1900-12-24").click()
    expect(page.get_by_role("heading", level=3)).to_contain_text("dt=1900-12-24")
