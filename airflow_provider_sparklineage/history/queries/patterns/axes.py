"""Partitions as points on axes of times, numbers or texts, and the step from one to the next.

==================================  ================================================================
``dt=2024-10-15``, ``20241015``     times, if nearly all values have one format; the finest
                                    directive of the format is the unit (``2024-05`` is a month,
                                    ``2024-W20`` a week); timestamps that are all at midnight are
                                    days
``year=2024/month=5/day=6``         one axis of days, from several dimensions
``dt=2024-10-15/hour=3``            one axis of hours, from a day and the hour of the day
``month=2024-05/day=6``             one axis of days, from a month and the day of the month
``ts_day=19849``                    a number; or days (months, hours) since 1970, as Iceberg counts
                                    them, if that explains the runs better
``region=eu``, anything else        texts
==================================  ================================================================

All values of a dataset together decide its axes: ``202405`` alone may be any number.

Calendar periods are whole numbers, so that the number of the next day, week or month is greater by
one. A period contains periods of finer units: :func:`first_in` and :func:`last_in` give the first
and the last of these. Numbers that are not times have a unit of their own, :data:`NUMBER`, which
contains no other unit.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections import Counter
from datetime import timedelta
from functools import lru_cache
from itertools import islice, pairwise, permutations
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.history.queries.answers import values_of
from airflow_provider_sparklineage.model.partitioning import Partition
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.model.timestamps import (
    date_of_columns,
    directive_of_column,
    epoch_of,
    number_of,
    parsed,
    start_of,
    written,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime


UNITS = ("minute", "hour", "day", "week", "month", "year")
"""Units of times, from fine to coarse. Weeks begin on Monday, as in ISO 8601."""

NUMBER = "number"
TEXT = "text"

_MICROSECOND = timedelta(microseconds=1)


def first_in(unit: str, number: int, inner: str) -> int:
    """Give the number of the period of unit ``inner`` that contains the beginning of a period.

    E.g. for the number of a month and ``inner`` ``day``, the number of the month's first day.

    :param unit: unit of the containing period; ``number`` is the number of this period
    """
    return number if unit == inner else number_of(inner, start_of(unit, number))


def last_in(unit: str, number: int, inner: str) -> int:
    """Give the number of the period of unit ``inner`` that contains the end of a period.

    E.g. for the number of a month and ``inner`` ``day``, the number of the month's last day.

    :param unit: unit of the containing period; ``number`` is the number of this period
    """
    if unit == inner:
        return number
    return number_of(inner, start_of(unit, number + 1) - _MICROSECOND)


def months_later(unit: str, number: int, months: int) -> int:
    """Give the number of the period that is some months later.

    The day of the month stays the same; a month that is too short gives its last day, so the last
    day of February is one month after 31 January.

    :param unit: unit of both periods
    :param number: number of the period from which months are counted
    :raise ValueError, OverflowError: if the period is before the year 1 or after 9999
    """
    at = start_of(unit, number)
    year, month = divmod(at.year * 12 + at.month - 1 + months, 12)
    day = min(at.day, monthrange(year, month + 1)[1])
    return number_of(unit, at.replace(year=year, month=month + 1, day=day))


Point = int | str
"""A place on an axis: the number of a period, a number, or a text."""

WHOLE_NUMBER = re.compile("-?[0-9]{1,18}", re.ASCII)


class Axis(Frozen, frozen=True):
    """An axis of one or several dimensions: a line on which each of their values is a point.

    This base class of all axes is the axis of texts, whose points are the values themselves.

    :param labels: the dimensions that form the axis
    :param unit: one of :data:`UNITS`, ``number`` or ``text``
    """

    labels: tuple[str, ...]
    unit: str = TEXT

    def read(self, values: Mapping[str, str]) -> Point | None:
        """Give the point for a partition's values; None if this axis cannot parse the values.

        :param values: the partition's values by dimension, including all labels of the axis
        """
        return values[self.labels[0]]

    def write(self, point: Point) -> dict[str, str]:
        """Give the values of the dimensions for a point, by dimension.

        :raise ValueError, OverflowError: if the point is a time outside of the years 1 to 9999
        """
        return {self.labels[0]: str(point)}


class Times(Axis, frozen=True):
    """An axis of times that are written in one format.

    :param form: a format of ``strftime``
    """

    form: str = "%Y-%m-%d"

    def read(self, values: Mapping[str, str]) -> Point | None:
        """Give the number of the period, such as a day or a month, that the value names.

        :return: None if the value cannot be parsed, or is not the first moment of a period
        """
        return _period(values[self.labels[0]], self.form, self.unit)

    def write(self, point: Point) -> dict[str, str]:
        """Give the first moment of a period in the format of the axis, by dimension.

        :param point: number of the period
        """
        return {self.labels[0]: written(start_of(self.unit, int(point)), self.form)}


class Numbers(Axis, frozen=True):
    """An axis of whole numbers.

    :param width: least number of digits, filled by leading zeros
    """

    width: int = 0

    def read(self, values: Mapping[str, str]) -> Point | None:
        """Give the number; None if the value is not a whole number of up to 18 digits."""
        value = values[self.labels[0]]
        return int(value) if WHOLE_NUMBER.fullmatch(value) else None

    def write(self, point: Point) -> dict[str, str]:
        """Give the number by dimension, with leading zeros up to ``width`` digits.

        :param point: the number
        """
        return {self.labels[0]: str(point).zfill(self.width)}


class Counts(Numbers, frozen=True):
    """An axis of periods that are counted from 1970 on, as Iceberg's transforms count them."""

    def read(self, values: Mapping[str, str]) -> Point | None:
        """Give the number of the year, month, day or hour; None if the value is not a count."""
        count = Numbers.read(self, values)
        return None if count is None else int(count) + epoch_of(self.unit)

    def write(self, point: Point) -> dict[str, str]:
        """Give the number of years, months, days or hours since 1970, by dimension.

        :param point: number of the period
        """
        return {self.labels[0]: str(int(point) - epoch_of(self.unit))}


class Columns(Axis, frozen=True):
    """An axis of times whose year, month, … are dimensions of their own, the largest unit first.

    :param widths: least number of digits of each value
    """

    widths: tuple[int, ...] = ()

    def read(self, values: Mapping[str, str]) -> Point | None:
        """Give the number of the month, day or hour; None if the values do not form a date."""
        text = date_of_columns([(label, values[label]) for label in self.labels])
        form = {"month": "%Y-%m", "day": "%Y-%m-%d", "hour": "%Y-%m-%dT%H"}[self.unit]
        at = parsed(text, form) if text else None
        return None if at is None else number_of(self.unit, at)

    def write(self, point: Point) -> dict[str, str]:
        """Give the year, month, … of the first moment of a period, each in its own dimension.

        :param point: number of the period
        """
        at = start_of(self.unit, int(point))
        parts = (at.year, at.month, at.day, at.hour)
        each = zip(self.labels, parts, self.widths, strict=False)
        return {label: str(part).zfill(width) for label, part, width in each}


class Refined(Times, frozen=True):
    """An axis of times of two dimensions: a day and its hour, or a month and its day.

    The first label is that of the day (month), which has the format :attr:`~Times.form`.

    :param width: least number of digits of the hour (day of the month)
    """

    width: int = 1

    def read(self, values: Mapping[str, str]) -> Point | None:
        """Give the number of the hour (day); None if the two values do not form a time."""
        whole, part = (values[label] for label in self.labels)
        return _period(f"{whole} {part.zfill(2)}", f"{self.form} {self._directive}", self.unit)

    def write(self, point: Point) -> dict[str, str]:
        """Give the day and its hour (the month and its day), each in its own dimension.

        :param point: number of the hour (day)
        """
        at = start_of(self.unit, int(point))
        part = str(int(written(at, self._directive))).zfill(self.width)
        return dict(zip(self.labels, (written(at, self.form), part), strict=True))

    @property
    def _directive(self) -> str:
        return _PART_OF[self.unit][1]


_PART_OF = {"hour": ("day", "%H"), "day": ("month", "%d")}
"""For each unit of :class:`Refined`, the unit of its first dimension, and the other's directive."""


class Axes(Frozen, frozen=True):
    """The axes of a dataset's partitions.

    :param labels: all dimensions of the axes
    """

    labels: frozenset[str]
    axes: tuple[Axis, ...]

    def read(self, cell: str) -> tuple[Point, ...] | None:
        """Convert a partition to points, one on each axis.

        :param cell: canonical text of the partition: ``dt=2024-10-15/region=eu``
        :return: None if the partition has other dimensions, or an axis cannot parse a value
        """
        values = values_of(cell) or {}
        if values.keys() != self.labels:
            return None
        points = [axis.read(values) for axis in self.axes]
        return None if None in points else tuple(point for point in points if point is not None)

    def write(self, points: Iterable[Point]) -> str:
        """Give the canonical text of the partition that has these points, one on each axis.

        :raise ValueError, OverflowError: if a time is outside of the years 1 to 9999
        """
        values: dict[str, str] = {}
        for axis, point in zip(self.axes, points, strict=True):
            values |= axis.write(point)
        return str(Partition(tuple(sorted(values.items()))))


@lru_cache(maxsize=16384)
def _period(value: str, form: str, unit: str) -> int | None:
    at = parsed(value, form)
    if at is None:
        return None
    number = number_of(unit, at)
    return number if start_of(unit, number) == at else None


FORMATS = {
    "%Y-%m-%d": "day",
    "%Y%m%d": "day",
    "%Y/%m/%d": "day",
    "%Y-%m": "month",
    "%Y%m": "month",
    "%G-W%V": "week",
    "%GW%V": "week",
    "%Y-%m-%dT%H": "hour",
    "%Y-%m-%d %H": "hour",
    "%Y-%m-%d-%H": "hour",
    "%Y-%m-%d_%H": "hour",
    "%Y%m%d%H": "hour",
    "%Y%m%dT%H": "hour",
    "%Y-%m-%dT%H:%M:%S": "minute",
    "%Y-%m-%d %H:%M:%S": "minute",
    "%Y-%m-%dT%H:%M": "minute",
    "%Y-%m-%d %H:%M": "minute",
    "%Y%m%d%H%M": "minute",
    "%Y": "year",
}
"""The unit of each format of times in the values of partitions; earlier formats go first."""
_YEARS = range(1900, 2201)  # plausible years; digits without separators may be any number
_SAMPLE = 200
_MOST_VALUES = 0.9  # share of values that must fit an axis; a folder may have a stray one
# Plausible counts from 1970 on: about 1990 to 2100. Smaller numbers may be hours, days or ids.
_EPOCHS = {
    "day": range(7_300, 47_500),
    "hour": range(175_000, 1_140_000),
    "month": range(240, 1_560),
}
_PARTS = (
    ("month", ("2001", "2"), "2001-02"),
    ("day", ("2001", "2", "3"), "2001-02-03"),
    ("hour", ("2001", "2", "3", "4"), "2001-02-03T04"),
)


def axes_of(cells: Collection[str], *, is_refined: bool = True) -> Axes:
    """Find the axes of partitions, from the dimensions that most of the partitions have.

    :param cells: canonical texts of the partitions; if there are none, there are no axes
    :param is_refined: whether a day and its hour, or a month and its day, become one axis
        (:class:`Refined`); a task that writes hours 0 and 12 each day needs two axes for its rule
    """
    sample = [values_of(cell) or {} for cell in _spread(cells)]
    labels = Counter(frozenset(values) for values in sample)
    if not labels:
        return Axes(frozenset(), ())
    chosen = labels.most_common(1)[0][0]
    rows = [values for values in sample if values.keys() == chosen]
    columns = _columns(rows)
    rest = sorted(chosen - set(columns.labels if columns else ()))
    single = [_single(label, [row[label] for row in rows]) for label in rest]
    refined = _refined(single, rows) if is_refined else None
    if refined:
        single = [refined, *(axis for axis in single if axis.labels[0] not in refined.labels)]
    return Axes(chosen, (*((columns,) if columns else ()), *single))


def counted(axis: Axis, values: Sequence[int]) -> list[Axis]:
    """List the axes that count periods since 1970, and that could replace an axis of numbers.

    :param values: numbers on the axis, which must be plausible counts of such periods
    """
    return [
        Counts(axis.labels, unit)
        for unit, plausible in _EPOCHS.items()
        if values and all(value in plausible for value in values)
    ]


def _spread(cells: Collection[str]) -> Iterable[str]:
    """Take 1000 to 2000 partitions at regular distances, or all partitions if there are fewer."""
    step = max(1, len(cells) // (_SAMPLE * 5))
    return islice(cells, 0, None, step)


def _single(label: str, values: Sequence[str]) -> Axis:
    distinct = list(dict.fromkeys(values))[:_SAMPLE]
    for form, unit in FORMATS.items():
        times = [at for v in distinct if (at := parsed(v, form)) and _is_plausible(at, form)]
        if times and len(times) >= _MOST_VALUES * len(distinct):
            return Times((label,), _coarsest(times, unit), form)
    whole = [value for value in distinct if WHOLE_NUMBER.fullmatch(value)]
    if whole and len(whole) >= _MOST_VALUES * len(distinct):
        padded = any(len(value) > 1 and value.startswith("0") for value in whole)
        return Numbers((label,), NUMBER, max(map(len, whole)) if padded else 0)
    return Axis((label,))


def _is_plausible(at: datetime, form: str) -> bool:
    return at.year in _YEARS or "-" in form


def _coarsest(times: Iterable[datetime], unit: str) -> str:
    """Give the coarsest unit whose periods begin at all of these times, but at most a day.

    The timestamps of a table with one partition a day are all at midnight.

    :param unit: unit of the format of the times; if it is not ``minute``, it is returned unchanged
    """
    if unit != "minute":
        return unit
    units = UNITS[: UNITS.index("day") + 1]
    return max(
        (one for one in units if all(start_of(one, number_of(one, at)) == at for at in times)),
        key=units.index,
        default="minute",
    )


def _columns(rows: Sequence[Mapping[str, str]]) -> Columns | None:
    found = _parts(tuple(sorted(rows[0])))
    if found is None:
        return None
    unit, labels = found
    axis = Columns(labels, unit, tuple(_width(rows, label) for label in labels))
    good = sum(axis.read(row) is not None for row in rows)
    return axis if good >= _MOST_VALUES * len(rows) else None


def _width(rows: Sequence[Mapping[str, str]], label: str) -> int:
    padded = any(len(row[label]) > 1 and row[label].startswith("0") for row in rows)
    return max(len(row[label]) for row in rows) if padded else 1


def _refined(axes: Sequence[Axis], rows: Sequence[Mapping[str, str]]) -> Refined | None:
    """Join an axis of days (months) and one of numbers that are the hours (days) within them.

    :param axes: axes of one dimension each
    :param rows: values of partitions by dimension
    :return: None unless exactly one axis has the unit of the first dimension, and exactly one
        other has a name such as ``hour``, and nearly all values of both form times
    """
    for unit, (outer, directive) in _PART_OF.items():
        times = [axis for axis in axes if isinstance(axis, Times) and axis.unit == outer]
        parts = [
            axis
            for axis in axes
            if isinstance(axis, Numbers) and directive_of_column(axis.labels[0]) == directive
        ]
        if len(times) == len(parts) == 1:
            (label,) = parts[0].labels
            axis = Refined((*times[0].labels, label), unit, times[0].form, _width(rows, label))
            good = sum(axis.read(row) is not None for row in rows)
            if good >= _MOST_VALUES * len(rows):
                return axis
    return None


@lru_cache(maxsize=256)
def _parts(labels: tuple[str, ...]) -> tuple[str, tuple[str, ...]] | None:
    """Find the dimensions that are year, month, … by trying the dimensions in all orders.

    :return: the unit, and the labels, beginning with that of the year; None if there are no such
        dimensions
    """
    if len(labels) > 6:  # more labels have too many orders, and real tables have fewer
        return None
    for unit, probe, result in reversed(_PARTS):
        for order in permutations(labels, len(probe)):
            if date_of_columns(zip(order, probe, strict=True)) == result:
                return unit, order
    return None


_MOST_POINTS = 0.8  # share of points on the step; a run by hand at an odd time changes no schedule
_CALENDAR = ("month", "year")  # units without a fixed length in finer units


class Step(Frozen, frozen=True):
    """The regular distance between points.

    :param unit: unit of the axis
    :param calendar: unit of the step: ``month`` if most points begin a month and have a regular
        distance in months; else the axis' unit
    :param size: number of such units from one point to the next; 0 if there is no regular step
    :param origin: remainder of each point's number when it is divided by ``size``; the same for all
        points on the step
    """

    unit: str
    calendar: str
    size: int = 0
    origin: int = 0

    @classmethod
    def of(cls, unit: str, points: Iterable[Point]) -> Step:
        """Find the regular step of points: the most frequent distance between neighbours.

        There is no regular step (``size`` is 0) if too few points fit it.

        :param unit: unit of the axis of the points
        """
        if unit == TEXT:
            return cls(unit, unit)
        numbers = sorted({int(point) for point in points})
        for calendar in _coarser(unit):
            steps = [n for point in numbers if (n := _number_in(calendar, unit, point)) is not None]
            if len(steps) >= max(2, _MOST_POINTS * len(numbers)) and (found := _regular(steps)):
                return cls(unit, calendar, *found)
        return cls(unit, unit)

    def has(self, point: Point) -> bool:
        """Whether a point fits the step; if there is no regular step, every point fits."""
        if not self.size:
            return True
        number = _number_in(self.calendar, self.unit, int(point))
        return number is not None and (number - self.origin) % self.size == 0

    def between(self, first: int, last: int) -> Iterator[int]:
        """Yield the points on the step that lie between two points, without these two.

        There are none if there is no step.
        """
        for number in self._periods(first, last):
            yield first_in(self.calendar, number, self.unit)

    def count_between(self, first: int, last: int) -> int:
        """Count the points that :meth:`between` yields."""
        return len(self._periods(first, last))

    def _periods(self, first: int, last: int) -> range:
        if not self.size:
            return range(0)
        begin = first_in(self.unit, first, self.calendar) + 1
        end = first_in(self.unit, last, self.calendar)
        # The period that contains the last point begins before this point, or at it.
        end += first_in(self.calendar, end, self.unit) < last
        return range(begin + (self.origin - begin) % self.size, end, self.size)


def _coarser(unit: str) -> tuple[str, ...]:
    """List the units in which a step between points is looked for, in this order.

    They are ``month`` if ``unit`` is a finer unit of time, then ``unit`` itself.

    :param unit: unit of the axis of the points
    """
    if unit not in UNITS or unit in _CALENDAR:
        return (unit,)
    return ("month", unit)


def _number_in(calendar: str, unit: str, point: int) -> int | None:
    if calendar == unit:
        return point
    try:
        number = first_in(unit, point, calendar)
        return number if first_in(calendar, number, unit) == point else None
    except (ValueError, OverflowError):
        return None


def _regular(steps: list[int]) -> tuple[int, int] | None:
    """Give the most frequent distance between neighbours, if most of the numbers fit it.

    A number fits if its remainder is the most frequent one when numbers are divided by the
    distance.

    :param steps: the numbers, sorted
    :return: the distance and this remainder; None if fewer than the share :data:`_MOST_POINTS` of
        the numbers fit
    """
    distances = Counter(after - before for before, after in pairwise(steps))
    if not distances:
        return None
    size = min(d for d, n in distances.items() if n == max(distances.values()))
    origin, count = Counter(step % size for step in steps).most_common(1)[0]
    return (size, origin) if count >= _MOST_POINTS * len(steps) else None
