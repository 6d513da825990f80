"""What commands read of a merged event, typed: an event that is read without care for its shape.

An event in a file can be anybody's. What nobody reads here may be as it likes; all that is absent
or null is not known.
"""

from __future__ import annotations

from typing import Any

import msgspec

from airflow_provider_sparklineage.event.validation import validate
from airflow_provider_sparklineage.model.exceptions import DocumentError
from airflow_provider_sparklineage.spark.capture.raw_facets import is_too_deep


class _Name(msgspec.Struct):
    namespace: str
    name: str


class _Transformation(msgspec.Struct):
    type: str | None = None
    subtype: str | None = None
    description: str | None = None
    masking: bool | None = None


class _InputField(_Name):
    field: str
    transformations: list[_Transformation] | None = None


class _ColumnSources(msgspec.Struct):
    inputFields: list[_InputField] | None = None  # noqa: N815  (OpenLineage's names, here and below)
    transformationType: str | None = None  # noqa: N815


class _ColumnLineage(msgspec.Struct):
    fields: dict[str, _ColumnSources] | None = None
    dataset: list[_InputField] | None = None


class _SchemaField(msgspec.Struct):
    name: str
    type: str | None = None


class _Schema(msgspec.Struct):
    fields: list[_SchemaField] | None = None


class _Partitions(msgspec.Struct):
    summary: str | None = None


class _DatasetFacets(msgspec.Struct):
    schema: _Schema | None = None
    columnLineage: _ColumnLineage | None = None  # noqa: N815
    sparkLineage_partitions: _Partitions | None = None  # noqa: N815


class _Partition(msgspec.Struct):
    identifier: str | None = None
    dimensions: dict[str, str | None] | None = None


class _Condition(msgspec.Struct):
    type: str | None = None
    locations: list[str] | None = None
    partitions: list[_Partition] | None = None
    left: _Condition | None = None
    right: _Condition | None = None
    operator: str | None = None
    comparison: str | None = None
    field: str | None = None
    value: str | None = None

    def __post_init__(self) -> None:
        parts = {
            "binary": (self.left, self.operator, self.right),
            "compare": (self.left, self.comparison, self.right),
        }
        if None in parts.get(self.type or "", ()):
            msg = f"A condition of the type {self.type} is incomplete"
            raise ValueError(msg)


class _Subset(msgspec.Struct):
    inputCondition: _Condition | None = None  # noqa: N815
    outputCondition: _Condition | None = None  # noqa: N815


class _Description(msgspec.Struct):
    description: str | None = None


class _Statistics(msgspec.Struct):
    rowCount: int | None = None  # noqa: N815


class _SideFacets(msgspec.Struct):
    subset: _Subset | None = None
    sparkLineage_subsetDescription: _Description | None = None  # noqa: N815
    outputStatistics: _Statistics | None = None  # noqa: N815


class _Dataset(_Name):
    facets: _DatasetFacets | None = None
    inputFacets: _SideFacets | None = None  # noqa: N815
    outputFacets: _SideFacets | None = None  # noqa: N815


class _Counted(msgspec.Struct):
    summary: str


class _Source(msgspec.Struct):
    value: str
    kind: str
    field: str
    dimension: str | None = None
    expressions: list[str] | None = None


class _Entry(msgspec.Struct):
    dataset: _Name
    status: str | None = None
    sources: list[_Source] | None = msgspec.field(name="from", default=None)
    expected: _Counted | None = None
    observed: _Counted | None = None
    planned: _Counted | None = None
    failed: bool | None = None
    unreported: str | None = None
    unexpected: _Counted | None = None
    missing: _Counted | None = None


class _Check(msgspec.Struct):
    summary: str | None = None
    status: str | None = None
    reads: list[_Entry] | None = None
    writes: list[_Entry] | None = None


class _Access(msgspec.Struct):
    dataset: _Name
    side: str
    witness: str
    accessed: str
    planned: int | None = None
    failed: bool | None = None


class _Degradation(msgspec.Struct):
    code: str | None = None
    message: str | None = None


class _Capture(msgspec.Struct):
    datasets: list[_Access] | None = None
    degradations: list[_Degradation] | None = None
    degradationCounts: dict[str, int] | None = None  # noqa: N815


class _RunFacets(msgspec.Struct):
    sparkLineage_capture: _Capture | None = None  # noqa: N815
    sparkLineage_partitionCheck: _Check | None = None  # noqa: N815


class _Run(msgspec.Struct):
    runId: str | None = None  # noqa: N815
    facets: _RunFacets | None = None


class _Event(msgspec.Struct):
    run: _Run
    job: _Name
    eventType: str | None = None  # noqa: N815
    eventTime: str | None = None  # noqa: N815
    inputs: list[_Dataset] | None = None
    outputs: list[_Dataset] | None = None


def readable(event: object) -> dict[str, Any]:
    """Give a stored event back as a merged event of which all that commands read has its shape.

    :raise DocumentError: if it is none, or of a version that is too new; says what is wrong
    """
    try:
        if is_too_deep(msgspec.json.encode(event), event):
            msg = "The stored lineage is damaged: it is nested too deeply."
            raise DocumentError(msg)
        known = validate(event)
        msgspec.convert(known, _Event)
    except (ValueError, RecursionError) as error:
        msg = f"The stored lineage is damaged: {error}."
        raise DocumentError(msg) from error
    return known
