"""Column lineage that could never fit into the event is not even made into facets.

A million edges as a facet take gigabytes, and seconds in each step, to be dropped in the last one.
What is dropped here that one would drop (:mod:`..size`), in the same order: all descriptions, all
INDIRECT edges, then the column lineage of full outputs, the largest first. Sizes are underrated, by
what an edge takes at least, so nothing goes that would fit. Up to :data:`CHEAP` it is not worth it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from airflow_provider_sparklineage.event.steps.size.declaration import of_dropped
from airflow_provider_sparklineage.lineage.columns import INDIRECT, ColumnLineage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from airflow_provider_sparklineage.lineage.columns import Edges, Transformation
    from airflow_provider_sparklineage.lineage.dataset import LineageDataset, TaskLineage
    from airflow_provider_sparklineage.model.datasets import DatasetName
    from airflow_provider_sparklineage.model.degradations import Degradation

_EDGE = len('{"namespace": "", "name": "", "field": "", "transformations": []}, ')


CHEAP = 16 * 1024 * 1024
"""Bytes of JSON that are made in a second or two."""


def bounded(lineage: TaskLineage, max_bytes: int, option: str) -> TaskLineage:
    """Leave out the column lineage that an event of so many bytes has no place for.

    :param option: what a person would change to get more
    """
    of = {d.name: d.columns for d in lineage.outputs if d.columns}
    sizes = {name: _Size.of(columns) for name, columns in of.items()}
    dropped: list[Degradation] = []
    if sum(size.texts for size in sizes.values()) > max(CHEAP, max_bytes):
        count = sum(size.descriptions for size in sizes.values())
        dropped.append(of_dropped(f"{count} descriptions of column lineage", option))
        of = {name: _mapped(columns, _undescribed) for name, columns in of.items()}
    if sum(size.edges for size in sizes.values()) > max(CHEAP, max_bytes):
        if count := sum(size.indirect for size in sizes.values()):
            dropped.append(of_dropped(f"{count} INDIRECT edges of column lineage", option))
            of = {name: _mapped(columns, _direct) for name, columns in of.items()}
        left = sum(size.direct for size in sizes.values())
        for name in sorted(sizes, key=lambda name: (-sizes[name].direct, name)):
            if left <= max_bytes:
                break
            del of[name]
            left -= sizes[name].direct
            dropped.append(of_dropped(f"The column lineage of {name}", option, name))
    if not dropped:
        return lineage
    outputs = (_with(d, of) for d in lineage.outputs)
    degradations = (*lineage.degradations, *dropped)
    return replace(lineage, outputs=tuple(outputs), degradations=degradations)


def _with(dataset: LineageDataset, columns: dict[DatasetName, ColumnLineage]) -> LineageDataset:
    return replace(dataset, columns=columns.get(dataset.name)) if dataset.columns else dataset


class _Size(Struct):
    """What column lineage takes at least, in bytes of JSON.

    :param texts: its descriptions
    :param edges: all of its edges, without their transformations
    :param direct: those that are not INDIRECT only
    """

    texts: int = 0
    descriptions: int = 0
    edges: int = 0
    indirect: int = 0
    direct: int = 0

    @classmethod
    def of(cls, lineage: ColumnLineage) -> _Size:
        size = cls()
        for edges, is_of_all in _all(lineage):
            for column, transformations in edges.items():
                for t in transformations:
                    size.texts += len(t.description)
                    size.descriptions += bool(t.description)
                edge = _EDGE + len(column.field) + sum(map(len, column.dataset))
                size.edges += edge
                if is_of_all or all(t.type == INDIRECT for t in transformations):
                    size.indirect += 1
                else:
                    size.direct += edge
        return size


def _all(lineage: ColumnLineage) -> Iterator[tuple[Edges, bool]]:
    for edges in lineage.fields.values():
        yield edges, False
    yield lineage.dataset, True


def _mapped(lineage: ColumnLineage, change: Callable[[Edges, bool], Edges]) -> ColumnLineage:
    fields = {name: change(edges, False) for name, edges in lineage.fields.items()}
    return ColumnLineage({n: e for n, e in fields.items() if e}, change(lineage.dataset, True))


def _undescribed(edges: Edges, _is_of_all: bool) -> Edges:
    return {
        column: tuple(dict.fromkeys(t._replace(description="") for t in transformations))
        for column, transformations in edges.items()
    }


def _direct(edges: Edges, is_of_all: bool) -> Edges:
    if is_of_all:
        return {}

    def others(transformations: tuple[Transformation, ...]) -> tuple[Transformation, ...]:
        return tuple(t for t in transformations if t.type != INDIRECT)

    return {column: left for column, ts in edges.items() if (left := others(ts))}
