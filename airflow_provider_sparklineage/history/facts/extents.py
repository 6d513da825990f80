"""How much of a dataset was read or written, by what an event has of it.

The first that holds, for a dataset on one side of a run:

=============  =====================================================================================
``partition``  the facet ``subset`` names partitions, or locations that are folders of partitions
               below the dataset's; a row for each. Or there is one, and only its text
``none``       this package saw that none of its partitions was accessed, or no data
``range``      there were more partitions than the event may name (``partitions_cut``): the first,
               the last and how many are known
``condition``  a comparison, locations, or words describe it
``all``        this package saw all of it accessed, or that it has no partitions
``unknown``    nothing says how much; so it is with other producers
=============  =====================================================================================

A dataset that is created as a whole or dropped is ``all``, if nothing says how much of it was.
Where some partitions of a list cannot be read, there is a row ``unknown`` next to those that can.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from airflow_provider_sparklineage.history.facts.cells import cell_of, cell_of_text
from airflow_provider_sparklineage.history.facts.names import short

if TYPE_CHECKING:
    from airflow_provider_sparklineage.history.facts.cells import Cell
    from airflow_provider_sparklineage.history.facts.shapes import (
        Checked,
        Condition,
        Counted,
        Dataset,
        NamedPartition,
        Partitions,
        Seen,
        SideFacets,
    )

PARTITION, RANGE, CONDITION = "partition", "range", "condition"
ALL, NONE, UNKNOWN = "all", "none", "unknown"

_MAX_CONDITION = 10_000
_AS_A_WHOLE = ("create", "drop")


class Extent(NamedTuple):
    """A part of a dataset; the fields of :class:`.line.Access` from ``extent`` on."""

    extent: str
    partition: str | None = None
    cell: str | None = None
    dims: str | None = None
    first_partition: str | None = None
    last_partition: str | None = None
    partition_count: int | None = None
    condition: str | None = None


class Known(NamedTuple):
    """What an event has of a dataset on one side.

    :param facets: those of this side
    :param written: facet ``sparkLineage_partitions`` of an output
    :param seen: its entry of ``sparkLineage_capture``
    :param checked: its entry of ``sparkLineage_partitionCheck``
    :param mode: how it was written; empty if it was read
    """

    dataset: Dataset
    facets: SideFacets | None
    seen: Seen | None
    checked: Checked | None
    mode: str

    @property
    def condition(self) -> Condition | None:
        """The condition that says which part of it was accessed."""
        subset = self.facets.subset if self.facets else None
        if subset and (found := subset.output if self.mode else subset.input):
            return found
        return self.checked.condition if self.checked else None

    @property
    def accessed(self) -> str | None:
        """How much was accessed, in this package's word; None from other producers."""
        of = self.seen or self.checked
        return of.accessed if of else None

    @property
    def counted(self) -> Counted | Partitions | None:
        """The extent of the partitions, if any were; the facet of an output counts none too."""
        checked = self.checked
        if checked and (found := checked.observed or (checked.unreported and checked.expected)):
            return found
        facets = self.dataset.facets
        written = facets and facets.partitions if self.mode else None
        return written if written and written.count else None


def extents(known: Known) -> list[Extent]:
    """Give the parts of a dataset that were accessed; see the table above."""
    condition, counted = known.condition, known.counted
    if condition and condition.type == PARTITION and condition.partitions is not None:
        return _named(condition.partitions)
    if known.accessed == NONE or (counted and counted.count == 0):
        return [Extent(NONE)]
    if counted and counted.first:
        return [_counted(counted, condition)]
    if condition and (folders := _folders(known.dataset, condition)):
        return [_of_cell(cell) for cell in folders]
    if condition:
        return [Extent(CONDITION, condition=_text(condition))]
    described = known.facets and known.facets.described
    if described and described.description:
        return [Extent(CONDITION, condition=_words(described.description))]
    is_all = known.accessed == ALL or (known.accessed is None and known.mode in _AS_A_WHOLE)
    return [Extent(ALL if is_all else UNKNOWN)]


def _named(partitions: list[NamedPartition]) -> list[Extent]:
    found = dict.fromkeys(map(_of_partition, partitions))
    return list(found) or [Extent(NONE)]


def _of_partition(one: NamedPartition) -> Extent:
    if one.dimensions:
        if "" in one.dimensions:  # no column is called that, and nobody could ask for it
            return Extent(UNKNOWN)
        return _of_cell(cell_of(one.dimensions))
    if not one.identifier:  # the empty partition is all of what has no dimensions
        return Extent(UNKNOWN if one.dimensions is None else ALL)
    cell = cell_of_text(one.identifier)
    return _of_cell(cell) if cell else Extent(UNKNOWN)


def _of_cell(cell: Cell) -> Extent:
    return Extent(PARTITION, *cell)


def _counted(counted: Counted | Partitions, condition: Condition | None) -> Extent:
    if counted.count == 1 and (cell := cell_of_text(counted.first or "")):
        return _of_cell(cell)
    text = _text(condition) if condition else None
    ends = (counted.first, counted.last or counted.first)
    return Extent(RANGE, None, None, None, *ends, counted.count, text)


def _folders(dataset: Dataset, condition: Condition) -> list[Cell]:
    """Give the partitions that all locations are folders of, as the listener reports them."""
    root = f"{dataset.name.rstrip('/')}/"
    found: dict[Cell, None] = {}
    for location in (condition.type == "location" and condition.locations) or ():
        _, is_below, folder = location.partition(root)
        cell = cell_of_text(folder) if is_below else None
        if cell is None:
            return []
        found[cell] = None
    return list(found)


def _text(condition: Condition) -> str | None:
    text = msgspec.json.encode(condition).decode()
    return text if len(text) <= _MAX_CONDITION else None


def _words(text: str) -> str:
    return msgspec.json.encode({"type": "description", "description": short(text)}).decode()
