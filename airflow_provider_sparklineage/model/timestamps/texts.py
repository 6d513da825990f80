"""Texts of times to their canonical form, so that they can be compared.

``20240506`` in a path, ``2024-05-06`` in a template and the date column of a table are one day. The
canonical form is ISO 8601, to the precision of the text. A zone is kept as an offset, because what
an hour without one means is for the data to say.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

from airflow_provider_sparklineage.model.timestamps.patterns import (
    directives,
    iso_pattern,
    parsed,
    written,
)

PRECISION = {"year": 4, "month": 7, "day": 10, "hour": 13}
"""Characters of ISO 8601 that a transform keeps of a time."""

_YEAR, _MONTH, _DAY = r"(?P<Y>\d{4})", r"(?P<m>0[1-9]|1[0-2])", r"(?P<d>0[1-9]|[12]\d|3[01])"
_HOUR, _MINUTE = r"(?P<H>[01]\d|2[0-3])", r"(?P<M>[0-5]\d)"
_SECOND = r"(?P<S>:[0-5]\d(\.\d{1,9})?)?"
_ZONE = r"(?P<zone>Z|[+-]\d\d:?\d\d)?"
# A year alone is any number; only a format can say that it is a year.
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
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  (Iceberg counts from it, without a zone)
_FIRST = "-01-01T00:00:00"

# In the order in which they are tried.
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

    :param form: the format of the text, as :meth:`~datetime.datetime.strptime` has it; without one
        only ISO 8601 in its extended and its basic form is taken for a time
    :param or_iso: whether a text that is not in the format may be in ISO 8601
    :return: None for what is no time, or not in the format
    """
    if not form and (day := _day(text)):  # what nearly all are: quickly, and kept in no cache
        return day
    return _canonical(text, form) or (canonical_time(text) if form and or_iso else None)


def _day(text: str) -> str | None:
    if len(text) == 8 and text.isdecimal():
        text = f"{text[:4]}-{text[4:6]}-{text[6:]}"
    if len(text) != PRECISION["day"] or text[4] != "-" or text[7] != "-" or not text.isascii():
        return None
    try:
        date.fromisoformat(text)
    except ValueError:
        return None
    return text


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
    """Give the one format that times are written in, as strptime has it; None if there is none."""
    formats = (
        form for form in _COMMON_FORMATS if all(canonical_time(text, form) for text in texts)
    )
    return next(formats, None)


def may_be_date(text: str) -> bool:
    """Whether a text begins as a month or day of ISO 8601 does, so that it may be a time."""
    return _DATED.fullmatch(text) is not None


# --- to a precision -------------------------------------------------------------------------------


def canonical_month(text: str) -> str | None:
    """Write ``202405`` as ``2024-05``; for values, as in other texts it may be any number."""
    month = _BASIC_MONTH.fullmatch(text)
    return f"{month['Y']}-{month['m']}" if month else None


def canonical_day(value: str, form: str = "") -> str | None:
    """Give the day of a date or time as it is written, in whatever zone; None of others.

    :param value: also a count of days from 1970 on
    """
    found = canonical_time(value, form, or_iso=True) or _of_ordinal(value, "day")
    return found[: PRECISION["day"]] if found else None


def canonical_of_transform(value: str, form: str, transform: str) -> str | None:
    """Give the year, month, day or hour, in UTC if there is a zone; None of others.

    :param value: also a count of those from 1970 on, as Iceberg has it
    :param transform: one of :data:`PRECISION`
    """
    found = canonical_time(value, form, or_iso=True)
    if found is None and transform in ("year", "month"):
        found = canonical_month(value)
    if found is None and (transform != "year" or len(value) != PRECISION["year"]):
        found = _of_ordinal(value, transform)
    return in_utc(found)[: PRECISION[transform]] if found else None


def _of_ordinal(text: str, transform: str) -> str | None:
    """Write what Iceberg counts from 1970 on: years, months, days or hours."""
    if not _ORDINAL.fullmatch(text):
        return None
    number = int(text)
    try:
        if transform in ("year", "month"):
            months = number * (12 if transform == "year" else 1)
            first = date(1970 + months // 12, months % 12 + 1, 1)
            return first.isoformat()[: PRECISION[transform]]
        if transform == "day":
            return (_EPOCH.date() + timedelta(days=number)).isoformat()
        return (_EPOCH + timedelta(hours=number)).isoformat()[: PRECISION["hour"]]
    except (ValueError, OverflowError):  # before the year 1, or after 9999
        return None


# --- of canonical texts ---------------------------------------------------------------------------


def has_zone(text: str) -> bool:
    """Whether a time in its canonical form, and :func:`in_utc`, has a zone."""
    return len(text) > PRECISION["hour"] and text.endswith("+00:00")


def in_utc(text: str) -> str:
    """Give a time that has a zone in UTC, to the second or finer; others stay."""
    if len(text) <= PRECISION["day"] or not _OFFSET.search(text):
        return text
    try:
        return datetime.fromisoformat(text).astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        return text


def to_the_second(text: str) -> str:
    """Fill a time up to its second, which is the first that it may be; finer ones stay."""
    zone = "+00:00" if has_zone(text) else ""
    second, point, fraction = text.removesuffix(zone).partition(".")
    second += _FIRST[len(second) - PRECISION["year"] :]
    fraction = fraction.rstrip("0")
    return f"{second}{point if fraction else ''}{fraction}{zone}"


def to_datetime(text: str, precision: str = "day") -> datetime | None:
    """Read a time in its canonical form; the first that it may be.

    :param precision: what it must at least have, of :data:`PRECISION`
    :return: None of others, and of times with a zone
    """
    if len(text) < PRECISION[precision]:
        return None
    try:
        at = datetime.fromisoformat(f"{text}-01-01"[: max(len(text), PRECISION["day"])])
    except ValueError:
        return None
    return at if at.tzinfo is None else None
