"""What a Marquez 0.51 shows after the events that it was sent: its rules, without its database.

Written from what a real one did with each kind of event; ``tests/integration/test_marquez.py``
checks a real one against the same expectations. The rules:

1. A run is RUNNING from any event that is not terminal, also from one after a terminal event.
2. An event without inputs (outputs) takes the inputs (outputs) of its job out of the graph at once.
3. A terminal event puts those into the graph, and no others, that any event of its run has named.
4. A run makes a version of an output for each (source, schema, lifecycle state) with which it names
   it. COMPLETE makes the versions of its run current; of several of one output mostly the last that
   was named, but that is the database's choice. Reading what has no current version makes one in
   the same way, which is current at once and of no run.
5. Columns and facets of a dataset belong to a version: an output's to the one that the event makes,
   an input's to the current one, next to those that it has. The page shows the current version's;
   ``outputFacets`` are on no page.
6. An edge between columns needs both columns in schemas of the run, and stays for ever.
7. Names of symlinks lead to the dataset that named them first.
8. The texts of a job, of a dataset and of each column are those of the last event that names it;
   an event that has none takes them away.
9. A namespace of other characters than its own breaks all lists, for good.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Name = tuple[str, str]

_NAMESPACE = re.compile(r"[a-zA-Z:;=/0-9_\-.@+]{1,1024}")
_STATES = {"COMPLETE": "COMPLETED", "FAIL": "FAILED", "ABORT": "ABORTED"}


class Job(NamedTuple):
    """A job's page: names of what leads into it and out of it, and the state of its latest run."""

    inputs: list[str]
    outputs: list[str]
    state: str


class Texts(NamedTuple):
    """What a dataset's page begins with, and its column of descriptions."""

    text: str | None
    columns: dict[str, str | None]


class Page(NamedTuple):
    """A dataset's page."""

    columns: list[str]
    partitions: str | None
    """Summary of ``sparkLineage_partitions``."""
    versions: int
    edges: set[tuple[str, str, str]]
    """Column, and the dataset and the column that it is of."""
    assertions: dict[str, bool] = {}  # noqa: RUF012  (never changed)
    """What is red and what is green under "Quality"."""


def shown_assertions(facets: dict[str, Any]) -> dict[str, bool]:
    """Give what a page shows of the facet ``dataQualityAssertions``."""
    facet = facets.get("dataQualityAssertions") or {}
    return {entry["assertion"]: entry["success"] for entry in facet.get("assertions", ())}


@dataclass(eq=False)
class _Version:
    key: tuple[Any, ...]
    run: str | None = None
    """The run that wrote it."""
    columns: set[str] = field(default_factory=set)
    facets: dict[str, Any] = field(default_factory=dict)


@dataclass(eq=False)
class _Dataset:
    name: Name
    versions: list[_Version] = field(default_factory=list)
    current: _Version | None = None
    edges: set[tuple[str, str, str]] = field(default_factory=set)
    text: str | None = None
    column_texts: dict[str, str | None] = field(default_factory=dict)


@dataclass
class _Run:
    state: str = "NEW"
    read: list[tuple[_Dataset, _Version]] = field(default_factory=list)


class PoisonedError(Exception):
    """Raised by all lists once a namespace is stored that cannot be read again."""


class MarquezModel:
    """Takes events as ``POST /api/v1/lineage`` does, and shows what the web pages do."""

    def __init__(self) -> None:
        self._poisoned = False
        self._jobs: dict[Name, tuple[set[Name], set[Name]]] = {}
        self._job_texts: dict[Name, str | None] = {}
        self._latest: dict[Name, str] = {}
        self._runs: dict[str, _Run] = {}
        self._datasets: dict[Name, _Dataset] = {}
        self._links: dict[Name, Name] = {}

    # --- events -----------------------------------------------------------------------------------

    def receive(self, event: dict[str, Any]) -> None:
        """Take a run event."""
        job = (event["job"]["namespace"], event["job"]["name"])
        run_id = event["run"]["runId"]
        run = self._runs.setdefault(run_id, _Run())
        self._latest[job] = run_id
        self._job_texts[job] = _text(event["job"])
        run.state = _STATES.get(event["eventType"], "RUNNING")
        inputs, outputs = self._jobs.setdefault(job, (set(), set()))
        if not event.get("inputs"):
            inputs.clear()
        if not event.get("outputs"):
            outputs.clear()
        for dataset in event.get("inputs") or ():
            self._read(run, run_id, dataset)
        for dataset in event.get("outputs") or ():
            self._write(run, run_id, dataset)
        if run.state != "RUNNING":
            inputs.clear()
            inputs.update(dataset.name for dataset, _ in run.read)
            outputs.clear()
            outputs.update(dataset.name for dataset, _ in self._written_by(run_id))
        if run.state == "COMPLETED":
            for dataset, version in self._written_by(run_id):
                dataset.current = version

    def _written_by(self, run_id: str) -> list[tuple[_Dataset, _Version]]:
        return [(d, v) for d in self._datasets.values() for v in d.versions if v.run == run_id]

    def _stored(self, dataset: dict[str, Any]) -> _Dataset:
        name = (dataset["namespace"], dataset["name"])
        facets = dataset.get("facets") or {}
        links = (facets.get("symlinks") or {}).get("identifiers") or []
        namespaces = [name[0], *(link["namespace"] for link in links)]
        if not all(_NAMESPACE.fullmatch(n) for n in namespaces) or not name[1].strip():
            self._poisoned = True
        primary = self._links.get(name, name)
        for link in links:
            self._links.setdefault((link["namespace"], link["name"]), primary)
        stored = self._datasets.setdefault(primary, _Dataset(primary))
        stored.text = _text(dataset)
        for column in (facets.get("schema") or {}).get("fields") or ():
            stored.column_texts[column["name"]] = column.get("description")
        return stored

    def _version(self, stored: _Dataset, run_id: str, facets: dict[str, Any]) -> _Version:
        """Give the version of a dataset that a run names with these facets."""
        key = (
            (facets.get("dataSource") or {}).get("name"),
            frozenset(
                (f["name"], f.get("type"), f.get("description"))
                for f in (facets.get("schema") or {}).get("fields") or ()
            ),
            (facets.get("lifecycleStateChange") or {}).get("lifecycleStateChange"),
            run_id,
        )
        version = next((v for v in stored.versions if v.key == key), None) or _Version(key)
        stored.versions = [*(v for v in stored.versions if v is not version), version]
        return version

    def _read(self, run: _Run, run_id: str, dataset: dict[str, Any]) -> None:
        stored = self._stored(dataset)
        facets = dataset.get("facets") or {}
        if stored.current is None:
            stored.current = self._version(stored, run_id, facets)
            stored.current.run = None
        stored.current.columns |= _columns(dataset)
        stored.current.facets |= facets | (dataset.get("inputFacets") or {})
        if (stored, stored.current) not in run.read:
            run.read.append((stored, stored.current))

    def _write(self, run: _Run, run_id: str, dataset: dict[str, Any]) -> None:
        stored = self._stored(dataset)
        facets = dataset.get("facets") or {}
        version = self._version(stored, run_id, facets)
        version.run = run_id
        columns = _columns(dataset)
        version.columns |= columns
        version.facets |= facets
        read = {(dataset.name, column) for dataset, of in run.read for column in of.columns}
        fields = (facets.get("columnLineage") or {}).get("fields") or {}
        stored.edges |= {
            (column, source["name"], source["field"])
            for column, of in fields.items()
            if column in columns
            for source in of["inputFields"]
            if ((source["namespace"], source["name"]), source["field"]) in read
        }

    # --- pages ------------------------------------------------------------------------------------

    def job(self, namespace: str, name: str) -> Job:
        """Show a job in the graph; without anything if it was never heard of."""
        self._require_readable()
        inputs, outputs = self._jobs.get((namespace, name), (set(), set()))
        run = self._runs.get(self._latest.get((namespace, name), ""), _Run())
        return Job(sorted(n for _, n in inputs), sorted(n for _, n in outputs), run.state)

    def dataset(self, namespace: str, name: str) -> Page:
        """Show a dataset's page."""
        self._require_readable()
        primary = self._links.get((namespace, name), (namespace, name))
        stored = self._datasets[primary]
        current = stored.current or _Version(())
        partitions = current.facets.get("sparkLineage_partitions") or {}
        return Page(
            sorted(current.columns),
            partitions.get("summary"),
            len(stored.versions),
            stored.edges,
            shown_assertions(current.facets),
        )

    def texts(self, namespace: str, name: str) -> Texts | None:
        """Show what a dataset's page says in words; None if nobody has named the dataset."""
        self._require_readable()
        stored = self._datasets.get(self._links.get((namespace, name), (namespace, name)))
        if stored is None:
            return None
        columns = stored.current.columns if stored.current else set()
        return Texts(stored.text, {column: stored.column_texts[column] for column in columns})

    def job_text(self, namespace: str, name: str) -> str | None:
        """Show what a job's page begins with."""
        return self._job_texts.get((namespace, name))

    def run_state(self, run_id: str) -> str:
        """Show the state of a run."""
        return self._runs[run_id].state

    def _require_readable(self) -> None:
        if self._poisoned:
            raise PoisonedError


def _columns(dataset: dict[str, Any]) -> set[str]:
    schema = (dataset.get("facets") or {}).get("schema") or {}
    return {f["name"] for f in schema.get("fields") or ()}


def _text(of: dict[str, Any]) -> str | None:
    text: str | None = ((of.get("facets") or {}).get("documentation") or {}).get("description")
    return text
