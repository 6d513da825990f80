"""Calendar periods as whole numbers, so that the next day, week or month is one more.

A period of one unit holds periods of a finer one: :func:`first_in` and :func:`last_in` give which.
Numbers of things that are no times are a unit of their own, :data:`NUMBER`, that holds no other.
"""

from __future__ import annotations

from calendar import monthrange
from datetime import datetime, timedelta

UNITS = ("minute", "hour", "day", "week", "month", "year")
"""Of times, from fine to coarse. Weeks begin on Monday, as those of ISO 8601."""

NUMBER = "number"
TEXT = "text"

_FIRST = datetime(1, 1, 1)  # noqa: DTZ001  (a Monday; values of partitions have no zone)
_LENGTHS = {
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(days=7),
}
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001
_MICROSECOND = timedelta(microseconds=1)


def number_of(unit: str, at: datetime) -> int:
    """Give the number of the period of a unit that a time is in."""
    if unit == "year":
        return at.year
    if unit == "month":
        return at.year * 12 + at.month - 1
    return (at - _FIRST) // _LENGTHS[unit]


def start_of(unit: str, number: int) -> datetime:
    """Give the first moment of a period.

    :raise ValueError, OverflowError: if it is before the year 1 or after 9999
    """
    if unit == "year":
        return _FIRST.replace(year=number)
    if unit == "month":
        return _FIRST.replace(year=number // 12, month=number % 12 + 1)
    return _FIRST + number * _LENGTHS[unit]


def first_in(unit: str, number: int, inner: str) -> int:
    """Give the number of the period ``inner`` in which a period begins."""
    return number if unit == inner else number_of(inner, start_of(unit, number))


def last_in(unit: str, number: int, inner: str) -> int:
    """Give the number of the period ``inner`` in which a period ends."""
    if unit == inner:
        return number
    return number_of(inner, start_of(unit, number + 1) - _MICROSECOND)


def epoch_of(unit: str) -> int:
    """Give the number of the period in which 1970 begins, from which Iceberg's transforms count."""
    return number_of(unit, _EPOCH)


def months_later(unit: str, number: int, months: int) -> int:
    """Give the same time of the same day some months later, or of the month's last day."""
    at = start_of(unit, number)
    year, month = divmod(at.year * 12 + at.month - 1 + months, 12)
    day = min(at.day, monthrange(year, month + 1)[1])
    return number_of(unit, at.replace(year=year, month=month + 1, day=day))
