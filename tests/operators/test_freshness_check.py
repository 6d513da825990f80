"""SparkLineageFreshnessCheck, on a month of the flights example of which a day was rewritten."""

from __future__ import annotations

import gzip
import inspect
import json
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from airflow.providers.common.compat.sdk import AirflowException, AirflowSkipException

from airflow_provider_sparklineage import cli
from airflow_provider_sparklineage.model.exceptions import (
    DeclarationError,
    HistoryError,
    LimitError,
)
from airflow_provider_sparklineage.operators import freshness_check
from airflow_provider_sparklineage.operators.freshness_check import SparkLineageFreshnessCheck
from airflow_provider_sparklineage.settings.connection import DATAHUB_TRANSPORT

RECORDED = Path(__file__).parents[1] / "golden" / "history"


def recorded(name):
    return RECORDED / f"flights_{name}.ndjson.gz"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("history"))
    sources = [str(recorded(name)) for name in ("month", "rewritten")]
    assert cli.main(["history", "build", *sources, "--store", folder]) == 0
    return folder


@pytest.fixture
def gauges(monkeypatch):
    """Collect Airflow's metrics, which go to a server otherwise."""
    found = {}

    def gauge(name, value, tags):
        found[name, tags["dataset"].rpartition("/")[2]] = value

    monkeypatch.setattr(freshness_check.Stats, "gauge", gauge, raising=False)
    return found


@pytest.fixture
def check(store):
    def check(*partitions, dataset="daily_delays", **arguments):
        arguments.setdefault("store", store)
        operator = SparkLineageFreshnessCheck(
            task_id="fresh", dataset=dataset, partitions=partitions or None, **arguments
        )
        log_url = "http://airflow/dags/shop/runs/manual/tasks/fresh?try_number=1"
        check.operators.append(operator)
        operator.execute({"ti": SimpleNamespace(log_url=log_url)})

    check.operators = []
    return check


def lineage_of(check, *partitions, **arguments):
    """Give the lineage that the task has at its end, whichever that is."""
    with suppress(AirflowException, AirflowSkipException):
        check(*partitions, **arguments)
    hook = check.operators[-1].get_openlineage_facets_on_complete
    return hook and hook(None)


def entries(lineage):
    """Give the name of each input, and its assertions."""
    return [(d.name, d.inputFacets["dataQualityAssertions"].assertions) for d in lineage.inputs]


@pytest.fixture
def generic(monkeypatch):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__BACKEND", "generic")


@pytest.mark.usefixtures("generic")
@pytest.mark.parametrize(
    ("day", "on_finding", "result"),
    [
        ("14", "fail", (True, "error", "pass")),
        ("15", "fail", (False, "error", "fail")),
        ("15", "skip", (False, "warn", "fail")),
    ],
)
def test_the_result_is_an_assertion_on_the_dataset(check, day, on_finding, result):
    lineage = lineage_of(check, f"flight_date=2013-01-{day}", on_finding=on_finding)
    [(name, [found])] = entries(lineage)
    [tested] = lineage.run_facets["test"].tests
    assert (name, found["assertion"]) == (
        "/flights/lake/daily_delays",
        "has up-to-date partitions",
    )
    assert (found["success"], found["severity"], tested["status"]) == result
    assert found["success"] == (found["actual"] == f"up to date (flight_date=2013-01-{day})")
    assert not lineage.outputs


def test_for_marquez_only_what_is_not_up_to_date_is_on_the_page(check):
    assert entries(lineage_of(check, "flight_date=2013-01-14")) == []
    stale = lineage_of(check, "flight_date=2013-01-15")
    assert [found["success"] for _, [found] in entries(stale)] == [False]
    [dataset] = stale.inputs
    assert dataset.facets["documentation"].description.startswith("flight_date=2013-01-15 is stale")


@pytest.mark.usefixtures("generic")
def test_a_secret_among_the_findings_is_masked(check, monkeypatch):
    monkeypatch.setattr(freshness_check, "masked", lambda text: text.replace("flights", "***"))
    [(_, [found])] = entries(lineage_of(check, "flight_date=2013-01-15"))
    assert "***" in found["actual"]
    assert "flights" not in found["actual"]


def test_a_check_that_got_no_answer_has_no_result(check):
    with pytest.raises(HistoryError):
        check(store="/nowhere")
    assert check.operators[-1].get_openlineage_facets_on_complete is None


def test_lineage_that_is_off_or_cannot_be_made_changes_nothing(check, monkeypatch, caplog):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__DISABLED", "true")
    assert lineage_of(check, "flight_date=2013-01-14") is None
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__DISABLED", "false")
    monkeypatch.setattr(freshness_check, "masked", lambda _: 1 / 0)
    check("flight_date=2013-01-14")
    assert check.operators[-1].get_openlineage_facets_on_complete is None
    assert "The result of the check is not in the task's event." in caplog.text


def test_a_transport_to_datahub_gets_the_result_that_marquez_does_not(check, monkeypatch):
    monkeypatch.setattr(
        freshness_check.sources, "ready_client", lambda: {"type": DATAHUB_TRANSPORT}
    )
    lineage = lineage_of(check, "flight_date=2013-01-14")
    [read] = lineage.run_facets["test"].neutral["inputs"]
    [found] = read["inputFacets"]["dataQualityAssertions"]["assertions"]
    assert found["success"]
    assert not lineage.inputs


def test_a_partition_that_is_up_to_date_passes(check):
    check("flight_date=2013-01-14", "flight_date=2013-01-16")


def test_a_stale_partition_fails_with_the_cause(check):
    with pytest.raises(AirflowException, match="daily_delays is not up to date") as error:
        check("flight_date=2013-01-15")
    assert not isinstance(error.value, AirflowSkipException)
    assert str(error.value).endswith(
        " See http://airflow/plugin/spark-lineage-history"
        "?namespace=file&name=/flights/lake/daily_delays&states=smwn"
    )
    assert (
        "flight_date=2013-01-15 is stale, as /flights/lake/flights flight_date=2013-01-15 changed"
        in str(error.value)
    )


def test_without_partitions_all_of_the_dataset_is_checked(check):
    with pytest.raises(AirflowException, match="week_ending=2013-01-21 is stale"):
        check(dataset="weekly_report")


def test_what_nobody_has_written_is_not_up_to_date(check):
    with pytest.raises(AirflowException, match="nobody is known to have written flight_date=2014"):
        check("flight_date=2014-01-01")


def test_an_answer_that_takes_too_long_is_given_up(check, monkeypatch):
    monkeypatch.setattr(freshness_check, "SECONDS", 0)
    with pytest.raises(LimitError, match=r"longer than 0 s, and was given up\. Ask with `spark"):
        check("flight_date=2013-01-14")


def test_it_can_skip_what_follows(check):
    with pytest.raises(AirflowSkipException, match="is stale"):
        check("flight_date=2013-01-15", on_finding="skip")


@pytest.fixture
def month_with(tmp_path):
    """Build the history of the month, of which the run for one day is changed."""

    def month_with(change):
        events = []
        for line in gzip.decompress(recorded("month").read_bytes()).splitlines():
            event = json.loads(line)
            facet = event["run"]["facets"].get("sparkLineage_partitionCheck", {})
            if event["job"]["name"].endswith("daily_delays") and "2013-01-08" in str(facet):
                change(event, facet)
            events.append(json.dumps(event))
        file = tmp_path / "events.ndjson"
        file.write_text("\n".join(events))
        other = str(tmp_path / "store")
        assert cli.main(["history", "build", str(file), "--store", other]) == 0
        return other

    return month_with


def test_a_run_whose_partitions_mismatched_is_a_finding(check, month_with):
    store = month_with(lambda _, facet: facet.update(status="unexpected"))
    with pytest.raises(AirflowException, match="written by a run whose partitions mismatched"):
        check("flight_date=2013-01-08", store=store)
    check("flight_date=2013-01-20", store=store)


def test_what_a_failed_run_wrote_is_a_finding(check, month_with):
    store = month_with(lambda event, _: event.update(eventType="FAIL"))
    with pytest.raises(AirflowException, match="was written by a run that failed, and by none"):
        check("flight_date=2013-01-08", store=store)
    check("flight_date=2013-01-20", store=store)


def test_how_much_is_stale_is_a_metric_of_airflow(check, gauges):
    check("flight_date=2013-01-16")
    assert gauges["sparklineage.stale_partitions", "daily_delays"] == 1
    assert gauges["sparklineage.gaps", "daily_delays"] == 0


def test_a_metrics_backend_that_is_not_there_fails_no_task(check, monkeypatch):
    monkeypatch.setattr(freshness_check.Stats, "gauge", lambda *_, **__: 1 / 0, raising=False)
    check("flight_date=2013-01-16")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"on_finding": "ignore"}, "on_finding is 'ignore'. It must be fail or skip."),
        ({"partitions": ["yesterday"]}, "'yesterday' is no partition. Write dt="),
    ],
)
def test_impossible_arguments_are_named(store, arguments, problem):
    operator = SparkLineageFreshnessCheck(
        task_id="fresh", dataset="daily_delays", store=store, **arguments
    )
    with pytest.raises(DeclarationError, match=problem):
        operator.execute({})


def test_without_a_history_it_fails_with_the_command_that_builds_one(check, tmp_path):
    with pytest.raises(HistoryError, match="sparklineage history build"):
        check(store=str(tmp_path / "none"))


def test_the_docstring_marks_exactly_the_template_fields():
    cls = SparkLineageFreshnessCheck
    text = inspect.cleandoc(cls.__doc__).replace("\n    ", " ")
    marked = {
        line.split(":")[1].removeprefix("param ").strip()
        for line in text.splitlines()
        if line.startswith(":param") and "(templated)" in line
    }
    assert marked == set(cls.template_fields)
