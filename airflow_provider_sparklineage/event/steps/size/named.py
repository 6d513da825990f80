"""Columns of schemas that the column lineage of an event names, at either end of an edge."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.event.document import name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from airflow_provider_sparklineage.event.steps.size.measured_event import Place
    from airflow_provider_sparklineage.event.steps.size.reductions import Reduced
    from airflow_provider_sparklineage.model.datasets import DatasetName

    Named = tuple[DatasetName, str]


class NamedColumns:
    """Which columns are named, by the column lineage of which outputs.

    :param lineages: facets ``columnLineage``, by where they stand, with their outputs
    """

    def __init__(self, lineages: Iterable[tuple[Place, DatasetName, Mapping[str, Any]]]) -> None:
        self._by = {place: set(_named(output, facet)) for place, output, facet in lineages}
        self._times = Counter(named for by_one in self._by.values() for named in by_one)

    def forget(self, place: Place) -> set[DatasetName]:
        """Take the lineage of an output away; give the datasets of which it named columns."""
        forgotten = self._by.pop(place, set())
        self._times.subtract(forgotten)
        return {dataset for dataset, _ in forgotten}

    def left_of(self, dataset: DatasetName, schema: dict[str, Any]) -> Reduced:
        """Leave of a schema the columns that are named."""
        return left_of(schema, lambda column: self._times[dataset, column] > 0)


def left_of(schema: dict[str, Any], is_left: Callable[[str], bool]) -> Reduced:
    """Leave some of the columns of a schema; what has another shape stays."""
    fields = schema.get("fields")
    if not isinstance(fields, list):
        return schema, 0
    names = (field.get("name") if isinstance(field, dict) else None for field in fields)
    kept = [
        field
        for field, name in zip(fields, names, strict=True)
        if not isinstance(name, str) or is_left(name)
    ]
    return (schema | {"fields": kept} if kept else None), len(fields) - len(kept)


def _named(output: DatasetName, facet: Mapping[str, Any]) -> Iterator[Named]:
    for column in facet["fields"]:
        yield from _and_outer(output, column)
    seen: set[int] = set()  # columns with the same sources have one list of them
    for sources in (*(f["inputFields"] for f in facet["fields"].values()), facet["dataset"]):
        if id(sources) in seen:
            continue
        seen.add(id(sources))
        for source in sources:
            yield from _and_outer(name_of(source), source["field"])


def _and_outer(dataset: DatasetName, column: str) -> Iterator[Named]:
    """Give a column, and the one that a nested one is in: schemas list that."""
    yield dataset, column
    outer, dot, _ = column.partition(".")
    if dot:
        yield dataset, outer
