"""The kinds of detail that an event can go without, in the order in which they go."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from openlineage.client.facet_v2 import column_lineage_dataset

from airflow_provider_sparklineage.event.event_parts import alike
from airflow_provider_sparklineage.lineage.columns import INDIRECT

ColumnLineageDatasetFacet = column_lineage_dataset.ColumnLineageDatasetFacet
Fields = column_lineage_dataset.Fields
InputField = column_lineage_dataset.InputField
Transformation = column_lineage_dataset.Transformation

if TYPE_CHECKING:
    from collections.abc import Callable

    Reduced = tuple[Any, int]
    """What is left of a facet (None: nothing), and how much went."""


@dataclass(frozen=True)
class Step:
    """A kind of detail that goes as a whole.

    :param what: in words, in the plural
    :param keys: facets that have it
    :param reduced: a facet without it, and how much of it there was
    """

    what: str
    keys: tuple[str, ...]
    reduced: Callable[[Any], Reduced]


def whole(_facet: Any) -> Reduced:
    """Leave nothing of a facet."""
    return None, 1


def _without_descriptions(facet: ColumnLineageDatasetFacet) -> Reduced:
    count = sum(bool(f.transformationDescription) for f in facet.fields.values())

    def bare(source: InputField) -> InputField:
        nonlocal count
        said = source.transformations or []
        count += sum(bool(t.description) for t in said)
        return _input_field(source, [_undescribed(t.type, t.subtype, t.masking) for t in said])

    dataset = [bare(source) for source in facet.dataset or []]
    return _mapped(facet, bare, dataset, with_text=False), count


@lru_cache(maxsize=256)  # there are few kinds, and each edge is of one
def _undescribed(kind: str, subtype: str | None, masking: bool | None) -> Transformation:
    return Transformation(kind, subtype, None, masking)


def _without_indirect_transformations(facet: ColumnLineageDatasetFacet) -> Reduced:
    count = sum(len(source.transformations or []) for source in facet.dataset or [])

    def bare(source: InputField) -> InputField:
        nonlocal count
        said = source.transformations or []
        indirect = [t for t in said if t.type == INDIRECT]
        if not indirect or indirect == [_INDIRECT]:
            return source
        count += len(indirect)
        return _input_field(source, [*(t for t in said if t.type != INDIRECT), _INDIRECT])

    # What influences the whole dataset is INDIRECT, and need not say so.
    dataset = [_input_field(source, None) for source in facet.dataset or []]
    return _mapped(facet, bare, dataset), count


_INDIRECT = Transformation(INDIRECT)


def _without_indirect(facet: ColumnLineageDatasetFacet) -> Reduced:
    count = len(facet.dataset or [])

    def direct(source: InputField) -> InputField | None:
        nonlocal count
        said = source.transformations or []
        others = [t for t in said if t.type != INDIRECT]
        count += len(others) < len(said)
        return _input_field(source, others) if others or not said else None

    reduced = _mapped(facet, direct, [])
    return (reduced if reduced.fields else None), count


def _input_field(source: InputField, transformations: list[Transformation] | None) -> InputField:
    return InputField(source.namespace, source.name, source.field, transformations)


def _mapped(
    facet: ColumnLineageDatasetFacet,
    of: Callable[[InputField], InputField | None],
    dataset: list[InputField],
    *,
    with_text: bool = True,
) -> ColumnLineageDatasetFacet:
    """Make the facet with other sources, without those that are None and fields that have none."""
    fields: dict[str, Fields] = {}
    for name, said in facet.fields.items():
        sources = [made for source in said.inputFields if (made := of(source)) is not None]
        text = said.transformationDescription if with_text else None
        if sources:
            fields[name] = Fields(sources, text, said.transformationType)
    return alike(facet, fields=fields, dataset=dataset)


def _without_comments(facet: dict[str, Any]) -> Reduced:
    """Leave the comments out of a schema; what Spark said in another shape stays as it is."""
    count = 0

    def bare(field: Any) -> Any:
        nonlocal count
        if not isinstance(field, dict):
            return field
        count += bool(field.get("description"))
        kept = {key: value for key, value in field.items() if key != "description"}
        return kept | ({"fields": of(kept["fields"])} if kept.get("fields") else {})

    def of(fields: Any) -> Any:
        return list(map(bare, fields)) if isinstance(fields, list) else fields

    return facet | {"fields": of(facet.get("fields"))}, count


_COLUMNS = ("columnLineage",)

STEPS = (
    Step("descriptions of column lineage", _COLUMNS, _without_descriptions),
    Step("transformations of INDIRECT lineage", _COLUMNS, _without_indirect_transformations),
    Step("statistics", ("inputStatistics", "outputStatistics", "dataQualityMetrics"), whole),
    Step("comments of schemas", ("schema",), _without_comments),
    Step("INDIRECT edges of column lineage", _COLUMNS, _without_indirect),
)
"""What goes first, in this order."""
