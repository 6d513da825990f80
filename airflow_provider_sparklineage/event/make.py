"""A task's lineage to the RunEvent: the only place that makes one.

Facets of the listener are passed on as they came, with its ``_producer``; those of this package
begin with its own. What is made here is neutral: what a backend, a limit or privacy asks for
is done by the steps that follow (:mod:`.pipeline`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.event.capture_facet import CAPTURE_KEY, capture_facet
from airflow_provider_sparklineage.event.column_lineage_facet import (
    COLUMNS_KEY,
    column_lineage_facet,
)
from airflow_provider_sparklineage.event.document import empty, replaced
from airflow_provider_sparklineage.event.job_lineage_facet import LINEAGE_KEY, lineage_facet
from airflow_provider_sparklineage.event.partition_facets import (
    CHECK_KEY,
    check_facet,
    input_facets,
    output_facets,
    partitioning_facets,
)
from airflow_provider_sparklineage.event.walk import without_nulls
from airflow_provider_sparklineage.model.representation import (
    DEFAULT_REPRESENTATION,
    Representation,
)
from airflow_provider_sparklineage.spark.capture.events import decode_facet

if TYPE_CHECKING:
    from collections.abc import Mapping

    import msgspec

    from airflow_provider_sparklineage.event.document import Event, Facets, Header
    from airflow_provider_sparklineage.lineage.dataset import LineageDataset, TaskLineage
    from airflow_provider_sparklineage.spark.capture.events import ReadReport


def made(
    lineage: TaskLineage,
    report: ReadReport | None = None,
    representation: Representation = DEFAULT_REPRESENTATION,
    header: Header | None = None,
) -> Event:
    """Make the event of a task's lineage, before any step.

    :param report: what reading the events met; None before the job has run: then there is no
        capture facet, and no partition check, for there is nothing to check
    :param header: None for Airflow's hooks, which fill it in themselves
    """
    if representation.redact_literals:
        from airflow_provider_sparklineage.event.literals import without_literals

        lineage = without_literals(lineage)
    inputs, outputs = lineage.inputs, lineage.outputs
    run_facets: Facets = {}
    job_facets: Facets = {}
    if report is not None:
        if check := check_facet(inputs, outputs):
            run_facets[CHECK_KEY] = check
        run_facets[CAPTURE_KEY] = capture_facet(lineage, report)
    if representation.explicit_lineage and (explicit := lineage_facet(outputs)):
        job_facets[LINEAGE_KEY] = explicit
    return replaced(
        empty(header, lineage.outcome),
        inputs=[_input(d) for d in inputs],
        outputs=[_output(d, bare_partitions=representation.bare_partitions) for d in outputs],
        run_facets=run_facets,
        job_facets=job_facets,
    )


def _input(dataset: LineageDataset) -> dict[str, Any]:
    return {
        "namespace": dataset.name.namespace,
        "name": dataset.name.name,
        "facets": _forwarded(dataset.facets),
        "inputFacets": _forwarded(dataset.side_facets) | input_facets(dataset),
    }


def _output(dataset: LineageDataset, *, bare_partitions: bool) -> dict[str, Any]:
    facets = _forwarded(dataset.facets)
    if dataset.columns:
        facets[COLUMNS_KEY] = column_lineage_facet(dataset.columns)
    return {
        "namespace": dataset.name.namespace,
        "name": dataset.name.name,
        "facets": facets | partitioning_facets(dataset, bare=bare_partitions),
        "outputFacets": _forwarded(dataset.side_facets) | output_facets(dataset),
    }


def _forwarded(facets: Mapping[str, msgspec.Raw]) -> Facets:
    decoded = {name: _decoded(facets[name]) for name in sorted(facets)}
    return {name: facet for name, facet in decoded.items() if facet is not None}


_ABSENT = re.compile(rb"null|\{\s*\}")


def _decoded(facet: msgspec.Raw) -> dict[str, Any] | None:
    decoded = decode_facet(facet, dict[str, Any])
    if decoded is None or not _ABSENT.search(facet):
        return decoded
    kept: dict[str, Any] = without_nulls(decoded)
    return kept
