"""Reading and writing times in texts: values of partitions, names of folders, and arguments.

The module has functions for

1. texts in a format of :meth:`~datetime.datetime.strptime`, such as ``%Y%m%d``
2. periods (years, months, days, hours): their numbers, the steps between them, and dates whose
   year, month and day are columns of their own
3. the canonical form of a time, which is ISO 8601, to the precision of the text or of a
   transform: ``2024``, ``2024-05``, ``2024-05-06``, ``2024-05-06T03``, ``2024-05-06T03:30`` and so
   on
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


# --- texts in a format of strptime, such as the formats of layouts and dimensions -----------------
#
# These functions are stricter than strptime, which also reads ``2024-5-6`` as ``%Y-%m-%d``. Only
# with all leading zeros do folders sort in the order of time, and only such a value is written in
# the same form in which it was read.


UNITS = "YmdHMS"
"""Directives from the largest unit to the smallest."""
_OF_UNITS = frozenset(UNITS)

_WIDTHS = {"Y": 4, "m": 2, "d": 2, "j": 3, "H": 2, "M": 2, "S": 2, "G": 4, "V": 2, "u": 1}
_ISO = ("%Y", "%Y-%m", "%Y-%m-%d", "%Y-%m-%dT%H", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S")
_ISO_WEEK = "%G-W%V"
# Directives that need another directive next to them, and this directive.
_NEEDS = {"j": "Y", "G": "V", "V": "G", "u": "V"}
# The parts in place of missing parts. The year 2020 has a 29th of February and a week 53.
_FIRST_PARTS = {"Y": "2020", "G": "2020", "V": "01", "u": "1", "m": "01", "d": "01"}
_MIDNIGHT = {"H": "00", "M": "00", "S": "00"}
_STRPTIME = frozenset("aAbBcdfGHIjmMpSuUVwWxXyYzZ%")
_DIRECTIVE = re.compile("%(.?)", re.DOTALL)


def directives(pattern: str) -> set[str]:
    """Give the letters of a pattern's directives: ``{"Y", "m"}`` for ``%Y%m``.

    :raise ValueError: if the pattern has no directive, or an unusable one; the error names the
        usable directives
    """
    letters = {letter for letter in _DIRECTIVE.findall(pattern) if letter != "%"}
    for letter in sorted(letters):
        if letter not in _WIDTHS:
            usable = " ".join(f"%{known}" for known in _WIDTHS)
            msg = f"%{letter} in {pattern!r} cannot be used; these can: {usable} %%"
            raise ValueError(msg)
    if not letters:
        msg = f"{pattern!r} has no directive such as %Y"
        raise ValueError(msg)
    return letters


def check_format(pattern: str) -> None:
    """Refuse a format that :meth:`~datetime.datetime.strptime` cannot read.

    It is for values without a layout; :func:`directives` checks the patterns of a layout.

    :raise ValueError: if the pattern has no directive, or a directive that strptime does not know
    """
    letters = _DIRECTIVE.findall(pattern)
    for letter in letters:
        if letter not in _STRPTIME:
            msg = f"%{letter} in {pattern!r} is no directive of Python's strptime"
            raise ValueError(msg)
    if not set(letters) - {"%"}:
        msg = f"{pattern!r} has no directive; write e.g. %Y%m%d"
        raise ValueError(msg)


def value_format(label: str, patterns: Sequence[str], wanted: str = "") -> str:
    """Choose the format for the values of a layout's field.

    :param label: the field's name, for errors
    :param patterns: the pattern of the field at each place where the layout has it; empty for text
    :param wanted: the dimension's own format; if it is empty, the chosen format is ISO 8601, or the
        patterns themselves if ISO 8601 has no form with the same parts
    :return: the format; ``wanted`` if all patterns are text
    :raise ValueError: if the patterns cannot be used, or lack a directive that ``wanted`` needs
    """
    if not any(patterns):
        return wanted
    if not all(patterns):
        msg = f"{label} is a time in one place and text in another; give all a pattern"
        raise ValueError(msg)
    letters = set().union(*(directives(pattern) for pattern in patterns))
    for letter, needed in _NEEDS.items():
        if letter in letters and needed not in letters:
            msg = f"%{letter} of {label} says nothing without %{needed}"
            raise ValueError(msg)
    if "j" in letters or "u" in letters:
        letters |= {"Y", "m", "d"}
    missing = directives(wanted) - letters - _derived(letters) if wanted else set()
    if missing:
        texts = " ".join(f"%{letter}" for letter in sorted(missing))
        msg = f"the format {wanted!r} of {label} needs {texts}, which the layout does not give"
        raise ValueError(msg)
    return wanted or iso_pattern(letters) or "-".join(patterns).replace("/", "-")


def _derived(letters: Iterable[str]) -> set[str]:
    return {"j", "G", "V", "u"} if {"Y", "m", "d"} <= set(letters) else set()


def iso_pattern(letters: set[str]) -> str:
    """Give the pattern of ISO 8601 that has the same precision as these directives together.

    :param letters: the letters of the directives, as :func:`directives` gives them
    :return: empty if no pattern of ISO 8601 has exactly these parts
    """
    if {"Y", "j"} <= letters or {"G", "V", "u"} <= letters:
        letters = letters - {"j", "G", "V", "u"} | {"Y", "m", "d"}
    units = [unit in letters for unit in UNITS]
    if units[0] and units == sorted(units, reverse=True):
        return _ISO[units.count(True) - 1]
    return _ISO_WEEK if {"G", "V"} <= letters and not any(units) else ""


def pattern_regex(pattern: str) -> str:
    """Give the regex, without groups, that matches the texts that have the form of a pattern."""
    return _regex(pattern, "[0-9]{{{width}}}")


def digits(pattern: str, text: str) -> dict[str, str] | None:
    """Read the digits of a text by a pattern: ``202405`` and ``%Y%m`` give ``2024`` and ``05``.

    :return: the digits by directive, which need not be a possible time; None if the text does not
        match the pattern, or has two values for one directive
    :raise ValueError: if the pattern has no directive, or a directive that cannot be used
    """
    regex, letters = _reader(pattern)
    match = regex.fullmatch(text)
    if match is None:
        return None
    by_letter: dict[str, str] = {}
    for letter, number in zip(letters, match.groups(), strict=True):
        if by_letter.setdefault(letter, number) != number:
            return None
    return by_letter


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


def from_digits(by_letter: Mapping[str, str]) -> datetime:
    """Make a time of the digits that :func:`digits` reads.

    Missing digits are those of ``2020-01-01`` at midnight.

    :param by_letter: the digits by directive, e.g. ``{"Y": "2024", "m": "05"}``
    :return: a time without a zone, because names of folders have no zone
    :raise ValueError: if no such time exists
    """
    parts = {**_FIRST_PARTS, **_MIDNIGHT, **by_letter}
    year, month, day, hour, minute, second = [int(parts[unit]) for unit in UNITS]
    if "G" in by_letter or "V" in by_letter:
        first = date.fromisocalendar(int(parts["G"]), int(parts["V"]), int(parts["u"]))
    elif "j" in by_letter:
        first = datetime.strptime("{Y} {j}".format_map(parts), "%Y %j").date()  # noqa: DTZ007
    else:
        first = date(year, month, day)
    at = datetime.combine(first, time(hour, minute, second))
    # Both the day of the year and the day of the month may be given, and be two different days.
    is_sure = by_letter.keys() <= _OF_UNITS
    if not is_sure and any(written(at, f"%{letter}") != text for letter, text in by_letter.items()):
        msg = f"the parts contradict each other: {by_letter}"
        raise ValueError(msg)
    return at


def written(at: datetime, pattern: str) -> str:
    """Format a time by a pattern of strftime directives."""
    # strftime writes the year 1 without zeros on some systems.
    years = {"%Y": f"{at.year:04}", "%G": f"{at.isocalendar().year:04}"}
    return _DIRECTIVE.sub(lambda m: years.get(m[0]) or at.strftime(m[0]), pattern)


def parsed(text: str, pattern: str) -> datetime | None:
    """Read a time without a zone; None if the text does not match the pattern, or is not a time.

    :raise ValueError: if the pattern has no directive, or a directive that cannot be used
    """
    by_letter = digits(pattern, text)
    try:
        return from_digits(by_letter) if by_letter else None
    except ValueError:
        return None


# --- years, months, days and hours: as steps of a pattern, as intervals, and as columns -----------


_LENGTHS = {
    "second": timedelta(seconds=1),
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(days=7),
}
_NAMES = ("year", "month", "day", "hour", "minute", "second")
_UNIT_OF_DIRECTIVE = dict(zip(UNITS, _NAMES, strict=True))
_COLUMN = re.compile(
    r"(?P<prefix>.*_)?(?:(?P<Y>year|yyyy|yr|y)|(?P<m>month|mm|mon|m)|(?P<d>day|dd|d)"
    r"|(?P<H>hour|hh|hr|h))",
    re.IGNORECASE | re.DOTALL,
)
_FIRST = datetime(1, 1, 1)  # noqa: DTZ001  (a Monday; values of partitions have no zone)
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001
_NUMBER = re.compile("[0-9]{1,4}")


def number_of(unit: str, at: datetime) -> int:
    """Give the number of the period that contains a time; the next period has the next number.

    :param unit: ``year``, ``month`` or a key of :data:`_LENGTHS`. Weeks begin on Monday
    """
    if unit == "year":
        return at.year
    if unit == "month":
        return at.year * 12 + at.month - 1
    return (at - _FIRST) // _LENGTHS[unit]


def start_of(unit: str, number: int) -> datetime:
    """Give the time at which a period begins, by the number that :func:`number_of` gives.

    :param unit: as for :func:`number_of`
    :raise ValueError, OverflowError: if the time is before the year 1 or after 9999
    """
    if unit == "year":
        return _FIRST.replace(year=number)
    if unit == "month":
        return _FIRST.replace(year=number // 12, month=number % 12 + 1)
    return _FIRST + number * _LENGTHS[unit]


def epoch_of(unit: str) -> int:
    """Give the number of the period that begins with 1970; Iceberg's transforms count from it.

    :param unit: as for :func:`number_of`
    """
    return number_of(unit, _EPOCH)


def step_counter(pattern: str) -> Callable[[str], int | None] | None:
    """Give a function that numbers times by the smallest unit of a pattern, such as days.

    The number of the next year, month, day, hour, minute or second is greater by one.

    :param pattern: directives ``%Y %m %d %H %M %S`` from large to small, because only such texts
        sort in the order of time; the smallest directive is the step
    :return: a function that gives the number of a text, or None if the text is not a time in the
        pattern; None in place of the function if the pattern has other directives or another order
    """
    letters = "".join(re.findall("%(.?)", pattern, re.DOTALL))
    if not letters or not UNITS.startswith(letters):
        return None

    def step(text: str) -> int | None:
        at = parsed(text, pattern)
        return number_of(_UNIT_OF_DIRECTIVE[letters[-1]], at) if at is not None else None

    return step


def date_of_columns(values: Iterable[tuple[str, str]]) -> str | None:
    """Give the date that the values of the columns ``year, month[, day[, hour]]`` make together.

    Labels may be short (``yyyy``, ``mm``, ``d``), and may share a prefix (``event_year``); values
    need no leading zeros. Other columns are ignored.

    >>> date_of_columns([("year", "2024"), ("month", "5"), ("day", "6")])
    '2024-05-06'

    :param values: pairs of label and value, as in a partition
    :return: ``2024-05``, ``2024-05-06`` or ``2024-05-06T10``; None if there are no such columns, or
        two sets of such columns, or the values make no date
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


def directive_of_column(label: str) -> str:
    """Give the directive of the part of a date that a column's name says that it has.

    :return: ``%H`` for ``hour``, ``HH`` or ``event_hour``; empty for other names
    """
    column = _column(label)
    return f"%{column[1]}" if column else ""


@lru_cache(maxsize=256)  # a few columns, and hundreds of thousands of values
def _column(label: str) -> tuple[str, str] | None:
    """Give the prefix and the directive of a column that has a part of a date.

    :return: ``("event_", "Y")`` for ``event_year``; None if the column's name does not say that it
        has a part of a date
    """
    match = _COLUMN.fullmatch(label)
    return ((match["prefix"] or "").lower(), match.lastgroup or "") if match else None


# --- texts of times to their canonical form, so that they can be compared -------------------------
#
# ``20240506`` in a path, ``2024-05-06`` in a template and the date column of a table are one day.
# The canonical form is ISO 8601, to the precision of the text. A zone is written as an offset. A
# time without a zone gets none, because only the data shows in which zone it is.


PRECISION = {"year": 4, "month": 7, "day": 10, "hour": 13}
"""The number of characters of ISO 8601 that each transform keeps."""

_YEAR, _MONTH, _DAY = r"(?P<Y>\d{4})", r"(?P<m>0[1-9]|1[0-2])", r"(?P<d>0[1-9]|[12]\d|3[01])"
_HOUR, _MINUTE = r"(?P<H>[01]\d|2[0-3])", r"(?P<M>[0-5]\d)"
_SECOND = r"(?P<S>:[0-5]\d(\.\d{1,9})?)?"
_ZONE = r"(?P<zone>Z|[+-]\d\d:?\d\d)?"
# Four digits alone may be any number; only a format can say that they are a year.
_EXTENDED = re.compile(
    rf"{_YEAR}-{_MONTH}(-{_DAY}([T _-]{_HOUR}(:{_MINUTE}{_SECOND}{_ZONE})?)?)?",
    re.ASCII,
)
_BASIC = re.compile(
    rf"{_YEAR}{_MONTH}{_DAY}(T?{_HOUR}({_MINUTE}(?P<S>[0-5]\d)?)?)?{_ZONE}", re.ASCII
)
_BASIC_MONTH = re.compile(_YEAR + _MONTH, re.ASCII)
_DATED = re.compile(r"\d{4}-\d\d(-\d\d.*)?", re.ASCII | re.DOTALL)
_OFFSET = re.compile(r"[+-]\d\d:?\d\d$")
_ORDINAL = re.compile(r"-?\d{1,7}", re.ASCII)
_FIRST_OF_YEAR = "-01-01T00:00:00"

# The formats that are tried, in this order.
_COMMON_FORMATS = (
    "%Y-%m-%d",
    "%Y%m%d",
    "%Y-%m",
    "%Y%m",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%dT%H:%M",
    "%Y-%m-%dT%H",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%d %H",
    "%Y-%m-%d-%H",
    "%Y%m%d%H",
    "%Y",
)


def canonical_time(text: str, form: str = "", *, or_iso: bool = False) -> str | None:
    """Write a time in ISO 8601, to the precision that the text has.

    >>> canonical_time("20240506"), canonical_time("06.05.2024", "%d.%m.%Y"), canonical_time("PL")
    ('2024-05-06', '2024-05-06', None)

    :param form: the format of the text, in the directives of
        :meth:`~datetime.datetime.strptime`; if it is empty, only ISO 8601 in its extended and its
        basic form is read as a time
    :param or_iso: whether a text that is not in the format is read as ISO 8601
    :return: None if the text is not a time, or is not in the format
    """
    return _canonical(text, form) or (canonical_time(text) if form and or_iso else None)


@lru_cache(maxsize=100_000)
def _canonical(text: str, form: str) -> str | None:
    if form:
        return _in_format(text, form)
    for shape in (_EXTENDED, _BASIC):
        if match := shape.fullmatch(text):
            return _joined(match)
    return None


def _in_format(text: str, form: str) -> str | None:
    try:
        wanted = iso_pattern(directives(form))
    except ValueError:
        return None
    at = parsed(text, form) if wanted else None
    return written(at, wanted) if at else None


def _joined(match: re.Match[str]) -> str | None:
    part = match.groupdict()
    try:
        date(int(part["Y"]), int(part["m"]), int(part["d"] or 1))
    except ValueError:
        return None
    text = f"{part['Y']}-{part['m']}"
    for separator, name in (("-", "d"), ("T", "H"), (":", "M")):
        if part[name]:
            text += separator + part[name]
    seconds = (part["S"] or "").lstrip(":")
    text += f":{seconds}" if seconds else ""
    return text + (part["zone"] or "").replace("Z", "+00:00")


def common_format(*texts: str) -> str | None:
    """Find a format, in strptime's directives, in which all the given times are written.

    :return: the first such format in :data:`_COMMON_FORMATS`; None if no format fits all times
    """
    formats = (
        form for form in _COMMON_FORMATS if all(canonical_time(text, form) for text in texts)
    )
    return next(formats, None)


def may_be_date(text: str) -> bool:
    """Whether a text begins like a month or day of ISO 8601, so that it may be a time."""
    return _DATED.fullmatch(text) is not None


# --- to a precision -------------------------------------------------------------------------------


def canonical_month(text: str) -> str | None:
    """Turn ``202405`` into ``2024-05``; None if the text is not a month in this form.

    The function is only for values of partitions: in other texts six digits may be any number.
    """
    month = _BASIC_MONTH.fullmatch(text)
    return f"{month['Y']}-{month['m']}" if month else None


def canonical_day(value: str, form: str = "") -> str | None:
    """Give the day of a date or time as it is written, without conversion to another zone.

    :param value: a date, a time, or a count of days from 1970 on
    :param form: the format of the value, as for :func:`canonical_time`
    :return: None if the value is neither a date, a time nor such a count
    """
    iso = canonical_time(value, form, or_iso=True) or _of_ordinal(value, "day")
    return iso[: PRECISION["day"]] if iso else None


def canonical_of_transform(value: str, form: str, transform: str) -> str | None:
    """Give the year, month, day or hour of a value, in UTC if the value has a zone.

    :param value: a date, a time, or Iceberg's count of years, months, days or hours from 1970 on
    :param form: the format of the value, as for :func:`canonical_time`
    :param transform: a key of :data:`PRECISION`, which names the unit
    :return: None if the value is neither a date, a time nor such a count
    """
    iso = canonical_time(value, form, or_iso=True)
    if iso is None and transform in ("year", "month"):
        iso = canonical_month(value)
    if iso is None and (transform != "year" or len(value) != PRECISION["year"]):
        iso = _of_ordinal(value, transform)
    return in_utc(iso)[: PRECISION[transform]] if iso else None


def _of_ordinal(text: str, transform: str) -> str | None:
    """Write Iceberg's count of years, months, days or hours from 1970 on as a time.

    :param transform: a key of :data:`PRECISION`, which names the unit
    :return: None if the text is not a whole number, or the time is before year 1 or after 9999
    """
    if not _ORDINAL.fullmatch(text):
        return None
    try:
        start = start_of(transform, epoch_of(transform) + int(text))
    except (ValueError, OverflowError):  # before the year 1, or after 9999
        return None
    return start.isoformat()[: PRECISION[transform]]


# --- functions of canonical texts -----------------------------------------------------------------


def has_zone(text: str) -> bool:
    """Whether a time that :func:`in_utc` returned has a zone."""
    return len(text) > PRECISION["hour"] and text.endswith("+00:00")


def in_utc(text: str) -> str:
    """Convert a time with a zone to UTC, at least to the second; return other texts unchanged."""
    if len(text) <= PRECISION["day"] or not _OFFSET.search(text):
        return text
    try:
        return datetime.fromisoformat(text).astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        return text


def to_the_second(text: str) -> str:
    """Extend a time to the first second of the year, month, day, hour or minute that it gives.

    A time with a fraction of a second loses only the trailing zeros of the fraction.
    """
    zone = "+00:00" if has_zone(text) else ""
    second, point, fraction = text.removesuffix(zone).partition(".")
    second += _FIRST_OF_YEAR[len(second) - PRECISION["year"] :]
    fraction = fraction.rstrip("0")
    return f"{second}{point if fraction else ''}{fraction}{zone}"


def to_datetime(text: str, precision: str = "day") -> datetime | None:
    """Read a time in its canonical form; a missing month, day or hour is the first.

    :param precision: the least precision that the text must have, a key of :data:`PRECISION`
    :return: None if the text is not such a time, is less precise, or has a zone
    """
    if len(text) < PRECISION[precision]:
        return None
    try:
        at = datetime.fromisoformat(f"{text}-01-01"[: max(len(text), PRECISION["day"])])
    except ValueError:
        return None
    return at if at.tzinfo is None else None
