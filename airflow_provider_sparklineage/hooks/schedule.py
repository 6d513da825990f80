"""What Airflow's schedule says of a run: the upstream partitions from which it follows.

A DAG with the schedule ``PartitionedAssetTimetable`` (Airflow 3.3 and later) has a partition mapper
for each of its assets. A mapper gives the run's key for the key of an asset event; only
``RollupMapper`` has the way back, ``to_upstream``, and Airflow waits for these keys. For the other
mappers of Airflow the way back is worked out here, so that ``K in mapper.to_downstream(u)`` holds
for each upstream key u, and for no other:

============================  ======================================================================
Identity, AllowedKey          the run's own key
Product                       the combinations of the upstream values of each segment
Chain                         from the last mapper to the first
StartOfHour … StartOfYear     every key whose time is in the hour … year
FanOut                        every key whose time is in a period that fans out to the run's key
FixedKey, and the user's own  any key may be upstream, so nothing is expected
============================  ======================================================================
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sparklineage.expectations.schedule import Period, Segment, Upstream
from airflow_provider_sparklineage.model.exceptions import ScheduleError

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_PERIODS = 1000
"""Most periods that are tried to find those that fan out to a key."""
_SPANS = {
    "StartOfHourMapper": timedelta(hours=1),
    "StartOfDayMapper": timedelta(days=1),
    "StartOfWeekMapper": timedelta(days=7),
    "StartOfMonthMapper": timedelta(days=31),
    "StartOfQuarterMapper": timedelta(days=92),
    "StartOfYearMapper": timedelta(days=366),
}
"""For each mapper of times, a span that leads from the start of each period into the next one."""


class ScheduledAsset(NamedTuple):
    """An asset of a DAG's schedule.

    :param name: the asset's name; empty if the schedule refers to the asset by its URI
    :param uri: the asset's URI; empty if the schedule refers to the asset by its name
    :param mapper: its partition mapper, of ``airflow.partition_mappers``
    """

    name: str
    uri: str
    mapper: Any

    @property
    def text(self) -> str:
        """The mapper, for people, e.g. ``RollupMapper(StartOfWeekMapper, WeekWindow)``."""
        return _text(self.mapper)

    def upstream(self, partition_key: str) -> Upstream | None:
        """Give the upstream keys of a run; None if any key may be upstream.

        :raise ScheduleError: if the mapper gives no upstream key the run's key
        """
        try:
            return upstream(self.mapper, partition_key)
        except Exception as error:  # of a mapper of the user's own, too
            problem = (
                f"The schedule's {self.text} for the asset {self.name or self.uri} takes no "
                f"partition key {partition_key!r}: {error}"
            )
            raise ScheduleError(problem) from error


def assets_of(timetable: Any) -> list[ScheduledAsset]:
    """List the assets of a schedule, each with its partition mapper.

    :param timetable: a DAG's timetable, as its author wrote it; [] for all but
        ``PartitionedAssetTimetable``
    :raise ScheduleError: if Airflow cannot serialise the timetable
    """
    if not hasattr(timetable, "partition_mapper_config"):
        return []
    from airflow.serialization.decoders import decode_timetable
    from airflow.serialization.encoders import encode_timetable

    try:
        # The classes that authors import have no logic; Airflow's scheduler uses what is read back.
        schedule = decode_timetable(encode_timetable(timetable))
        refs = schedule.asset_condition.iter_asset_refs()
        names = [
            *((key.name, key.uri) for key, _ in schedule.asset_condition.iter_assets()),
            *((getattr(ref, "name", ""), getattr(ref, "uri", "")) for ref in refs),
        ]
        return [
            ScheduledAsset(name, uri, schedule.get_partition_mapper(name=name, uri=uri))
            for name, uri in dict.fromkeys(names)
        ]
    except Exception as error:
        problem = f"The partition mappers of the schedule cannot be read: {error}"
        raise ScheduleError(problem) from error


def fingerprint(mapper: Any) -> str:
    """Give a text that two mappers share if they give all keys the same upstream keys."""
    from airflow.serialization.encoders import encode_partition_mapper

    return repr(encode_partition_mapper(mapper))


def upstream(mapper: Any, key: str) -> Upstream | None:
    """Give the upstream keys of a run; None if any key may be upstream.

    :param mapper: a partition mapper of ``airflow.partition_mappers``
    :param key: the run's partition key
    :raise Exception: if the mapper gives no upstream key such a key; most often a ValueError
    """
    if getattr(mapper, "is_rollup", False):
        keys = frozenset(mapper.to_upstream(key))
        form = getattr(mapper.upstream_mapper, "input_format", "")
        return Upstream((Segment(keys, format=form),), at_least=_at_least(mapper, len(keys)))
    kind = type(mapper).__name__ if type(mapper).__module__.startswith("airflow.") else ""
    if kind in _SPANS and hasattr(mapper, "decode_downstream"):  # Airflow 3.2 has no way back
        period = _period(mapper, mapper.decode_downstream(key))
        if mapper.format(period.start) != key:
            msg = f"it gives the key {mapper.format(period.start)!r} to that period"
            raise ValueError(msg)
        return _within(mapper, [period])
    match kind:
        case "IdentityMapper" | "AllowedKeyMapper":
            return Upstream((Segment(frozenset([mapper.to_downstream(key)])),))
        case "ProductMapper":
            return _of_product(mapper, key)
        case "ChainMapper":
            return _of_chain(mapper, key)
        case "FanOutMapper":
            return _of_fan_out(mapper, key)
    return None


def _at_least(mapper: Any, count: int) -> int:
    """Give how many of the upstream keys Airflow waits for; one more than all if that never ends.

    :param count: the number of upstream keys
    """
    policy = mapper.wait_policy
    enough = (n for n in range(1, count + 1) if policy.is_satisfied(matched=n, expected=count))
    return next(enough, count + 1)


def _period(mapper: Any, at: datetime) -> Period:
    """Give the period of a mapper of times that has a time."""
    start = mapper.normalize(at)
    return Period(start, mapper.normalize(start + _SPANS[type(mapper).__name__]))


def _within(mapper: Any, periods: list[Period]) -> Upstream | None:
    """Give every key with a time in some periods; None if keys have a zone of their own."""
    if "%z" in mapper.input_format.lower() or any(p.start.tzinfo for p in periods):
        return None
    return Upstream((Segment(periods=frozenset(periods), format=mapper.input_format),))


def _of_product(mapper: Any, key: str) -> Upstream | None:
    texts = key.split(mapper.delimiter)
    if len(texts) != len(mapper.mappers):
        msg = f"it has {len(mapper.mappers)} segments"
        raise ValueError(msg)
    segments: list[Segment] = []
    for of_segment, text in zip(mapper.mappers, texts, strict=True):
        found = upstream(of_segment, text)
        if found is None or len(found.segments) > 1:
            return None
        segments += found.segments
    return Upstream(tuple(segments), mapper.delimiter)


def _of_chain(mapper: Any, key: str) -> Upstream | None:
    found: Upstream | None = Upstream((Segment(frozenset([key])),))
    for of_link in reversed(mapper.mappers):
        if found is None:
            return None
        if found.keys is not None:
            found = _united([upstream(of_link, one) for one in found.keys])
        elif type(of_link).__name__ != "IdentityMapper":
            found = _of_periods(of_link, found)
    return found


def _of_periods(mapper: Any, downstream: Upstream) -> Upstream | None:
    """Give the upstream keys of all keys with a time in some periods.

    :param downstream: the periods
    :return: None if any key may be upstream, or if a period of the mapper is only partly in them
    """
    [*segments] = downstream.segments
    periods = [*segments[0].periods]
    is_whole = type(mapper).__name__ in _SPANS and all(
        at == mapper.normalize(at) for period in periods for at in period
    )
    if len(segments) > 1 or segments[0].keys or not is_whole:
        return None
    return _within(mapper, periods)


def _united(every: list[Upstream | None]) -> Upstream | None:
    """Unite the upstream keys of several keys; None if any key may be upstream of one of them."""
    known = [one for one in every if one is not None]
    if len(known) < len(every) or not known:
        return None
    if len(known) == 1:
        return known[0]
    formats = {segment.format for one in known for segment in one.segments}
    if any(len(one.segments) > 1 for one in known) or len(formats) > 1:
        return None
    segments = [one.segments[0] for one in known]
    keys = frozenset().union(*(segment.keys for segment in segments))
    periods = frozenset().union(*(segment.periods for segment in segments))
    return Upstream((Segment(keys, periods, *formats),))


def _of_fan_out(mapper: Any, key: str) -> Upstream | None:
    coarse, fine = mapper.upstream_mapper, mapper.downstream_mapper
    if type(coarse).__name__ not in _SPANS or type(fine).__name__ not in _SPANS:
        return None
    at = fine.decode_downstream(key)
    periods = []
    for count, period in enumerate(_around(mapper, at)):
        if count == _MOST_PERIODS:
            return None
        with suppress(ValueError):  # windows of months take only the first day of a month
            if key in (fine.format(item) for item in mapper.window.to_upstream(period.start)):
                periods.append(period)
    if not periods:
        msg = "it fans out to no such key"
        raise ValueError(msg)
    return _within(coarse, periods)


def _around(mapper: Any, at: datetime) -> Iterator[Period]:
    """Yield the periods near a time, as far from it as the window of a FanOutMapper is long."""
    coarse = mapper.upstream_mapper
    month = at.replace(day=1, hour=0)
    reach = max(abs(item - month) for item in mapper.window.to_upstream(month))
    reach += _SPANS[type(coarse).__name__]
    period = _period(coarse, at - reach)
    while period.start <= at + reach:
        yield period
        period = _period(coarse, period.end)


def _text(mapper: Any) -> str:
    """Write a mapper for people: its class, and the classes of its parts."""
    names = ("upstream_mapper", "window", "downstream_mapper", "wait_policy")
    name = type(mapper).__name__
    if not type(mapper).__module__.startswith("airflow."):  # what the user's own has is not known
        return name
    parts = [getattr(mapper, name, None) for name in names] + getattr(mapper, "mappers", [])
    texts = [_text(part) for part in parts if part is not None]
    wanted = [text for text in texts if text != "WaitForAll"]
    return f"{name}({', '.join(wanted)})" if wanted else name
