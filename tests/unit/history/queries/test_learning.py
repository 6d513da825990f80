"""What is learned of pairs of partitions is the rule that made them."""

from __future__ import annotations

from contextlib import suppress
from datetime import date, datetime, timedelta
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_sparklineage.history.queries.answers import values_of
from airflow_provider_sparklineage.history.queries.patterns.axes import (
    Axes,
    Refined,
    Step,
    axes_of,
)
from airflow_provider_sparklineage.history.queries.patterns.inverse import InverseRelation
from airflow_provider_sparklineage.history.queries.patterns.learning import (
    KnownPoints,
    Observed,
    Pair,
    deviation,
    judged,
    learn,
)
from airflow_provider_sparklineage.history.queries.patterns.rules import (
    Bound,
    Link,
    Offsets,
    Relation,
    Rule,
    Span,
)
from airflow_provider_sparklineage.model.partitioning import Partition
from airflow_provider_sparklineage.model.timestamps import number_of

FIRST = date(2024, 1, 1)
START = datetime(2024, 1, 1)  # noqa: DTZ001  (times of the tables have no zone)


def day(number: int) -> str:
    return f"dt={FIRST + timedelta(number)}"


def pair(number: int, given: list[str], found: list[str] | None) -> Pair:
    return Pair(str(number), given, found, START + timedelta(number))


def daily(found, days: int = 60):
    return learn([pair(n, [day(n)], found(n)) for n in range(days)])


def month_of(number: int) -> str:
    return f"{FIRST + timedelta(number):%Y-%m}"


def days_of(month: str) -> list[str]:
    return [day(n) for n in range(366) if month_of(n) == month]


def leading(relation, cell, among, known=()):
    """Give those of some given partitions that lead to a found one."""
    inverse = InverseRelation(relation, [values_of(one) for one in among], known)
    return [among[number] for number in inverse.leading_to(cell)]


def _texts(axes, points):
    for one in points:
        with suppress(ValueError, OverflowError):  # outside of the years 1 to 9999
            yield axes.write(one)


def expected(relation, given, known=()):
    """Give the found cells that follow from given cells; known ones where values do not follow."""
    points = [at for cell in given if (at := relation.given.read(cell)) is not None]
    if not relation.links or not points:
        return []
    wanted = [at for box in relation.boxes(points) for at in product(*box)]
    if len(relation.kept) == len(relation.links):
        return list(dict.fromkeys(_texts(relation.found, wanted)))
    read = {cell: relation.found.read(cell) for cell in known}
    on_kept = relation.on_kept(read.values())
    return [cell for cell, at in zip(read, on_kept, strict=True) if at in wanted]


RULES = {
    "same": (lambda n: [day(n)], "same", "dt = dt"),
    "the day before": (lambda n: [day(n - 1)], "offset", "dt = dt - 1 day"),
    "seven days": (
        lambda n: [day(n - k) for k in range(7) if n >= k],
        "window",
        "dt = dt - 6 days to dt",
    ),
    "the day and a week before": (
        lambda n: [day(n), day(n - 7)],
        "offsets",
        "dt = dt - 7 days, dt",
    ),
    "other format": (
        lambda n: [f"day={FIRST + timedelta(n):%Y%m%d}"],
        "same",
        "day = dt",
    ),
    "month": (lambda n: [f"month={month_of(n)}"], "period", "month = month of dt"),
    "week": (
        lambda n: [f"week={FIRST + timedelta(n):%G-W%V}"],
        "period",
        "week = week of dt",
    ),
    "hours": (
        lambda n: [f"hour={FIRST + timedelta(n)}T{hour:02}" for hour in range(24)],
        "parts",
        "hour = hours of dt",
    ),
    "columns": (
        lambda n: [f"day={(d := FIRST + timedelta(n)).day}/month={d.month}/year={d.year}"],
        "same",
        "year/month/day = dt",
    ),
    "month to date": (
        lambda n: [d for d in days_of(month_of(n)) if d <= day(n)],
        "span",
        "dt = first day of the month of dt to dt",
    ),
    "since a day": (
        lambda n: [day(k) for k in range(n + 1)],
        "span",
        "dt = 2024-01-01 to dt",
    ),
    "hours in a dimension of their own": (
        lambda n: [f"{day(n)}/hour={hour}" for hour in range(24)],
        "parts",
        "dt/hour = hours of dt",
    ),
    "two hours": (
        lambda n: [f"{day(n)}/hour={hour}" for hour in (0, 12)],
        "same",
        "dt = dt, hour = always 0, 12",
    ),
    "hours of which one is missing on some days": (
        lambda n: [f"{day(n)}/hour={hour}" for hour in range(24) if n % 3 or hour != n % 24],
        "parts",
        "dt/hour = hours of dt",
    ),
    "hours that differ": (
        lambda n: [f"{day(n)}/hour={hour}" for hour in range(5, 20) if hour != 5 + n % 15],
        "same",
        "dt = dt, hour = every value",
    ),
    "days in a dimension of their own": (
        lambda n: [f"day={(FIRST + timedelta(n)).day}/month={month_of(n)}"],
        "same",
        "month/day = dt",
    ),
    "counted from 1970": (
        lambda n: [f"ts_day={(FIRST + timedelta(n)).toordinal() - 719163}"],
        "same",
        "ts_day = dt",
    ),
    "constant": (lambda _: ["version=3"], "constant", "version = always 3"),
    "regions": (
        lambda n: [f"{day(n)}/region={region}" for region in ("eu", "us")],
        "same",
        "dt = dt, region = always eu, us",
    ),
    "whole": (lambda _: None, "whole", "the whole dataset"),
}


@pytest.mark.parametrize(("found", "kind", "text"), RULES.values(), ids=RULES)
def test_the_rule_of_each_kind_is_learned(found, kind, text):
    learned = daily(found)
    assert (learned.relation.kind, learned.relation.described()) == (kind, text)
    assert (learned.support, learned.seen, learned.exceptions) == (60, 60, {})


def test_a_month_needs_its_days_also_one_that_was_never_written():
    pairs = [pair(n, [f"month=2024-{n:02}"], days_of(f"2024-{n:02}")) for n in range(1, 13)]
    relation = learn(pairs).relation
    february = [f"dt=2025-02-{n:02}" for n in range(1, 29)]
    assert relation.kind == "parts"
    assert expected(relation, ["month=2025-02"]) == february
    months = [f"month=2025-{n:02}" for n in range(1, 13)]
    assert leading(relation, "dt=2025-02-28", months) == ["month=2025-02"]


def test_a_report_by_week_follows_from_a_day_on_its_monday_only():
    weeks = [pair(n, [day(7 * n)], [day(7 * n + k) for k in range(7)]) for n in range(8)]
    relation = learn(weeks).relation
    written = [day(7 * n) for n in range(8)]
    assert leading(relation, day(101), [day(n) for n in range(80, 120)], written) == [day(98)]


@pytest.mark.parametrize("label", ["hour", "hr", "h", "HH", "event_hour"])
def test_an_hour_of_a_dimension_of_its_own_follows_from_the_hour_before(label):
    """Also over midnight."""
    cells = [f"{label}={n % 24}/{day(n // 24)}" for n in range(100)]
    relation = learn([pair(n, [cells[n]], [cells[n - 1]]) for n in range(1, 100)]).relation
    assert relation.described() == f"dt/{label} = dt/{label} - 1 hour"
    assert expected(relation, [f"{label}=0/dt=2024-05-06"]) == [
        str(Partition(tuple(sorted({label: "23", "dt": "2024-05-05"}.items()))))
    ]


AXES_OF_ONE = {
    "a day and its hour": (["dt=2024-05-06/hour=3", "dt=2024-05-06/hour=23"], ["dt/hour hour"]),
    "a null hour among many": (
        [*(f"dt=2024-05-06/hour={n}" for n in range(24)), "dt=2024-05-06/hour=__HIVE_DEFAULT__"],
        ["dt/hour hour"],
    ),
    "a month and its day": (["day=31/month=2024-05", "day=1/month=2024-06"], ["month/day day"]),
    "no hours": (["dt=2024-05-06/hour=3", "dt=2024-05-06/hour=24"], ["dt day", "hour number"]),
    "no such day": (["day=31/month=2024-02"], ["day number", "month month"]),
    "numbers": (["dt=2024-05-06/shard=3"], ["dt day", "shard number"]),
    "an hour of no day": (["hour=3/region=eu"], ["hour number", "region text"]),
    "two days": (
        ["dt=2024-05-06/hour=3/loaded=2024-05-07"],
        ["dt day", "hour number", "loaded day"],
    ),
    "two hours": (["dt=2024-05-06/hour=3/hr=4"], ["dt day", "hour number", "hr number"]),
    "columns": (["day=6/hour=3/month=5/year=2024"], ["year/month/day/hour hour"]),
}


@pytest.mark.parametrize(("cells", "axes"), AXES_OF_ONE.values(), ids=AXES_OF_ONE)
def test_a_day_and_its_hour_are_one_axis(cells, axes):
    """Only if nearly all values form times, and no second dimension has such a name."""
    assert [f"{'/'.join(axis.labels)} {axis.unit}" for axis in axes_of(cells).axes] == axes


@pytest.mark.parametrize("value", ["24", "-1", "3.5", "003", "__HIVE_DEFAULT_PARTITION__"])
def test_a_value_that_is_no_hour_is_on_no_axis(value):
    """Its partition has no points."""
    axes = axes_of([f"dt=2024-05-06/hour={hour}" for hour in range(24)])
    assert axes.read(f"dt=2024-05-06/hour={value}") is None


@given(hours=st.sets(st.integers(0, 80_000_000), min_size=1), width=st.sampled_from([1, 2]))
def test_a_day_and_its_hour_are_read_as_they_were_written(hours, width):
    """Reading gives the number of the hour, in all years."""
    axis = Refined(("dt", "hour"), "hour", "%Y-%m-%d", width)
    axes = Axes(frozenset(axis.labels), (axis,))
    assert [axes.read(axes.write((hour,))) for hour in hours] == [(hour,) for hour in hours]


@given(st.integers(0, 3_600_000))
def test_a_month_and_its_day_are_read_as_they_were_written(number):
    """Reading gives the number of the day, in all years."""
    axis = Refined(("month", "day"), "day", "%Y-%m")
    assert axis.read(axis.write(number)) == number


@given(
    points=st.sets(st.integers(700_000, 800_000), min_size=2, max_size=60),
    ends=st.tuples(st.integers(700_000, 800_000), st.integers(700_000, 800_000)),
)
def test_points_between_two_are_on_the_step_and_counted(points, ends):
    """Neither end is among them."""
    first, last = sorted(ends)
    step = Step.of("day", points)
    between = list(step.between(first, last))
    assert len(between) == step.count_between(first, last)
    if step.size and step.calendar == "day":
        assert between == [n for n in range(first + 1, last) if step.has(n)]


def test_a_step_of_months_has_the_first_days_between():
    """Whether or not the ends begin a month."""
    firsts = [number_of("day", datetime(2024, n, 1)) for n in range(1, 13)]  # noqa: DTZ001
    step = Step.of("day", firsts)
    assert list(step.between(firsts[2], firsts[5])) == firsts[3:5]
    assert list(step.between(firsts[2] - 1, firsts[5] + 1)) == firsts[2:6]


def test_the_same_day_of_the_month_before_ends_with_a_short_month():
    def before(n: int) -> list[str]:
        at = FIRST + timedelta(n)
        last = at.replace(day=1) - timedelta(1)
        return [f"dt={last.replace(day=min(at.day, last.day))}"]

    relation = daily(before, 200).relation
    assert relation.described() == "dt = dt - 1 month"
    assert expected(relation, ["dt=2024-03-31"]) == ["dt=2024-02-29"]
    days = days_of("2024-02") + days_of("2024-03")
    assert leading(relation, "dt=2024-02-29", days) == [f"dt=2024-03-{n}" for n in (29, 30, 31)]


def test_a_dimension_that_nothing_follows_from_takes_every_value_that_is_there():
    pairs = [
        pair(n, [day(n)], [f"{day(n)}/shard={shard}" for shard in range(n % 5 + n, 9 + n)])
        for n in range(40)
    ]
    learned = learn(pairs)
    assert learned.relation.described() == "dt = dt, shard = every value"
    known = [f"{day(3)}/shard=1", f"{day(3)}/shard=77", f"{day(4)}/shard=1"]
    assert expected(learned.relation, [day(3)], known) == known[:2]


def test_dimensions_of_one_table_have_rules_of_their_own():
    pairs = [
        pair(n, [f"{day(n // 2)}/region={r}"], [f"{day(n // 2 - 1)}/region={r}"])
        for n in range(60)
        for r in [("eu", "us")[n % 2]]
    ]
    relation = learn(pairs).relation
    assert relation.kind == "offset"
    assert expected(relation, ["dt=2024-05-06/region=pl"]) == ["dt=2024-05-05/region=pl"]
    written = [f"dt=2024-05-0{n}/region={r}" for n in range(1, 10) for r in ("pl", "eu")]
    assert leading(relation, "dt=2024-05-05/region=pl", written) == ["dt=2024-05-06/region=pl"]


def test_a_partition_that_lacks_a_dimension_stands_for_all_of_its_values():
    pairs = [pair(n, [f"{day(n)}/region={r}" for r in ("eu", "us")], [day(n)]) for n in range(30)]
    relation = learn(pairs).relation
    known = [cell for one in pairs for cell in one.given]
    among = [day(3), day(4), "region=eu", "region=pl", f"{day(3)}/region=eu", f"{day(3)}/shop=1"]
    found = [day(3), "region=eu", f"{day(3)}/region=eu"]
    assert leading(relation, day(3), among, known) == found


def test_without_a_rule_that_most_follow_none_is_learned():
    relation = daily(lambda n: [day(n * n % 37), day(n * 7 % 11)]).relation
    assert (relation.kind, expected(relation, [day(3)])) == ("none", [])


def test_few_runs_are_little_confidence():
    assert daily(lambda n: [day(n)], 1).confidence < 0.3
    assert daily(lambda n: [day(n)], 60).confidence > 0.9


def test_a_run_that_read_another_day_is_an_exception_and_says_which():
    pairs = [pair(n, [day(n)], [day(n if n != 40 else 3)]) for n in range(60)]
    learned = learn(pairs, {day(40): START})
    assert (learned.support, learned.exceptions) == (59, {"40": ((day(40),), (day(3),))})


def test_a_day_that_nobody_had_written_yet_is_not_missing():
    known = {day(n): START + timedelta(n + (30 if n == 20 else 0)) for n in range(60)}
    pairs = [
        pair(n, [day(n)], [day(n - k) for k in range(3) if n >= k and not (n < 50 and n - k == 20)])
        for n in range(60)
        if n != 20
    ]
    assert learn(pairs, known).exceptions == {}


@pytest.mark.parametrize(
    "cell", ["dt=__HIVE_DEFAULT_PARTITION__", "dt=9999-12-31", "", "no folder", "dt=0001-01-01"]
)
def test_cells_at_the_ends_of_time_and_without_sense_harm_nothing(cell):
    pairs = [pair(n, [day(n)], [day(n - 1)]) for n in range(20)]
    learned = learn([*pairs, pair(20, [cell], [cell])])
    assert (learned.relation.kind, learned.support) == ("offset", 20)
    assert len(expected(learned.relation, [cell])) < 2
    assert leading(learned.relation, cell, [day(n) for n in range(20)]) == []


SAME = Rule("text", "text")
TWO_DAYS = Span("day", "day", Bound("day", -1), Bound("day", 0))
A_WEEK_APART = Offsets("day", "day", (-7, 0))
SINCE_A_DAY = Span("day", "day", Bound("", number_of("day", START)), Bound("day", 0))
OVERLAPPING = {
    "two days": ({"dt": TWO_DAYS, "region": SAME}, [(3, "eu"), (4, "eu")], 3),
    "region first": ({"region": SAME, "dt": TWO_DAYS}, [("eu", 3), ("eu", 4)], 3),
    "a week apart": ({"dt": A_WEEK_APART, "region": SAME}, [(10, "eu"), (3, "eu")], 3),
    "both axes": ({"dt": TWO_DAYS, "due": TWO_DAYS}, [(10, 10), (11, 11)], 7),
    "steps": (
        {"dt": TWO_DAYS, "due": Span("day", "day", Bound("day", 0), Bound("day", 0))},
        [(10, 10), (10, 11), (11, 11), (11, 12)],
        7,
    ),
    "many": ({"dt": SINCE_A_DAY, "region": SAME}, [(n, "eu") for n in range(1_500)], 1_500),
}


def run_of_all(rules, given):
    """Make a relation of several dimensions, and a run that found all that follows from it."""
    cells = [
        "/".join(
            f"{label}={FIRST + timedelta(value) if isinstance(value, int) else value}"
            for label, value in zip(rules, values, strict=True)
        )
        for values in given
    ]
    other = "/".join(f"{label}={'us' if label == 'region' else FIRST}" for label in rules)
    axes = axes_of([*cells, other])
    labels = [axis.labels[0] for axis in axes.axes]
    links = tuple(Link(n, rules[label]) for n, label in enumerate(labels))
    points = [axes.read(cell) for cell in cells]
    found = {
        at
        for one in points
        for at in product(
            *(link.rule.following(point) for link, point in zip(links, one, strict=True))
        )
    }
    return Relation(axes, axes, links), Observed(Pair("1", cells, None), points, found)


@pytest.mark.parametrize(("rules", "given", "count"), OVERLAPPING.values(), ids=OVERLAPPING)
def test_a_run_that_found_all_follows_fully_if_partitions_follow_from_several(rules, given, count):
    relation, run = run_of_all(rules, given)
    assert len(run.found) == count
    known = KnownPoints(dict.fromkeys(run.found), relation.kept)
    assert judged(relation, run, known) == 1
    without = run._replace(found=run.found - {run.given[0]})
    assert judged(relation, without, KnownPoints({}, relation.kept)) == 0.9
    assert judged(relation, without, known) == 0


@pytest.mark.parametrize(("rules", "given", "_"), OVERLAPPING.values(), ids=OVERLAPPING)
def test_a_missing_partition_that_follows_from_several_is_listed_once(rules, given, _):
    relation, run = run_of_all(rules, given)
    missing = sorted(run.found)[:20]
    without = run._replace(found=run.found - set(missing))
    known = KnownPoints(dict.fromkeys(run.found), relation.kept)
    listed, unexpected = deviation(relation, without, run.pair, known)
    assert sorted(listed) == sorted(map(relation.found.write, missing))
    assert unexpected == ()


@settings(deadline=None)
@given(
    first=st.integers(-40, 10),
    width=st.integers(0, 12),
    days=st.integers(80, 200),
    broken=st.sets(st.integers(0, 79), max_size=8),
)
def test_a_window_is_learned_through_noise_and_noise_is_the_exceptions(first, width, days, broken):
    def found(n: int) -> list[str]:
        if n in broken:
            return [day(n + 500)]
        return [day(n + k) for k in range(first, first + width + 1)]

    learned = daily(found, days)
    days_read = [day(1000 + k) for k in range(first, first + width + 1)]
    assert expected(learned.relation, [day(1000)]) == days_read
    assert set(learned.exceptions) == {str(n) for n in broken}
    assert leading(learned.relation, days_read[0], [day(1000), day(3000)]) == [day(1000)]


@settings(deadline=None)
@given(shift=st.integers(-5, 5), unit=st.sampled_from(["%Y-%m", "%G-W%V", "%Y"]))
def test_what_follows_from_a_partition_leads_back_to_it(shift, unit):
    relation = daily(lambda n: [f"p={FIRST + timedelta(n + 7 * shift):{unit}}"], 800).relation
    for cell in expected(relation, ["dt=2030-06-15"]):
        assert leading(relation, cell, ["dt=2030-06-15", "dt=2040-06-15"]) == ["dt=2030-06-15"]
