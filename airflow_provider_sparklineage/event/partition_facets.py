"""Partitions and subsets to OpenLineage objects: what was touched, how it is partitioned, and why.

======================================  ==========================================================
``subset`` of an input or output        the specification's facet: types location, partition,
                                        compare and binary only
``sparkLineage_subsetDescription``      what that facet cannot say, in words
``sparkLineage_partitions``             an output's partitioning, and its partitions for people
``partitions``                          the proposal's facet, on request
``sparkLineage_partitionCheck``         what was expected, where it comes from, and what was seen
======================================  ==========================================================

A definition of an input's partitioning is said in the run facet only: as a dataset facet it would
replace the writer's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import attrs
from openlineage.client.facet_v2 import (
    DatasetFacet,
    InputDatasetFacet,
    OutputDatasetFacet,
    RunFacet,
    base_subset_dataset,
)

from airflow_provider_sparklineage.event.event_parts import made
from airflow_provider_sparklineage.event.producer import SCHEMA_BASE, producer
from airflow_provider_sparklineage.lineage.partitions.comparison import worst
from airflow_provider_sparklineage.lineage.partitions.selection import extent
from airflow_provider_sparklineage.model.subset import (
    Binary,
    Compare,
    Condition,
    Description,
    Locations,
    Operator,
    Partitions,
    to_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from airflow_provider_sparklineage.expectations import Source
    from airflow_provider_sparklineage.lineage.dataset import LineageDataset
    from airflow_provider_sparklineage.model.partitioning import Dimension, Partition

F = TypeVar("F")

SUBSET_KEY = "subset"
DESCRIPTION_KEY = "sparkLineage_subsetDescription"
PARTITIONS_KEY = "sparkLineage_partitions"
BARE_PARTITIONS_KEY = "partitions"
CHECK_KEY = "sparkLineage_partitionCheck"
MAX_SOURCES = 100
"""Values of one dataset whose source is told."""
MAX_TEMPLATE = 500
"""Characters of a template that are told, around what the value was made by."""


# --- conditions -----------------------------------------------------------------------------------

SubsetCondition = (
    base_subset_dataset.PartitionSubsetCondition
    | base_subset_dataset.LocationSubsetCondition
    | base_subset_dataset.CompareSubsetCondition
    | base_subset_dataset.BinarySubsetCondition
)


@attrs.define
class UnredactedPartition(base_subset_dataset.Partition):
    """A partition whose values reach the backend: Airflow would blank those of ``token=``."""

    _skip_redact: ClassVar[list[str]] = ["dimensions", "identifier"]


@attrs.define
class SparkLineageSubsetDescriptionInputDatasetFacet(InputDatasetFacet):
    """Input facet ``sparkLineage_subsetDescription``: which part was read, in words.

    The schema is shipped as ``schemas/SparkLineageSubsetDescriptionDatasetFacet.json``.
    """

    description: str = ""

    @staticmethod
    def _get_schema() -> str:
        return f"{SCHEMA_BASE}:subsetDescription:1-0-0"


@attrs.define
class SparkLineageSubsetDescriptionOutputDatasetFacet(OutputDatasetFacet):
    """Output facet ``sparkLineage_subsetDescription``: which part was written, in words."""

    description: str = ""

    @staticmethod
    def _get_schema() -> str:
        return f"{SCHEMA_BASE}:subsetDescription:1-0-0"


def input_facets(dataset: LineageDataset) -> dict[str, InputDatasetFacet]:
    """Say which part of a dataset was read."""
    return _side_facets(
        dataset,
        base_subset_dataset.InputSubsetInputDatasetFacet,
        "inputCondition",
        SparkLineageSubsetDescriptionInputDatasetFacet,
    )


def output_facets(dataset: LineageDataset) -> dict[str, OutputDatasetFacet]:
    """Say which part of a dataset was written."""
    return _side_facets(
        dataset,
        base_subset_dataset.OutputSubsetOutputDatasetFacet,
        "outputCondition",
        SparkLineageSubsetDescriptionOutputDatasetFacet,
    )


def _side_facets(
    dataset: LineageDataset,
    subset: Callable[..., F],
    condition: str,
    description: Callable[..., F],
) -> dict[str, F]:
    said, rest = _sayable(dataset.selected.condition)
    facets: dict[str, F] = {}
    if said is not None:
        facets[SUBSET_KEY] = made(subset, **{condition: _condition(said)})
    if rest:
        facets[DESCRIPTION_KEY] = made(description, description=rest)
    return facets


def _sayable(condition: Condition | None) -> tuple[Condition | None, str]:
    """Part what the specification can say from what it cannot.

    Of an AND both are true of all rows, so each part may be said by itself; of an OR neither is.
    """
    match condition:
        case None:
            return None, ""
        case Description(text):
            return None, text
        case Binary(Operator.AND, left, right):
            parts = [_sayable(left), _sayable(right)]
            said = [s for s, _ in parts if s is not None]
            rest = " AND ".join(text for _, text in parts if text)
            if len(said) == 2:
                return Binary(Operator.AND, said[0], said[1]), rest
            return (said[0] if said else None), rest
        case Binary(Operator.OR, left, right):
            if any(rest for _, rest in (_sayable(left), _sayable(right))):
                return None, to_text(condition)
            return condition, ""
        case _:
            return condition, ""


def _condition(condition: Condition) -> SubsetCondition:
    match condition:
        case Partitions(partitions):
            return base_subset_dataset.PartitionSubsetCondition(
                [UnredactedPartition(p.as_dict(), identifier=str(p)) for p in sorted(partitions)]
            )
        case Locations(locations):
            return base_subset_dataset.LocationSubsetCondition(sorted(locations))
        case Compare(field, comparison, value):
            return base_subset_dataset.CompareSubsetCondition(
                base_subset_dataset.FieldBaseCompareExpression(field),
                base_subset_dataset.LiteralCompareExpression(value),
                str(comparison),
            )
        case Binary(operator, left, right):
            return base_subset_dataset.BinarySubsetCondition(
                _condition(left), _condition(right), str(operator)
            )
        case _:
            msg = f"the specification has no condition for {condition!r}"
            raise TypeError(msg)


# --- partitioning ---------------------------------------------------------------------------------


@attrs.define
class PartitionDimension:
    """An entry of ``dimensions``."""

    fields: list[str]
    transform: str


@attrs.define
class PartitionsDatasetFacet(DatasetFacet):
    """Dataset facet ``partitions``, with the proposal's body and nothing else."""

    dimensions: list[PartitionDimension] = attrs.field(factory=list)
    description: str | None = None

    @staticmethod
    def _get_schema() -> str:
        return f"{SCHEMA_BASE}:barePartitions:1-0-0"


@attrs.define
class SparkLineagePartitionsDatasetFacet(DatasetFacet):
    """Dataset facet ``sparkLineage_partitions``: an output's partitioning, and what was written.

    The schema is shipped as ``schemas/SparkLineagePartitionsDatasetFacet.json``.
    """

    dimensions: list[PartitionDimension] = attrs.field(factory=list)
    summary: str = ""
    count: int = 0
    first: str | None = None
    last: str | None = None
    truncated: bool = False
    description: str | None = None

    @staticmethod
    def _get_schema() -> str:
        return f"{SCHEMA_BASE}:partitions:1-0-0"


def partitioning_facets(dataset: LineageDataset, *, bare: bool) -> dict[str, DatasetFacet]:
    """Say how an output is partitioned, and which partitions were written.

    :param bare: also as the proposal's own facet
    """
    dimensions, partitions = dataset.dimensions, dataset.selected.partitions
    if not dimensions and not partitions:
        return {}
    entries = [PartitionDimension(list(d.fields), d.transform) for d in dimensions]
    written = extent(partitions or ())
    facets: dict[str, DatasetFacet] = {
        PARTITIONS_KEY: made(
            SparkLineagePartitionsDatasetFacet,
            dimensions=entries,
            summary=written.summary if partitions is not None else "partitions not known",
            count=written.count,
            first=str(written.first) if written.count else None,
            last=str(written.last) if written.count else None,
            truncated=dataset.selected.skipped > 0,
            description=_partitioned_by(dimensions),
        )
    }
    if bare and entries:
        facets[BARE_PARTITIONS_KEY] = PartitionsDatasetFacet(
            dimensions=entries, description=_partitioned_by(dimensions), producer=producer()
        )
    return facets


def _partitioned_by(dimensions: Sequence[Dimension]) -> str | None:
    """``PARTITIONED BY (dt, days(ts))``, as the proposal's examples have it."""
    texts = []
    for dimension in dimensions:
        fields = ", ".join(dimension.fields)
        name, bracket, argument = dimension.transform.partition("[")
        if name == "identity":
            texts.append(fields)
        elif bracket:
            texts.append(f"{name}({argument.rstrip(']')}, {fields})")
        elif "(" in name:
            texts.append(name)
        else:
            texts.append(f"{name}({fields})")
    return f"PARTITIONED BY ({', '.join(texts)})" if texts else None


# --- what was expected ----------------------------------------------------------------------------


@attrs.define
class SparkLineagePartitionCheckRunFacet(RunFacet):
    """Run facet ``sparkLineage_partitionCheck``: expected and observed partitions, by dataset.

    The schema is shipped as ``schemas/SparkLineagePartitionCheckRunFacet.json``.
    """

    summary: str = ""
    status: str = ""
    reads: list[dict[str, Any]] = attrs.field(factory=list)
    writes: list[dict[str, Any]] = attrs.field(factory=list)

    @staticmethod
    def _get_schema() -> str:
        return f"{SCHEMA_BASE}:partitionCheck:1-0-0"


def check_facet(
    inputs: Collection[LineageDataset], outputs: Collection[LineageDataset]
) -> SparkLineagePartitionCheckRunFacet | None:
    """Say of each dataset what was expected, where that comes from, and what was observed.

    :return: None if nothing was expected of any dataset and none is partitioned
    """
    if not any(d.expected or d.dimensions for d in (*inputs, *outputs)):
        return None
    reads = [_checked(d) for d in inputs]
    writes = [_checked(d) for d in outputs]
    said = [
        f"{how} {', '.join(entry['summary'] for entry in side)}"
        for how, side in (("read", reads), ("wrote", writes))
        if side
    ]
    status = worst(d.check.status for d in (*inputs, *outputs))
    return SparkLineagePartitionCheckRunFacet(
        "; ".join(said), str(status), reads, writes, producer=producer()
    )


def _checked(dataset: LineageDataset) -> dict[str, Any]:
    expected = dataset.expected
    label = dataset.name.name.rstrip("/").rpartition("/")[2]
    unknown = "all of it" if dataset.observed else "partitions not known"
    what = dataset.selected.summary or unknown
    entry: dict[str, Any] = {
        "dataset": dataset.name._asdict(),
        "summary": f"{label} {what}",
        "status": str(dataset.check.status),
    }
    if dataset.dimensions:
        entry["dimensions"] = [_dimension(d) for d in dataset.dimensions]
    if said := _sayable(dataset.selected.condition)[0]:
        entry["condition"] = _condition(said)
    if expected is not None:
        entry["from"] = [_value(source) for source in expected.sources[:MAX_SOURCES]]
        if expected.partitions is not None:
            entry["expected"] = _counted(expected.partitions)
    if dataset.observed and dataset.subset is not None:
        entry["observed"] = _counted(dataset.subset.partitions)
    for name, partitions in (
        ("missing", dataset.check.missing),
        ("unexpected", dataset.check.unexpected),
    ):
        if partitions:
            entry[name] = _counted(partitions)
    return entry


def _dimension(dimension: Dimension) -> dict[str, Any]:
    said = {"fields": list(dimension.fields), "transform": dimension.transform}
    return said | ({"format": dimension.format} if dimension.format else {})


def _counted(partitions: Iterable[Partition]) -> dict[str, Any]:
    found = extent(partitions)
    said: dict[str, Any] = {"summary": found.summary, "count": found.count}
    return said | ({"first": str(found.first), "last": str(found.last)} if found.count else {})


def _value(source: Source) -> dict[str, Any]:
    said: dict[str, Any] = {
        "value": source.value,
        "kind": str(source.kind),
        "field": source.field,
        "template": _excerpt(source),
    }
    if source.dimension:
        said["dimension"] = source.dimension
    if source.expressions:
        said["expressions"] = list(source.expressions)
    if source.variables:
        said["variables"] = list(source.variables)
    return said


def _excerpt(source: Source) -> str:
    """Cut a long template to what stands around the value's expression, or the value itself."""
    template = source.template
    if len(template) <= MAX_TEMPLATE:
        return template
    found = (template.find(text) for text in (*source.expressions, source.value))
    at = next((place for place in found if place >= 0), 0)
    start = max(0, min(at - MAX_TEMPLATE // 2, len(template) - MAX_TEMPLATE))
    end = start + MAX_TEMPLATE
    return f"{'…' if start else ''}{template[start:end]}{'…' if end < len(template) else ''}"
