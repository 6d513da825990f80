"""Years, months, days and hours: as steps of a pattern, as intervals, and as columns."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.model.timestamps.patterns import (
    UNITS,
    from_digits,
    iso_pattern,
    parsed,
    written,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_LENGTHS = {
    "d": timedelta(days=1),
    "H": timedelta(hours=1),
    "M": timedelta(minutes=1),
    "S": timedelta(seconds=1),
}
_COLUMN = re.compile(
    r"(?P<prefix>.*_)?(?:(?P<Y>year|yyyy|yr|y)|(?P<m>month|mm|mon|m)|(?P<d>day|dd|d)"
    r"|(?P<H>hour|hh|hr|h))",
    re.IGNORECASE | re.DOTALL,
)
_FIRST = datetime(1, 1, 1)  # noqa: DTZ001  (folders have no zone)
_NUMBER = re.compile("[0-9]{1,4}")


def step_counter(pattern: str) -> Callable[[str], int | None] | None:
    """Give what numbers the times in a pattern: the next year, month, … second is one more.

    :param pattern: its smallest directive is the step; ``%Y %m %d %H %M %S`` from large to small,
        because only such texts sort in the order of time
    :return: gives None of a text that is no time in the pattern; None of another pattern
    """
    letters = "".join(re.findall("%(.?)", pattern, re.DOTALL))
    if not letters or not UNITS.startswith(letters):
        return None

    def step(text: str) -> int | None:
        at = parsed(text, pattern)
        if at is None:
            return None
        length = _LENGTHS.get(letters[-1])
        if length is None:
            return at.year if letters[-1] == "Y" else at.year * 12 + at.month
        return (at - _FIRST) // length

    return step


def end_of(start: datetime, transform: str) -> datetime:
    """Give the end, exclusive, of the year, month, day or hour that begins at a time.

    :raise ValueError, OverflowError: if it is after 9999
    """
    if transform == "year":
        return start.replace(year=start.year + 1)
    if transform == "month":
        return (start + timedelta(days=31)).replace(day=1)
    return start + (timedelta(days=1) if transform == "day" else timedelta(hours=1))


def date_of_columns(values: Iterable[tuple[str, str]]) -> str | None:
    """Give the date that columns ``year, month[, day[, hour]]`` have together.

    Labels may be short (``yyyy``, ``mm``, ``d``), and have one prefix (``event_year``); values need
    no leading zeros. Other columns are passed over.

    >>> date_of_columns([("year", "2024"), ("month", "5"), ("day", "6")])
    '2024-05-06'

    :param values: label and value, as partitions have them
    :return: ``2024-05``, ``2024-05-06`` or ``2024-05-06T10``; None if there are no such columns, or
        two sets of them, or their values are no date
    """
    families: dict[str, dict[str, str]] = {}
    for label, value in values:
        column = _column(label)
        if column is None:
            continue
        prefix, letter = column
        family = families.setdefault(prefix, {})
        if letter in family:
            return None
        family[letter] = value
    if not families:
        return None
    full = [family for family in families.values() if {"Y", "m"} <= family.keys()]
    if len(full) != 1 or not all(map(_NUMBER.fullmatch, full[0].values())):
        return None
    pattern = iso_pattern(set(full[0]))
    if not pattern:
        return None  # an hour of no day
    widths = {letter: 4 if letter == "Y" else 2 for letter in full[0]}
    try:
        at = from_digits({k: f"{int(v):0{widths[k]}}" for k, v in full[0].items()})
    except ValueError:
        return None
    return written(at, pattern)


@lru_cache(maxsize=256)  # a few columns, and hundreds of thousands of values
def _column(label: str) -> tuple[str, str] | None:
    """Give the prefix of a column that is a part of a date, and the letter of the part."""
    found = _COLUMN.fullmatch(label)
    return ((found["prefix"] or "").lower(), found.lastgroup or "") if found else None
