"""Column lineage that could never fit into the event is not even made into facets.

A million edges as a facet take gigabytes, and seconds in each step, to be dropped in the last one.
What is dropped here that one would drop (:mod:`..size`), in the same order: all descriptions, all
INDIRECT edges, then the column lineage of full outputs, the largest first. What else goes there,
also before these, takes little to make. Sizes are underrated, by what an edge takes at least, so
nothing goes that would fit. Up to :data:`CHEAP` it is not worth it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from airflow_provider_sparklineage.event.steps.size.declaration import (
    of_column_lineage,
    of_dropped,
)
from airflow_provider_sparklineage.lineage.columns import (
    INDIRECT,
    ColumnLineage,
    changed,
    lists,
    mapped,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_sparklineage.lineage.columns import Edges, Transformations
    from airflow_provider_sparklineage.lineage.dataset import LineageDataset, TaskLineage
    from airflow_provider_sparklineage.model.datasets import DatasetName
    from airflow_provider_sparklineage.model.degradations import Degradation

_EDGE = len('{"namespace": "", "name": "", "field": ""}, ')
_FIELD = len('"": {"inputFields": [], "transformationType": ""}, ')

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
        of = {name: _without(columns, _undescribed) for name, columns in of.items()}
    if sum(size.edges for size in sizes.values()) > max(CHEAP, max_bytes):
        if count := sum(size.indirect for size in sizes.values()):
            dropped.append(of_dropped(f"{count} INDIRECT edges of column lineage", option))
            of = {
                name: _without(ColumnLineage(columns.fields), _direct)
                for name, columns in of.items()
            }
        left = sum(size.direct for size in sizes.values())
        bare = []
        for name in sorted(sizes, key=lambda name: (-sizes[name].direct, name)):
            if left <= max_bytes:
                break
            del of[name]
            left -= sizes[name].direct
            bare.append(name)
        dropped += of_column_lineage(bare, option)
    if not dropped:
        return lineage
    outputs = (_with(d, of) for d in lineage.outputs)
    degradations = (*lineage.degradations, *dropped)
    return replace(lineage, outputs=tuple(outputs), degradations=degradations)


def _with(dataset: LineageDataset, columns: dict[DatasetName, ColumnLineage]) -> LineageDataset:
    return replace(dataset, columns=columns.get(dataset.name)) if dataset.columns else dataset


class _Size(NamedTuple):
    """What column lineage takes at least, in bytes of JSON.

    :param texts: its descriptions
    :param edges: all of its edges, without their transformations
    :param direct: those that are not INDIRECT only
    """

    texts: int
    descriptions: int
    edges: int
    indirect: int
    direct: int

    @classmethod
    def of(cls, lineage: ColumnLineage) -> _Size:
        sizes = mapped(lineage.fields, _size)
        columns = sum(_FIELD + len(name) for name, size in sizes.items() if size.direct)
        of_all = _size(lineage.dataset, is_of_all=True)
        parts = (_Size(0, 0, columns, 0, columns), of_all, *sizes.values())
        return cls(*map(sum, zip(*parts, strict=True)))


def _size(edges: Edges, *, is_of_all: bool = False) -> _Size:
    of_list = {id(ts): _size_of_list(ts) for ts in lists(edges)}
    texts = descriptions = size = indirect = direct = 0
    for column, transformations in edges.items():
        length, described, is_indirect = of_list[id(transformations)]
        texts += length
        descriptions += described
        edge = _EDGE + len(column.field) + len(column.dataset.namespace) + len(column.dataset.name)
        size += edge
        if is_of_all or is_indirect:
            indirect += 1
        else:
            direct += edge
    return _Size(texts, descriptions, size, indirect, direct)


def _size_of_list(transformations: Transformations) -> tuple[int, int, bool]:
    texts = [t.description for t in transformations if t.description]
    return sum(map(len, texts)), len(texts), all(t.type == INDIRECT for t in transformations)


def _without(
    lineage: ColumnLineage, change: Callable[[Transformations], Transformations]
) -> ColumnLineage:
    """Change the transformations of all edges; edges that have none then go."""
    fields = mapped(lineage.fields, lambda edges: changed(edges, change))
    left = {name: edges for name, edges in fields.items() if edges}
    return ColumnLineage(left, changed(lineage.dataset, change))


def _undescribed(transformations: Transformations) -> Transformations:
    return tuple(dict.fromkeys(t._replace(description="") for t in transformations))


def _direct(transformations: Transformations) -> Transformations:
    return tuple(t for t in transformations if t.type != INDIRECT)
