"""A run that accessed the wrong partition: logged, counted, stopped; and recorded on assets."""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections import Counter
from types import SimpleNamespace

import pendulum
import pytest
from airflow.providers.common.compat.sdk import (
    AirflowException,
    AirflowFailException,
    AirflowTaskTimeout,
    Stats,
)
from airflow.sdk import DAG, Asset
from airflow.sdk.execution_time.context import MacrosAccessor
from openlineage.client.serde import Serde

from airflow_provider_sparklineage import cli
from airflow_provider_sparklineage.expectations import (
    DatasetSubset,
    Expectation,
    Kind,
    PartitionRange,
    Side,
)
from airflow_provider_sparklineage.lineage import bundle as bundles
from airflow_provider_sparklineage.lineage.dataset import LineageDataset, TaskLineage
from airflow_provider_sparklineage.lineage.observed.accesses import Subset
from airflow_provider_sparklineage.lineage.subset_report import SubsetReport
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.exceptions import DeclarationError, SettingsError
from airflow_provider_sparklineage.model.locations import DEFAULT_LOCATOR
from airflow_provider_sparklineage.model.partitioning import Dimension, Partition
from airflow_provider_sparklineage.model.representation import DEFAULT_LIMITS
from airflow_provider_sparklineage.model.terms import Outcome
from airflow_provider_sparklineage.operators import partition_check
from airflow_provider_sparklineage.operators.partition_check import partition_key
from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator
from airflow_provider_sparklineage.storage import bounded
from tests.observed_writes import written

pytestmark = [
    pytest.mark.airflow,
    # The stock hook never closes the pipe of its child.
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

DECLARED = DatasetSubset("/lake/revenue", {"dt": "{{ ds }}"})
OUTPUT = "/lake/revenue/dt={{ ds }}"
REVENUE = Asset("file:///lake/revenue")


@pytest.fixture
def counted(monkeypatch):
    found = Counter()
    monkeypatch.setattr(Stats, "incr", lambda name, *_, **__: found.update([name]), raising=False)
    return found


class OutletEvents(dict):
    def __missing__(self, asset):
        self[asset] = event = SimpleNamespace(keys=[])
        event.add_partitions = event.keys.extend
        return event


@pytest.fixture
def run(spark_submit, execute, context, counted):
    def run(*days, exit=0, observations=None, events=None, of=None, mapped=(), **arguments):
        spark_submit.does("staging_chain", observations=observations or written(*days), exit=exit)
        arguments = {"application_args": ["--out", OUTPUT]} | arguments
        ti = context["ti"]
        if mapped:
            of_all = {"task_id": "revenue", "application": "job.py"}
            with DAG("mapped", schedule=None):
                task = SparkLineageSubmitOperator.partial(**of_all).expand(application_args=mapped)
            ti = type(ti)(**{**vars(ti), "map_index": 1, "is_mapped": lambda: True})
        else:
            task = SparkLineageSubmitOperator(task_id="revenue", application="job.py", **arguments)
        task = task.prepare_for_execution()
        recorded = OutletEvents() if events is None else events
        of_run = {
            **context,
            "ds": "2024-05-06",
            "logical_date": pendulum.datetime(2024, 5, 6),
            "macros": MacrosAccessor(),
            "params": {},
            "ti": ti,
            "dag": task.dag if mapped else None,
            "task": task,
            "outlet_events": recorded,
        } | (of or {})
        of_run = {name: value for name, value in of_run.items() if value is not None}
        task.render_template_fields(of_run)
        task = of_run["task"]  # of a mapped one, the instance
        task.events = recorded
        task.error = None
        try:
            execute(task, of_run)
        except AirflowException as error:
            task.error = error
        lineage = task.get_openlineage_facets_on_complete(None)
        task.check = lineage.run_facets["sparkLineage_partitionCheck"]
        task.degradations = lineage.run_facets["sparkLineage_capture"].degradations
        return task

    return run


def of_output(task):
    return next(e for e in task.check.writes if e["dataset"]["name"] == "/lake/revenue")


def warnings(caplog):
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]


def test_the_right_partition_matches(run, caplog, counted):
    task = run("2024-05-06", on_partition_mismatch="fail")
    assert task.error is None
    assert of_output(task)["status"] == "matched"
    assert task.check.status == "unobserved"  # as nobody saw the staging table's partitions
    assert not [w for w in warnings(caplog) if "than expected" in w]
    assert counted["sparklineage.partition_check.matched"] == 1


def test_the_wrong_partition_is_a_warning_with_both(run, caplog, counted):
    task = run("2024-05-05")
    assert task.error is None
    entry = of_output(task)
    assert (entry["status"], task.check.status) == ("unexpected", "unexpected")
    assert entry["unexpected"]["summary"] == "dt=2024-05-05"
    assert entry["missing"]["summary"] == "dt=2024-05-06"
    [warning] = [w for w in warnings(caplog) if "than expected" in w]
    assert (
        "/lake/revenue: wrote dt=2024-05-05 and did not write dt=2024-05-06; expected "
        "dt=2024-05-06 (/lake/revenue/dt={{ ds }} in application_args[1])." in warning
    )
    assert counted["sparklineage.partition_check.unexpected"] == 1


def test_the_task_fails_on_request_and_its_lineage_is_there(run):
    task = run("2024-05-05", on_partition_mismatch="fail")
    assert isinstance(task.error, AirflowFailException)  # which Airflow does not retry
    assert "wrote dt=2024-05-05 and did not write dt=2024-05-06" in str(task.error)
    assert of_output(task)["status"] == "unexpected"
    lineage = task.get_openlineage_facets_on_failure(None)
    assert "/lake/revenue" in [d.name for d in lineage.outputs]


def test_the_bundle_of_a_failed_check_is_kept_and_has_what_was_sent(run, captures, capsys):
    task = run("2024-05-05", on_partition_mismatch="fail")
    [manifest] = captures()
    assert json.loads(manifest.read_text())["outcome"] == "FAIL"
    capsys.readouterr()
    assert cli.main(["merge", str(manifest.parent)]) == 0
    event = json.loads(capsys.readouterr().out)
    assert event["eventType"] == "FAIL"
    sent = task.get_openlineage_facets_on_failure(None)
    assert [d["name"] for d in event["outputs"]] == [d.name for d in sent.outputs]
    reported = event["run"]["facets"]["sparkLineage_partitionCheck"]["writes"]
    writes = Serde.to_dict(task.check)["writes"]
    by_name = {entry["dataset"]["name"]: entry for entry in writes}
    assert {entry["dataset"]["name"]: entry for entry in reported} == by_name
    assert cli.main(["show", str(manifest.parent)]) == 0
    assert "unexpected dt=2024-05-05" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "severity"),
    [
        ({}, "warn"),
        ({"on_partition_mismatch": "fail"}, "error"),
        ({"on_partition_mismatch": "ignore"}, None),
        ({"on_partition_mismatch": "fail", "check_partitions_of": "reads"}, None),
    ],
    ids=str,
)
def test_the_consequence_is_the_severity_in_what_is_sent_and_in_a_replay(
    run, arguments, severity, captures, monkeypatch, capsys
):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__KEEP_CAPTURES", "all")
    task = run("2024-05-05", **arguments)
    sent = task.get_openlineage_facets_on_failure(None)
    [of_revenue] = [d for d in sent.outputs if d.name == "/lake/revenue"]
    [assertion] = of_revenue.facets["dataQualityAssertions"].assertions
    assert (assertion["success"], assertion.get("severity")) == (False, severity)
    [manifest] = captures()
    capsys.readouterr()
    assert cli.main(["merge", str(manifest.parent)]) == 0
    replayed = json.loads(capsys.readouterr().out)["run"]["facets"]["test"]
    assert replayed == Serde.to_dict(sent.run_facets["test"])


@pytest.fixture
def merges(monkeypatch):
    """Give the outcomes as which bundles are merged."""
    outcomes = []
    merged_lineage = bundles.merged_lineage

    def noted(bundle, *others):
        outcomes.append(bundle.manifest.outcome)
        return merged_lineage(bundle, *others)

    monkeypatch.setattr(bundles, "merged_lineage", noted)
    return outcomes


def test_a_bundle_is_merged_again_only_if_a_check_fails_the_task(run, merges):
    run("2024-05-06", on_partition_mismatch="fail")
    assert merges == ["COMPLETE"]
    run("2024-05-05", on_partition_mismatch="fail")
    assert merges == ["COMPLETE", "COMPLETE", "FAIL"]


def test_events_that_are_merged_again_are_counted_once(run):
    once, again = (run(day, on_partition_mismatch="fail") for day in ("2024-05-06", "2024-05-05"))
    of_failure = again.get_openlineage_facets_on_failure(None)
    of_success = once.get_openlineage_facets_on_complete(None)
    counts = [x.run_facets["sparkLineage_capture"].events for x in (of_success, of_failure)]
    assert counts[0] == counts[1] > 0


def test_the_bundle_of_a_check_that_went_well_is_marked_as_complete(run, captures, monkeypatch):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__KEEP_CAPTURES", "all")
    run("2024-05-06", on_partition_mismatch="fail")
    [manifest] = captures()
    assert json.loads(manifest.read_text())["outcome"] == "COMPLETE"


def test_ignored_it_is_only_in_the_event(run, caplog):
    task = run("2024-05-05", on_partition_mismatch="ignore")
    assert of_output(task)["status"] == "unexpected"
    assert not [w for w in warnings(caplog) if "than expected" in w]


@pytest.mark.parametrize(
    ("arguments", "fails"),
    [
        pytest.param({"check_partitions_of": "writes"}, True, id="its side"),
        pytest.param({"check_partitions_of": ["reads"]}, False, id="the other side"),
        pytest.param({"check_partitions_of": ["/lake/rev*"]}, True, id="its name"),
        pytest.param({"check_partitions_of": ["writes", "/lake/other"]}, False, id="another name"),
        pytest.param({"application_args": ["--day", "{{ ds }}"]}, False, id="a date"),
        pytest.param(
            {
                "application_args": [],
                "writes": [DECLARED],
            },
            True,
            id="declared",
        ),
        pytest.param({"observe": False}, False, id="not observed"),
    ],
)
def test_what_may_fail_a_task(run, arguments, fails):
    task = run("2024-05-05", on_partition_mismatch="fail", **arguments)
    assert (task.error is not None) == fails


def test_a_callback_gets_the_mismatches(run, caplog):
    got = []
    run("2024-05-05", on_partition_mismatch_callback=got.extend)
    [mismatch] = got
    assert (mismatch.side, str(mismatch.dataset.name)) == ("write", "/lake/revenue")
    run("2024-05-06", on_partition_mismatch_callback=got.extend)
    assert len(got) == 1


@pytest.mark.parametrize(
    ("callback", "message"),
    [
        pytest.param(lambda _: 1 / 0, "failed", id="raises"),
        pytest.param(lambda _: sys.exit(3), "failed", id="exits"),
        pytest.param(lambda _: threading.Event().wait(), "has not returned for 0 s", id="hangs"),
        pytest.param(lambda: None, "failed", id="takes nothing"),
    ],
)
@pytest.mark.parametrize("policy", ["warn", "fail"])
def test_a_callback_that_misbehaves_costs_no_task(
    run, caplog, monkeypatch, callback, message, policy
):
    monkeypatch.setattr(partition_check, "CALLBACK_S", 0.05)
    task = run("2024-05-05", on_partition_mismatch=policy, on_partition_mismatch_callback=callback)
    assert isinstance(task.error, AirflowFailException) == (policy == "fail")
    assert any(f"on_partition_mismatch_callback {message}" in w for w in warnings(caplog))


def test_the_timeout_of_the_task_ends_a_callback_and_not_the_task(run, caplog, monkeypatch):
    def timed_out(*_):
        raise AirflowTaskTimeout

    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__ARCHIVE_URL", "none")  # which is waited for as well
    monkeypatch.setattr(bounded, "wait", timed_out)
    task = run(
        "2024-05-05", on_partition_mismatch="fail", on_partition_mismatch_callback=lambda _: None
    )
    assert isinstance(task.error, AirflowFailException)
    assert any("still running at the task's timeout" in w for w in warnings(caplog))


def test_metrics_that_cannot_be_counted_do_not_hide_a_mismatch(run, caplog, monkeypatch):
    monkeypatch.setattr(Stats, "incr", lambda *_, **__: 1 / 0, raising=False)
    task = run("2024-05-05", on_partition_mismatch="fail")
    assert isinstance(task.error, AirflowFailException)
    assert any("were not counted" in w for w in warnings(caplog))


def test_a_glob_of_no_dataset_is_reported(run, caplog):
    run("2024-05-05", on_partition_mismatch="fail", check_partitions_of=["/lake/revenues"])
    assert any("'/lake/revenues', and the job accessed no such" in w for w in warnings(caplog))


@pytest.mark.parametrize(
    "wrong",
    [
        {"on_partition_mismatch": "fial"},
        {"on_partition_mismatch": None},
        {"check_partitions_of": "write"},
        {"check_partitions_of": ["Reads"]},
        {"check_partitions_of": []},
        {"check_partitions_of": [""]},
        {"check_partitions_of": 1},
        {"on_partition_mismatch_callback": "page_me"},
        {"record_asset_partitions": "dt"},
        {"record_asset_partitions": 1},
    ],
)
def test_a_slip_in_an_argument_is_an_error_of_the_dag(wrong):
    [name] = wrong
    with pytest.raises(SettingsError, match=f"^{name}=.*It must be"):
        SparkLineageSubmitOperator(task_id="revenue", application="job.py", **wrong)


def test_a_job_that_failed_is_not_also_checked(run, caplog):
    task = run("2024-05-05", on_partition_mismatch="fail", exit=1)
    assert not isinstance(task.error, AirflowFailException)
    assert of_output(task)["status"] == "unexpected"
    assert not [w for w in warnings(caplog) if "than expected" in w]


def test_a_defect_in_the_comparison_costs_no_task(run, monkeypatch):
    monkeypatch.setattr(partition_check, "checks", lambda *_: 1 / 0)
    assert run("2024-05-05", on_partition_mismatch="fail").error is None


@pytest.mark.parametrize(
    ("of", "arguments"),
    [
        pytest.param({}, {}, id="a run of a date"),
        pytest.param(
            {"run_id": "backfill__2024-05-06T00:00:00+00:00"}, {}, id="a run of a backfill"
        ),
        pytest.param(
            {"ds": None, "logical_date": None, "partition_key": "2024-05-06"},
            {"application_args": [], "partition_key_dimensions": ["dt"]},
            id="a run of a partition",
        ),
        pytest.param(
            {"ds": None, "logical_date": None, "partition_key": "20240506"},
            {"application_args": ["--out", "/lake/revenue/dt={{ partition_key }}"]},
            id="a run of a partition, by a path",
        ),
        pytest.param(
            {}, {"mapped": [["--out", "/lake/revenue/dt=1"], ["--out", OUTPUT]]}, id="mapped"
        ),
    ],
)
def test_every_kind_of_run_is_checked_alike(run, of, arguments):
    assert of_output(run("2024-05-06", of=of, **arguments))["status"] == "matched"
    assert of_output(run("2024-05-05", of=of, **arguments))["status"] == "unexpected"


@pytest.mark.parametrize(
    ("days", "status"),
    [
        (["2024-05-04", "2024-05-05", "2024-05-06"], "matched"),
        (["2024-05-04", "2024-05-06"], "missing"),
        (["2024-05-04", "2024-05-05", "2024-05-06", "2024-05-07"], "unexpected"),
    ],
)
def test_a_range_is_checked_alike(run, days, status):
    week = PartitionRange("dt", "{{ macros.ds_add(ds, -2) }}", "{{ macros.ds_add(ds, 1) }}")
    task = run(*days, application_args=[], writes=[DatasetSubset("/lake/revenue", week)])
    assert of_output(task)["status"] == status


def test_each_try_is_checked_by_what_it_did_itself(run, captures):
    both = [DatasetSubset("/lake/revenue", {"dt": ["2024-05-05", "2024-05-06"]})]
    arguments = {
        "application_args": [],
        "writes": both,
        "on_partition_mismatch": "fail",
        "outlets": [REVENUE],
        "record_asset_partitions": True,
    }
    first = run("2024-05-05", exit=1, **arguments)
    assert not isinstance(first.error, AirflowFailException)  # or it would not be tried again
    assert (of_output(first)["status"], first.events) == ("missing", {})
    second = run("2024-05-05", "2024-05-06", **arguments)
    assert (of_output(second)["status"], second.error) == ("matched", None)
    assert second.events[REVENUE].keys == ["2024-05-05", "2024-05-06"]
    [kept] = captures()
    assert json.loads(kept.read_text())["outcome"] == "FAIL"


# --- asset partitions -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key_format", "keys"),
    [
        pytest.param(True, ["2024-05-05", "2024-05-06"], id="values"),
        pytest.param("day-{dt}", ["day-2024-05-05", "day-2024-05-06"], id="format"),
        pytest.param(False, None, id="off"),
        pytest.param("{region}", [], id="no such dimension"),
    ],
)
def test_written_partitions_are_recorded_on_the_outlet_asset(run, key_format, keys):
    task = run(
        "2024-05-05",
        "2024-05-06",
        outlets=[REVENUE, Asset("file:///lake/other")],
        record_asset_partitions=key_format,
    )
    assert task.error is None
    assert {a.uri: e.keys for a, e in task.events.items() if e.keys} == (
        {REVENUE.uri: keys} if keys else {}
    )


@pytest.fixture
def at_runtime():
    """Give a DAG whose tasks name the partitions of their outlets."""
    timetable = pytest.importorskip(
        "airflow.sdk.definitions.timetables.assets", reason="3.3 has it"
    )
    with DAG("at_runtime", schedule=timetable.PartitionedAtRuntime()) as dag:
        pass
    return dag


@pytest.mark.parametrize(
    ("key", "arguments", "keys"),
    [
        pytest.param(None, {}, ["2024-05-05"], id="by default"),
        pytest.param("2024-05-07", {}, [], id="the run has its own key"),
        pytest.param(None, {"record_asset_partitions": False}, [], id="off"),
        pytest.param(
            "2024-05-07", {"record_asset_partitions": True}, ["2024-05-05"], id="on anyway"
        ),
    ],
)
def test_partitions_are_recorded_by_default_where_tasks_name_them(
    run, at_runtime, key, arguments, keys
):
    of = {"dag": at_runtime, "dag_run": SimpleNamespace(partition_key=key)}
    task = run("2024-05-05", outlets=[REVENUE], of=of, **arguments)
    assert task.error is None
    assert task.events[REVENUE].keys == keys


@pytest.mark.parametrize(
    "arguments", [{}, {"record_asset_partitions": True}], ids=["default", "on"]
)
def test_the_log_names_what_is_recorded_by_default_and_the_switch(
    run, at_runtime, caplog, arguments
):
    caplog.set_level(logging.INFO)
    days = [f"2024-05-0{n}" for n in range(1, 8)]
    of = {"dag": at_runtime, "dag_run": SimpleNamespace(partition_key=None)}
    task = run(*days, outlets=[REVENUE, Asset("file:///lake/other")], of=of, **arguments)
    assert task.events[REVENUE].keys == days
    found = [r.getMessage() for r in caplog.records if "record_asset_partitions=False" in r.msg]
    assert len(found) == (not arguments)
    for message in found:
        assert f": {REVENUE.uri}: {', '.join(days[:5])} and 2 more. Each can start a run" in message
        assert "scheduled on the asset itself does not run" in message


@pytest.mark.parametrize(("key", "queued"), [(None, ["plain"]), ("2024-05-05", [])])
def test_airflow_queues_a_dag_on_the_asset_itself_for_an_event_without_key_alone(
    monkeypatch, at_runtime, key, queued
):
    """So that a default that records keys stops such a DAG, as the documentation says."""
    from airflow.assets import manager

    found = []
    monkeypatch.setattr(manager, "get_dialect_name", lambda _: "sqlite")
    monkeypatch.setattr(
        manager.AssetManager,
        "_queue_dagruns_nonpartitioned_slow_path",
        lambda _, dags, __: found.extend(dag.dag_id for dag in dags),
    )
    plain = type("Plain", (), {"dag_id": "plain", "timetable_partitioned": False})()
    manager.AssetManager._queue_dagruns(
        asset_id=1,
        dags_to_queue={plain},
        partition_key=key,
        partition_date=None,
        event=None,
        task_instance=None,
        session=None,
    )
    assert found == queued


def test_by_default_nothing_is_recorded_of_a_dag_that_has_no_partitions(run):
    with DAG("daily", schedule="@daily") as dag:
        pass
    task = run("2024-05-05", outlets=[REVENUE], of={"dag": dag})
    assert (task.error, task.events) == (None, {})


def test_by_default_the_keys_of_the_tasks_own_code_stay_alone(run, at_runtime):
    events = OutletEvents()
    events[REVENUE].partition_keys = {"mine"}
    task = run("2024-05-05", outlets=[REVENUE], events=events, of={"dag": at_runtime})
    assert (task.error, task.events[REVENUE].keys) == (None, [])


def test_an_outlet_asset_is_the_output_that_the_listener_names_by_the_users_pattern(run):
    asset = Asset("file:///lake/v7/revenue")
    task = run(
        "2024-05-06",
        outlets=[asset],
        record_asset_partitions=True,
        conf={"spark.openlineage.dataset.removePath.pattern": "(?<remove>/v[0-9]+)"},
    )
    assert task.events[asset].keys == ["2024-05-06"]


def test_a_failed_check_records_nothing(run):
    task = run(
        "2024-05-05", outlets=[REVENUE], record_asset_partitions=True, on_partition_mismatch="fail"
    )
    assert task.error is not None
    assert task.events == {}


def test_partitions_that_are_not_certain_fail_nothing_and_are_not_recorded(run, caplog):
    observations = written("2024-05-05")
    observations[1]["writes"][0]["how"] = "listing"
    task = run(
        observations=observations,
        outlets=[REVENUE],
        record_asset_partitions=True,
        on_partition_mismatch="fail",
    )
    assert task.error is None
    assert of_output(task)["status"] == "unexpected"
    assert task.events == {}
    logged = " ".join(warnings(caplog))
    assert "than expected" in logged
    assert "not certain, so none is recorded" in logged
    inexact = [d for d in task.degradations if d["code"] == "partitions_inexact"]
    [note] = [d for d in inexact if d["side"] == "write"]
    assert "/lake/revenue were written is not certain" in note["message"]


@pytest.mark.parametrize(
    ("planned", "message", "fails"),
    [
        pytest.param(["7", "8"], "planned to read dt=7 … dt=8 (2 partitions)", False, id="all"),
        pytest.param(["8"], "read dt=7 and planned to read dt=8", True, id="some"),
        pytest.param([], "read dt=7 … dt=8 (2 partitions)", True, id="none"),
    ],
)
def test_partitions_that_were_only_planned_fail_nothing(planned, message, fails):
    name, dt = DatasetName("file", "/lake/t"), (Dimension.of_column("dt"),)

    def days(*values):
        return frozenset(Partition.from_values([("dt", value)]) for value in values)

    expected = Expectation(Kind.PATH, dataset=name, partitions=tuple(days("6")), dimensions=dt)
    subset = Subset(dt, days("6", "7", "8"), planned=days(*planned))
    dataset = LineageDataset(name, observed=True, subset=subset)
    report = SubsetReport([expected], DEFAULT_LOCATOR, DEFAULT_LIMITS)
    lineage = TaskLineage(Outcome.COMPLETE, (report.of(dataset, Side.READ),))
    [check] = found = partition_check.checks(lineage)
    assert check.check.status.is_mismatch
    assert f": {message}; expected dt=6" in check.message
    assert bool(partition_check.failures(found, "fail")) == fails


def test_an_airflow_that_records_no_partitions_is_reported(run, caplog):
    class OlderEvents(dict):
        def __missing__(self, asset):
            return SimpleNamespace()

    task = run("2024-05-06", outlets=[REVENUE], record_asset_partitions=True, events=OlderEvents())
    assert task.error is None
    assert any("Airflow records partitions of assets from 3.3 on" in w for w in warnings(caplog))


def test_too_many_keys_are_reported_and_none_is_recorded(run, caplog, monkeypatch):
    monkeypatch.setattr(partition_check, "MAX_KEYS", 1)
    task = run("2024-05-05", "2024-05-06", outlets=[REVENUE], record_asset_partitions=True)
    assert task.events == {}
    assert any("only 1 can be recorded" in w for w in warnings(caplog))


def test_what_airflow_refuses_costs_no_task(run, caplog):
    task = run("x" * 300, outlets=[REVENUE], record_asset_partitions=True)
    assert task.error is None
    assert any("were not recorded on its asset" in w for w in warnings(caplog))


@pytest.mark.parametrize("key", ["a\0b", "\ud800", "\N{GRINNING FACE}", " ", "x" * 251], ids=ascii)
def test_a_key_that_a_database_would_refuse_is_not_given_to_it(key):
    """Airflow stores the keys with the task's state: the task would fail."""
    with pytest.raises(DeclarationError, match="every database of Airflow can keep"):
        partition_key(Partition.from_values([("dt", key)]), key_format=True)


def test_several_values_make_one_key():
    partition = Partition.from_values([("dt", "1"), ("region", "PL")])
    assert partition_key(partition, key_format=True) == "1|PL"
    assert partition_key(partition, "{region}/{dt}") == "PL/1"
    with pytest.raises(DeclarationError, match="Dimensions are: dt, region"):
        partition_key(partition, "{day}")
