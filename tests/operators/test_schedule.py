"""The upstream partitions that a schedule names: as Airflow itself maps keys, and in a run's event.

Airflow is the oracle: a key is upstream of a run's key if its mapper leads from one to the other.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import product

import pytest
from airflow import sdk
from airflow.partition_mappers.allowed_key import AllowedKeyMapper
from airflow.partition_mappers.base import PartitionMapper, RollupMapper
from airflow.partition_mappers.chain import ChainMapper
from airflow.partition_mappers.fixed_key import FixedKeyMapper
from airflow.partition_mappers.identity import IdentityMapper
from airflow.partition_mappers.product import ProductMapper
from airflow.partition_mappers.temporal import (
    FanOutMapper,
    StartOfDayMapper,
    StartOfHourMapper,
    StartOfMonthMapper,
    StartOfQuarterMapper,
    StartOfWeekMapper,
    StartOfYearMapper,
)
from airflow.partition_mappers.wait_policy import MinimumCount, WaitForAll
from airflow.partition_mappers.window import (
    DayWindow,
    HourWindow,
    MonthWindow,
    QuarterWindow,
    SegmentWindow,
    WeekWindow,
    Window,
    YearWindow,
)
from airflow.providers.common.compat.sdk import AirflowException
from airflow.sdk import DAG, Asset
from airflow.sdk.definitions.partition_mappers.base import PartitionMapper as SdkMapper

from airflow_provider_sparklineage.expectations import DatasetSubset
from airflow_provider_sparklineage.hooks.schedule import upstream
from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator
from tests.observed_writes import days_read

pytestmark = pytest.mark.airflow

DAY = "%Y-%m-%d"
HOUR = "%Y-%m-%dT%H"
FIRST = datetime.fromisoformat("2024-01-29T10:00")
BACK = Window.Direction.BACKWARD
HOURS = [(FIRST + timedelta(hours=n)).strftime(HOUR) for n in range(-80, 800)]
DAYS = [(FIRST + timedelta(days=n)).strftime(DAY) for n in range(-500, 900)]
MINUTES = [f"{hour}:{minute:02}" for hour in HOURS[:200] for minute in (0, 1, 59)]
MONTHS = [f"{year}-{month:02}" for year in range(2022, 2027) for month in range(1, 13)]
REGIONS = ["PL", "DE", "all", "2024"]


def of_days(kind, **more):
    return kind(input_format=DAY, **more)


def of_hours(kind, **more):
    return kind(input_format=HOUR, **more)


def of_months(kind, **more):
    return kind(input_format="%Y-%m", **more)


WEEKS = of_days(StartOfWeekMapper)
SHIPPED = [
    pytest.param(IdentityMapper(), DAYS, id="identity"),
    pytest.param(AllowedKeyMapper(["PL", "DE"]), REGIONS, id="allowed keys"),
    pytest.param(of_hours(StartOfHourMapper), HOURS, id="hour"),
    pytest.param(StartOfHourMapper(input_format=f"{HOUR}:%M"), MINUTES, id="hour of minutes"),
    pytest.param(of_hours(StartOfDayMapper), HOURS, id="day"),
    pytest.param(WEEKS, DAYS, id="week"),
    pytest.param(of_days(StartOfWeekMapper, timezone="Asia/Tokyo"), DAYS, id="week in Tokyo"),
    pytest.param(of_days(StartOfMonthMapper), DAYS, id="month"),
    pytest.param(of_days(StartOfQuarterMapper), DAYS, id="quarter"),
    pytest.param(of_months(StartOfYearMapper), MONTHS, id="year"),
    pytest.param(
        ProductMapper(WEEKS, IdentityMapper()),
        [f"{day}|{region}" for day, region in product(DAYS[400:600], REGIONS)],
        id="product",
    ),
    pytest.param(
        ProductMapper(AllowedKeyMapper(REGIONS), of_days(StartOfMonthMapper), delimiter="/"),
        [f"{region}/{day}" for day, region in product(DAYS[400:600], REGIONS)],
        id="product with a slash",
    ),
    pytest.param(ChainMapper(IdentityMapper(), WEEKS), DAYS, id="chain to weeks"),
    pytest.param(
        ChainMapper(of_hours(StartOfDayMapper), WEEKS), HOURS, id="chain from hours to weeks"
    ),
    pytest.param(
        ChainMapper(AllowedKeyMapper(DAYS[300:]), IdentityMapper()), DAYS, id="chain of texts"
    ),
    pytest.param(
        FanOutMapper(upstream_mapper=WEEKS, window=WeekWindow()), DAYS, id="weeks to days"
    ),
    pytest.param(
        FanOutMapper(upstream_mapper=of_days(StartOfMonthMapper), window=MonthWindow()),
        DAYS,
        id="months to days",
    ),
    pytest.param(
        FanOutMapper(upstream_mapper=of_days(StartOfDayMapper), window=DayWindow()),
        DAYS,
        id="days to hours",
    ),
    pytest.param(
        FanOutMapper(upstream_mapper=of_months(StartOfQuarterMapper), window=QuarterWindow()),
        MONTHS,
        id="quarters to months",
    ),
    pytest.param(
        FanOutMapper(upstream_mapper=of_months(StartOfYearMapper), window=YearWindow()),
        MONTHS,
        id="years to months",
    ),
    pytest.param(
        FanOutMapper(upstream_mapper=of_days(StartOfDayMapper), window=WeekWindow()),
        DAYS,
        id="each day to the seven days from it on",
    ),
    pytest.param(
        FanOutMapper(upstream_mapper=of_days(StartOfDayMapper), window=MonthWindow()),
        DAYS,
        id="the first of a month to its days",
    ),
    pytest.param(
        FanOutMapper(upstream_mapper=WEEKS, window=WeekWindow(direction=BACK)),
        DAYS,
        id="weeks to the days before",
    ),
    pytest.param(
        FanOutMapper(
            upstream_mapper=of_months(StartOfMonthMapper), window=MonthWindow(direction=BACK)
        ),
        MONTHS,
        id="months to the days before",
    ),
]


def downstream(mapper, key):
    """Give the keys that Airflow's mapper gives to an upstream key."""
    try:
        found = mapper.to_downstream(key)
    except ValueError:
        return set()
    return {found} if isinstance(found, str) else set(found)


def contains(found, key):
    """Whether a key is one of the upstream keys."""
    texts = key.split(found.delimiter) if len(found.segments) > 1 else [key]
    return len(texts) == len(found.segments) and all(
        text in segment.keys
        or any(
            period.start <= datetime.fromisoformat(f"{text}-01"[: max(len(text), 10)]) < period.end
            for period in segment.periods
        )
        for text, segment in zip(texts, found.segments, strict=True)
    )


@pytest.mark.parametrize(("mapper", "keys"), SHIPPED)
def test_upstream_keys_are_those_that_airflow_maps_to_the_run(mapper, keys):
    leads_to = {key: downstream(mapper, key) for key in keys}
    inner = keys[len(keys) // 3 : len(keys) // 2]  # all of their upstream keys are among `keys`
    runs = sorted({run for key in inner for run in leads_to[key]})
    assert runs
    for run in runs[:: max(1, len(runs) // 40)]:
        found = upstream(mapper, run)
        assert found is not None, run
        assert [k for k in keys if contains(found, k)] == [k for k in keys if run in leads_to[k]]
        assert found.at_least == 1


WINDOWS = [
    pytest.param(StartOfHourMapper(input_format=f"{HOUR}:%M"), HourWindow, id="hour"),
    pytest.param(of_hours(StartOfDayMapper), DayWindow, id="day"),
    pytest.param(WEEKS, WeekWindow, id="week"),
    pytest.param(of_days(StartOfMonthMapper), MonthWindow, id="month"),
    pytest.param(of_months(StartOfQuarterMapper), QuarterWindow, id="quarter"),
    pytest.param(of_months(StartOfYearMapper), YearWindow, id="year"),
]
POLICIES = [
    pytest.param(WaitForAll(), lambda count: count, id="all"),
    pytest.param(MinimumCount(2), lambda _: 2, id="two"),
    pytest.param(MinimumCount(-1), lambda count: count - 1, id="all but one"),
    pytest.param(MinimumCount(-10_000), lambda _: 1, id="all but too many"),
    pytest.param(MinimumCount(10_000), lambda count: count + 1, id="never"),
]


@pytest.mark.parametrize("direction", Window.Direction)
@pytest.mark.parametrize(("policy", "at_least"), POLICIES)
@pytest.mark.parametrize(("mapper", "window"), WINDOWS)
def test_a_rollup_has_the_keys_that_airflow_waits_for(mapper, window, policy, at_least, direction):
    rollup = RollupMapper(
        upstream_mapper=mapper, window=window(direction=direction), wait_policy=policy
    )
    for n in range(0, 1500, 97):
        [run] = downstream(mapper, (FIRST + timedelta(days=n)).strftime(mapper.input_format))
        found = upstream(rollup, run)
        assert found.keys == rollup.to_upstream(run)
        assert found.at_least == at_least(len(found.keys))
        for arrived in range(len(found.keys) + 1):
            verdict = policy.is_satisfied_by_keys(
                matched=frozenset(sorted(found.keys)[:arrived]), expected=found.keys
            )
            assert verdict.satisfied == (arrived >= found.at_least) or not arrived


def test_a_rollup_of_segments():
    rollup = RollupMapper(upstream_mapper=FixedKeyMapper("all"), window=SegmentWindow(["PL", "DE"]))
    assert upstream(rollup, "all").keys == {"PL", "DE"} == rollup.to_upstream("all")


class Mine(PartitionMapper):
    def to_downstream(self, key):
        return key[:4]


class MyIdentity(IdentityMapper):
    def to_downstream(self, key):
        return key[:4]


@pytest.mark.parametrize(
    ("mapper", "run"),
    [
        pytest.param(FixedKeyMapper("all"), "all", id="a fixed key"),
        pytest.param(Mine(), "2024", id="one of the user's own"),
        pytest.param(MyIdentity(), "2024", id="one that inherits from Airflow's"),
        pytest.param(ProductMapper(IdentityMapper(), Mine()), "PL|2024", id="in a product"),
        pytest.param(ChainMapper(Mine(), IdentityMapper()), "2024", id="in a chain"),
        pytest.param(
            ChainMapper(of_days(StartOfMonthMapper), WEEKS),
            "2024-01-29 (W05)",
            id="a chain that cuts months into weeks",
        ),
        pytest.param(
            StartOfDayMapper(input_format="%Y-%m-%dT%H%z"), "2024-05-06", id="keys with a zone"
        ),
        pytest.param(
            FanOutMapper(
                upstream_mapper=of_hours(StartOfHourMapper),
                window=YearWindow(),
                downstream_mapper=StartOfMonthMapper(),
            ),
            "2024-05",
            id="too many periods to try",
        ),
    ],
)
def test_where_any_key_may_be_upstream_none_is_expected(mapper, run):
    assert upstream(mapper, run) is None


@pytest.mark.parametrize(
    ("mapper", "run"),
    [
        (AllowedKeyMapper(["PL"]), "DE"),
        (WEEKS, "2024-01-30 (W05)"),
        (WEEKS, "PL"),
        (ProductMapper(IdentityMapper(), WEEKS), "PL"),
        (FanOutMapper(upstream_mapper=WEEKS, window=WeekWindow()), "2024"),
        (RollupMapper(upstream_mapper=WEEKS, window=WeekWindow()), "PL"),
    ],
)
def test_a_key_that_no_mapper_gives_is_an_error(mapper, run):
    with pytest.raises(ValueError, match=r"."):
        upstream(mapper, run)


# --- in a run of a task ---------------------------------------------------------------------------


ORDERS = Asset("file:///lake/orders")
SDK_WEEK = sdk.RollupMapper(
    upstream_mapper=sdk.StartOfWeekMapper(input_format=DAY, output_format=DAY),
    window=sdk.WeekWindow(),
)
WEEK = [f"2024-05-{day:02}" for day in range(6, 13)]


@pytest.fixture
def run(spark_submit, execute, context):
    """Run a task of a DAG with a schedule, for one partition key; the task reads some days."""

    def run(*days, key="2024-05-06", mapper=SDK_WEEK, assets=ORDERS, **arguments):
        spark_submit.does("staging_chain", observations=days_read(*days))
        schedule = sdk.PartitionedAssetTimetable(
            assets=assets, partition_mapper_config={ORDERS: mapper}
        )
        with DAG("shop", schedule=schedule):
            task = SparkLineageSubmitOperator(task_id="revenue", application="job.py", **arguments)
        task = task.prepare_for_execution()
        of_run = {**context, "partition_key": key, "params": {}, "task": task}
        task.render_template_fields(of_run)
        task.error = None
        try:
            execute(task, of_run)
        except AirflowException as error:
            task.error = error
        facets = task.get_openlineage_facets_on_complete(None).run_facets
        task.check = facets["sparkLineage_partitionCheck"]
        task.degradations = facets["sparkLineage_capture"].degradations
        return task

    return run


def of_orders(task):
    return next(e for e in task.check.reads if e["dataset"]["name"] == "/lake/orders")


def test_a_run_is_expected_to_read_the_partitions_that_started_it(run):
    entry = of_orders(run(*WEEK))
    assert entry["status"] == "matched"
    assert entry["expected"]["summary"] == "dt=2024-05-06 … dt=2024-05-12 (7 partitions)"
    [source] = entry["from"]
    assert {k: source[k] for k in ("kind", "field", "template", "value")} == {
        "kind": "schedule",
        "field": "schedule",
        "template": "RollupMapper(StartOfWeekMapper, WeekWindow)",
        "value": "2024-05-06",
    }


def test_a_partition_that_the_schedule_does_not_wait_for_is_unexpected(run, caplog):
    task = run("2024-05-05", *WEEK)
    entry = of_orders(task)
    assert (entry["status"], entry["unexpected"]["summary"]) == ("unexpected", "dt=2024-05-05")
    assert (
        "/lake/orders: read dt=2024-05-05; expected dt=2024-05-06 … dt=2024-05-12 (7 partitions) "
        "(RollupMapper(StartOfWeekMapper, WeekWindow) in schedule)." in caplog.text
    )
    assert task.error is None


def test_it_never_fails_the_task(run):
    task = run("2024-05-05", on_partition_mismatch="fail")
    assert (of_orders(task)["status"], task.error) == ("unexpected", None)


def test_a_declaration_goes_before_the_schedule(run):
    task = run("2024-05-05", reads=[DatasetSubset("/lake/orders", {"dt": "2024-05-05"})])
    assert of_orders(task)["status"] == "matched"


def test_a_rule_names_the_dataset_of_an_asset_and_the_columns_of_its_keys(run, monkeypatch):
    orders = Asset(name="orders", uri="shop://orders")
    monkeypatch.setenv(
        "AIRFLOW__SPARKLINEAGE__PARTITIONING",
        '- {dataset: /lake/orders, asset: orders, partition_key: "day-{dt}", dimensions: [dt]}',
    )
    mapper = sdk.IdentityMapper()
    task = run("2024-05-06", key="day-2024-05-06", mapper=mapper, assets=orders)
    assert of_orders(task)["expected"]["summary"] == "dt=2024-05-06"
    assert of_orders(task)["status"] == "matched"


def test_an_asset_without_a_dataset_expects_nothing(run):
    task = run("2024-05-06", assets=Asset(name="orders", uri="shop://orders"))
    assert of_orders(task)["status"] == "undeclared"
    assert not [d for d in task.degradations if d["code"] == "declaration_unusable"]


def test_a_key_that_the_mapper_does_not_take_is_declared(run):
    task = run("2024-05-06", key="PL")
    assert of_orders(task)["status"] == "undeclared"
    [message] = [d["message"] for d in task.degradations if d["code"] == "declaration_unusable"]
    assert message.startswith(
        "The schedule's RollupMapper(StartOfWeekMapper, WeekWindow) for the asset "
        "file:///lake/orders takes no partition key 'PL': "
    )


class Unregistered(SdkMapper):
    pass


def test_mappers_that_airflow_cannot_serialise_are_declared(run):
    task = run("2024-05-06", mapper=Unregistered())
    [message] = [d["message"] for d in task.degradations if d["code"] == "declaration_unusable"]
    assert message.startswith("The partition mappers of the schedule cannot be read: ")


def test_one_odd_mapper_leaves_declarations_as_they_are(run, monkeypatch):
    def odd(*_):
        message = "odd"
        raise TypeError(message)

    monkeypatch.setattr("airflow_provider_sparklineage.hooks.schedule.assets_of", odd)
    task = run("2024-05-05", reads=[DatasetSubset("/lake/orders", {"dt": "2024-05-05"})])
    assert of_orders(task)["status"] == "matched"
    assert "The schedule cannot be understood: odd" in [d["message"] for d in task.degradations]


def test_a_run_without_a_key_expects_nothing(run):
    assert of_orders(run("2024-05-06", key=None))["status"] == "undeclared"
