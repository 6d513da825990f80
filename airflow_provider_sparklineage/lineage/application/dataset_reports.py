"""The datasets on one side of a run, joined over its events.

An event has all datasets of its run, with all facets, and mostly the same as the event before it.
So what is reported of a dataset is looked at once, and of what comes again it is noted when it
came: by that alone it is decided which value of a facet stays (:mod:`.accumulation`).
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from airflow_provider_sparklineage.lineage.application.datasets import ActionDataset
from airflow_provider_sparklineage.lineage.application.room import LEFT_OUT, Room
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.spark.capture.raw_facets import decode_facet

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from airflow_provider_sparklineage.spark.capture.events import EventDataset
    from airflow_provider_sparklineage.spark.capture.raw_facets import RawFacets

# Within one millisecond the end of a run is later than its start, whatever the order of the lines.
ORDER = {"START": 0, "RUNNING": 1, "OTHER": 1, "FAIL": 2, "ABORT": 2, "COMPLETE": 3}
Rank = tuple[datetime, int]
"""When an event was, among those of its run."""

_COMPLETE = ORDER["COMPLETE"]
# At the end of a run the listener can give it the statistics of one that ran at the same time.
_NOT_FROM_THE_END = "outputStatistics"
_BEFORE_ALL: Rank = (datetime.min.replace(tzinfo=UTC), _COMPLETE)
# What an input was when the run began: later events may be after the run's own write.
_EARLIEST = frozenset({"version", "inputStatistics"})
_NONE: frozenset[str] = frozenset()

_EMPTY = (b"null", b"{}", b"[]")
_LONGEST_EMPTY = max(map(len, _EMPTY))


class KeptReports:
    """What events report of datasets on one side, each as long as it may come again.

    :param room: how much of it there may be
    """

    def __init__(self, room: Room, *, is_input: bool) -> None:
        self.room = room
        self.is_input = is_input
        self._latest: dict[DatasetName, list[_Kept]] = {}

    def kept(self, name: DatasetName, facets: RawFacets, sides: RawFacets) -> _Kept:
        """Give what is kept of facets that are the same, or keep these."""
        latest = self._latest.get(name)
        if latest is None:
            latest = self._latest[name] = []
        for known in latest:
            if known.facets == facets and known.sides == sides:
                return known
        new = _Kept(name, facets, sides, self.room)
        latest.insert(0, new)
        del latest[_LATEST:]
        return new


_LATEST = 4
"""The beginning and the end of a run report different things, and several runs can be at it."""


class _Kept:
    """What is reported of a dataset, apart from the line that it came in."""

    __slots__ = ("_alone", "facets", "locations", "lost", "name", "sides")

    def __init__(self, name: DatasetName, facets: RawFacets, sides: RawFacets, room: Room) -> None:
        self.name = name
        self.facets = {key: room.facet(raw) for key, raw in facets.items()}
        self.sides = {key: room.facet(raw) for key, raw in sides.items()}
        self.locations = _locations(sides)
        every = (*self.facets.values(), *self.sides.values())
        self.lost = sum(value is LEFT_OUT for value in every)
        self._alone: ActionDataset | None = None

    def alone(self) -> ActionDataset:
        """Give what is known where nothing else is reported of the dataset."""
        if self._alone is None:
            self._alone = _dataset(
                self.name, _stated(self.facets), _stated(self.sides), self.locations
            )
        return self._alone


def _stated(facets: RawFacets) -> RawFacets:
    """Leave out facets that state nothing."""
    if not any(map(_is_empty, facets.values())):
        return facets
    return {key: value for key, value in facets.items() if not _is_empty(value)}


def _is_empty(facet: msgspec.Raw) -> bool:
    size = len(memoryview(facet))
    return size <= _LONGEST_EMPTY and bytes(facet) in _EMPTY


class _When:
    """When the same was reported, by several events of a run."""

    __slots__ = ("before_end", "first", "last")

    def __init__(self, rank: Rank) -> None:
        self.first = self.last = rank
        self.before_end = None if rank[1] == _COMPLETE else rank

    def add(self, rank: Rank) -> None:
        if rank < self.first:
            self.first = rank
        elif rank > self.last:
            self.last = rank
        if rank[1] != _COMPLETE and (self.before_end is None or rank > self.before_end):
            self.before_end = rank


class DatasetReports:
    """What the events of one run report of the datasets on one side, one event after the other."""

    __slots__ = ("_all", "_of")

    def __init__(self, of_all: KeptReports) -> None:
        self._all = of_all
        self._of: dict[DatasetName, dict[_Kept, _When]] = {}

    def add(self, datasets: list[EventDataset] | None, rank: Rank) -> None:
        """Note what one event reports."""
        is_input = self._all.is_input
        for entry in datasets or ():
            name = DatasetName(entry.namespace, entry.name)
            facets = entry.facets or {}
            sides = (entry.input_facets if is_input else entry.output_facets) or {}
            reports = self._of.get(name)
            if reports is None:
                if not self._all.room.dataset():
                    continue
                reports = self._of[name] = {}
            for kept, when in reports.items():
                if kept.facets == facets and kept.sides == sides:
                    when.add(rank)
                    break
            else:
                kept = self._all.kept(name, facets, sides)
                reports[kept] = _When(rank)
            if kept.lost:
                self._all.room.count_lost(kept.lost)

    def datasets(self) -> tuple[ActionDataset, ...]:
        """Give the datasets with what is known of them by all events."""
        return tuple(self._joined(self._of[name]) for name in sorted(self._of))

    def _joined(self, reports: Mapping[_Kept, _When]) -> ActionDataset:
        first = next(iter(reports))
        if len(reports) == 1:
            return first.alone()
        earliest = _EARLIEST if self._all.is_input else _NONE
        facets = _chosen(((_stated(kept.facets), when) for kept, when in reports.items()), earliest)
        sides = _chosen(((_stated(kept.sides), when) for kept, when in reports.items()), _EARLIEST)
        places = [kept.locations for kept in reports if kept.locations is not None]
        locations = frozenset[str]().union(*places) if len(places) == len(reports) else None
        return _dataset(first.name, facets, sides, locations)


_Chosen = tuple[Rank, msgspec.Raw]


def _chosen(reports: Iterable[tuple[RawFacets, _When]], earliest: frozenset[str]) -> RawFacets:
    """Choose the value of each facet by when it was reported; of equal times, by its bytes."""
    chosen: dict[str, _Chosen] = {}
    for facets, when in reports:
        for name, value in facets.items():
            at = when.last
            if name in earliest:
                at = when.first
            elif name == _NOT_FROM_THE_END:
                at = when.before_end or _BEFORE_ALL
            new, known = (at, value), chosen.get(name)
            if known is None or (
                _is_later(known, new) if name in earliest else _is_later(new, known)
            ):
                chosen[name] = new
    return {name: value for name, (_, value) in chosen.items()}


def _is_later(one: _Chosen, other: _Chosen) -> bool:
    return one[0] > other[0] or (one[0] == other[0] and bytes(one[1]) > bytes(other[1]))


def _dataset(
    name: DatasetName, facets: RawFacets, sides: RawFacets, locations: frozenset[str] | None
) -> ActionDataset:
    left_out = frozenset(key for key, value in facets.items() if value is LEFT_OUT)
    of_side = _sorted(sides)
    of_side.pop("subset", None)  # it is in ``locations``; facets are made once, at the edge
    return ActionDataset(name, _sorted(facets), of_side, locations, left_out)


def _sorted(facets: RawFacets) -> RawFacets:
    return {key: facets[key] for key in sorted(facets) if facets[key] is not LEFT_OUT}


class _Condition(msgspec.Struct):
    type: str = ""
    locations: list[str] = []


class _Subset(msgspec.Struct):
    input_condition: _Condition | None = msgspec.field(name="inputCondition", default=None)
    output_condition: _Condition | None = msgspec.field(name="outputCondition", default=None)


def _locations(side_facets: RawFacets | None) -> frozenset[str] | None:
    """Read the locations of a ``subset`` facet; None where the entry is the full dataset."""
    if not side_facets or "subset" not in side_facets:
        return None
    subset = decode_facet(side_facets["subset"], _Subset)
    if subset is None:
        return None
    condition = subset.input_condition or subset.output_condition
    if condition is None or condition.type != "location" or not condition.locations:
        return None
    return frozenset(condition.locations)
