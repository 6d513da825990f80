"""Partition keys of a schedule, fitted to the columns and the precision of a dataset."""

import pytest

from airflow_provider_sparklineage.expectations.schedule import (
    Period,
    Segment,
    Upstream,
    from_schedule,
)
from airflow_provider_sparklineage.lineage.observed.accesses import Subset
from airflow_provider_sparklineage.lineage.partitions.comparison import reconcile
from airflow_provider_sparklineage.lineage.partitions.expected import Expectations
from airflow_provider_sparklineage.lineage.partitions.keys import fitted
from airflow_provider_sparklineage.lineage.partitions.selection import wanted
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.partitioning import Dimension, KeyPattern, Partition
from airflow_provider_sparklineage.model.terms import Side
from airflow_provider_sparklineage.model.timestamps import to_datetime

T = DatasetName("s3://lake", "t")


def seen(*partitions, **types):
    """Observed partitions, written as ``dt=1/h=2``; a type is that of a column, or a transform."""
    values = [tuple(pair.split("=") for pair in text.split("/")) for text in partitions]
    dimensions = tuple(
        Dimension((label,), type=types.get(label, "string"))
        if types.get(label) not in ("year", "month", "day", "hour")
        else Dimension((label,), types[label])
        for label, _ in values[0]
    )
    return Subset(dimensions, frozenset(Partition(tuple(map(tuple, v))) for v in values))


def expected(*keys, form="", periods=(), pattern=None):
    spans = frozenset(Period(*map(to_datetime, period)) for period in periods)
    upstream = Upstream((Segment(frozenset(keys), spans, form),))
    return from_schedule(T, upstream, "RollupMapper", "K", pattern and KeyPattern.parse(pattern))


def labelled(expectation, subset):
    found = fitted(expectation, subset)
    return sorted("/".join(f"{k}={v}" for k, v in p.values) for p in found.partitions)


def status(expectation, subset):
    here = Expectations([expectation]).of(T, (), Side.READ, subset)
    return reconcile(here, subset).status


DAYS = ("2024-05-06", "2024-05-07")


@pytest.mark.parametrize(
    ("keys", "subset", "fits"),
    [
        pytest.param(DAYS, seen("dt=2024-05-06"), [f"dt={d}" for d in DAYS], id="one column"),
        pytest.param(
            ["2024-05-06T00:00:00"], seen("dt=2024-05-06"), ["dt=2024-05-06"], id="midnight"
        ),
        pytest.param(["2024-05-06T10"], seen("dt=2024-05-06"), ["dt=2024-05-06"], id="hour of day"),
        pytest.param(["20240506"], seen("dt=2024-05-06"), ["dt=2024-05-06"], id="basic form"),
        pytest.param(["2024-05-06"], seen("dt=20240506"), ["dt=2024-05-06"], id="basic column"),
        pytest.param(["2024-05"], seen("dt=2024-05-06"), ["dt=2024-05*"], id="month of days"),
        pytest.param(["2024"], seen("dt=2024-05-06"), ["dt=2024*"], id="year of days"),
        pytest.param(["2024-05-06"], seen("h=2024-05-06T03"), ["h=2024-05-06*"], id="day of hours"),
        pytest.param(["2024-05-06 (W19)"], seen("dt=2024-05-13"), ["dt=2024-05-06"], id="week"),
        pytest.param(["2024-05-06"], seen("ts=2024-05-06", ts="day"), ["ts=2024-05-06"], id="day"),
        pytest.param(["2024-05-06"], seen("ts=x", ts="date"), ["ts=2024-05-06"], id="date"),
        pytest.param(
            ["2024-05-06|PL"], seen("dt=2024-05-07/r=PL"), ["dt=2024-05-06/r=PL"], id="two values"
        ),
        pytest.param(["2024-05-06"], seen("dt=2024-05-07/r=PL"), ["dt=2024-05-06"], id="the time"),
        pytest.param(
            ["2024-05-06"],
            seen("year=2024/month=5/day=7/r=PL"),
            ["year=2024/month=5/day=6"],
            id="a date's columns",
        ),
        pytest.param(
            ["2024-05"], seen("year=2024/month=05/day=07"), ["year=2024/month=05"], id="less"
        ),
        pytest.param(["PL"], seen("region=PL", "region=DE"), ["region=PL"], id="text"),
        pytest.param(["2024"], seen("year=2023"), ["year=2024"], id="number"),
    ],
)
def test_keys_get_the_columns_of_the_dataset(keys, subset, fits):
    assert labelled(expected(*keys), subset) == fits


@pytest.mark.parametrize(
    ("keys", "subset"),
    [
        pytest.param(["PL"], seen("dt=2024-05-07/r=PL"), id="which column?"),
        pytest.param(["PL"], seen("dt=2024-05-07"), id="a text for a time"),
        pytest.param(["2024-05-06"], seen("region=PL"), id="a time for a text"),
        pytest.param(["a|b|c"], seen("x=a/y=b"), id="more values than columns"),
        pytest.param(["shoes|eu"], seen("region=eu/product=shoes"), id="which of two texts?"),
        pytest.param(["eu|shoes"], seen("region=eu/product=shoes"), id="two texts"),
        pytest.param(["pl"], seen("country=PL"), id="another way to write it"),
        pytest.param(["2024"], seen("version=7"), id="a number of something else"),
        pytest.param(["2024-05-06 (W19)"], seen("week=2024-W19"), id="a week by its number"),
        pytest.param(["2024-05-06"], seen("a=2024-05-06/b=2024-05-06"), id="which time?"),
        pytest.param(["2024-05-06T00:00:00+02:00"], seen("dt=2024-05-06"), id="a time with a zone"),
    ],
)
def test_keys_that_do_not_fit_are_not_compared(keys, subset):
    assert fitted(expected(*keys), subset) == expected(*keys)
    assert status(expected(*keys), subset) == "unobserved"


def test_a_dataset_without_partitions_is_not_compared():
    assert status(expected("2024-05-06"), Subset((), frozenset({Partition()}))) == "undeclared"


def test_a_format_gives_the_time_of_a_key():
    found = expected("06.05.2024", form="%d.%m.%Y")
    assert labelled(found, seen("dt=2024-05-07")) == ["dt=2024-05-06"]


@pytest.mark.parametrize(
    ("period", "texts"),
    [
        (("2023-01-01", "2025-01-01"), ["2023*", "2024*"]),
        (("2024-04-01", "2024-07-01"), ["2024-04*", "2024-05*", "2024-06*"]),
        (("2024-04-29", "2024-05-02"), ["2024-04-29*", "2024-04-30*", "2024-05-01*"]),
        (("2024-05-06T10", "2024-05-06T12"), ["2024-05-06T10*", "2024-05-06T11*"]),
    ],
)
def test_a_period_is_a_few_beginnings_of_times(period, texts):
    assert [p.values[0][1] for p in expected(periods=[period]).partitions] == texts


def test_a_period_that_is_no_number_of_hours_is_not_expected():
    assert expected(periods=[("2024-05-06T10:30", "2024-05-06T11:30")]).partitions is None


WEEK = expected(periods=[("2024-05-06", "2024-05-13")])


@pytest.mark.parametrize(
    ("expectation", "subset", "outcome"),
    [
        pytest.param(expected(*DAYS), seen(*(f"dt={d}" for d in DAYS)), "matched", id="both"),
        pytest.param(expected(*DAYS), seen("dt=2024-05-06"), "unobserved", id="one of two"),
        pytest.param(
            expected(*DAYS), seen("dt=2024-05-06", "dt=2024-05-08"), "unexpected", id="another"
        ),
        pytest.param(WEEK, seen("dt=2024-05-12"), "unobserved", id="a day of the week"),
        pytest.param(WEEK, seen("dt=2024-05-13"), "unexpected", id="a day of the next week"),
        pytest.param(
            WEEK,
            seen(*(f"dt=2024-05-{d:02}" for d in range(6, 13))),
            "matched",
            id="the week",
        ),
        pytest.param(
            WEEK,
            seen(*(f"y=2024/m=5/d={d}" for d in range(6, 13)), y="int", m="int", d="int"),
            "matched",
            id="the week in columns",
        ),
    ],
)
def test_reads_are_compared_with_the_schedule(expectation, subset, outcome):
    assert status(expectation, subset) == outcome


def test_a_rule_names_the_columns_of_a_key():
    found = expected("PL|2024-05-06", pattern="{region}|{dt}")
    assert labelled(found, seen("dt=2024-05-06/region=PL")) == ["region=PL/dt=2024-05-06"]
    assert expected("2024-05-06", pattern="{region}|{dt}").partitions is None


def test_a_rule_lets_texts_differ():
    found = expected("DE", pattern="{region}")
    assert status(found, seen("region=PL")) == "unexpected"


def test_several_segments_are_combined():
    segments = (
        Segment(frozenset({"PL", "DE"})),
        Segment(periods=frozenset({Period(*map(to_datetime, ("2024-05-01", "2024-06-01")))})),
    )
    found = from_schedule(T, Upstream(segments), "ProductMapper", "K")
    assert labelled(found, seen("r=PL/dt=2024-05-06", "r=DE/dt=2024-05-06")) == [
        "r=DE/dt=2024-05*",
        "r=PL/dt=2024-05*",
    ]


def test_what_is_expected_in_words():
    here = Expectations([expected(*DAYS)]).of(T, (), Side.READ, seen("dt=2024-05-06"))
    assert wanted(here) == "dt=2024-05-06 … dt=2024-05-07 (2 partitions)"
    [source] = here.sources
    assert (source.template, source.field, source.value) == ("RollupMapper", "schedule", "K")
