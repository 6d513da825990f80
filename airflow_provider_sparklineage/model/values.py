"""Values of partitions in one spelling, by the type, format and transform of their dimension.

================  =================================================================================
times             ISO 8601: ``20240506`` is ``2024-05-06``, and is day 19849 of an Iceberg table
transforms        cut to the year, month, day or hour; a time with a zone is told in UTC before
dates             the day, as it is written: what Spark makes of a text with a time or a zone
timestamps        to the second, or finer if they are
whole numbers     without leading zeros, because Spark reads ``month=05`` as 5
other numbers     without trailing zeros: ``1.10`` is ``1.1``
texts             as they are, unless they are times: ``05`` and ``5`` are two partitions
of unknown type   as texts, but two digits as a number
================  =================================================================================

Null stays null, whatever the type.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from enum import Enum, auto
from functools import lru_cache

from airflow_provider_sparklineage.model.moments import canonical
from airflow_provider_sparklineage.model.partitioning import IDENTITY, NULL, Dimension

KEPT = {"year": 4, "month": 7, "day": 10, "hour": 13}
"""Characters of ISO 8601 that a transform leaves of a time."""


class ValueKind(Enum):
    """What the values of a type are compared as."""

    INTEGRAL = auto()
    FRACTIONAL = auto()
    BOOLEAN = auto()
    DATE = auto()
    TIMESTAMP = auto()
    TEXT = auto()
    UNKNOWN = auto()


# As Spark spells types in schemas (integer) and in SQL (int), and as Iceberg does.
_KINDS = {
    **dict.fromkeys(
        ("byte", "tinyint", "short", "smallint", "int", "integer", "long", "bigint"),
        ValueKind.INTEGRAL,
    ),
    **dict.fromkeys(("float", "double", "decimal"), ValueKind.FRACTIONAL),
    **dict.fromkeys(
        ("timestamp", "timestamptz", "timestamp_ntz", "timestamp_ltz"), ValueKind.TIMESTAMP
    ),
    **dict.fromkeys(("string", "char", "varchar", "uuid"), ValueKind.TEXT),
    "boolean": ValueKind.BOOLEAN,
    "date": ValueKind.DATE,
}
_TYPE = re.compile("[a-z_]+")
_SMALL = re.compile(r"0*(\d{1,2})", re.ASCII)
_WHOLE = re.compile(r"[+-]?\d{1,40}", re.ASCII)
_ORDINAL = re.compile(r"-?\d{1,7}", re.ASCII)
_MONTH = re.compile(r"(\d{4})(0[1-9]|1[0-2])", re.ASCII)
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  (Iceberg counts from it, without a zone)
_ZONE = re.compile(r"[+-]\d\d:?\d\d$")
_PADDING = "-01-01T00:00:00"
_LONGEST_DECIMAL = 40  # exponents beyond it would be spelled with as many digits


def kind_of(dimension: Dimension) -> ValueKind:
    """Tell as what the values of a dimension are compared."""
    return _kind_of(dimension.type)


@lru_cache(maxsize=1_000)
def _kind_of(type_name: str) -> ValueKind:
    base = _TYPE.match(type_name.casefold())
    return _KINDS.get(base[0], ValueKind.UNKNOWN) if base else ValueKind.UNKNOWN


def has_zone(value: str) -> bool:
    """Whether a value that was :func:`spelled` is a time with a zone."""
    return len(value) > KEPT["hour"] and value.endswith("+00:00")


def spelled(value: str, form: str, dimension: Dimension | None) -> str:
    """Spell a value so that it equals other spellings of the same value.

    :param form: how the value spells a time, as strptime has it; empty if that is not known
    :param dimension: the dimension that was seen; None if it was not
    """
    if value == NULL:
        return value
    moment = None if form else _day(value)
    if moment is None:
        moment = canonical(value, form)
    if moment is None and form:
        moment = canonical(value)
    transform = dimension.transform if dimension else IDENTITY
    if transform in KEPT:
        return _transformed(value, moment, transform)
    kind = kind_of(dimension) if dimension else ValueKind.UNKNOWN
    if kind is ValueKind.DATE:
        if moment is None and _ORDINAL.fullmatch(value):
            moment = _of_ordinal(int(value), "day")
        return moment[: KEPT["day"]] if moment else value
    if moment is not None:
        moment = _in_utc(moment)
        return _to_the_second(moment) if kind is ValueKind.TIMESTAMP else moment
    return _plain(value, kind)


def _day(value: str) -> str | None:
    """Spell a day as :func:`.canonical` does, without its cache: most partitions are days."""
    if len(value) == 8 and value.isdecimal():
        value = f"{value[:4]}-{value[4:6]}-{value[6:]}"
    if len(value) != KEPT["day"] or value[4] != "-" or value[7] != "-" or not value.isascii():
        return None
    try:
        date.fromisoformat(value)
    except ValueError:
        return None
    return value


def _plain(value: str, kind: ValueKind) -> str:
    """Spell what is no time, or a month without a separator."""
    if month := _MONTH.fullmatch(value):
        return f"{month[1]}-{month[2]}"
    if kind is ValueKind.INTEGRAL and _WHOLE.fullmatch(value):
        return str(int(value))
    if kind is ValueKind.FRACTIONAL:
        return _decimal(value)
    if kind is ValueKind.BOOLEAN:
        return value.casefold()
    if kind is ValueKind.UNKNOWN and (small := _SMALL.fullmatch(value)):
        return small[1].lstrip("0") or "0"
    return value


def _decimal(value: str) -> str:
    try:
        number = Decimal(value)
    except InvalidOperation:
        return value
    if not number.is_finite() or abs(number.adjusted()) > _LONGEST_DECIMAL:
        return str(number)
    return "0" if number == 0 else f"{number.normalize():f}"


def _transformed(value: str, moment: str | None, transform: str) -> str:
    kept = KEPT[transform]
    is_year = transform == "year" and len(value) == kept
    if moment is None and transform in ("year", "month") and (month := _MONTH.fullmatch(value)):
        moment = f"{month[1]}-{month[2]}"
    if moment is None and _ORDINAL.fullmatch(value) and not is_year:
        moment = _of_ordinal(int(value), transform)
    return _in_utc(moment)[:kept] if moment else value


def _of_ordinal(number: int, transform: str) -> str | None:
    """Spell what Iceberg counts from 1970 on: years, months, days or hours."""
    try:
        if transform in ("year", "month"):
            months = number * (12 if transform == "year" else 1)
            first = date(1970 + months // 12, months % 12 + 1, 1)
            return first.isoformat()[: KEPT[transform]]
        if transform == "day":
            return (_EPOCH.date() + timedelta(days=number)).isoformat()
        return (_EPOCH + timedelta(hours=number)).isoformat()[: KEPT["hour"]]
    except (ValueError, OverflowError):  # before the year 1, or after 9999
        return None


def _in_utc(moment: str) -> str:
    """Tell a time that has a zone in UTC, to the second; others stay."""
    if len(moment) <= KEPT["day"] or not _ZONE.search(moment):
        return moment
    try:
        return datetime.fromisoformat(moment).astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        return moment


def _to_the_second(moment: str) -> str:
    zone = "+00:00" if has_zone(moment) else ""
    plain = moment.removesuffix(zone) if zone else moment
    whole, point, fraction = plain.partition(".")
    whole += _PADDING[len(whole) - 4 :]
    fraction = fraction.rstrip("0")
    return f"{whole}{point if fraction else ''}{fraction}{zone}"
