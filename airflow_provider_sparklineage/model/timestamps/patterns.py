"""Texts in a format of :meth:`~datetime.datetime.strptime`, as layouts and dimensions have it.

Stricter than strptime, which reads ``2024-5-6`` as ``%Y-%m-%d`` too: folders sort in the order of
time, and are written again as they were, only with all their zeros.
"""

from __future__ import annotations

import re
from datetime import date, datetime, time
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

UNITS = "YmdHMS"
"""Directives from the largest unit to the smallest."""
_OF_UNITS = frozenset(UNITS)

_WIDTHS = {"Y": 4, "m": 2, "d": 2, "j": 3, "H": 2, "M": 2, "S": 2, "G": 4, "V": 2, "u": 1}
_ISO = ("%Y", "%Y-%m", "%Y-%m-%d", "%Y-%m-%dT%H", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S")
_ISO_WEEK = "%G-W%V"
# What each of these cannot do without.
_NEEDS = {"j": "Y", "G": "V", "V": "G", "u": "V"}
# What is not given; 2020 has a 29th of February and a week 53.
_FIRST = {"Y": "2020", "G": "2020", "V": "01", "u": "1", "m": "01", "d": "01"}
_MIDNIGHT = {"H": "00", "M": "00", "S": "00"}
_STRPTIME = frozenset("aAbBcdfGHIjmMpSuUVwWxXyYzZ%")
_DIRECTIVE = re.compile("%(.?)", re.DOTALL)


def directives(pattern: str) -> set[str]:
    """Letters of a pattern's directives.

    :raise ValueError: if there are none, or one that cannot be used; names those that can
    """
    found = {letter for letter in _DIRECTIVE.findall(pattern) if letter != "%"}
    for letter in sorted(found):
        if letter not in _WIDTHS:
            usable = " ".join(f"%{known}" for known in _WIDTHS)
            msg = f"%{letter} in {pattern!r} cannot be used; these can: {usable} %%"
            raise ValueError(msg)
    if not found:
        msg = f"{pattern!r} has no directive such as %Y"
        raise ValueError(msg)
    return found


def check_format(pattern: str) -> None:
    """Refuse what :meth:`strptime` does not read, for values that are in no layout.

    :raise ValueError: if the pattern has no directive, or one that is not known
    """
    found = _DIRECTIVE.findall(pattern)
    for letter in found:
        if letter not in _STRPTIME:
            msg = f"%{letter} in {pattern!r} is no directive of Python's strptime"
            raise ValueError(msg)
    if not set(found) - {"%"}:
        msg = f"{pattern!r} has no directive; write e.g. %Y%m%d"
        raise ValueError(msg)


def value_format(label: str, patterns: Sequence[str], wanted: str = "") -> str:
    """Choose the format of the values of a field that paths write in these patterns.

    :param patterns: of all the places of a field; an empty one is text
    :param wanted: the dimension's own format; ISO, or the patterns themselves, without one
    :return: empty for text
    :raise ValueError: if the patterns cannot be used, or give less than is wanted
    """
    if not any(patterns):
        return wanted
    if not all(patterns):
        msg = f"{label} is a time in one place and text in another; give all a pattern"
        raise ValueError(msg)
    given = set().union(*(directives(pattern) for pattern in patterns))
    for letter, needed in _NEEDS.items():
        if letter in given and needed not in given:
            msg = f"%{letter} of {label} says nothing without %{needed}"
            raise ValueError(msg)
    if "j" in given or "u" in given:
        given |= {"Y", "m", "d"}
    missing = directives(wanted) - given - _derived(given) if wanted else set()
    if missing:
        letters = " ".join(f"%{letter}" for letter in sorted(missing))
        msg = f"the format {wanted!r} of {label} needs {letters}, which the layout does not give"
        raise ValueError(msg)
    return wanted or iso_pattern(given) or "-".join(patterns).replace("/", "-")


def _derived(given: Iterable[str]) -> set[str]:
    return {"j", "G", "V", "u"} if {"Y", "m", "d"} <= set(given) else set()


def iso_pattern(given: set[str]) -> str:
    """Give the pattern of ISO 8601 with the precision of some directives; empty if none has."""
    if {"Y", "j"} <= given or {"G", "V", "u"} <= given:
        given = given - {"j", "G", "V", "u"} | {"Y", "m", "d"}
    units = [unit in given for unit in UNITS]
    if units[0] and units == sorted(units, reverse=True):
        return _ISO[units.count(True) - 1]
    return _ISO_WEEK if {"G", "V"} <= given and not any(units) else ""


def pattern_regex(pattern: str) -> str:
    """Give the regex, without groups, of the texts in a pattern."""
    return _regex(pattern, "[0-9]{{{width}}}")


def digits(pattern: str, text: str) -> dict[str, str] | None:
    """Read a text in a pattern.

    :return: the digits by directive, not yet checked to be a time; None if it is not in the pattern
    :raise ValueError: if the pattern has no directive, or one that cannot be used
    """
    regex, letters = _reader(pattern)
    match = regex.fullmatch(text)
    if match is None:
        return None
    found: dict[str, str] = {}
    for letter, number in zip(letters, match.groups(), strict=True):
        if found.setdefault(letter, number) != number:
            return None
    return found


@lru_cache(maxsize=256)  # a few dimensions' formats, and hundreds of thousands of values
def _reader(pattern: str) -> tuple[re.Pattern[str], tuple[str, ...]]:
    directives(pattern)
    letters = tuple(letter for letter in _DIRECTIVE.findall(pattern) if letter != "%")
    return re.compile(_regex(pattern, "([0-9]{{{width}}})")), letters


def _regex(pattern: str, group: str) -> str:
    parts = re.split("(%.)", pattern, flags=re.DOTALL)
    return "".join(
        group.format(width=_WIDTHS[part[1]])
        if part.startswith("%") and part != "%%"
        else re.escape(part.replace("%%", "%"))
        for part in parts
    )


def from_digits(found: Mapping[str, str]) -> datetime:
    """Give the time of digits by directive; what they leave open is the first there is.

    :return: without a zone, as the name of a folder has none
    :raise ValueError: if there is no such time
    """
    parts = {**_FIRST, **_MIDNIGHT, **found}
    year, month, day, hour, minute, second = [int(parts[unit]) for unit in UNITS]
    try:
        if "G" in found or "V" in found:
            first = date.fromisocalendar(int(parts["G"]), int(parts["V"]), int(parts["u"]))
        elif "j" in found:
            first = datetime.strptime("{Y} {j}".format_map(parts), "%Y %j").date()  # noqa: DTZ007
        else:
            first = date(year, month, day)
        at = datetime.combine(first, time(hour, minute, second))
    except ValueError as e:
        raise _no_time(found) from e
    # A day of the year and one of the month may differ.
    is_sure = found.keys() <= _OF_UNITS
    if not is_sure and any(written(at, f"%{letter}") != text for letter, text in found.items()):
        raise _no_time(found)
    return at


def _no_time(found: Mapping[str, str]) -> ValueError:
    return ValueError(f"There is no time with {', '.join(f'%{k} {v}' for k, v in found.items())}.")


def written(at: datetime, pattern: str) -> str:
    """Write a time in a pattern."""
    # strftime writes the year 1 without zeros on some systems.
    years = {"%Y": f"{at.year:04}", "%G": f"{at.isocalendar().year:04}"}
    return _DIRECTIVE.sub(lambda m: years.get(m[0]) or at.strftime(m[0]), pattern)


def parsed(text: str, pattern: str) -> datetime | None:
    """Read a time, without a zone; None of what is none, or is not in the pattern.

    :raise ValueError: if the pattern has no directive, or one that cannot be used
    """
    found = digits(pattern, text)
    try:
        return from_digits(found) if found else None
    except ValueError:
        return None
