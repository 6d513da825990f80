"""Expectations from the schedule of a DAG whose runs have partition keys (Airflow 3.3 and later).

A run with the key K of a DAG that is scheduled on partitioned assets follows from upstream
partitions of these assets. Airflow's partition mappers say which: :mod:`.hooks.schedule` asks them,
and this module makes an expectation of the answer, for the reads of the asset's dataset.

A key has no names of columns. Where a rule gives none (``partition_key`` of a partitioning rule),
the values of an expectation have the label :data:`KEY`, and
:mod:`airflow_provider_sparklineage.lineage.partitions.keys` replaces it by the columns of the
dataset, which are known once the job has run.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.expectations import Expectation, Kind, Source
from airflow_provider_sparklineage.model.partitioning import Dimension, KeyPattern, Partition
from airflow_provider_sparklineage.model.terms import Frozen, Side
from airflow_provider_sparklineage.model.timestamps import (
    PRECISION,
    canonical_time,
    number_of,
    start_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from airflow_provider_sparklineage.model.datasets import DatasetName

KEY = "partition_key"
"""The label of a key's value if its column is not known."""


class Period(NamedTuple):
    """A span of time without a zone; ``end`` is not in it."""

    start: datetime
    end: datetime


class Segment(Frozen, frozen=True):
    """The upstream values of one segment of a partition key; most keys have only one segment.

    :param keys: the values, as upstream tasks write them
    :param periods: every value whose time is in one of these periods is an upstream value, too
    :param format: the format of the values, in the directives of
        :meth:`~datetime.datetime.strptime`; empty if they are not times, or have no known format
    """

    keys: frozenset[str] = frozenset()
    periods: frozenset[Period] = frozenset()
    format: str = ""


class Upstream(Frozen, frozen=True):
    """The upstream keys of one asset from which a run with a partition key follows.

    They are all combinations of the values of its segments.

    :param delimiter: the text between two segments of a key
    :param at_least: how many of these keys Airflow waits for before it starts the run; 1 if any key
        starts it
    """

    segments: tuple[Segment, ...]
    delimiter: str = "|"
    at_least: int = 1

    @property
    def keys(self) -> frozenset[str] | None:
        """The upstream keys; None if they are not listed, because a segment has periods."""
        if any(segment.periods for segment in self.segments):
            return None
        return frozenset(
            self.delimiter.join(values) for values in product(*(s.keys for s in self.segments))
        )


def from_schedule(
    dataset: DatasetName,
    upstream: Upstream | None,
    mapper: str,
    key: str,
    pattern: KeyPattern | None = None,
) -> Expectation:
    """Make the expectation that a run reads only upstream partitions of its schedule.

    :param dataset: the dataset of the asset
    :param upstream: the upstream keys; None if any key may be upstream
    :param mapper: the mapper, for people, e.g. ``RollupMapper(StartOfWeekMapper, WeekWindow)``
    :param key: the partition key of the run
    :param pattern: how the asset's keys are written; None if that is not known
    :return: an expectation without partitions if any key may be upstream, if keys do not fit
        ``pattern``, or if periods have no simple form
    """
    nothing = Expectation(Kind.SCHEDULE, Side.READ, dataset)
    if upstream is None:
        return nothing
    values = product(*(_texts(segment) for segment in upstream.segments))
    if pattern is None:
        places = range(len(upstream.segments))
        labels = [KEY] if len(places) == 1 else [f"{KEY}[{place}]" for place in places]
        rows = [list(zip(labels, row, strict=True)) for row in values]
    else:
        labels = [*pattern.labels]
        fitting = [pattern.values(upstream.delimiter.join(row)) for row in values]
        rows = [row for row in fitting if row is not None]
        if len(rows) < len(fitting):
            return nothing
    if not rows:
        return nothing
    return Expectation(
        Kind.SCHEDULE,
        Side.READ,
        dataset,
        partitions=tuple(sorted(Partition.from_values(row) for row in rows)),
        is_glob=any(segment.periods for segment in upstream.segments),
        dimensions=tuple(Dimension.of_column(label) for label in labels),
        sources=(Source(Kind.SCHEDULE, "schedule", mapper, key, "", (KEY,), (KEY,)),),
    )


def _texts(segment: Segment) -> Iterator[str]:
    """Yield the values of a segment, times as ISO 8601, and the periods as globs of ISO 8601."""
    for key in segment.keys:
        yield canonical_time(key, segment.format, or_iso=True) or key
    for period in segment.periods:
        yield from (f"{prefix}*" for prefix in _prefixes(period))


def _prefixes(period: Period) -> list[str]:
    """Give beginnings of ISO 8601 that all times of a period have, and no other time.

    :return: e.g. ``2024-05`` for a month and seven days for a week; [] if the period does not begin
        and end on the hour
    """
    for unit, characters in PRECISION.items():
        first, end = (number_of(unit, at) for at in period)
        if (start_of(unit, first), start_of(unit, end)) == period:
            return [start_of(unit, n).isoformat()[:characters] for n in range(first, end)]
    return []
