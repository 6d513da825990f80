"""Schedules against what runs read, over a history: planted wrong mappers are found, no others."""

from __future__ import annotations

import argparse
import json
import random
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import jsonschema
import pytest
from airflow import sdk
from airflow.sdk import Asset, PartitionedAssetTimetable
from airflow.sdk.definitions.partition_mappers.base import PartitionMapper as SdkMapper

from airflow_provider_sparklineage import cli
from airflow_provider_sparklineage.cli.schedule import waited_for
from airflow_provider_sparklineage.cli.schemas import answer_schema
from airflow_provider_sparklineage.history.engines.duckdb import History
from airflow_provider_sparklineage.history.queries.schedule import against_runs
from airflow_provider_sparklineage.history.store import Store
from airflow_provider_sparklineage.hooks.schedule import assets_of
from airflow_provider_sparklineage.model.exceptions import ScheduleError
from airflow_provider_sparklineage.model.locations import Locator
from airflow_provider_sparklineage.model.rules import PartitionRules
from tests.unit.history.facts.events import dataset, ours, part

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.airflow

SEEN = {"witness": "both", "accessed": "part", "writes": 1, "failed": False}
ORDERS, RATES, REVENUE = "/lake/orders", "/lake/rates", "/lake/revenue"
DAY = "%Y-%m-%d"


def event(dag_id, key, reads, writes=(), task="revenue", state="COMPLETE", facets=SEEN, lasted=0):
    """Give the event of a task of the run with a partition key.

    :param reads: the days of each dataset that it reads; None for all of it
    :param lasted: how many seconds the task took
    """

    def side(datasets, condition):
        for name, days in dict(datasets).items():
            named = {} if days is None else part(*({"dt": d} for d in days), key=condition)
            own = "inputFacets" if condition == "inputCondition" else "outputFacets"
            accessed = "all" if days is None else "part"
            yield dataset(name, **{own: named}), {**facets, "accessed": accessed}

    made = ours(
        reads=[*side(reads, "inputCondition")],
        writes=[*side(writes, "outputCondition")],
        eventType=state,
    )
    made["run"]["facets"]["airflow"] = {
        "dag": {"dag_id": dag_id},
        "dagRun": {"dag_id": dag_id, "run_id": f"asset__{key}", "partition_key": key},
        "task": {"task_id": task},
        "taskInstance": {"try_number": 1},
    }
    made["job"] = {"namespace": "tests", "name": f"{dag_id}.{task}"}
    made["sending"] = {"started": lasted, "runFacets": {}}
    return made


def asset(name):
    return Asset(f"file://{name}")


def numbered(made, number):
    """Give an event a run and a time of its own."""
    time = datetime.fromisoformat("2024-10-15") + timedelta(seconds=number)
    started = time - timedelta(seconds=made["sending"]["started"])
    return {
        **made,
        "run": {**made["run"], "runId": f"00000000-0000-7000-8000-{number:012}"},
        "eventTime": f"{time.isoformat()}Z",
        "sending": {"started": f"{started.isoformat()}Z", "runFacets": {}},
    }


class Unregistered(SdkMapper):
    pass


def scheduled(mapper, *assets):
    return PartitionedAssetTimetable(
        assets=sdk.AssetAll(*map(asset, assets or [ORDERS])), default_partition_mapper=mapper
    )


def rollup(**policy):
    weeks = sdk.StartOfWeekMapper(input_format=DAY, output_format=DAY)
    return sdk.RollupMapper(upstream_mapper=weeks, window=sdk.WeekWindow(), **policy)


def week(monday, days=7, first=0):
    start = datetime.fromisoformat(monday)
    return [(start + timedelta(days=n)).strftime(DAY) for n in range(first, first + days)]


MONDAYS = ["2024-05-06", "2024-05-13", "2024-05-20"]


class Case(NamedTuple):
    """A DAG, its runs, and the differences between them.

    :param runs: of each task run the partition key, and the days of each dataset that it reads
    """

    timetable: PartitionedAssetTimetable
    runs: list[dict[str, Any]]
    found: Sequence[tuple[str, str]] = ()
    unjudged: str = ""


def reading(days, first=0, name=ORDERS, **more):
    """Give a run of each week, whose task reads some days from the first of the week on."""
    return [{"key": key, "reads": {name: week(key, days, first)}, **more} for key in MONDAYS]


ONE, LAST = MONDAYS[0], "2024-05-27"
OF_ORDERS = PartitionedAssetTimetable(
    assets=Asset(name="orders", uri="shop://orders"), default_partition_mapper=rollup()
)
OF_VISITS = PartitionedAssetTimetable(
    assets=Asset(name="visits", uri="shop://visits"), default_partition_mapper=rollup()
)
RULE = {"dataset": ORDERS, "asset": "orders", "dimensions": ["dt"]}
CASES = {
    "as waited for": Case(scheduled(rollup()), reading(7)),
    "tasks are taken together": Case(
        scheduled(rollup()), [*reading(3), *reading(4, 3, task="second")]
    ),
    "a day before": Case(
        scheduled(rollup()), reading(7, -1), [("reads_more", ORDERS), ("reads_less", ORDERS)]
    ),
    "another dataset": Case(
        scheduled(rollup()),
        reading(7, name=RATES, writes={REVENUE: [ONE]}),
        [("not_read", ORDERS), ("not_waited_for", RATES)],
    ),
    "what the DAG writes": Case(
        scheduled(rollup()),
        [
            *reading(7, writes={REVENUE: week(ONE)}),
            *reading(7, name=REVENUE, task="report"),
        ],
    ),
    "a whole dataset": Case(
        scheduled(rollup()),
        [{"key": ONE, "reads": {ORDERS: None, RATES: None}}],
        [],
        "In 1 of 1 runs it is not known which partitions of file:///lake/orders were read",
    ),
    "declared": Case(
        scheduled(rollup()),
        reading(1, 20, facets={**SEEN, "witness": "declared"}),
        [],
        "In 3 of 3 runs it is not known which partitions of file:///lake/orders were read",
    ),
    "partly declared": Case(
        scheduled(rollup()),
        [*reading(3), *reading(4, 3, task="second", facets={**SEEN, "witness": "declared"})],
        [],
        "In 3 of 3 runs it is not known which partitions of file:///lake/orders were read",
    ),
    "in progress": Case(
        scheduled(rollup()),
        [
            *(one | {"lasted": 1} for one in reading(3)),
            *(one | {"lasted": 900} for one in reading(4, 3, task="second")),
            {"key": LAST, "reads": {ORDERS: week(LAST, 3)}, "lasted": 1},
        ],
    ),
    "a task failed": Case(
        scheduled(rollup()),
        [*reading(1, 20), *reading(0, task="report", state="FAIL")],
    ),
    "enough": Case(scheduled(rollup(wait_policy=sdk.MinimumCount(5))), reading(5)),
    "too few": Case(
        scheduled(rollup(wait_policy=sdk.MinimumCount(5))), reading(4), [("reads_less", ORDERS)]
    ),
    "all but two": Case(scheduled(rollup(wait_policy=sdk.MinimumCount(-2))), reading(5)),
    "all but three": Case(
        scheduled(rollup(wait_policy=sdk.MinimumCount(-2))), reading(4), [("reads_less", ORDERS)]
    ),
    "an asset without a dataset": Case(
        OF_VISITS,
        reading(7),
        [],
        "No dataset is known for the asset visits; a partitioning rule with the key 'asset' can "
        "name it.",
    ),
    "a rule names the dataset": Case(OF_ORDERS, reading(8), [("reads_more", ORDERS)]),
    "a key that no mapper takes": Case(
        scheduled(rollup()),
        [{"key": "PL", "reads": {ORDERS: ["PL"]}}],
        [],
        "The schedule's RollupMapper(StartOfWeekMapper, WeekWindow) for the asset "
        "file:///lake/orders takes no partition key 'PL': ",
    ),
    "a mapper that cannot be read": Case(
        scheduled(Unregistered()),
        reading(7),
        [],
        "The partition mappers of the schedule cannot be read: ",
    ),
}


@pytest.fixture(scope="module")
def answer(tmp_path_factory):
    """Compare all schedules at once with a history that has all of their runs."""
    events = [
        event(dag_id, **run) for dag_id, case in {**CASES, **PLANTED}.items() for run in case.runs
    ]
    folder = tmp_path_factory.mktemp("history")
    (folder / "events.ndjson").write_text(
        "".join(f"{json.dumps(numbered(one, n))}\n" for n, one in enumerate(events))
    )
    store = str(folder / "store")
    assert cli.main(["history", "build", str(folder / "events.ndjson"), "--store", store]) == 0
    timetables = {dag_id: case.timetable for dag_id, case in {**CASES, **PLANTED}.items()}
    schedules = waited_for(timetables, Locator(rules=PartitionRules.from_documents([RULE])))
    with History(Store.open(store)) as history:
        answer = against_runs(history, schedules.waited)
    return answer._replace(unjudged=[*schedules.problems, *answer.unjudged])


def differences(answer, dag_id):
    of_dag = [m for m in answer.mismatches if m.dag_id == dag_id]
    return [(m.kind, m.dataset and m.dataset.name) for m in of_dag]


@pytest.mark.parametrize("dag_id", CASES)
def test_schedules_are_compared_with_what_runs_read(answer, dag_id):
    assert differences(answer, dag_id) == [*CASES[dag_id].found]
    sentences = [one for one in answer.unjudged if one.startswith(f"{dag_id}: ")]
    if CASES[dag_id].unjudged:
        assert sentences[0].startswith(f"{dag_id}: {CASES[dag_id].unjudged}")
    assert len(sentences) == bool(CASES[dag_id].unjudged)


def test_a_difference_names_its_latest_run(answer):
    more, less = [m for m in answer.mismatches if m.dag_id == "a day before"]
    assert (more.partitions, less.partitions) == (("dt=2024-05-19",), ("dt=2024-05-26",))
    assert (more.runs, more.judged, more.partition_key) == (3, 3, "2024-05-20")
    assert more.text == (
        "The schedule waits for 7 partitions of file:///lake/orders, and the run reads 7: 1 is not "
        "waited for."
    )


# --- planted wrong mappers ------------------------------------------------------------------------


def mapper(rng):
    """Make a random mapper, and some keys of runs."""
    days = [
        (datetime.fromisoformat("2024-03-01") + timedelta(days=n)).strftime(DAY) for n in range(120)
    ]
    direction = rng.choice([*sdk.WeekWindow.Direction])
    starts = {sdk.StartOfWeekMapper: sdk.WeekWindow, sdk.StartOfMonthMapper: sdk.MonthWindow}
    kind = rng.choice([*starts])
    of = kind(input_format=DAY, output_format=DAY)
    form = rng.choice(["identity", "rollup", "start"])
    if form == "identity":
        return sdk.IdentityMapper(), rng.sample(days, 6)
    keys = sorted({_start(kind, day) for day in days[31:]})
    keys = rng.sample(keys, min(6, len(keys)))
    if form == "start":
        return of, keys
    window = starts[kind](direction=direction)
    return sdk.RollupMapper(upstream_mapper=of, window=window), keys


def _start(kind, day):
    at = datetime.fromisoformat(day)
    if kind is sdk.StartOfMonthMapper:
        at = at.replace(day=1)
    elif kind is sdk.StartOfWeekMapper:
        at -= timedelta(days=at.weekday())
    return at.strftime(DAY)


def upstream(mapper, key):
    """Give the days from which a run follows, as Airflow and the periods say."""
    [of_orders] = assets_of(scheduled(mapper))
    try:
        [segment] = of_orders.upstream(key).segments
    except ScheduleError:
        return None
    days = {
        (period.start + timedelta(days=n)).strftime(DAY)
        for period in segment.periods
        for n in range((period.end - period.start).days)
    }
    return segment.keys | days


def planted():
    """Make 100 DAGs: the runs read by one mapper, and half of the schedules have another one."""
    rng = random.Random(20240506)
    cases = {}
    while len(cases) < 100:
        right, keys = mapper(rng)
        wrong, _ = mapper(rng) if rng.random() < 0.8 else (right, ())
        declared = {key: upstream(wrong, key) for key in keys}
        if None in declared.values():
            continue
        waits_for_all = isinstance(wrong, (sdk.RollupMapper, sdk.IdentityMapper))
        read = {key: upstream(right, key) for key in keys}
        more = any(read[key] - declared[key] for key in keys)
        less = waits_for_all and any(declared[key] - read[key] for key in keys)
        kinds = [kind for kind, is_so in (("reads_more", more), ("reads_less", less)) if is_so]
        runs = [{"key": key, "reads": {ORDERS: sorted(read[key])}} for key in keys]
        found = [(kind, ORDERS) for kind in kinds]
        cases[f"random {len(cases)}"] = Case(scheduled(wrong), runs, found)
    return cases


PLANTED = planted()


def test_planted_wrong_mappers_are_all_found_and_no_others(answer):
    assert sum(bool(case.found) for case in PLANTED.values()) > 25
    for dag_id, case in PLANTED.items():
        assert differences(answer, dag_id) == [*case.found], dag_id
    assert not [sentence for sentence in answer.unjudged if sentence.startswith("random")]


# --- the command ----------------------------------------------------------------------------------


DAG_FILE = """
from airflow.sdk import DAG, Asset, PartitionedAssetTimetable, RollupMapper, StartOfWeekMapper
from airflow.sdk import WeekWindow
from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator

weeks = StartOfWeekMapper(input_format="%Y-%m-%d", output_format="%Y-%m-%d")
schedule = PartitionedAssetTimetable(
    assets=Asset("file:///lake/orders"),
    default_partition_mapper=RollupMapper(upstream_mapper=weeks, window=WeekWindow()),
)
with DAG("shop", schedule=schedule):
    SparkLineageSubmitOperator(task_id="revenue", application="job.py")
with DAG("daily", schedule="@daily"):
    SparkLineageSubmitOperator(task_id="revenue", application="job.py")
"""


@pytest.fixture
def ask(tmp_path, capsys):
    """Run ``airflow sparklineage schedule`` on a DAG file, after some runs."""
    (tmp_path / "dags").mkdir()
    (tmp_path / "dags" / "shop.py").write_text(DAG_FILE)

    def ask(runs, *argv):
        lines = [json.dumps(numbered(event("shop", **run), n)) for n, run in enumerate(runs)]
        (tmp_path / "events.ndjson").write_text("\n".join(lines))
        store = ("--store", str(tmp_path / "store"))
        assert cli.main(["history", "build", str(tmp_path / "events.ndjson"), *store]) == 0
        capsys.readouterr()
        [group] = cli.airflow_commands()
        command = next(one for one in group.subcommands if one.name == "schedule")
        parser = argparse.ArgumentParser()
        for argument in command.args:
            argument.add_to_parser(parser)
        code = 0
        try:
            command.func(
                parser.parse_args([*argv, "--dags-folder", str(tmp_path / "dags"), *store])
            )
        except SystemExit as end:
            code = end.code
        captured = capsys.readouterr()
        return SimpleNamespace(code=code or 0, out=captured.out, err=captured.err)

    return ask


def test_the_command_prints_differences(ask):
    done = ask(reading(8), "--json", "--strict")
    [line] = done.out.splitlines()
    difference = json.loads(line)
    jsonschema.validate(difference, answer_schema("schedule"))
    assert done.code == 1
    assert (difference["dag_id"], difference["kind"], difference["runs"]) == (
        "shop",
        "reads_more",
        3,
    )
    for_people = ask(reading(8), "shop")
    assert for_people.code == 0
    words = " ".join(for_people.out.split())
    assert "reads more" in words
    assert "3 of 3" in words


def test_the_command_agrees(ask):
    done = ask(reading(7), "--strict")
    assert (done.code, done.out.strip()) == (
        0,
        "What 3 runs read is what their schedules wait for.",
    )


@pytest.mark.parametrize("dag_id", ["daily", "nothing"])
def test_a_dag_without_such_a_schedule_is_refused(ask, dag_id):
    done = ask(reading(7), dag_id)
    assert done.code == 2
    assert f"has a DAG {dag_id} with the schedule PartitionedAssetTimetable." in done.err
