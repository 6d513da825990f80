"""The column lineage of an event: the edges of facet ``columnLineage``.

Both forms of the facet are read: lists of transformations, and the deprecated single type of a
column (``IDENTITY``, ``MASKED``; this package's events have ``DIRECT:AGGREGATION`` there). Entries
for the whole dataset become INDIRECT whatever their type is (the listener gives some as DIRECT).

The facet is half of an event or more, and nearly always the same text in the next run of the job.
So the edges of each text are cached, up to a limit of memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.history.facts.event import Transformation, read_columns
from airflow_provider_sparklineage.history.facts.line import Columns, Edge, dataset_name, short

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from airflow_provider_sparklineage.history.facts.event import (
        ColumnLineage,
        ColumnSources,
        Dataset,
        InputField,
    )
    from airflow_provider_sparklineage.model.datasets import DatasetName

_DIRECT, _INDIRECT = "DIRECT", "INDIRECT"
_MASKED = "MASKED"


_MAX_KEPT = 32 << 20  # bytes of cached texts: enough for some thousand jobs
_Given = tuple[tuple[str, str, bytes], ...]


def columns(outputs: Iterable[Dataset]) -> tuple[Columns, int]:
    """Give the edges of an event's outputs, and the number of parts that have a wrong shape."""
    given = tuple(
        (one.namespace, one.name, bytes(one.facets.column_lineage))
        for one in outputs
        if one.facets and one.facets.column_lineage
    )
    return _KNOWN.get(given) or _KNOWN.add(given, _read(given))


class _Known:
    """A cache of edges by the texts of their facets; it is emptied when it is full."""

    def __init__(self) -> None:
        self._found: dict[_Given, tuple[Columns, int]] = {}
        self._size = 0
        self.get = self._found.get

    def add(self, given: _Given, found: tuple[Columns, int]) -> tuple[Columns, int]:
        """Cache the edges of some facets, and give them."""
        self._size += len(found[0].text) + sum(len(text) for *_, text in given)
        if self._size > _MAX_KEPT:
            self._found.clear()
            self._size = 0
        else:
            self._found[given] = found
        return found


_KNOWN = _Known()


def _read(given: _Given) -> tuple[Columns, int]:
    found: dict[Edge, None] = {}
    left_out = 0
    for namespace, name, text in given:
        lineage, wrong = read_columns(text)
        left_out += wrong
        if lineage is not None:
            found |= dict.fromkeys(_edges(dataset_name(namespace, name), lineage))
    return Columns.of(list(found)), left_out


def _edges(output: DatasetName, lineage: ColumnLineage) -> Iterator[Edge]:
    for column, sources in (lineage.fields or {}).items():
        known = _deprecated(sources)
        for source in sources.inputFields or ():
            for one in source.transformations or known:
                yield _edge(output, column, source, one, one.type)
    for source in lineage.dataset or ():
        for one in source.transformations or _UNKNOWN:
            yield _edge(output, None, source, one, _INDIRECT)


_UNKNOWN = (Transformation(),)


def _edge(
    output: DatasetName,
    column: str | None,
    source: InputField,
    how: Transformation,
    kind: str | None,
) -> Edge:
    namespace, name = dataset_name(source.namespace, source.name)
    return Edge(
        *output,
        namespace,
        name,
        source.field,
        column,
        kind,
        how.subtype,
        how.masking,
        short(how.description),
    )


def _deprecated(sources: ColumnSources) -> tuple[Transformation, ...]:
    """Read the single type that a column has in old events, as one for all of its sources."""
    kind, _, subtype = (sources.transformationType or "").partition(":")
    text = sources.transformationDescription
    if kind == _MASKED:
        return (Transformation(_DIRECT, description=text, masking=True),)
    if kind in (_DIRECT, _INDIRECT):
        return (Transformation(kind, subtype or None, text),)
    return (Transformation(_DIRECT if kind else None, kind or None, text),)
