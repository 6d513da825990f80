"""A run that touched the wrong partition: said, counted, stopped; and recorded on assets."""

from __future__ import annotations

import logging
from collections import Counter
from types import SimpleNamespace

import pendulum
import pytest
from airflow.providers.common.compat.sdk import AirflowFailException, Stats
from airflow.sdk import Asset
from airflow.sdk.exceptions import AirflowException
from airflow.sdk.execution_time.context import MacrosAccessor

from airflow_provider_sparklineage.exceptions import DeclarationError
from airflow_provider_sparklineage.expectations import DatasetSubset
from airflow_provider_sparklineage.operators import partition_check
from airflow_provider_sparklineage.operators.partition_check import partition_key
from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator
from airflow_provider_sparklineage.partitioning import Partition

pytestmark = [
    pytest.mark.airflow,
    # The stock hook never closes the pipe of its child.
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

STARTED = 1795230325898  # the recorded events' first write, in ms
ENDED = 1795230345135
DECLARED = DatasetSubset("/lake/revenue", {"dt": "{{ ds }}"})
OUTPUT = "/lake/revenue/dt={{ ds }}"


def written(*days):
    """Make the observer's record of a write to /lake/revenue."""
    layout = {
        "base": "file:/lake/revenue",
        "dimensions": [{"field": "dt", "transform": "identity", "type": "string"}],
        "partitions": [[day] for day in days],
    }
    write = {
        "node": "InsertIntoHadoopFsRelationCommand",
        "path": "file:/lake/revenue",
        "mode": "dynamic",
        "how": "exact",
        "layouts": [layout],
    }
    query = {"kind": "query", "started": STARTED, "ended": ENDED, "reads": [], "writes": [write]}
    return [{"kind": "start"}, query]


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
    def run(*days, exit=0, observations=None, **arguments):
        spark_submit.does("staging_chain", observations=observations or written(*days), exit=exit)
        task = SparkLineageSubmitOperator(
            task_id="revenue",
            application="job.py",
            **({"application_args": ["--out", OUTPUT]} | arguments),
        ).prepare_for_execution()
        task.events = OutletEvents()
        of_run = {
            **context,
            "ds": "2024-05-06",
            "logical_date": pendulum.datetime(2024, 5, 6),
            "macros": MacrosAccessor(),
            "params": {},
            "task": task,
            "outlet_events": task.events,
        }
        task.render_template_fields(of_run)
        task.error = None
        try:
            execute(task, of_run)
        except AirflowException as error:
            task.error = error
        lineage = task.get_openlineage_facets_on_complete(None)
        task.check = lineage.run_facets["sparkLineage_partitionCheck"]
        return task

    return run


def of_output(task):
    return next(e for e in task.check.writes if e["dataset"]["name"] == "/lake/revenue")


def warnings(caplog):
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]


def test_the_right_partition_matches(run, caplog, counted):
    task = run("2024-05-06", on_partition_mismatch="fail")
    assert task.error is None
    assert (of_output(task)["status"], task.check.status) == ("matched", "matched")
    assert not [w for w in warnings(caplog) if "meant to" in w]
    assert counted["sparklineage.partition_check.matched"] == 1


def test_the_wrong_partition_is_a_warning_with_both(run, caplog, counted):
    task = run("2024-05-05")
    assert task.error is None
    entry = of_output(task)
    assert (entry["status"], task.check.status) == ("unexpected", "unexpected")
    assert entry["unexpected"]["summary"] == "dt=2024-05-05"
    assert entry["missing"]["summary"] == "dt=2024-05-06"
    [said] = [w for w in warnings(caplog) if "meant to" in w]
    assert (
        "/lake/revenue: wrote dt=2024-05-05 and did not write dt=2024-05-06; expected "
        "dt=2024-05-06 (/lake/revenue/dt={{ ds }} in application_args[1])." in said
    )
    assert counted["sparklineage.partition_check.unexpected"] == 1


def test_the_task_fails_on_request_and_its_lineage_is_there(run):
    task = run("2024-05-05", on_partition_mismatch="fail")
    assert isinstance(task.error, AirflowFailException)  # which Airflow does not retry
    assert "wrote dt=2024-05-05 and did not write dt=2024-05-06" in str(task.error)
    assert of_output(task)["status"] == "unexpected"
    lineage = task.get_openlineage_facets_on_failure(None)
    assert "/lake/revenue" in [d.name for d in lineage.outputs]


def test_ignored_it_is_only_in_the_event(run, caplog):
    task = run("2024-05-05", on_partition_mismatch="ignore")
    assert of_output(task)["status"] == "unexpected"
    assert not [w for w in warnings(caplog) if "meant to" in w]


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
    task = run("2024-05-05", on_partition_mismatch_callback=lambda _: 1 / 0)
    assert task.error is None
    assert "on_partition_mismatch_callback failed." in warnings(caplog)


def test_a_job_that_failed_is_not_checked_besides(run, caplog):
    task = run("2024-05-05", on_partition_mismatch="fail", exit=1)
    assert not isinstance(task.error, AirflowFailException)
    assert of_output(task)["status"] == "unexpected"
    assert not [w for w in warnings(caplog) if "meant to" in w]


def test_a_defect_in_the_comparison_costs_no_task(run, monkeypatch):
    monkeypatch.setattr(partition_check, "checks", lambda *_: 1 / 0)
    assert run("2024-05-05", on_partition_mismatch="fail").error is None


# --- asset partitions -----------------------------------------------------------------------------

REVENUE = Asset("file:///lake/revenue")


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


def test_a_failed_check_records_nothing(run):
    task = run(
        "2024-05-05", outlets=[REVENUE], record_asset_partitions=True, on_partition_mismatch="fail"
    )
    assert task.error is not None
    assert task.events == {}


def test_too_many_keys_are_said_and_none_is_recorded(run, caplog, monkeypatch):
    monkeypatch.setattr(partition_check, "MAX_KEYS", 1)
    task = run("2024-05-05", "2024-05-06", outlets=[REVENUE], record_asset_partitions=True)
    assert task.events == {}
    assert any("only 1 can be recorded" in w for w in warnings(caplog))


def test_what_airflow_refuses_costs_no_task(run, caplog):
    task = run("x" * 300, outlets=[REVENUE], record_asset_partitions=True)
    assert task.error is None
    assert any("were not recorded on its asset" in w for w in warnings(caplog))


def test_several_values_make_one_key():
    partition = Partition.of([("dt", "1"), ("region", "PL")])
    assert partition_key(partition, key_format=True) == "1|PL"
    assert partition_key(partition, "{region}/{dt}") == "PL/1"
    with pytest.raises(DeclarationError, match="dimensions are: dt, region"):
        partition_key(partition, "{day}")
