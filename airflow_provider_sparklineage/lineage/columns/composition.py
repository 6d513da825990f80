"""A→tmp and tmp→B to A→B: columns of what the application wrote, replaced by their sources.

The rule for two transformations in a row is the listener's own
(``io.openlineage.client.utils.TransformationInfo.merge``), so that lineage through a staging table
reads like lineage within one query.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.lineage.application.accesses import Grade
from airflow_provider_sparklineage.lineage.columns import descriptions
from airflow_provider_sparklineage.lineage.columns.edges import (
    DIRECT,
    DIRECT_SUBTYPES,
    INDIRECT,
    Column,
    ColumnLineage,
    Edges,
    Transformation,
    count,
    joined,
    unite_into,
)
from airflow_provider_sparklineage.lineage.columns.room import ColumnRoom

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from airflow_provider_sparklineage.model.datasets import DatasetName


MAX_VARIANTS = 32
"""Transformations between two columns; where composing makes more, they lose their descriptions."""


def combine(this: Transformation, upstream: Transformation, via: str = "") -> Transformation:
    """Combine two transformations in a row: ``this`` is the one nearer to the output.

    INDIRECT here stays; DIRECT after an unknown is unknown; DIRECT after INDIRECT is that INDIRECT;
    DIRECT after DIRECT is the first of AGGREGATION, TRANSFORMATION, IDENTITY. Masking anywhere
    masks. The description is this one's with the upstream one's text put into it, within
    :data:`.descriptions.MAX_DESCRIPTION` characters; it is the upstream one's where this one
    adds nothing.

    :param via: the column between the two, as this one's description names it; empty where a text
        could mean another column by that name
    """
    masking = this.masking or upstream.masking
    if this.type == DIRECT and (this.subtype == "IDENTITY" or upstream.type == INDIRECT):
        description = descriptions.shortened(upstream.description or this.description)
    elif via:
        description = descriptions.composed(this.description, via, upstream.description)
    else:
        description = descriptions.shortened(this.description)
    if this.type == INDIRECT:
        return Transformation(INDIRECT, this.subtype, description, masking)
    if this.type is None or upstream.type is None:
        return Transformation(None, None, description, masking)
    if upstream.type == INDIRECT:
        return Transformation(INDIRECT, upstream.subtype, description, masking)
    return Transformation(DIRECT, _stronger(this.subtype, upstream.subtype), description, masking)


def _stronger(first: str | None, second: str | None) -> str | None:
    if None in (first, second) and "IDENTITY" in (first, second):
        return None  # how is not known of one of the two, and the other changes nothing
    for subtype in DIRECT_SUBTYPES:
        if subtype in (first, second):
            return subtype
    return first or second


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

    :raise SpentError: if there is no time left, or no room for the edges
    """
    used = {c for edges in (*lineage.fields.values(), lineage.dataset) for c in edges}
    known = {dataset: provenance_of(dataset) for dataset in sorted({c.dataset for c in used})}
    if not any(known.values()):
        return lineage
    names = Counter(c.field for c in used)
    clear = {name for name, number in names.items() if number == 1}
    composing = _Composing(known, clear, room or ColumnRoom())
    fields = {name: composing.edges(edges) for name, edges in lineage.fields.items()}
    everything = composing.edges(lineage.dataset)
    for provenance in known.values():
        if provenance is not None:
            unite_into(everything, provenance.columns.dataset)
    return ColumnLineage(fields, {c: _bounded(ts) for c, ts in everything.items()})


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

    def edges(self, edges: Edges) -> dict[Column, tuple[Transformation, ...]]:
        composed: dict[Column, tuple[Transformation, ...]] = {}
        for column, transformations in edges.items():
            provenance = self._known[column.dataset]
            sources = self._sources(column, provenance) if provenance else None
            if provenance is None or not provenance.internal or not sources:
                composed[column] = _bounded(joined(composed.get(column, ()), transformations))
            via = column.field if column.field in self._clear else ""
            for source, upstream in (sources or {}).items():
                self._room.budget.work(len(transformations) * len(upstream))
                both = tuple(
                    dict.fromkeys(combine(t, u, via) for t in transformations for u in upstream)
                )
                composed[source] = _bounded(joined(composed.get(source, ()), both))
        self._made += count(composed)
        self._room.require(self._made)
        return composed

    def _sources(self, column: Column, provenance: Provenance) -> Edges | None:
        """Find what a column was made of; Spark finds columns in any case of their letters."""
        fields = provenance.columns.fields
        if column.field in fields:
            return fields[column.field]
        folded = self._folded.get(column.dataset)
        if folded is None:
            folded = self._folded[column.dataset] = {name.casefold(): name for name in fields}
        return fields.get(folded.get(column.field.casefold(), ""))


def _bounded(transformations: tuple[Transformation, ...]) -> tuple[Transformation, ...]:
    """Keep what is true of many transformations, so that loops of reads and writes stay small."""
    if len(transformations) <= MAX_VARIANTS:
        return transformations
    return tuple(dict.fromkeys(t._replace(description="") for t in transformations))


def without_sources_in(lineage: ColumnLineage, datasets: Collection[DatasetName]) -> ColumnLineage:
    """Drop the sources that are columns of some datasets."""

    def others(edges: Edges) -> Edges:
        return {c: t for c, t in edges.items() if c.dataset not in datasets}

    fields = {name: others(edges) for name, edges in lineage.fields.items()}
    return ColumnLineage({n: e for n, e in fields.items() if e}, others(lineage.dataset))


def sources_of(
    composed: ColumnLineage, known: Mapping[DatasetName, Provenance | None]
) -> frozenset[DatasetName]:
    """Name the datasets from outside that a write was made of, through what was read back."""
    found = {
        column.dataset
        for edges in (*composed.fields.values(), composed.dataset)
        for column in edges
    }
    for name, provenance in known.items():
        if provenance is None or not provenance.internal:
            found.add(name)
        if provenance is not None:
            found |= provenance.sources
    return frozenset(found)
