"""The accesses of an event: each dataset read or written, with its extent, evidence and mode.

The extent is the part of the dataset that was accessed. The first row of this table that holds for
a dataset on one side of a run (input or output) gives the extent:

=============  =====================================================================================
``partition``  the facet ``subset`` names partitions, or names locations that are folders of
               partitions below the dataset's folder; or the event has one partition, only as text.
               Each partition is a row
``none``       this package saw that no partition of the dataset, or no data, was accessed
``range``      there were more partitions than the event may name (``partitions_cut``): the first,
               the last and their number are known
``condition``  a comparison, locations, or a description in words gives the part
``all``        this package saw that the whole dataset was accessed, or that it has no partitions
``unknown``    the event does not say which part; this is usual with other producers
=============  =====================================================================================

The partitions that a write emptied are rows of their own, with the mode ``removed``: each
partition, or a range if they are more than the event may name. If all data of a dataset without
partitions was removed, its extent is ``all``. If a write replaced all of a dataset with partitions,
a row ``all`` with the mode ``truncate`` stands for the partitions of before.

A dataset that is created as a whole or dropped is ``all``, if the event does not say which part. If
some partitions of a list cannot be parsed, a row ``unknown`` is added to the rows of the others.

Evidence names the source from which the access is known: the ``observer``, the ``listener`` or
``both`` saw it, the task ``declared`` it, the ``last_known`` run had it, or an ``other`` producer
reported it.

The mode of a write comes from facet ``lifecycleStateChange``. Spark's writers leave the facet out
for an append (the listener has no such state), so a write of Spark without the facet is an append.
Without the facet, the mode is unknown for writes of other producers, and for writes that are only
declared or last known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from airflow_provider_sparklineage.event import model
from airflow_provider_sparklineage.history.facts.cells import cell_of, cell_of_text
from airflow_provider_sparklineage.history.facts.line import Access, dataset_name, short
from airflow_provider_sparklineage.model.producer import SCHEMA_BASE
from airflow_provider_sparklineage.model.terms import Side, Witness

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_sparklineage.history.facts.cells import Cell


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


def extents(
    dataset: model.Dataset,
    facets: model.SideFacets,
    seen: model.Seen | None,
    checked: model.Checked | None,
    mode: str,
) -> list[Extent]:
    """Give the accessed parts of a dataset, at least one, by the table at the module's top.

    :param facets: the input or output facets of the dataset
    :param seen: the dataset's entry in run facet ``sparkLineage_capture``
    :param checked: the dataset's entry in run facet ``sparkLineage_partitionCheck``
    :param mode: mode of the write; empty for a read
    """
    subset = facets.subset or model.Subset()
    condition = (subset.output if mode else subset.input) or (
        checked.condition if checked else None
    )
    entry = seen or checked
    accessed = entry.accessed if entry else None
    counted = _counts(dataset, checked, is_write=bool(mode))
    if condition and condition.type == PARTITION and condition.partitions is not None:
        named = dict.fromkeys(map(_of_partition, condition.partitions))
        return list(named) or [Extent(NONE)]
    if accessed in (NONE, REMOVED_MODE) or (counted and counted.count == 0):
        return [Extent(NONE)]
    if counted and counted.first:
        return [_counted(counted, condition)]
    if condition and (folders := _folders(dataset, condition)):
        return [_of_cell(cell) for cell in folders]
    if condition:
        return [Extent(CONDITION, condition=_condition_text(condition))]
    if facets.described and facets.described.description:
        return [Extent(CONDITION, condition=_description_text(facets.described.description))]
    is_all = accessed == ALL or (accessed is None and mode in _AS_A_WHOLE)
    return [Extent(ALL if is_all else UNKNOWN)]


def _counts(
    dataset: model.Dataset, checked: model.Checked | None, *, is_write: bool
) -> model.Counted | None:
    """Give the number of accessed partitions, with the first and the last of them.

    A count of 0 in an output's own facet ``sparkLineage_partitions`` is ignored.

    :param checked: the dataset's entry in run facet ``sparkLineage_partitionCheck``
    :param is_write: whether the dataset is an output
    :return: None if the event has no number
    """
    extent = checked and (checked.observed or (checked.unreported and checked.expected))
    if extent:
        return extent if extent.count is not None else None
    return dataset.partitions if is_write and dataset.partitions.count else None


def _of_partition(one: model.NamedPartition) -> Extent:
    if one.dimensions:
        if "" in one.dimensions:  # no column has an empty name, and no query could name it
            return Extent(UNKNOWN)
        return _of_cell(cell_of(one.dimensions))
    if not one.identifier:  # the partition of a dataset without dimensions is the whole dataset
        return Extent(UNKNOWN if one.dimensions is None else ALL)
    cell = cell_of_text(one.identifier)
    return _of_cell(cell) if cell else Extent(UNKNOWN)


def _of_cell(cell: Cell) -> Extent:
    return Extent(PARTITION, *cell)


def _counted(counted: model.Counted, condition: model.Condition | None) -> Extent:
    if counted.count == 1 and (cell := cell_of_text(counted.first or "")):
        return _of_cell(cell)
    text = _condition_text(condition) if condition else None
    ends = (counted.first, counted.last or counted.first)
    return Extent(RANGE, None, None, None, *ends, counted.count, text)


def _folders(dataset: model.Dataset, condition: model.Condition) -> list[Cell]:
    """Convert the locations of a condition to partitions.

    The listener reports partitions as locations.

    :return: [] if there are no locations, or if one of them is not the folder of a partition, such
        as ``dt=2024-10-15``, below the dataset's folder
    """
    root = f"{dataset.name.rstrip('/')}/"
    cells: dict[Cell, None] = {}
    for location in (condition.type == "location" and condition.locations) or ():
        _, is_below, folder = location.partition(root)
        cell = cell_of_text(folder) if is_below else None
        if cell is None:
            return []
        cells[cell] = None
    return list(cells)


def _condition_text(condition: model.Condition) -> str | None:
    text = msgspec.json.encode(condition).decode()
    return text if len(text) <= _MAX_CONDITION else None


def _description_text(text: str) -> str:
    return msgspec.json.encode({"type": "description", "description": short(text)}).decode()


LAST_KNOWN, OTHER = "last_known", "other"
UNKNOWN_MODE, APPEND, REMOVED_MODE, TRUNCATE = "unknown", "append", "removed", "truncate"

_OURS = SCHEMA_BASE.removesuffix("facet")
_OF_SPARK = "/integration/spark"
_WITNESSES = frozenset(Witness)
_MODES = frozenset({"overwrite", "create", "drop", "truncate", "rename", "alter"})


class Reporter(NamedTuple):
    """The producer of an event, which decides evidence and modes.

    :param is_ours: whether this package made the event
    :param is_spark: whether the event is about a job of Spark
    """

    is_ours: bool
    is_spark: bool


def reporter(event: model.Event) -> Reporter:
    """Tell whether this package, or another integration for Spark, made an event.

    If Airflow sends an event of this package, the event names Airflow as its producer. Then its run
    facets show that this package made it. A START event has no run facets of this package; there,
    the facets of its datasets show it.
    """
    facets, producer = event.run.facets, event.producer or ""
    is_ours = producer.startswith(_OURS) or bool(facets and (facets.capture or facets.check))
    is_ours = is_ours or any(map(_is_declared, event.datasets))
    return Reporter(is_ours, is_ours or _OF_SPARK in producer)


def accesses(event: model.Event, who: Reporter) -> Iterator[Access]:
    """Yield the accesses of an event: all reads, then all writes.

    :param who: the producer of the event, from :func:`reporter`
    """
    seen = event.accesses
    for side, datasets in ((Side.READ, event.inputs), (Side.WRITE, event.outputs)):
        checked = {one.dataset.dataset_name: one for one in event.check.of_side(side)}
        for dataset in datasets or ():
            name = dataset.dataset_name
            yield from _of_dataset(dataset, side, seen.get((side, name)), checked.get(name), who)


def _of_dataset(
    dataset: model.Dataset,
    side: Side,
    seen: model.Seen | None,
    checked: model.Checked | None,
    who: Reporter,
) -> Iterator[Access]:
    is_write = side is Side.WRITE
    facets = (dataset.outputFacets if is_write else dataset.inputFacets) or model.SideFacets()
    statistics = facets.output_statistics if is_write else facets.input_statistics
    evidence = _evidence(dataset, seen, checked, who)
    mode = _mode(dataset, evidence, who) if is_write else ""
    parts = [(part, mode) for part in extents(dataset, facets, seen, checked, mode)]
    gone = [(part, REMOVED_MODE) for part in _removed(dataset, seen or checked)] if is_write else []
    size = (statistics if len(parts) == 1 and not gone else None) or model.Statistics()
    is_named = is_write and all(part.extent in (PARTITION, NONE) for part, _ in parts)
    if is_named and dataset.partitions.replaced == ALL:
        gone.append((Extent(ALL), TRUNCATE))
    if gone:
        parts = [*(one for one in parts if one[0].extent != NONE), *gone]
    is_failed = bool((seen and seen.failed) or (checked and checked.failed))
    name = dataset_name(dataset.namespace, dataset.name)
    for part, how in parts:
        yield Access(
            side,
            *name,
            **part._asdict(),
            is_failed=is_failed,
            evidence=evidence,
            mode=how or None,
            row_count=size.rowCount,
            byte_count=size.size,
        )


def _removed(dataset: model.Dataset, entry: model.Seen | model.Checked | None) -> list[Extent]:
    """Give the partitions that a write emptied; all of the dataset if that has no partitions.

    :param entry: the dataset's entry in this package's run facets
    """
    if removed := dataset.partitions.removed:
        named = list(dict.fromkeys(map(_of_partition, removed.partitions or ())))
        return named or [_counted(removed, None)]
    return [Extent(ALL)] if entry and entry.accessed == REMOVED_MODE else []


def _evidence(
    dataset: model.Dataset, seen: model.Seen | None, checked: model.Checked | None, who: Reporter
) -> str:
    if not who.is_ours:
        return OTHER
    if seen and seen.witness in _WITNESSES:
        return seen.witness
    if checked:  # the capture facet lists a limited number of datasets; the others are only here
        return checked.unreported or Witness.LISTENER
    return Witness.DECLARED if _is_declared(dataset) else LAST_KNOWN


def _is_declared(dataset: model.Dataset) -> bool:
    """Whether this package itself added the dataset to the event."""
    source = dataset.facets and dataset.facets.data_source
    return bool(source and source.producer and source.producer.startswith(_OURS))


def _mode(dataset: model.Dataset, evidence: str, who: Reporter) -> str:
    lifecycle = dataset.facets and dataset.facets.lifecycle
    if lifecycle and lifecycle.change:
        change = lifecycle.change.lower()
        return change if change in _MODES else UNKNOWN_MODE
    was_seen = who.is_spark and evidence not in (Witness.DECLARED, LAST_KNOWN)
    return APPEND if was_seen else UNKNOWN_MODE
