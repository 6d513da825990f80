"""Makes the RunEvent of a task's lineage; no other module makes one.

Facets of this package have its ``_producer``. Facets of the listener are passed on as they came,
with the listener's ``_producer``, if they are valid. One facet that violates its specification
makes the full event invalid, and a backend that checks it refuses the event: so such a facet is
left out, and the event declares that. Facets that the specification does not know are passed on if
they have the two keys of every facet (:class:`Facet`).

The event is neutral here: the later steps (:mod:`.pipeline`) adapt it to a backend, to limits and
to privacy. A task waits for the imports of its START, so modules that a START never needs are
imported inside the functions that use them.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from airflow_provider_sparklineage.event import model
from airflow_provider_sparklineage.event.assertions import (
    facets_of_run,
    partition_checks,
    with_checks,
)
from airflow_provider_sparklineage.event.document import empty, replaced, without_nulls
from airflow_provider_sparklineage.event.facets import (
    capture_facet,
    check_facet,
    partitioning_facets,
    subset_facets,
)
from airflow_provider_sparklineage.event.steps.texts import hidden, without_literals
from airflow_provider_sparklineage.lineage.dataset import LineageDataset
from airflow_provider_sparklineage.model.allowance import (
    UNLIMITED,
    Allowance,
    Bound,
    Limit,
    Stage,
    cut_short,
)
from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode
from airflow_provider_sparklineage.model.representation import (
    DEFAULT_REPRESENTATION,
    Representation,
)
from airflow_provider_sparklineage.model.terms import Side
from airflow_provider_sparklineage.spark.capture.lines import is_too_deep

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from airflow_provider_sparklineage.event.assertions import Check
    from airflow_provider_sparklineage.event.document import Event, Facets, Header
    from airflow_provider_sparklineage.lineage.dataset import TaskLineage
    from airflow_provider_sparklineage.model.datasets import DatasetName
    from airflow_provider_sparklineage.spark.capture.lines import ReadReport


# --- facets of the listener -----------------------------------------------------------------------


class Facet(msgspec.Struct):
    """The keys that each facet has."""

    _producer: str
    _schemaURL: str  # noqa: N815  (the specification's name)


class SchemaField(msgspec.Struct):
    """A column, or a field of a struct."""

    name: str
    type: str = ""
    description: str = ""
    fields: list[SchemaField] = []


class Schema(Facet):
    """Dataset facet ``schema``."""

    fields: list[SchemaField] = []


class _DataSource(Facet):
    name: str = ""
    uri: str = ""


class _Identifier(msgspec.Struct):
    namespace: str
    name: str
    type: str


class _Symlinks(Facet):
    identifiers: list[_Identifier] = []


class _Storage(Facet, kw_only=True):
    storage_layer: str = msgspec.field(name="storageLayer")
    file_format: str = msgspec.field(name="fileFormat", default="")


class _Catalog(Facet):
    framework: str
    type: str
    name: str


class _Version(Facet):
    version: str = msgspec.field(name="datasetVersion")


class _Lifecycle(Facet):
    change: Literal["ALTER", "CREATE", "DROP", "OVERWRITE", "RENAME", "TRUNCATE"] = msgspec.field(
        name="lifecycleStateChange"
    )


class _Statistics(Facet):
    rows: model.Count = msgspec.field(name="rowCount", default=0)
    size: model.Count = 0
    files: model.Count = msgspec.field(name="fileCount", default=0)


_SHAPES: dict[str, type[Facet]] = {
    "schema": Schema,
    "dataSource": _DataSource,
    "symlinks": _Symlinks,
    "storage": _Storage,
    "catalog": _Catalog,
    "version": _Version,
    "lifecycleStateChange": _Lifecycle,
    "inputStatistics": _Statistics,
    "outputStatistics": _Statistics,
}


class Forwarding:
    """Decodes the facets of an event's datasets; equal facets become one object.

    :param allowance: once its time for facets is over, the remaining datasets get no facets
    """

    def __init__(self, allowance: Allowance = UNLIMITED) -> None:
        self._allowance = allowance
        self._memory = Bound(Limit.FORWARDED_BYTES)
        self._without = 0
        self._lost: list[Degradation] = []
        self._decoded = lru_cache(maxsize=_REMEMBERED)(_decoded)

    def bounded(self, dataset: LineageDataset) -> LineageDataset:
        """Give a dataset as it is, or reduced if no time or no memory is left for its facets.

        Then it has only its name, the reporter of the access, and whether the access failed.
        """
        facets = (*dataset.facets.values(), *dataset.side_facets.values())
        size = sum(len(memoryview(facet)) for facet in facets)
        if self._allowance.is_over(Stage.FACETS) or not self._memory.takes(size):
            self._without += 1
            return LineageDataset(dataset.name, witness=dataset.witness, failed=dataset.failed)
        return dataset

    def of(self, facets: Mapping[str, msgspec.Raw], dataset: DatasetName) -> Facets:
        """Decode facets of a dataset; leave out invalid ones, and add a degradation for each.

        :param facets: the JSON text of each facet, by key
        :param dataset: the dataset, as a degradation names it
        """
        kept: Facets = {}
        for name in sorted(facets):
            try:
                kept[name] = self._decoded(name, bytes(facets[name]))
            except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
                reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
                message = (
                    f"The facet {name} that the listener reported of {dataset} is not as it should "
                    f"be and was left out: {reason}."
                )
                degradation = Degradation(DegradationCode.MALFORMED_EVENTS, message, dataset)
                self._lost.append(degradation)
        return kept

    def degradations(self) -> Iterator[Degradation]:
        """Yield a degradation for each invalid facet, and one for all reduced datasets."""
        yield from self._lost
        if self._without:
            yield cut_short(
                f"The facets of {self._without} dataset(s) were left out, because making them took "
                f"too long, or they are more than {Limit.FORWARDED_BYTES // 1024 // 1024} MB"
            )


_REMEMBERED = 512
"""Number of decoded facets that are cached: datasets of a job that have the same facet usually
follow close upon each other."""


_ABSENT = re.compile(rb"null|\{\s*\}")


def _decoded(name: str, text: bytes) -> dict[str, Any]:
    facet: dict[str, Any] = msgspec.json.decode(text, type=dict[str, Any])
    if is_too_deep(text, facet):
        raise RecursionError
    if _ABSENT.search(text):
        facet = without_nulls(facet)
    msgspec.convert(facet, _SHAPES.get(name, Facet))
    return facet


# --- the event ------------------------------------------------------------------------------------


def made(
    lineage: TaskLineage,
    report: ReadReport | None = None,
    representation: Representation = DEFAULT_REPRESENTATION,
    header: Header | None = None,
    allowance: Allowance = UNLIMITED,
) -> Event:
    """Make the event of a task's lineage; the steps of :mod:`.pipeline` come after that.

    :param report: result of reading the listener's events; None before the job has run: then there
        is no capture facet and no partition check, because there is nothing to check
    :param header: None for Airflow's hooks, which fill it in themselves
    :param representation: the parts that the event has or leaves out
    :param allowance: once its time for facets is over, the remaining datasets get no facets
    """
    if representation.redact_literals:
        lineage = without_literals(lineage, allowance)
    forwarding = Forwarding(allowance)
    bare = representation.bare_partitions
    # A generator, so that each dataset's time and memory are checked just before its facets are
    # made.
    outputs = [(d, _output(d, forwarding, bare)) for d in map(forwarding.bounded, lineage.outputs)]
    inputs = [(d, _input(d, forwarding)) for d in map(forwarding.bounded, lineage.inputs)]
    read, written = ([dataset for dataset, _ in side] for side in (inputs, outputs))
    run_facets: Facets = {}
    job_facets: Facets = {}
    if report is not None:
        if check := check_facet(read, written):
            run_facets[model.CHECK_KEY] = check
            inputs, outputs, tests = _with_checks(inputs, outputs, representation)
            run_facets |= tests
        degradations = [*lineage.degradations, *forwarding.degradations()]
        run_facets[model.CAPTURE_KEY] = capture_facet(lineage, report, degradations, read, written)
    if representation.explicit_lineage:
        from airflow_provider_sparklineage.event.column_lineage import lineage_facet

        if explicit := lineage_facet(written):
            job_facets[model.LINEAGE_KEY] = explicit
    return replaced(
        empty(header, lineage.outcome),
        inputs=[made for _, made in inputs],
        outputs=[made for _, made in outputs],
        run_facets=run_facets,
        job_facets=job_facets,
    )


_Made = list[tuple[LineageDataset, dict[str, Any]]]
"""Datasets of a side, each with its entry in the event."""


def _with_checks(
    inputs: _Made, outputs: _Made, representation: Representation
) -> tuple[_Made, _Made, Facets]:
    """Add the partition checks to inputs and outputs; give also the run facet on all of them."""
    hide = hidden if representation.redact_literals else str
    policy = representation.mismatches
    read = partition_checks((d for d, _ in inputs), Side.READ, policy, hide)
    written = partition_checks((d for d, _ in outputs), Side.WRITE, policy, hide)

    def added(made: _Made, checks: Mapping[DatasetName, Check], key: str) -> _Made:
        return [
            (dataset, {**entry, key: with_checks(entry[key], [checks[dataset.name]])})
            if dataset.name in checks
            else (dataset, entry)
            for dataset, entry in made
        ]

    return (
        added(inputs, read, "inputFacets"),
        added(outputs, written, "facets"),
        facets_of_run([*written.values(), *read.values()]),
    )


def _input(dataset: LineageDataset, forwarding: Forwarding) -> dict[str, Any]:
    return {
        **dataset.name._asdict(),
        "facets": forwarding.of(dataset.facets, dataset.name),
        "inputFacets": forwarding.of(dataset.side_facets, dataset.name)
        | subset_facets(dataset, Side.READ),
    }


def _output(dataset: LineageDataset, forwarding: Forwarding, bare: bool) -> dict[str, Any]:
    facets = forwarding.of(dataset.facets, dataset.name)
    if dataset.columns:
        from airflow_provider_sparklineage.event.column_lineage import column_lineage_facet

        facets[model.COLUMNS_KEY] = column_lineage_facet(dataset.columns)
    return {
        **dataset.name._asdict(),
        "facets": facets | partitioning_facets(dataset, bare=bare),
        "outputFacets": forwarding.of(dataset.side_facets, dataset.name)
        | subset_facets(dataset, Side.WRITE),
    }
