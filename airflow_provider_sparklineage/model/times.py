"""Times as names of folders spell them: patterns of strptime, as far as they sort and round-trip.

Patterns are read and written here, not by :mod:`datetime`: its ``%Y`` writes the year 1 as ``1`` on
some systems and reads it back on none.
"""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_WIDTHS = {"Y": 4, "m": 2, "d": 2, "j": 3, "H": 2, "M": 2, "S": 2, "G": 4, "V": 2, "u": 1}
_UNITS = "YmdHMS"
_ISO = ("%Y", "%Y-%m", "%Y-%m-%d", "%Y-%m-%dT%H", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S")
_ISO_WEEK = "%G-W%V"
# What each of these cannot do without.
_NEEDS = {"j": "Y", "G": "V", "V": "G", "u": "V"}
_LONG_YEAR = 2020  # of times without a year: it has a 29th of February and a week 53
_STRPTIME = frozenset("aAbBcdfGHIjmMpSuUVwWxXyYzZ%")
_DIRECTIVE = re.compile("%(.?)", re.DOTALL)


def directives(pattern: str) -> set[str]:
    """Letters of a pattern's directives.

    :raise ValueError: if there are none, or one that cannot be used; says which can
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
    """Refuse what :meth:`strptime` does not read, for values that no layout spells.

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
    """Decide how the values of a field are spelled that paths spell by these patterns.

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
    """Give the pattern of ISO 8601 that spells what some directives do; empty if there is none."""
    if {"Y", "j"} <= given or {"G", "V", "u"} <= given:
        given = given - {"j", "G", "V", "u"} | {"Y", "m", "d"}
    units = [unit in given for unit in _UNITS]
    if units[0] and units == sorted(units, reverse=True):
        return _ISO[units.count(True) - 1]
    return _ISO_WEEK if {"G", "V"} <= given and not any(units) else ""


def pattern_regex(pattern: str) -> str:
    """Give the regex, without groups, of the texts that a pattern spells."""
    return _regex(pattern, "[0-9]{{{width}}}")


def digits_in(pattern: str, text: str) -> dict[str, str] | None:
    """Read a text that a pattern spells.

    :return: the digits by directive, not yet checked to be a time; None if it is not so spelled
    """
    match = re.fullmatch(_regex(pattern, "([0-9]{{{width}}})"), text)
    if match is None:
        return None
    found: dict[str, str] = {}
    letters = (letter for letter in _DIRECTIVE.findall(pattern) if letter != "%")
    for letter, digits in zip(letters, match.groups(), strict=True):
        if found.setdefault(letter, digits) != digits:
            return None
    return found


def _regex(pattern: str, group: str) -> str:
    parts = re.split("(%.)", pattern, flags=re.DOTALL)
    return "".join(
        group.format(width=_WIDTHS[part[1]])
        if part.startswith("%") and part != "%%"
        else re.escape(part.replace("%%", "%"))
        for part in parts
    )


def spelling(digits: Mapping[str, str], pattern: str) -> str:
    """Spell a time otherwise.

    :param digits: by directive
    :raise ValueError: if there is no such time
    """
    msg = f"There is no time with {', '.join(f'%{k} {v}' for k, v in digits.items())}."
    try:
        moment = _moment({letter: int(number) for letter, number in digits.items()})
    except ValueError as e:
        raise ValueError(msg) from e
    if any(_written(moment, letter) != number for letter, number in digits.items()):
        raise ValueError(msg)
    return _DIRECTIVE.sub(lambda m: "%" if m[1] == "%" else _written(moment, m[1]), pattern)


def _moment(numbers: Mapping[str, int]) -> datetime:
    # Naive: the name of a folder has no zone.
    at = time(numbers.get("H", 0), numbers.get("M", 0), numbers.get("S", 0))
    if "G" in numbers or "V" in numbers:
        year = numbers.get("G", _LONG_YEAR)
        day = date.fromisocalendar(year, numbers.get("V", 1), numbers.get("u", 1))
    elif "j" in numbers:
        day = date(numbers.get("Y", _LONG_YEAR), 1, 1) + timedelta(days=numbers["j"] - 1)
    else:
        day = date(numbers.get("Y", _LONG_YEAR), numbers.get("m", 1), numbers.get("d", 1))
    return datetime.combine(day, at)


def _written(moment: datetime, letter: str) -> str:
    year, week, weekday = moment.isocalendar()
    number = {
        "Y": moment.year,
        "m": moment.month,
        "d": moment.day,
        "j": moment.timetuple().tm_yday,
        "H": moment.hour,
        "M": moment.minute,
        "S": moment.second,
        "G": year,
        "V": week,
        "u": weekday,
    }[letter]
    return f"{number:0{_WIDTHS[letter]}}"
