"""Airflow, played by answers of a test: only so can each of them be late."""

from __future__ import annotations

import urllib.parse

from airflow_provider_sparklineage.plugins import page as page_files
from tests.browser.settled import until

HOST = """<!doctype html><html class="light" lang="en"><title>Airflow</title>
<base href="{base}"><body>
<div id="host"></div>
<script type="module">
globalThis.React = {
  useRef: () => ({ current: document.getElementById("host") }),
  useEffect: (effect) => effect(),
  createElement: (type, props) => (typeof type === "function" ? type(props) : null),
};
await import("/sparklineage/page/tab.js");
const task = { dagId: "shop", runId: "of 6", taskId: "revenue", mapIndex: "{mapIndex}" };
globalThis["Spark lineage"](task);
</script>"""
RUNNING = {
    "event": None,
    "message": "This try has not ended.",
    "tries": [1],
    "try_number": 1,
    "latest": 1,
    "note": "",
    "links": {},
    "state": "running",
    "has_ended": False,
    "expected_at": None,
    "expected": None,
    "last": None,
}
TAB = "http://airflow.example/dags/shop/runs/of%206/tasks/revenue/plugin/spark-lineage"
NO_OTHERS = {"runs": 0, "datasets": [], "note": ""}


class FakeAirflow:
    """Answers by the last part of their paths; what is withheld is answered when it is let go."""

    def __init__(self, page):
        self.page = page
        self.answers = {"lineage": RUNNING, "partitions": NO_OTHERS}
        self.asked = []
        self.tries = []  # that the lineage was asked for; None for the latest
        self.base = "/"  # the path that Airflow is served below
        self.map_index = "{mapIndex}"  # Airflow's placeholder, for tasks that are not mapped
        self.withheld = {}
        page.route("http://airflow.example/**", self._answer)

    @property
    def root(self):
        return self.page.locator("#host main")

    def withhold(self, *names):
        self.withheld.update({name: [] for name in names})

    def let_go(self, *names):
        for name in names:
            for route in self.withheld.pop(name):
                self._fulfill(route, name)

    def is_asked_for(self, name):
        until(
            self.page,
            lambda: self.withheld.get(name) or name in self.asked,
            lambda: f"{name} was not asked for",
        )

    def is_asked_for_tries(self, *tries):
        until(
            self.page,
            lambda: self.tries == [*tries],
            lambda: f"tries were asked for: {self.tries}",
        )

    def open(self, query=""):
        self.page.goto(f"{TAB}{query}")

    def _answer(self, route):
        url = urllib.parse.urlsplit(route.request.url)
        name = url.path.rpartition("/")[2]
        self.asked.append(name)
        if name == "lineage":
            self.tries += urllib.parse.parse_qs(url.query).get("try_number", [None])
        if name in self.withheld:
            self.withheld[name].append(route)
        else:
            self._fulfill(route, name)

    def _fulfill(self, route, name):
        if name == "spark-lineage":
            host = HOST.replace("{mapIndex}", self.map_index).replace("{base}", self.base)
            route.fulfill(body=host, content_type="text/html")
        elif name in page_files.files():
            route.fulfill(body=page_files.content(name), content_type=page_files.files()[name])
        elif name == "state":
            keys = ("state", "latest", "has_ended", "expected_at")
            route.fulfill(json={key: self.answers["lineage"][key] for key in keys})
        elif isinstance(self.answers.get(name), int):
            route.fulfill(status=self.answers[name])
        elif name in self.answers:
            route.fulfill(json=self.answers[name])
        else:
            route.fulfill(status=204)


def done(event):
    return RUNNING | {"event": event, "message": "", "state": "success", "has_ended": True}


def name_of(chunk):
    """Name the file of the tab that has a checksum in its name."""
    (name,) = (name for name in page_files.files() if name.startswith(f"{chunk}-"))
    return name
