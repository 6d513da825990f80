"""A task's lineage to the RunEvent: the only place that makes one.

Facets of the listener are passed on as they came, with its ``_producer``; those of this package
begin with its own. What is made here is neutral: what a backend, a limit or privacy asks for
is done by the steps that follow (:mod:`.pipeline`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.event.capture_facet import (
    CAPTURE_KEY,
    capture_facet,
    declared,
)
from airflow_provider_sparklineage.event.column_lineage_facet import (
    COLUMNS_KEY,
    column_lineage_facet,
)
from airflow_provider_sparklineage.event.document import empty, replaced
from airflow_provider_sparklineage.event.forwarded_facets import forwarded
from airflow_provider_sparklineage.event.job_lineage_facet import LINEAGE_KEY, lineage_facet
from airflow_provider_sparklineage.event.partition_facets import (
    CHECK_KEY,
    check_facet,
    input_facets,
    output_facets,
    partitioning_facets,
)
from airflow_provider_sparklineage.model.representation import (
    DEFAULT_REPRESENTATION,
    Representation,
)

if TYPE_CHECKING:
    from airflow_provider_sparklineage.event.document import Event, Facets, Header
    from airflow_provider_sparklineage.lineage.dataset import LineageDataset, TaskLineage
    from airflow_provider_sparklineage.model.degradations import Degradation
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
    lost: list[Degradation] = []
    bare = representation.bare_partitions
    event = replaced(
        empty(header, lineage.outcome),
        inputs=[_input(d, lost) for d in inputs],
        outputs=[_output(d, lost, bare_partitions=bare) for d in outputs],
        run_facets=run_facets,
        job_facets=job_facets,
    )
    return declared(event, lost)


def _input(dataset: LineageDataset, lost: list[Degradation]) -> dict[str, Any]:
    return {
        "namespace": dataset.name.namespace,
        "name": dataset.name.name,
        "facets": forwarded(dataset.facets, dataset.name, lost),
        "inputFacets": forwarded(dataset.side_facets, dataset.name, lost) | input_facets(dataset),
    }


def _output(
    dataset: LineageDataset, lost: list[Degradation], *, bare_partitions: bool
) -> dict[str, Any]:
    facets = forwarded(dataset.facets, dataset.name, lost)
    if dataset.columns:
        facets[COLUMNS_KEY] = column_lineage_facet(dataset.columns)
    return {
        "namespace": dataset.name.namespace,
        "name": dataset.name.name,
        "facets": facets | partitioning_facets(dataset, bare=bare_partitions),
        "outputFacets": forwarded(dataset.side_facets, dataset.name, lost) | output_facets(dataset),
    }
