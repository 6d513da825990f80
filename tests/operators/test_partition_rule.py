"""Airflow's timetables from learned rules: Airflow's own mappers say what the rules say."""

from __future__ import annotations

import random
import re
from datetime import date, timedelta
from itertools import product
from operator import contains

import pytest

pytest.importorskip("airflow.partition_mappers.window", reason="Airflow 3.3 has it")

from airflow import plugins_manager, sdk
from airflow.serialization.decoders import decode_partition_mapper
from airflow.serialization.encoders import encode_partition_mapper

from airflow_provider_sparklineage.history.queries.patterns.axes import (
    Axes,
    Axis,
    Columns,
    Counts,
    Numbers,
    Refined,
    Times,
)
from airflow_provider_sparklineage.history.queries.patterns.rules import (
    Bound,
    Constant,
    Every,
    Link,
    Months,
    Offsets,
    Relation,
    Rule,
    Span,
)
from airflow_provider_sparklineage.history.queries.patterns.timetable import (
    UnsaidError,
    mapper_of,
)
from airflow_provider_sparklineage.model.partitioning import Partition
from airflow_provider_sparklineage.model.timestamps import number_of, parsed
from airflow_provider_sparklineage.operators.partition_check import partition_key
from airflow_provider_sparklineage.plugins.partition_rule import PartitionRule


@pytest.fixture(autouse=True)
def plugin(monkeypatch):
    """Register the mapper, as the plugin in its file does."""
    name = f"{PartitionRule.__module__}.{PartitionRule.__qualname__}"
    monkeypatch.setattr(
        plugins_manager, "get_partition_mapper_plugins", lambda: {name: PartitionRule}
    )


def axes(*those):
    return Axes(frozenset(label for axis in those for label in axis.labels), those)


def times(label, unit="day", form="%Y-%m-%d"):
    return Times((label,), unit, form)


def number(text, unit="day"):
    return number_of(unit, parsed(text, "%Y-%m-%d"))


def span(given, found, first, last, anchor=None):
    anchor = anchor or given
    return Span(given, found, Bound(anchor, first), Bound(anchor, last))


def one(given, found, rule):
    return Relation(axes(given), axes(found), (Link(0, rule),))


DT, DS = times("dt"), times("ds", form="%Y%m%d")
HOUR, MONTH = times("hour", "hour", "%Y-%m-%dT%H"), times("month", "month", "%Y-%m")
YEAR, WEEK = times("year", "year", "%Y"), times("week", "week", "%G-W%V")
REGION, COUNTRY = Axis(("region",)), Axis(("country",))
PARTS = Columns(("year", "month", "day"), "day", (4, 1, 2))
HOURS = Refined(("dt", "hr"), "hour", "%Y-%m-%d", 1)
COUNT, NUMBER = Counts(("ts_day",), "day"), Numbers(("batch",), "number", 5)
FIRST, LAST = number("2000-02-28"), number("2030-01-01")
SUNDAYS = range(FIRST + (6 - FIRST) % 7, LAST, 7)
MONDAYS = range(FIRST - FIRST % 7 + 7, LAST, 7)
FIRSTS = [number(f"{year}-{month:02}-01") for year in range(2000, 2030) for month in range(1, 13)]
SAME, TEXT = span("day", "day", 0, 0), Rule("text", "text")

TWO = Relation(
    axes(DT, REGION), axes(DT, REGION), (Link(0, span("day", "day", -6, 0)), Link(1, TEXT))
)
SWAPPED = Relation(axes(DT, REGION), axes(COUNTRY, DT), (Link(1, TEXT), Link(0, SAME)))
MIXED = Relation(axes(DT, REGION), axes(DS, REGION), (Link(0, SAME), Link(1, TEXT)))
RATES = Relation(axes(DT, REGION), axes(DS), (Link(0, span("day", "day", -1, -1)),))
LISTED = Relation(
    axes(DT), axes(DT, REGION), (Link(0, SAME), Link(0, Constant("day", "text", ("eu", "us"))))
)
CASES = {
    # name: (relation, points of each downstream axis, the beginning of the code)
    "the same day": (one(DT, DT, SAME), [range(FIRST, LAST)], "IdentityMapper"),
    "the same text": (one(REGION, REGION, TEXT), [["eu", "us"]], "IdentityMapper"),
    "another format": (one(DT, DS, SAME), [range(FIRST, LAST)], "StartOfDayMapper"),
    "the same of two": (
        Relation(axes(DT, REGION), axes(DT, REGION), (Link(0, SAME), Link(1, TEXT))),
        [range(FIRST, LAST), ["eu", "us"]],
        "IdentityMapper",
    ),
    "two, one in another format": (MIXED, [range(FIRST, LAST), ["eu"]], "ProductMapper"),
    "two in another order": (SWAPPED, [range(FIRST, LAST), ["eu", "us"]], "PartitionRule"),
    "yesterday": (
        one(DT, DT, span("day", "day", -1, -1)),
        [range(FIRST, LAST)],
        "PartitionRule",
    ),
    "seven days": (one(DT, DT, span("day", "day", -6, 0)), [range(FIRST, LAST)], "PartitionRule"),
    "days around": (one(DT, DS, span("day", "day", -2, 3)), [range(FIRST, LAST)], "PartitionRule"),
    "the week that ends": (one(DT, DT, span("day", "day", -6, 0)), [SUNDAYS], "PartitionRule"),
    "the week that begins": (one(DT, DT, span("day", "day", 0, 6)), [MONDAYS], "RollupMapper"),
    "days of ISO weeks": (
        one(WEEK, DT, span("week", "day", 0, 0)),
        [range(FIRST // 7, LAST // 7)],
        "PartitionRule",
    ),
    "hours of a day": (
        one(DT, HOUR, span("day", "hour", 0, 0)),
        [range(FIRST, LAST)],
        "RollupMapper",
    ),
    "days of a month": (
        one(MONTH, DT, span("month", "day", 0, 0)),
        [range(24000, 24360)],
        "RollupMapper",
    ),
    "days of a month by its first": (
        one(DT, DS, span("day", "day", 0, 0, "month")),
        [FIRSTS],
        "RollupMapper",
    ),
    "days of the month before": (
        one(MONTH, DT, span("month", "day", -1, -1)),
        [range(24000, 24360)],
        "PartitionRule",
    ),
    "months of a year": (
        one(YEAR, MONTH, span("year", "month", 0, 0)),
        [range(1900, 2100)],
        "RollupMapper",
    ),
    "days of a year": (
        one(YEAR, DT, span("year", "day", 0, 0)),
        [range(1990, 2030)],
        "PartitionRule",
    ),
    "the quarter": (
        one(MONTH, MONTH, span("month", "month", 0, 2)),
        [range(24000, 24360, 3)],
        "PartitionRule",
    ),
    "the month of a day": (
        one(DT, MONTH, span("day", "month", 0, 0, "month")),
        [range(FIRST, LAST)],
        "FanOutMapper",
    ),
    "the day of an hour": (
        one(HOUR, DT, span("hour", "day", 0, 0, "day")),
        [range(FIRST * 24, LAST * 24, 1)],
        "FanOutMapper",
    ),
    "the month before": (
        one(DT, MONTH, span("day", "month", -1, -1, "month")),
        [range(FIRST, LAST)],
        "PartitionRule",
    ),
    "month to date": (
        one(DT, DT, Span("day", "day", Bound("month", 0), Bound("day", 0))),
        [range(FIRST, LAST)],
        "PartitionRule",
    ),
    "today and a week ago": (
        one(DT, DT, Offsets("day", "day", (-7, 0))),
        [range(FIRST, LAST)],
        "PartitionRule",
    ),
    "a month ago": (one(DT, DT, Months("day", "day", -1)), [range(FIRST, LAST)], "PartitionRule"),
    "numbers": (
        one(NUMBER, NUMBER, span("number", "number", -1, 0)),
        [range(0, 90_000)],
        "PartitionRule",
    ),
    "counts": (one(DT, COUNT, span("day", "day", -1, 0)), [range(FIRST, LAST)], "PartitionRule"),
    "year, month, day": (
        one(PARTS, DT, span("day", "day", -6, 0)),
        [range(FIRST, LAST)],
        "PartitionRule",
    ),
    "dt, hour": (
        one(HOURS, HOURS, span("hour", "hour", -3, -1)),
        [range(FIRST * 24, LAST * 24)],
        "PartitionRule",
    ),
    "seven days of a region": (TWO, [range(FIRST, LAST), ["eu", "us"]], "PartitionRule"),
    "rates of all regions": (RATES, [range(FIRST, LAST), ["eu", "us"]], "PartitionRule"),
    "listed regions": (LISTED, [range(FIRST, LAST)], "PartitionRule"),
    "a fixed key": (
        one(REGION, COUNTRY, Constant("text", "text", ("at", "de"))),
        [["world"]],
        "RollupMapper",
    ),
}


def key(axes_, points):
    values = {}
    for axis, point in zip(axes_.axes, points, strict=True):
        values |= axis.write(point)
    return "|".join(values[label] for label in sorted(values))


def cell_of(axes_, text):
    return zip(sorted(axes_.labels), text.split("|"), strict=True)


def some_points(places, rng, most):
    """Choose neighbours, whose windows overlap, and others from the whole range."""
    sides = [
        side if len(side) <= 2 * most else [*side[: most // 2], *rng.sample(side, most // 2)]
        for side in places
    ]
    found = list(product(*sides))
    return found if len(found) <= most else rng.sample(found, most)


def cells(axes_, points):
    return {axes_.write(at) for at in points}


def followed(relation, points):
    each = [link.rule.following(points[link.axis]) for link in relation.links]
    return {key(relation.found, found) for found in product(*each)}


def in_airflow(code):
    """Execute an expression in the names of the DAG, and bring it where the scheduler has it."""
    names = {name: getattr(sdk, name) for name in re.findall(r"(\w+)\(", code) if name[0] != "P"}
    names |= {"ProductMapper": sdk.ProductMapper, "PartitionRule": PartitionRule}
    mapper = eval(code, names)
    encoded = encode_partition_mapper(mapper)
    core = decode_partition_mapper(encoded)
    assert encode_partition_mapper(core) == encoded  # or Airflow takes it for another mapper
    return core


def downstream(mapper, text):
    found = mapper.to_downstream(text)
    return {found} if isinstance(found, str) else set(found)


@pytest.mark.parametrize("most", [20, pytest.param(1_000, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", CASES)
def test_the_mapper_in_airflow_says_what_the_rule_says(name, most):
    relation, places, beginning = CASES[name]
    rng = random.Random(name)
    chosen = some_points(places, rng, most)
    # The step of all that is written is what the chosen ones have in common.
    written = cells(relation.given, list(product(*(side[:40] for side in places))))
    code = mapper_of(relation, written, ()).code
    assert code.startswith(f"{beginning}(")
    mapper = in_airflow(code)
    rules = {key(relation.given, at): followed(relation, at) for at in chosen}
    has = [set(side) for side in places]
    for of, reads in rules.items():
        if mapper.is_rollup:
            assert mapper.to_upstream(of) == reads
        else:
            assert len(reads) == 1
        for text in rng.sample(sorted(reads), min(most, len(reads))):
            assert of in downstream(mapper, text)
    every = sorted(set().union(*rules.values()))
    for text in rng.sample(every, min(most, len(every))):
        for of in downstream(mapper, text):
            points = relation.given.read("/".join(map("=".join, cell_of(relation.given, of))))
            assert text in followed(relation, points)
            if len(places) > 1 or places[0] in (SUNDAYS, MONDAYS, FIRSTS):
                within = [
                    min(side) <= at <= max(side) for side, at in zip(has, points, strict=True)
                ]
                assert not all(within) or all(map(contains, has, points))


@pytest.mark.parametrize(
    ("relation", "reason"),
    [
        (Relation(axes(DT), axes(), special="whole"), "the whole dataset is read"),
        (Relation(axes(DT), axes(), special="none"), "no rule is known"),
        (one(times("logical_date"), DT, SAME), "the dates of the run"),
        (one(DT, REGION, Every("day", "text")), "every value of region"),
        (one(DT, DT, Span("day", "day", Bound("", FIRST), Bound("day", 0))), "a fixed end"),
        (one(DT, DT, Constant("day", "day", (FIRST,))), "do not follow from dt"),
    ],
)
def test_a_rule_that_no_mapper_says_has_a_reason(relation, reason):
    written = [f"dt={date(2024, 1, 1) + timedelta(n)}" for n in range(40)]
    with pytest.raises(UnsaidError, match=reason):
        mapper_of(relation, written, ())


def test_partitions_that_never_come_are_not_waited_for():
    days = [date(2024, 1, 1) + timedelta(n) for n in range(60)]
    known = [f"dt={day}" for day in days if day.weekday() < 5]
    written = [f"dt={day}" for day in days]
    mapper = mapper_of(one(DT, DT, span("day", "day", -6, 0)), written, known)
    assert mapper.most_absent == 2
    core = in_airflow(mapper.code)
    expected = core.to_upstream("2024-02-11")
    there = {day for day in expected if date.fromisoformat(day).weekday() < 5}
    assert core.wait_policy.is_satisfied_by_keys(matched=there, expected=expected).satisfied
    less = there - {"2024-02-09"}
    assert not core.wait_policy.is_satisfied_by_keys(matched=less, expected=expected).satisfied


DAYS = [date(2024, 1, 1) + timedelta(n) for n in range(60)]
NO_SUNDAYS = [f"dt={day}" for day in DAYS if day.weekday() < 6]
EACH_DAY = [f"dt={day}" for day in DAYS]


def test_runs_of_which_nothing_came_change_no_policy_and_are_named():
    mapper = mapper_of(one(DT, DT, span("day", "day", -1, -1)), EACH_DAY, NO_SUNDAYS)
    mondays = [f"dt={day}" for day in DAYS if day.weekday() == 0]
    assert mapper.most_absent == 0
    assert list(mapper.unstarted) == mondays[1:]  # what Monday, 1 January read is not known
    assert "MinimumCount" not in mapper.code
    core = in_airflow(mapper.code)
    assert core.to_upstream("2024-01-08") == {"2024-01-07"}  # which never comes
    tuesday = core.to_upstream("2024-01-09")
    assert not core.wait_policy.is_satisfied_by_keys(matched=set(), expected=tuesday).satisfied


def test_one_day_that_never_came_leaves_the_mapper_of_airflow():
    mapper = mapper_of(one(DT, DT, SAME), EACH_DAY, [d for d in EACH_DAY if d != "dt=2024-02-01"])
    assert (mapper.code, mapper.unstarted) == ("IdentityMapper()", ("dt=2024-02-01",))


def test_a_policy_that_waits_for_nothing_is_not_printed():
    to_date = one(DT, DT, Span("day", "day", Bound("month", 0), Bound("day", 0)))
    working_days = [f"dt={day}" for day in DAYS if day.weekday() < 5]
    with pytest.raises(UnsaidError, match=r"up to 8 of the partitions .* read no more than 1:"):
        mapper_of(to_date, EACH_DAY, working_days)


@pytest.mark.parametrize("text", ["2024-1-1", "x", "2024-01-01|eu", "", "2024-02-30"])
def test_a_key_that_is_none_of_the_rule_is_refused(text):
    core = in_airflow(mapper_of(one(DT, DT, span("day", "day", -6, 0)), (), ()).code)
    with pytest.raises(ValueError, match="is no key of"):
        core.to_downstream(text)


def test_keys_in_the_order_of_the_columns_need_the_format_that_the_comment_names():
    core = in_airflow(mapper_of(TWO, (), ()).code)
    partition = Partition.from_values([("region", "eu"), ("dt", "2024-05-06")])
    with pytest.raises(ValueError, match="is no key of"):
        core.to_downstream(partition_key(partition, key_format=True))
    assert "2024-05-06|eu" in core.to_downstream(partition_key(partition, "{dt}|{region}"))


def test_the_date_of_a_partition_is_that_of_its_only_time():
    core = in_airflow(mapper_of(TWO, (), ()).code)
    assert core.to_partition_date("2024-05-06|eu").isoformat() == "2024-05-06T00:00:00+00:00"


def test_no_mappers_of_airflow_together_make_a_rolling_window():
    """So that the class of our own can go when they do."""
    day = sdk.StartOfDayMapper(input_format="%Y-%m-%d")
    fan_out = sdk.FanOutMapper(upstream_mapper=day, window=sdk.WeekWindow())
    back = sdk.WeekWindow(direction=sdk.Window.Direction.BACKWARD)
    with pytest.raises(TypeError, match="expects decoded values of type 'datetime'"):
        sdk.RollupMapper(upstream_mapper=fan_out, window=back)
    rollup = sdk.RollupMapper(upstream_mapper=day, window=back)
    chain = decode_partition_mapper(encode_partition_mapper(sdk.ChainMapper(fan_out, rollup)))
    assert len(chain.to_downstream("2024-05-06")) == 7
    assert not chain.is_rollup  # so the first event starts all seven runs
