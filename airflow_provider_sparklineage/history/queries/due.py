"""The dates of a schedule, the values that are due on each of them, and DAG runs in progress."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sparklineage.history.queries.patterns.axes import Step

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime, timedelta

    from airflow_provider_sparklineage.history.queries.patterns.axes import Axes
    from airflow_provider_sparklineage.history.queries.patterns.rules import Points


class Stretch(NamedTuple):
    """The dates between two neighbouring known dates, if there are too many for a schedule.

    :param first: number of the known date before these dates
    :param last: number of the known date after them
    :param dates: number of the dates between
    """

    first: int
    last: int
    dates: int


class Timeline(NamedTuple):
    """The dates of a schedule.

    :param spans: the dates in order; a new span begins after each stretch that is left out
    :param left_out: stretches of dates that are no part of the schedule
    :param is_regular: whether the known dates have a regular step; else ``spans`` has only these
    """

    spans: list[list[int]]
    left_out: list[Stretch]
    is_regular: bool


_MOST_DATES = 400  # dates without a run that may be an outage: more than a year of days
_PERIODS = {"minute": (1_440, 10_080), "hour": (24, 168), "day": (7,)}  # a day and a week
_REPETITIONS = 4  # such periods before and after a date, and the least of them in which it is free


def timeline(unit: str, known: Iterable[int]) -> Timeline:
    """Give the known dates of a schedule, and the dates on the step between them.

    Three kinds of dates are no part of the schedule. A date without a run is free if the same hour
    of the day, or the same hour and day of the week, has no run in most of the eight days (weeks)
    around it: the schedule may have only working days, or may once have been another. Such dates
    lie between known dates that are at most a day (week) apart, so an outage of weeks is not free.
    A stretch of more than 400 dates, and more than twice the number of known dates, is left out: a
    run may be dated 1970 or 9999. There are no dates before the first known one and after the last.

    :param unit: unit of the axis of the dates
    :param known: numbers of the dates that have a run
    """
    dates = sorted(set(known))
    step = Step.of(unit, dates)
    most = max(_MOST_DATES, 2 * len(dates))
    left_out = [
        Stretch(first, last, count)
        for first, last in pairwise(dates)
        if (count := step.count_between(first, last)) > most
    ]
    begins = {stretch.last for stretch in left_out}
    between = {
        (first, last): list(step.between(first, last))
        for first, last in pairwise(dates)
        if last not in begins
    }
    free = _free(unit, between)
    spans: list[list[int]] = [dates[:1]]
    for pair in pairwise(dates):
        if pair[1] in begins:
            spans.append([])
        spans[-1] += [n for n in between.get(pair, ()) if n not in free]
        spans[-1].append(pair[1])
    return Timeline(spans, left_out, bool(step.size))


def _free(unit: str, between: dict[tuple[int, int], list[int]]) -> set[int]:
    free: set[int] = set()
    for period in _PERIODS.get(unit, ()):
        near = {
            n for (first, last), dates in between.items() if last - first <= period for n in dates
        }
        shifts = [period * n for n in range(-_REPETITIONS, _REPETITIONS + 1) if n]
        free |= {n for n in near if sum(n + shift in near for shift in shifts) >= _REPETITIONS}
    return free


FREQUENT = 0.9
"""Share of dates on which a value must be written if it is expected on each of them."""
_FEWEST_DATES = 3  # dates on which such a value must be written


def expected_values(
    written: Sequence[Collection[Points]], share: float = FREQUENT
) -> tuple[list[set[Points]], int]:
    """Give the values that are expected on each date, and the number of values that never are.

    A value is expected from the first date on which it was written, if it was written on nearly all
    dates from then on; then a region that was closed long ago is not expected. Dates on which
    nothing was written do not count, as an outage says nothing about a value. Values of the first
    date with any value are expected before it, too.

    :param written: for each date, in order, the values that were written on it. A value is a point
        on each axis other than that of the dates
    :param share: the least share of dates; 0 if a value is expected after the first date anyway
    """
    used = [n for n, values in enumerate(written) if values]
    first: dict[Points, int] = {}
    counts: Counter[Points] = Counter()
    for place, n in enumerate(used):
        for value in written[n]:
            first.setdefault(value, place)
        counts.update(set(written[n]))
    frequent: dict[int, set[Points]] = {}
    for value, place in first.items():
        enough = max(_FEWEST_DATES, share * (len(used) - place)) if share else 0
        if counts[value] >= enough:
            frequent.setdefault(used[place] if place else 0, set()).add(value)
    expected: list[set[Points]] = []
    now: set[Points] = set()
    for n in range(len(written)):
        now = now | frequent[n] if n in frequent else now
        expected.append(now)
    return expected, len(first) - sum(map(len, frequent.values()))


class Table:
    """The partitions of a dataset by their points on some axes, and their points on the others.

    :param axes: all axes of the dataset
    :param leading: indexes of the axes by which partitions are looked up, such as that of the dates
    :param ever: canonical texts of all partitions that were ever written
    :param settled: those that are there, or were removed on purpose
    """

    def __init__(
        self, axes: Axes, leading: Sequence[int], ever: Collection[str], settled: Iterable[str]
    ) -> None:
        self._axes = axes
        self._leading = leading
        self.others = tuple(n for n in range(len(axes.axes)) if n not in leading)
        self._points = {cell: at for cell in ever if (at := axes.read(cell)) is not None}
        self.ever = self.of(ever)
        self.settled = self.of(settled)

    def of(self, cells: Iterable[str]) -> dict[Points, set[Points]]:
        """Give the points on the other axes, by the points on the leading ones."""
        found: dict[Points, set[Points]] = defaultdict(set)
        for cell in cells:
            other = self.other(cell)
            if other is not None:
                found[tuple(self._points[cell][n] for n in self._leading)].add(other)
        return dict(found)

    def other(self, cell: str) -> Points | None:
        """Give the points of a partition on the other axes; None if it is not on the axes."""
        at = self._points.get(cell)
        return None if at is None else tuple(at[n] for n in self.others)

    def values(self, leading: Points, other: Points | None) -> dict[str, str]:
        """Convert points to canonical values by dimension.

        :param other: None for a partition without the dimensions of the other axes
        :return: {} if a time is outside of the years 1 to 9999
        """
        values: dict[str, str] = {}
        numbered = [*zip(self._leading, leading, strict=True)]
        numbered += [] if other is None else zip(self.others, other, strict=True)
        try:
            for n, point in numbered:
                values |= self._axes.axes[n].write(point)
        except (ValueError, OverflowError):
            return {}
        return dict(sorted(values.items()))

    def missing(
        self, dates: Sequence[Points], expected: Sequence[set[Points]]
    ) -> Iterator[tuple[Points, Points | None]]:
        """Yield the expected partitions that are neither there nor removed on purpose.

        :param dates: points on the leading axes
        :param expected: for each of them, the expected points on the other axes. If there are none,
            some partition is expected
        :return: pairs of points on the leading axes and points on the other axes. The second is
            None if some partition is expected, and there is none
        """
        for date, values in zip(dates, expected, strict=True):
            settled = self.settled.get(date, set())
            for value in sorted(values - settled):
                yield date, value
            if not values and not settled:
                yield date, None

    def was_written(self, leading: Points, other: Points | None) -> bool:
        """Whether a partition, or if ``other`` is None any partition of a date, was ever there."""
        ever = self.ever.get(leading, ())
        return bool(ever) if other is None else other in ever


class InProgress:
    """Tells which DAG runs of a task's DAG may be in progress.

    The event of a task comes when the task ends, and no event tells that a DAG run has ended. So a
    task that has not run yet looks like one that never will. A DAG run may be in progress for as
    long after its start as the task took to end in nine of ten DAG runs. It counts as ended if the
    last that happened in it is a failure. Time is that of the last event in the history, as the
    history may be behind the clock.

    :param rows: rows of the task's runs, in the order of their tries, and for each date one row of
        the other tasks of the DAG
    :param is_own: whether a row is one of the task's runs
    :param latest: the time until which all that has ended is known; None if there is none
    """

    def __init__(
        self,
        rows: Iterable[Mapping[str, Any]],
        is_own: Callable[[Mapping[str, Any]], bool],
        latest: datetime | None,
    ) -> None:
        self._starts: dict[str, datetime] = {}
        first: dict[tuple[str, int | None], datetime] = {}
        for row in rows:
            dag_run, started = row["dag_run_id"], row["started"]
            if dag_run and started:
                self._starts[dag_run] = min(started, self._starts.get(dag_run, started))
                if row["ended"] and is_own(row):
                    first.setdefault((dag_run, row["map_index"]), row["ended"])
        lasted: dict[str, timedelta] = {}
        for (dag_run, _), ended in first.items():
            taken = ended - self._starts[dag_run]
            lasted[dag_run] = max(taken, lasted.get(dag_run, taken))
        usual = sorted(lasted.values())[ceil(len(lasted) * FREQUENT) - 1] if lasted else None
        self._since = latest - usual if latest and usual else None

    def has(self, rows: Iterable[Mapping[str, Any]]) -> bool:
        """Whether a DAG run of some rows may be in progress.

        :param rows: rows of runs of the DAG on one date
        """
        if self._since is None:
            return False
        stuck = {row["dag_run_id"] for row in rows if row.get("is_stuck")}
        return any(
            dag_run not in stuck and self._starts.get(dag_run, self._since) > self._since
            for dag_run in {row["dag_run_id"] for row in rows}
        )
