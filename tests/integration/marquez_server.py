"""A real Marquez behind the interface of the model: sent events by HTTP, read as its pages are."""

from __future__ import annotations

import json
import re
import uuid
from typing import Any
from urllib.parse import quote
from urllib.request import Request, urlopen

from airflow_provider_sparklineage.event.backends.checks import Endpoint, ask
from tests.marquez_model import Job, Page, Texts, shown_assertions

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIMEOUT_S = 30


class RefusedError(Exception):
    """Raised when Marquez answers with an error; its argument is the status."""


class MarquezServer:
    """One Marquez, in which this test has names and run ids of its own.

    A server keeps what it has seen, and the runs of a test have the same ids whenever it runs.
    """

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")
        self._own = uuid.uuid4()

    def receive(self, event: dict[str, Any]) -> None:
        """Send a run event, and have it taken."""
        text = _UUID.sub(lambda found: str(uuid.uuid5(self._own, found[0])), json.dumps(event))
        text = text.replace('"/lake', f'"{self._root}').replace(
            '"namespace": "tests"', f'"namespace": "tests-{self._own}"'
        )
        self.send(json.loads(text))

    def send(self, event: dict[str, Any]) -> None:
        """Send a run event with the names that it has, and have it taken."""
        request = Request(  # of the URL that the tests were given
            f"{self._url}/api/v1/lineage",
            json.dumps(event).encode(),
            {"Content-Type": "application/json"},
        )
        with urlopen(request, timeout=_TIMEOUT_S) as answer:
            assert answer.status == 201

    @property
    def _root(self) -> str:
        return f"/{self._own}/lake"

    def get(self, *path: str, query: str = "") -> Any:
        """Ask for what is at a path of names."""
        endpoint = Endpoint(f"{self._url}/api/v1", timeout=_TIMEOUT_S)
        names = "".join(f"/{quote(name, safe='')}" for name in path)
        answer = ask(endpoint, "GET", names + query)
        if answer.status >= 400:
            raise RefusedError(answer.status)
        return json.loads(answer.body)

    def own(self, name: str) -> str:
        """Give the name below which Marquez has a dataset of this test."""
        return name.replace("/lake", self._root)

    def _short(self, name: str) -> str:
        return name.replace(self._root, "/lake")

    def job(self, namespace: str, name: str) -> Job:
        """Show a job in the graph."""
        namespace = f"{namespace}-{self._own}"
        node_id = f"job:{namespace}:{name}"
        try:
            graph = self.get("lineage", query=f"?depth=1&nodeId={quote(node_id, safe='')}")["graph"]
        except RefusedError as error:
            if error.args != (404,):
                raise
            graph = []
        node = next((n for n in graph if n["id"] == node_id), {"inEdges": [], "outEdges": []})
        latest = self.get("namespaces", namespace, "jobs", name)["latestRun"]
        return Job(
            sorted(self._dataset_of(edge["origin"]) for edge in node["inEdges"]),
            sorted(self._dataset_of(edge["destination"]) for edge in node["outEdges"]),
            latest["state"],
        )

    def _dataset_of(self, node_id: str) -> str:
        return self._short(node_id.removeprefix("dataset:file:"))

    def job_text(self, namespace: str, name: str) -> str | None:
        """Show what a job's page begins with."""
        page = self.get("namespaces", f"{namespace}-{self._own}", "jobs", name)
        return None if page["description"] is None else self._short(page["description"])

    def texts(self, namespace: str, name: str) -> Texts | None:
        """Show what a dataset's page says in words; None if nobody has named the dataset."""
        try:
            page = self.get("namespaces", namespace, "datasets", self.own(name))
        except RefusedError as error:
            if error.args != (404,):
                raise
            return None
        return Texts(
            page["description"], {field["name"]: field["description"] for field in page["fields"]}
        )

    def dataset(self, namespace: str, name: str) -> Page:
        """Show a dataset's page."""
        path = ("namespaces", namespace, "datasets", self.own(name))
        page = self.get(*path)
        partitions = page["facets"].get("sparkLineage_partitions") or {}
        return Page(
            sorted(field["name"] for field in page["fields"]),
            partitions.get("summary"),
            self.get(*path, "versions", query="?limit=1")["totalCount"],
            {
                (column["name"], self._short(source["dataset"]), source["field"])
                for column in page["columnLineage"] or ()
                for source in column["inputFields"]
            },
            shown_assertions(page["facets"]),
        )
