"""A→tmp and tmp→B to A→B: columns of what the application wrote, replaced by their sources.

Where each of 200 columns is made of 200 that are made of 200, there are 8 million ways, and only
40,000 edges. What is the same of many sources is done once, for the set of them.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.lineage.application.accesses import Grade
from airflow_provider_sparklineage.lineage.columns.combining import Upstream
from airflow_provider_sparklineage.lineage.columns.edges import (
    Column,
    ColumnLineage,
    Edges,
    Transformations,
    count,
    each_once,
    mapped,
)
from airflow_provider_sparklineage.lineage.columns.room import ColumnRoom
from airflow_provider_sparklineage.lineage.columns.variants import ColumnSets, settled

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from airflow_provider_sparklineage.lineage.columns.combining import Variant
    from airflow_provider_sparklineage.model.datasets import DatasetName


class Provenance(NamedTuple):
    """Where the data came from that an action read of a dataset.

    :param columns: what this application had made the columns of
    :param internal: nothing but its own data was read, so that the dataset itself is no source
    :param grade: of the evidence that the read is internal, or is not
    :param sources: datasets from outside that the application made it of
    """

    columns: ColumnLineage
    internal: bool
    grade: Grade = Grade.LIFECYCLE
    sources: frozenset[DatasetName] = frozenset()


def compose(
    lineage: ColumnLineage,
    provenance_of: Callable[[DatasetName], Provenance | None],
    room: ColumnRoom | None = None,
) -> ColumnLineage:
    """Replace the columns of datasets that the application wrote itself by what those were made of.

    A column whose own sources are not known stays as it is: it is true, and more is not known. What
    influences all of an intermediate influences everything made of it. One step is enough,
    and it ends whatever is made of what: columns are composed when they are written.

    A source that a column has in more than :data:`.variants.MAX_VARIANTS` variants has all of them
    without their descriptions: what loops of reads and writes make stays small.

    :return: edges that are equal are one object
    :raise SpentError: if there is no time left, or no room for the edges
    """
    used = {column for edges in each_once(lineage) for column in edges}
    known = {dataset: provenance_of(dataset) for dataset in sorted({c.dataset for c in used})}
    if not any(known.values()):
        return lineage
    names = Counter(c.field for c in used)
    clear = {name for name, number in names.items() if number == 1}
    composing = _Composing(known, clear, room or ColumnRoom())
    fields = mapped(lineage.fields, composing.edges)
    found = (p.columns.dataset for p in known.values() if p is not None)
    return ColumnLineage(fields, composing.edges(lineage.dataset, *found))


class _Read(NamedTuple):
    """A column that an action read.

    :param itself: the set of it, if it is a source; else the empty one
    :param upstream: what it was made of: sets of sources
    """

    itself: int
    upstream: list[tuple[Upstream, int]]


class _Composing:
    """One action's edges, with what is known of the datasets that it read.

    :param clear: names of columns that only one of those datasets has, so that a text means it
    """

    def __init__(
        self,
        known: Mapping[DatasetName, Provenance | None],
        clear: Collection[str],
        room: ColumnRoom,
    ) -> None:
        self._known = known
        self._clear = clear
        self._room = room
        self._made = 0
        self._folded: dict[DatasetName, dict[str, str]] = {}
        self._sets = ColumnSets()
        self._reads: dict[Column, _Read] = {}
        self._upstreams: dict[tuple[Transformations, str], Upstream] = {}
        self._variants: dict[tuple[Transformations, Upstream], tuple[Variant, ...]] = {}

    def edges(self, edges: Edges, *others: Edges) -> Edges:
        """Compose the edges of one column.

        :param others: more edges that it has, composed already
        """
        parts: list[tuple[Sequence[Variant], int]] = []
        for column, transformations in edges.items():
            read = self._reads.get(column)
            if read is None:
                read = self._reads[column] = self._read(column)
            if read.itself:
                parts.append((transformations, read.itself))
            for upstream, sources in read.upstream:
                parts.append((self._combined(transformations, upstream), sources))
        for column, transformations in chain.from_iterable(e.items() for e in others):
            parts.append((transformations, self._sets.of(column)))
        composed = self._sets.edges(settled(parts, self._room.budget))
        self._made += count(composed)
        self._room.require(self._made)
        return composed

    def _read(self, column: Column) -> _Read:
        provenance = self._known[column.dataset]
        made_of = self._sources(column, provenance) if provenance else None
        sets: dict[Transformations, int] = {}
        for source, transformations in (made_of or {}).items():
            sets[transformations] = sets.get(transformations, 0) | self._sets.of(source)
        via = column.field if column.field in self._clear else ""
        is_source = provenance is None or not provenance.internal or not made_of
        return _Read(
            self._sets.of(column) if is_source else 0,
            [(self._upstream(ts, via), sources) for ts, sources in sets.items()],
        )

    def _upstream(self, transformations: Transformations, via: str) -> Upstream:
        # Without texts, what was made of any column is the same.
        has_text = transformations[0].description or any(t.description for t in transformations)
        key = transformations, via if has_text else ""
        found = self._upstreams.get(key)
        if found is None:
            found = self._upstreams[key] = Upstream(*key)
        return found

    def _combined(self, these: Transformations, upstream: Upstream) -> tuple[Variant, ...]:
        self._room.budget.work()
        found = self._variants.get((these, upstream))
        if found is None:
            self._room.budget.work(len(these) * len(upstream.transformations))
            found = self._variants[these, upstream] = upstream.variants(these)
        return found

    def _sources(self, column: Column, provenance: Provenance) -> Edges | None:
        """Find what a column was made of; Spark finds columns in any case of their letters."""
        fields = provenance.columns.fields
        if column.field in fields:
            return fields[column.field]
        folded = self._folded.get(column.dataset)
        if folded is None:
            folded = self._folded[column.dataset] = {name.casefold(): name for name in fields}
        return fields.get(folded.get(column.field.casefold(), ""))


def without_sources_in(lineage: ColumnLineage, datasets: Collection[DatasetName]) -> ColumnLineage:
    """Drop the sources that are columns of some datasets."""

    def others(edges: Edges) -> Edges:
        if {column.dataset for column in edges}.isdisjoint(datasets):
            return edges
        return {c: t for c, t in edges.items() if c.dataset not in datasets}

    fields = mapped(lineage.fields, others)
    return ColumnLineage({n: e for n, e in fields.items() if e}, others(lineage.dataset))


def sources_of(
    composed: ColumnLineage, known: Mapping[DatasetName, Provenance | None]
) -> frozenset[DatasetName]:
    """Name the datasets from outside that a write was made of, through what was read back."""
    found = {column.dataset for edges in each_once(composed) for column in edges}
    for name, provenance in known.items():
        if provenance is None or not provenance.internal:
            found.add(name)
        if provenance is not None:
            found |= provenance.sources
    return frozenset(found)
