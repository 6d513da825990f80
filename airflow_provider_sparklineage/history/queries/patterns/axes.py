"""Partitions as points on axes: lines of times, of whole numbers, or of texts."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.history.queries.patterns.units import (
    TEXT,
    epoch_of,
    number_of,
    start_of,
)
from airflow_provider_sparklineage.model.partitioning import Partition, split_folder
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.model.timestamps import date_of_columns, parsed, written

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Point = int | str
"""A place on an axis: the number of a period, a number, or a text."""

WHOLE_NUMBER = re.compile("-?[0-9]{1,18}", re.ASCII)


class Axis(Frozen, frozen=True):
    """An axis of texts; the base of the others.

    :param labels: the dimensions that it is made of
    :param unit: one of :data:`~.units.UNITS`, ``number`` or ``text``
    """

    labels: tuple[str, ...]
    unit: str = TEXT

    def read(self, values: Mapping[str, str]) -> Point | None:
        """Give the point of a partition's values; None if they are none of this axis."""
        return values[self.labels[0]]

    def write(self, point: Point) -> dict[str, str]:
        """Give the values of a point.

        :raise ValueError, OverflowError: if it is a time outside of the years 1 to 9999
        """
        return {self.labels[0]: str(point)}


class Times(Axis, frozen=True):
    """Times in a format."""

    form: str = "%Y-%m-%d"

    def read(self, values: Mapping[str, str]) -> Point | None:
        """Give the number of the period; None for what is no time, or no whole period."""
        return _period(values[self.labels[0]], self.form, self.unit)

    def write(self, point: Point) -> dict[str, str]:
        """Write the first moment of the period."""
        return {self.labels[0]: written(start_of(self.unit, int(point)), self.form)}


class Numbers(Axis, frozen=True):
    """Whole numbers.

    :param width: with leading zeros up to so many digits
    """

    width: int = 0

    def read(self, values: Mapping[str, str]) -> Point | None:
        """Give the number; None for others."""
        value = values[self.labels[0]]
        return int(value) if WHOLE_NUMBER.fullmatch(value) else None

    def write(self, point: Point) -> dict[str, str]:
        """Write the number."""
        return {self.labels[0]: str(point).zfill(self.width)}


class Counts(Numbers, frozen=True):
    """Periods counted from 1970 on."""

    def read(self, values: Mapping[str, str]) -> Point | None:
        """Give the number of the period; None for others."""
        count = Numbers.read(self, values)
        return None if count is None else int(count) + epoch_of(self.unit)

    def write(self, point: Point) -> dict[str, str]:
        """Write the count."""
        return {self.labels[0]: str(int(point) - epoch_of(self.unit))}


class Columns(Axis, frozen=True):
    """Year, month, … in dimensions of their own, from the largest to the smallest.

    :param widths: how many digits each value has at least
    """

    widths: tuple[int, ...] = ()

    def read(self, values: Mapping[str, str]) -> Point | None:
        """Give the number of the period; None for others."""
        text = date_of_columns([(label, values[label]) for label in self.labels])
        form = {"month": "%Y-%m", "day": "%Y-%m-%d", "hour": "%Y-%m-%dT%H"}[self.unit]
        at = parsed(text, form) if text else None
        return None if at is None else number_of(self.unit, at)

    def write(self, point: Point) -> dict[str, str]:
        """Write each part."""
        at = start_of(self.unit, int(point))
        parts = (at.year, at.month, at.day, at.hour)
        each = zip(self.labels, parts, self.widths, strict=False)
        return {label: str(part).zfill(width) for label, part, width in each}


class Axes(Frozen, frozen=True):
    """The axes of a dataset's partitions."""

    labels: frozenset[str]
    axes: tuple[Axis, ...]

    def read(self, cell: str) -> tuple[Point, ...] | None:
        """Give the points of a cell; None if it has other dimensions, or is off an axis."""
        values = values_of(cell)
        if values.keys() != self.labels:
            return None
        points = [axis.read(values) for axis in self.axes]
        return None if None in points else tuple(point for point in points if point is not None)

    def write(self, points: Iterable[Point]) -> str:
        """Give the cell of some points, one of each axis."""
        values: dict[str, str] = {}
        for axis, point in zip(self.axes, points, strict=True):
            values |= axis.write(point)
        return str(Partition(tuple(sorted(values.items()))))


def values_of(cell: str) -> dict[str, str]:
    """Read a cell, ``dt=2024-10-15/region=eu``; the empty one has no values."""
    return dict(found for folder in cell.split("/") if (found := _folder(folder)))


# A day and a region are in many partitions.
_folder = lru_cache(maxsize=16384)(split_folder)


@lru_cache(maxsize=16384)
def _period(value: str, form: str, unit: str) -> int | None:
    at = parsed(value, form)
    if at is None:
        return None
    number = number_of(unit, at)
    return number if start_of(unit, number) == at else None
