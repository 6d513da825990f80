"""A partition mapper for rules that no mapper of Airflow says, such as a window of seven days.

``sparklineage patterns DATASET --mapper`` prints this file. Put it in the folder ``plugins`` of
Airflow, because Airflow takes mappers of other packages only if a plugin registers them. The file
needs Airflow 3.3 or later, and nothing else.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from calendar import monthrange
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

from airflow.partition_mappers.base import PartitionMapper, RollupMapper
from airflow.partition_mappers.wait_policy import WaitForAll
from airflow.plugins_manager import AirflowPlugin

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from airflow.partition_mappers.wait_policy import WaitPolicy

_FIRST = datetime(1, 1, 1)  # noqa: DTZ001 - the calendar has no zone; a Monday, as weeks begin
_MOMENT = timedelta(microseconds=1)
_LENGTHS = {
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(days=7),
}
_YEARS = (100, 9900)  # keys are within these years, so that all steps from them are times


class PartitionRule(RollupMapper):
    """Start the run of a partition when all partitions that it reads are there.

    A key consists of values, which ``|`` separates. One or several values form an axis:

    * ``unit``: ``minute`` … ``year``, ``number`` or ``text``
    * ``format``: of times, in directives of strftime, or ``epoch`` for a count from 1970 on; of
      numbers the number of digits
    * ``at``: the places of its values in the key, if these are not the place of the axis
    * ``step``: the keys that there are, as a number of units, the unit, and a remainder: ``[7,
      "day", 6]`` are Sundays
    * ``values``: the texts that there are. On an axis of ``upstream``, all of them are needed

    An axis of ``upstream`` follows from the axis ``of`` (by default 0) of ``downstream``: it has
    the same point, or all points of its ``spans``, or the day that is some ``months`` away. A span
    has two bounds, each a unit and a number of units from the downstream key.

    :param downstream: the axes of the keys of the DAG's runs
    :param upstream: the axes of the keys of the asset
    :param wait_policy: by default all partitions must be there
    """

    def __init__(
        self,
        *,
        downstream: Sequence[dict[str, Any]],
        upstream: Sequence[dict[str, Any]],
        wait_policy: WaitPolicy | None = None,
        max_downstream_keys: int | None = None,
    ) -> None:
        PartitionMapper.__init__(self, max_downstream_keys=max_downstream_keys)
        # Airflow compares mappers as JSON, which has lists and no tuples.
        self.downstream, self.upstream = json.loads(json.dumps([downstream, upstream]))
        self.wait_policy = wait_policy or WaitForAll()

    def to_upstream(self, downstream_key: str) -> frozenset[str]:
        """Give the keys of the asset that the run with this key reads."""
        points = _read(self.downstream, downstream_key)
        each = [_following(axis, points, self.downstream) for axis in self.upstream]
        return frozenset(_write(self.upstream, found) for found in product(*each))

    def to_downstream(self, key: str) -> list[str]:
        """Give the keys of all runs that read this key of the asset."""
        points = _read(self.upstream, key)
        links = list(zip(self.upstream, points, strict=True))
        if any(not _has(axis, point) for axis, point in links):
            return []
        each = []
        for n, axis in enumerate(self.downstream):
            of = [(up, at) for up, at in links if up.get("of", 0) == n and "values" not in up]
            sets = [set(_inverse(up, at, axis["unit"])) for up, at in of]
            known = set.intersection(*sets) if sets else axis["values"]
            each.append(sorted(point for point in known if _has(axis, point)))
        return [_write(self.downstream, found) for found in product(*each)]

    def to_partition_date(self, downstream_key: str) -> datetime | None:
        """Give the begin of the key's time; None if it has none, or several."""
        points = zip(self.downstream, _read(self.downstream, downstream_key), strict=True)
        times = [(axis["unit"], at) for axis, at in points if axis["unit"] not in _UNTIMED]
        return _start(*times[0]).replace(tzinfo=UTC) if len(times) == 1 else None

    def serialize(self) -> dict[str, Any]:
        """Give the arguments as JSON."""
        from airflow.serialization.encoders import encode_wait_policy

        return {
            "downstream": self.downstream,
            "upstream": self.upstream,
            "wait_policy": encode_wait_policy(self.wait_policy),
            "max_downstream_keys": self.max_downstream_keys,
        }

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> PartitionRule:
        """Make the mapper from JSON."""
        from airflow.serialization.decoders import decode_wait_policy

        return cls(**{**data, "wait_policy": decode_wait_policy(data["wait_policy"])})


_UNTIMED = ("number", "text")


def _read(axes: Sequence[dict[str, Any]], key: str) -> list[Any]:
    values = key.split("|")
    points = []
    try:
        for n, axis in enumerate(axes):
            points.append(_point(axis, "|".join(values[place] for place in axis.get("at", [n]))))
        is_same = _write(axes, points) == key
    except (ValueError, IndexError, OverflowError):
        is_same = False
    if not is_same:
        msg = f"{key!r} is no key of {axes}."
        raise ValueError(msg)
    return points


def _point(axis: dict[str, Any], text: str) -> Any:
    unit, form = axis["unit"], axis.get("format", "")
    if unit == "text":
        return text
    if unit == "number" or form == "epoch":
        return int(text) + (_number(unit, datetime(1970, 1, 1)) if form == "epoch" else 0)  # noqa: DTZ001
    form = form.replace("%-", "%")
    if "%V" in form:  # a week is read by its first day
        form, text = f"{form} %u", f"{text} 1"
    return _number(unit, datetime.strptime(text, form))  # noqa: DTZ007 - as above


def _write(axes: Sequence[dict[str, Any]], points: Iterable[Any]) -> str:
    values: dict[int, str] = {}
    for n, (axis, point) in enumerate(zip(axes, points, strict=True)):
        values |= zip(axis.get("at", [n]), _text(axis, point).split("|"), strict=True)
    return "|".join(values[place] for place in sorted(values))


def _text(axis: dict[str, Any], point: Any) -> str:
    unit, form = axis["unit"], axis.get("format", "")
    if unit == "text":
        return str(point)
    if unit == "number":
        return str(point).zfill(form or 0)
    if form == "epoch":
        return str(point - _number(unit, datetime(1970, 1, 1)))  # noqa: DTZ001
    return _start(unit, point).strftime(form)


def _has(axis: dict[str, Any], point: Any) -> bool:
    if "values" in axis:
        return _text(axis, point) in axis["values"]
    if "step" not in axis:
        return True
    size, unit, rest = axis["step"]
    number = _first_in(axis["unit"], point, unit)
    return bool(_first_in(unit, number, axis["unit"]) == point and number % size == rest)


def _following(axis: dict[str, Any], points: list[Any], axes: list[dict[str, Any]]) -> list[Any]:
    if "values" in axis:
        return [_point(axis, text) for text in axis["values"]]
    of = axis.get("of", 0)
    ends = [_ends(axis, bounds, axes[of]["unit"], points[of]) for bounds in _spans(axis)]
    found = [n for first, last in ends for n in range(first, last + 1)] if ends else [points[of]]
    return [point for point in found if _has(axis, point)]


def _inverse(axis: dict[str, Any], point: Any, unit: str) -> Iterable[Any]:
    """Find the downstream points by bisection, because both ends grow with them."""
    spans = _spans(axis)
    if not spans:
        yield point
    numbers = range(-(10**18), 10**18)
    if unit not in _UNTIMED:
        numbers = range(*(_number(unit, _FIRST.replace(year=year)) for year in _YEARS))
    for span in spans:
        begin, end = (
            bisect_left(numbers, x=True, key=partial(_is_beyond, axis, span, unit, point, which))
            for which in (1, 0)
        )
        yield from numbers[begin:end]


def _is_beyond(axis: dict[str, Any], span: Any, unit: str, point: int, which: int, n: int) -> bool:
    return _ends(axis, span, unit, n)[which] >= point + 1 - which


def _spans(axis: dict[str, Any]) -> list[Any]:
    return [axis["months"]] if "months" in axis else axis.get("spans", [])


def _ends(axis: dict[str, Any], span: Any, unit: str, point: int) -> tuple[int, int]:
    """Give the first and the last upstream point of a span from a downstream point."""
    if isinstance(span, int):
        at = _later(unit, point, span)
        return at, at
    (first, before), (last, after) = span
    begin = _first_in(unit, point, first) + before
    end = _last_in(unit, point, last) + after
    return _first_in(first, begin, axis["unit"]), _last_in(last, end, axis["unit"])


def _first_in(unit: str, number: int, inner: str) -> int:
    return number if unit == inner else _number(inner, _start(unit, number))


def _last_in(unit: str, number: int, inner: str) -> int:
    return number if unit == inner else _number(inner, _start(unit, number + 1) - _MOMENT)


def _later(unit: str, number: int, months: int) -> int:
    """Give the same day some months later, or the last day of a shorter month."""
    at = _start(unit, number)
    year, month = divmod(_number("month", at) + months, 12)
    day = min(at.day, monthrange(year, month + 1)[1])
    return _number(unit, at.replace(year=year, month=month + 1, day=day))


def _number(unit: str, at: datetime) -> int:
    """Give the number of a minute, …, year; the next has the next number."""
    if unit == "year":
        return at.year
    if unit == "month":
        return at.year * 12 + at.month - 1
    return (at - _FIRST) // _LENGTHS[unit]


def _start(unit: str, number: int) -> datetime:
    """Give the time at which a minute, …, year begins."""
    if unit == "year":
        return _FIRST.replace(year=number)
    if unit == "month":
        return _FIRST.replace(year=number // 12, month=number % 12 + 1)
    return _FIRST + number * _LENGTHS[unit]


class PartitionRulePlugin(AirflowPlugin):
    """Registers the mapper in Airflow."""

    name = "partition_rule"
    partition_mappers = [PartitionRule]  # noqa: RUF012 - Airflow reads a list
