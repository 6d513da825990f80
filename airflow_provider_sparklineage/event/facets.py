"""TaskLineage to OpenLineage objects: the only place that makes them.

Facets that Spark said are passed on as they came, with Spark's ``_producer``. Ours are classes, not
dicts: Airflow's redactor would blank the entries of a dict under keys like ``password``, which here
are column names.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import attrs
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    DatasetFacet,
    InputDatasetFacet,
    OutputDatasetFacet,
    RunFacet,
    column_lineage_dataset,
)
from openlineage.client.serde import Serde

from airflow_provider_sparklineage.event.backends import backend_of
from airflow_provider_sparklineage.event.capture_facet import CAPTURE_KEY, capture_facet
from airflow_provider_sparklineage.event.event_parts import OpenLineageParts, made
from airflow_provider_sparklineage.event.partition_facets import (
    CHECK_KEY,
    check_facet,
    input_facets,
    output_facets,
    partitioning_facets,
)
from airflow_provider_sparklineage.event.producer import producer
from airflow_provider_sparklineage.event.redaction import private, redacted
from airflow_provider_sparklineage.event.rename import with_backend_names
from airflow_provider_sparklineage.lineage.columns import (
    DIRECT,
    DIRECT_SUBTYPES,
    INDIRECT,
    ColumnLineage,
    Edges,
    Transformation,
)
from airflow_provider_sparklineage.model.representation import (
    DEFAULT_REPRESENTATION,
    Representation,
)
from airflow_provider_sparklineage.model.truncation import truncated
from airflow_provider_sparklineage.spark.capture.events import decode_facet

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import msgspec
    from openlineage.client.facet_v2 import JobFacet

    from airflow_provider_sparklineage.lineage.dataset import LineageDataset, TaskLineage
    from airflow_provider_sparklineage.spark.capture.events import ReadReport

_OPTION = "[sparklineage] max_event_bytes"


def parts(
    lineage: TaskLineage,
    report: ReadReport | None = None,
    representation: Representation = DEFAULT_REPRESENTATION,
    mask: Callable[[str], str] = str,
) -> OpenLineageParts:
    """Say a task's lineage in OpenLineage.

    :param report: what reading the events met; without it (START) there is no capture facet, and
        so none that could say what was dropped: nothing is, of the little that is known by then
    :param mask: hides the secrets in a text; Airflow knows them
    """
    lineage = private(lineage, mask, literals=representation.redact_literals)
    backend = backend_of(representation.backend)
    lineage = with_backend_names(lineage, backend.identity, backend.text)
    job_facets: dict[str, JobFacet] = {}
    if representation.explicit_lineage:
        from airflow_provider_sparklineage.event.job_lineage_facet import LINEAGE_KEY, lineage_facet

        if static := lineage_facet(lineage.outputs):
            job_facets[LINEAGE_KEY] = static
    run_facets: dict[str, RunFacet] = {}
    # Before the job has run there is nothing to check.
    if report is not None and (check := check_facet(lineage.inputs, lineage.outputs)):
        run_facets[CHECK_KEY] = check
    said = OpenLineageParts(
        [_input(d) for d in lineage.inputs],
        [_output(d, bare_partitions=representation.bare_partitions) for d in lineage.outputs],
        run_facets,
        job_facets,
    )
    said, repairs = backend.repaired(said)
    if report is not None:
        lineage = replace(lineage, degradations=(*lineage.degradations, *repairs))
        capture = OpenLineageParts([], [], {CAPTURE_KEY: capture_facet(lineage, report)})
        # Names in it are as they were; that they cannot be held has been said by then.
        capture, _ = backend.repaired(capture)
        said = replace(said, run_facets=said.run_facets | capture.run_facets)
        from airflow_provider_sparklineage.event.size import fitted  # START waits for imports

        said, _ = fitted(said, representation.max_event_bytes, _OPTION)
    return redacted(said, mask)


def run_event(
    lineage: TaskLineage,
    report: ReadReport,
    *,
    run_id: str,
    job_namespace: str,
    job_name: str,
    event_time: str,
    representation: Representation = DEFAULT_REPRESENTATION,
) -> dict[str, Any]:
    """Make the whole merged RunEvent, as a JSON document."""
    said = parts(lineage, report, representation)
    event = event_of(
        said,
        lineage.outcome,
        run_id=run_id,
        job_namespace=job_namespace,
        job_name=job_name,
        event_time=event_time,
    )
    return Serde.to_dict(event)


def event_of(
    said: OpenLineageParts,
    state: str,
    *,
    run_id: str,
    job_namespace: str,
    job_name: str,
    event_time: str,
) -> RunEvent:
    """Make the RunEvent of what a task's lineage fills, in the state COMPLETE or FAIL."""
    return RunEvent(
        eventType=RunState[state],
        eventTime=event_time,
        run=Run(run_id, facets=said.run_facets),
        job=Job(job_namespace, job_name, facets=said.job_facets),
        producer=producer(),
        inputs=said.inputs,
        outputs=said.outputs,
    )


def _input(dataset: LineageDataset) -> InputDataset:
    sides: dict[str, InputDatasetFacet] = _forwarded(dataset.side_facets)
    namespace, name = dataset.name
    return InputDataset(
        namespace,
        name,
        facets=_forwarded(dataset.facets),
        inputFacets=sides | input_facets(dataset),
    )


def _output(dataset: LineageDataset, *, bare_partitions: bool) -> OutputDataset:
    facets: dict[str, DatasetFacet] = _forwarded(dataset.facets)
    if dataset.columns:
        facets["columnLineage"] = _column_lineage(dataset.columns)
    sides: dict[str, OutputDatasetFacet] = _forwarded(dataset.side_facets)
    namespace, name = dataset.name
    return OutputDataset(
        namespace,
        name,
        facets=facets | partitioning_facets(dataset, bare=bare_partitions),
        outputFacets=sides | output_facets(dataset),
    )


def _forwarded(facets: Mapping[str, msgspec.Raw]) -> dict[str, Any]:
    decoded = {name: decode_facet(facets[name], dict[str, Any]) for name in sorted(facets)}
    return {name: facet for name, facet in decoded.items() if facet is not None}


# --- column lineage, compact ----------------------------------------------------------------------


@attrs.define
class UnredactedColumnLineage(column_lineage_dataset.ColumnLineageDatasetFacet):
    """The specification's facet, which Airflow's redactor does not go through: see `redaction`."""

    _additional_skip_redact: ClassVar[list[str]] = ["fields", "dataset"]


def _column_lineage(lineage: ColumnLineage) -> UnredactedColumnLineage:
    return made(
        UnredactedColumnLineage,
        fields={name: _field(lineage.fields[name]) for name in sorted(lineage.fields)},
        dataset=_input_fields(lineage.dataset),
    )


def _field(edges: Edges) -> column_lineage_dataset.Fields:
    all_of_it = [t for column in sorted(edges) for t in edges[column]]
    all_of_it.sort(key=lambda t: t.type != DIRECT)  # the text is short, and the value comes first
    return column_lineage_dataset.Fields(
        inputFields=_input_fields(edges),
        transformationType=_summary(all_of_it),
        transformationDescription=_described(all_of_it),
    )


def _input_fields(edges: Edges) -> list[column_lineage_dataset.InputField]:
    return [
        column_lineage_dataset.InputField(
            namespace=column.dataset.namespace,
            name=column.dataset.name,
            field=column.field,
            transformations=[_transformation(t) for t in edges[column] if t.type is not None],
        )
        for column in sorted(edges)
    ]


@lru_cache(maxsize=4096)  # edges have few different ones, with texts that come again
def _transformation(t: Transformation) -> column_lineage_dataset.Transformation:
    return column_lineage_dataset.Transformation(
        type=t.type or "", subtype=t.subtype, description=t.description, masking=t.masking
    )


# Marquez stores the deprecated field in a varchar(255).
_DEPRECATED_LIMIT = 255


def _summary(transformations: list[Transformation]) -> str:
    """``DIRECT:AGGREGATION``: the deprecated field, which is all that some consumers show."""
    for kind in (DIRECT, INDIRECT):
        subtypes = {t.subtype or "" for t in transformations if t.type == kind}
        if subtypes:
            strongest = next((s for s in DIRECT_SUBTYPES if s in subtypes), min(subtypes))
            return f"{kind}:{strongest}" if strongest else kind
    return "UNKNOWN"


def _described(transformations: list[Transformation]) -> str:
    texts = dict.fromkeys(t.description for t in transformations if t.description)
    return truncated("; ".join(texts), _DEPRECATED_LIMIT)
