"""``explain``: what templates and tasks are expected to access, before anything runs."""

from __future__ import annotations

import argparse
import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import pytest
import structlog
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, CronDataIntervalTimetable
from sqlalchemy.exc import OperationalError

import airflow_provider_sparklineage
from airflow_provider_sparklineage import cli
from airflow_provider_sparklineage.expectations import DatasetSubset, PartitionRange
from airflow_provider_sparklineage.model.terms import JobName
from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator
from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle, Manifest
from tests.conftest import golden

pytestmark = pytest.mark.airflow

SCHEMA = json.loads(
    (
        Path(airflow_provider_sparklineage.__file__).parent
        / "event"
        / "schemas"
        / "explanation.json"
    ).read_text()
)


@pytest.fixture
def run(capsys):
    def run(*argv):
        code = cli.main(("explain", *argv))
        captured = capsys.readouterr()
        return SimpleNamespace(code=code, out=captured.out, err=captured.err)

    return run


@pytest.fixture
def explained(run):
    def explained(*argv):
        done = run(*argv, "--json")
        assert done.code == 0, done.err
        document = json.loads(done.out)
        jsonschema.validate(document, SCHEMA)
        return document

    return explained


def expectations_of(document):
    """Give dataset, summary and the expressions of each expectation."""
    return [
        (e["dataset"]["name"], e["summary"], [x for s in e["from"] for x in s["expressions"]])
        for e in document["expectations"]
    ]


# --- templates ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        pytest.param(
            "s3a://lake/revenue/dt={{ ds }}",
            ["--logical-date", "2024-05-06"],
            ("revenue", "dt=2024-05-06", ["ds"]),
            id="ds",
        ),
        pytest.param(
            "/lake/t/h={{ data_interval_end | ts_nodash }}",
            ["--logical-date", "2024-05-06", "--data-interval-start", "2024-05-06",
             "--data-interval-end", "2024-05-06T01:00:00+00:00"],
            ("/lake/t", "h=20240506T010000", ["data_interval_end | ts_nodash"]),
            id="data interval",
        ),
        pytest.param(
            "/lake/t/dt={{ logical_date.in_timezone('Europe/Berlin') | ds }}",
            ["--logical-date", "2024-05-06T23:30:00+00:00"],
            ("/lake/t", "dt=2024-05-07", ["logical_date.in_timezone('Europe/Berlin') | ds"]),
            id="another day in Berlin",
        ),
        pytest.param(
            "/lake/t/dt={{ partition_key }}",
            ["--partition-key", "2024-05-06"],
            ("/lake/t", "dt=2024-05-06", ["partition_key"]),
            id="partition key",
        ),
        pytest.param(
            "/lake/t/dt={{ partition_date | ds }}",
            ["--partition-key", "x", "--partition-date", "2024-05-06"],
            ("/lake/t", "dt=2024-05-06", ["partition_date | ds"]),
            id="partition date",
        ),
        pytest.param(
            "in=/lake/a",
            ["--logical-date", "2024-05-06"],
            ("/lake/a", "no partition is named", []),
            id="no partition",
        ),
    ],
)  # fmt: skip
def test_a_template_is_explained(explained, text, options, expected):
    assert expectations_of(explained(text, *options)) == [expected]


def test_the_characters_of_each_value_are_given(explained):
    document = explained("s3a://lake/t/dt={{ ds }}/x=1", "--logical-date", "2024-05-06")
    [rendered] = document["rendered"]
    [span] = rendered["spans"]
    assert rendered["value"][span["start"] : span["end"]] == span["value"] == "2024-05-06"
    facet = document["expectations"][0]["facets"]["subset"]["inputCondition"]
    assert facet["partitions"][0]["dimensions"] == {"dt": "2024-05-06", "x": "1"}


def test_dates_that_are_in_no_path_are_listed_apart(explained):
    document = explained("--day={{ ds }}", "--logical-date", "2024-05-06")
    assert document["expectations"] == []
    assert [d["value"] for d in document["dates"]] == ["2024-05-06"]


def test_rules_can_be_tried_out(explained, tmp_path):
    rules = tmp_path / "rules.yaml"
    rules.write_text('- dataset: "s3://lake/*"\n  layout: "{event_date:%Y/%m/%d}/{hour:%H}"\n')
    text = "s3a://lake/clicks/{{ logical_date.strftime('%Y/%m/%d/%H') }}"
    document = explained(text, "--logical-date", "2024-05-06T03", "--rules", str(rules))
    assert expectations_of(document)[0][:2] == ("clicks", "event_date=2024-05-06/hour=03")


def test_for_people_it_is_prose(run):
    done = run("s3a://lake/revenue/dt={{ ds }}", "--date={{ ds }}", "--logical-date", "2024-05-06")
    assert done.code == 0
    assert "s3://lake/revenue  dt=2024-05-06  path, is read or written" in done.out
    assert "dt = 2024-05-06  from {{ ds }} of ds" in done.out
    assert "Dates among the arguments" in done.out


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        pytest.param(["{{ ds }}"], "Give --logical-date, or --partition-key", id="no run"),
        pytest.param(["{{ ds }}", "--logical-date", "soon"], "is no date or time", id="no date"),
        pytest.param(
            ["{{ ds }}", "--logical-date", "2024-01-01/2024-01-02"], "a span of time", id="span"
        ),
        pytest.param(["{{ ds }}", "--partition-key", "x"], "'ds' is undefined", id="dateless"),
        pytest.param(["{{ ds", "--logical-date", "2024-05-06"], "cannot be rendered", id="syntax"),
        pytest.param(
            ["x", "--logical-date", "2024-05-06", "--data-interval-end", "2024-05-07"],
            "--data-interval-end needs --data-interval-start.",
            id="half an interval",
        ),
        pytest.param(
            ["x", "--logical-date", "2024-05-06", "--rules", "/no/such.yaml"],
            "/no/such.yaml",
            id="no rules",
        ),
        pytest.param(
            ["x", "--logical-date", "2024-05-06", "--rules", "- {dataset: /a, felds: b}"],
            "felds",
            id="wrong rules",
        ),
    ],
)
def test_what_cannot_be_explained_is_reported_with_the_fix(run, argv, message):
    done = run(*argv)
    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err


# --- tasks ----------------------------------------------------------------------------------------


@pytest.fixture
def run_command(capsys):
    """Run ``airflow sparklineage explain`` as Airflow's command line does."""

    def run(*argv):
        [group] = cli.airflow_commands()
        command = next(c for c in group.subcommands if c.name == "explain")
        parser = argparse.ArgumentParser()
        for argument in command.args:
            argument.add_to_parser(parser)
        code = None
        try:
            command.func(parser.parse_args(argv))
        except SystemExit as end:
            code = end.code
        captured = capsys.readouterr()
        return SimpleNamespace(code=code, out=captured.out, err=captured.err)

    return run


@pytest.fixture
def explain_task(monkeypatch, run_command):
    """Explain a task of a DAG object, as ``airflow sparklineage explain`` does of a DAG's file."""

    def explain(dag, task_id, *argv):
        import airflow.utils.cli

        def bagged(*_):
            print("a DAG's file prints")
            structlog.get_logger("airflow.dag_processing.dagbag").info("Filling up the DagBag")
            return dag

        monkeypatch.setattr(airflow.utils.cli, "get_bagged_dag", bagged)
        done = run_command(dag.dag_id, task_id, *argv, "--json")
        if done.code not in (None, 1):
            return done
        document = json.loads(done.out)
        jsonschema.validate(document, SCHEMA)
        return document

    return explain


DAY = ("--logical-date", "2013-01-07")


def test_the_example_is_explained_before_it_runs(explain_task, monkeypatch):
    from dags_examples import example_report_flight_delays as example

    lake = example.dag.params["lake"]
    daily = explain_task(example.dag, "daily_delays", *DAY)
    partitioned = [(n, s, x) for n, s, x in expectations_of(daily) if "=" in s]
    assert partitioned == [
        (f"{lake}/weather", "observed_date=2013-01-07", ["ds"]),
        (f"{lake}/daily_delays", "flight_date=2013-01-07", ["ds"]),
    ]
    assert [(d["value"], d["field"]) for d in daily["dates"]] == [
        ("2013-01-07", "application_args[3]")
    ]
    weekly = explain_task(example.dag, "weekly_report", *DAY)
    assert (f"{lake}/weekly_report", "week_ending=2013-01-07", ["ds"]) in expectations_of(weekly)
    assert [d["value"] for d in weekly["dates"]] == ["2013-01-01", "2013-01-07"]
    prepare = explain_task(example.dag, "prepare_flights", *DAY)
    assert expectations_of(prepare) == [(lake, "no partition is named", [])]
    assert example.dag.get_task("daily_delays").application_args[3] == "{{ ds }}"


def dag_of(**arguments):
    schedule = arguments.pop("schedule", "@daily")
    start = datetime(2024, 1, 1, tzinfo=UTC)
    with DAG("shop", schedule=schedule, start_date=start, params={"lake": "/lake"}) as dag:
        SparkLineageSubmitOperator(task_id="revenue", application="job.py", **arguments)
        EmptyOperator(task_id="other")
    return dag


def test_declarations_of_a_task_are_explained(explain_task):
    dag = dag_of(
        reads=[DatasetSubset("a.rates", PartitionRange("dt", "{{ ds }}", "2013-01-10"))],
        writes=[DatasetSubset("{{ params.lake }}/revenue", {"dt": "{{ ds }}"})],
    )
    read, written = explain_task(dag, "revenue", *DAY)["expectations"]
    assert (read["kind"], read["side"], read["summary"]) == (
        "declared",
        "read",
        "dt=2013-01-07 … dt=2013-01-09 (3 partitions)",
    )
    assert (written["dataset"]["name"], written["summary"]) == ("/lake/revenue", "dt=2013-01-07")


def test_secrets_are_not_shown(explain_task):
    conf = {
        "spark.password": "hunter2 {{ ds }}",
        "spark.secret": "{{ ds }}",
        "spark.day": "{{ ds }} --password hunter2",
    }
    rendered = explain_task(dag_of(conf=conf), "revenue", *DAY)["rendered"]
    assert [(r["template"], r["value"], len(r["spans"])) for r in rendered] == [
        ("{{ ds }}", "***", 0),
        ("{{ ds }} --password ***", "2013-01-07 --password ***", 0),
    ]


def test_what_cannot_be_declared_is_a_problem(explain_task):
    document = explain_task(dag_of(reads=["/lake/dt={{ nope }}"]), "revenue", *DAY)
    assert document["problems"] == [
        "reads cannot be rendered (UndefinedError: 'nope' is undefined)."
    ]


def test_the_data_interval_is_that_of_the_timetable(explain_task):
    timetable = CronDataIntervalTimetable("@daily", timezone="UTC")
    dag = dag_of(schedule=timetable, application_args=["/lake/t/dt={{ data_interval_end | ds }}"])
    assert expectations_of(explain_task(dag, "revenue", *DAY))[0][1] == "dt=2013-01-08"


def test_an_instance_of_a_mapped_task_is_explained(explain_task):
    with DAG("mapped", schedule=None, params={}) as dag:
        SparkLineageSubmitOperator.partial(task_id="revenue", application="job.py").expand(
            application_args=[["/lake/t/dt={{ ds }}"], ["/lake/t/dt={{ macros.ds_add(ds, 1) }}"]]
        )
    first = explain_task(dag, "revenue", *DAY)
    assert (first["subject"], expectations_of(first)[0][1]) == (
        "mapped.revenue[0]",
        "dt=2013-01-07",
    )
    second = explain_task(dag, "revenue", *DAY, "--map-index", "1")
    assert (second["subject"], expectations_of(second)[0][1]) == (
        "mapped.revenue[1]",
        "dt=2013-01-08",
    )


def test_the_run_of_a_partition_is_explained(explain_task):
    dag = dag_of(partition_key_dimensions=["dt"], writes=["/lake/revenue"])
    document = explain_task(dag, "revenue", "--partition-key", "2024-05-06")
    assert [
        (e["dataset"] and e["dataset"]["name"], e["summary"]) for e in document["expectations"]
    ] == [
        ("/lake/revenue", "no partition is named"),
        (None, "dt=2024-05-06"),
    ]


def test_the_upstream_partitions_of_a_schedule_are_explained(explain_task):
    sdk = pytest.importorskip("airflow.sdk")
    if not hasattr(sdk, "PartitionedAssetTimetable"):
        pytest.skip("Airflow has partitioned assets from 3.3 on")
    orders = sdk.Asset("file:///lake/orders")
    schedule = sdk.PartitionedAssetTimetable(assets=orders)
    document = explain_task(dag_of(schedule=schedule), "revenue", "--partition-key", "2024-05-06")
    [entry] = document["expectations"]
    assert (entry["kind"], entry["side"], entry["dataset"]["name"], entry["summary"]) == (
        "schedule",
        "read",
        "/lake/orders",
        "partition_key=2024-05-06",
    )


@pytest.mark.parametrize(
    ("task_id", "argv", "message"),
    [
        pytest.param("nothing", DAY, "nothing", id="no such task"),
        pytest.param("other", DAY, "shop.other is a EmptyOperator, which has no", id="other task"),
        pytest.param("revenue", ("--partition-key", "x"), "'ds' is undefined", id="dateless"),
    ],
)
def test_what_is_no_task_with_lineage_is_reported(explain_task, task_id, argv, message):
    done = explain_task(dag_of(application_args=["{{ ds }}"]), task_id, *argv)
    assert done.code == 2
    assert message in done.err


def test_a_database_that_cannot_be_used_is_reported_without_its_url(run_command, monkeypatch):
    def bagged(*_):
        statement = "SELECT 1"
        raise OperationalError(statement, {}, ValueError("postgresql://airflow:hunter2@db"))

    monkeypatch.setattr("airflow.utils.cli.get_bagged_dag", bagged)
    done = run_command("shop", "revenue", *DAY)
    assert done.code == 2
    assert "`airflow db check` says why" in done.err
    assert "hunter2" not in done.err


@pytest.mark.parametrize(
    ("task_id", "code", "text"),
    [
        ("revenue", None, "shop.revenue"),
        ("other", 2, "holds a run of shop.revenue, and one of shop.other is asked for"),
    ],
)
def test_a_run_is_explained_to_its_own_task_only(run_command, tmp_path, task_id, code, text):
    shutil.copy(golden("staging_chain"), tmp_path / "events.ndjson")
    first = (tmp_path / "events.ndjson").read_text().splitlines()[0]
    run_id = json.loads(first)["run"]["runId"]
    CaptureBundle(tmp_path, Manifest(run_id, job=JobName("airflow", "shop.revenue"))).save()
    done = run_command("shop", task_id, "--run", str(tmp_path))
    assert done.code == code
    assert text in (done.err if code else done.out)
