"""Job runs of EMR without Spark: what is started, what comes back, and tasks that are deferred."""

from __future__ import annotations

import copy
import json
import subprocess
import sys

import pytest
from airflow.providers.amazon.aws.operators.emr import (
    EmrContainerOperator,
    EmrServerlessStartJobOperator,
)
from airflow.providers.common.compat.sdk import AirflowException, TaskDeferred
from airflow.sdk import DAG
from airflow.sdk.bases.operator import ExecutorSafeguard
from moto.emrcontainers.models import EMRContainersBackend
from moto.emrserverless.models import EMRServerlessBackend

from airflow_provider_sparklineage.operators import adapters
from airflow_provider_sparklineage.operators.adoption import adopting
from airflow_provider_sparklineage.operators.emr import (
    SparkLineageEmrContainerOperator,
    SparkLineageEmrServerlessOperator,
)
from airflow_provider_sparklineage.spark.submit import releases
from tests import emr_double
from tests.operators.outcomes import READ, degradations, facets, names, resumed
from tests.operators.test_rendering import DAY, dated, rendered
from tests.remote_driver import RecordedDriver
from tests.spark_submit_double import task_context

pytestmark = pytest.mark.airflow

SECRET = "pl4nted-s3cr3t"
LISTENER = "/openlineage-spark_2.13-1.53.0.jar"


class Service:
    """A service whose drivers deliver what a recorded application does.

    :param driver: the key of a Spark application in ``job_driver``
    """

    driver = "sparkSubmit"
    ours, stock = SparkLineageEmrServerlessOperator, EmrServerlessStartJobOperator
    backend = EMRServerlessBackend
    succeeded, failed, running = "SUCCESS", "FAILED", "RUNNING"
    polling = "waiter_delay"

    def __init__(self, folder, monkeypatch):
        deliver = RecordedDriver(folder)
        self.state = ""
        self.runs = self.serving(
            monkeypatch, lambda run: deliver(self.conf(run)), lambda _: self.state or self.succeeded
        )

    serving = staticmethod(emr_double.serverless)

    def conf(self, run):
        return emr_double.properties(run)

    def given(self):
        """Give what was started, with the classification ``spark-defaults``."""
        [run] = self.started
        return run, self.conf(run)

    def place(self):
        return {"application_id": self.id}

    def operator(self, cls=None, flags=None, conf=None, entry="s3://shop/job.py", **more):
        driver = {
            "entryPoint": entry,
            **({} if flags is None else {"sparkSubmitParameters": flags}),
        }
        overrides = None
        if conf is not None:
            spark = {"classification": "spark-defaults", "properties": conf}
            overrides = {"applicationConfiguration": [spark]}
        return (cls or self.ours)(
            **{
                "task_id": "revenue",
                "execution_role_arn": emr_double.ROLE,
                "job_driver": {self.driver: driver},
                "configuration_overrides": overrides,
                **self.place(),
                self.polling: 1,
                **more,
            }
        )

    def event(self, status="success"):
        """Give what the trigger of a job run says of its end."""
        ids = {"application_id": self.id, "job_id": self.started[0].id}
        return {"status": status, "job_details": ids}


class Containers(Service):
    driver = "sparkSubmitJobDriver"
    ours, stock = SparkLineageEmrContainerOperator, EmrContainerOperator
    backend = EMRContainersBackend
    succeeded = "COMPLETED"
    polling = "poll_interval"
    serving = staticmethod(emr_double.containers)

    def place(self):
        return {"virtual_cluster_id": self.id, "name": "shop", "release_label": "emr-7.5.0-latest"}

    def event(self, status="success"):
        return {"status": status, "job_id": self.started[0].id}


@pytest.fixture(params=[Service, Containers], ids=["serverless", "containers"])
def emr(request, lake, monkeypatch, tmp_path):
    """Serve an EMR of each kind, whose release has the Spark of the listener here."""
    monkeypatch.setattr(releases, "EMR", (releases.Release("emr-7.5.0.*", ("4.0.1", "2.13")),))
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__COLLECT_TIMEOUT", "20")
    service = request.param(tmp_path / "container", monkeypatch)
    with service.runs as (service.id, service.started):
        yield service


@pytest.fixture
def serverless(emr):
    """Serve an EMR Serverless."""
    if type(emr) is not Service:
        pytest.skip("of EMR Serverless alone")
    return emr


# --- a job run that is waited for -----------------------------------------------------------------


def test_what_the_job_run_did_is_the_lineage_of_the_task(emr, execute):
    task = emr.operator(conf={"spark.shop": "1", "spark.jars": "/own.jar"}, flags="--verbose")
    before = copy.deepcopy((task.job_driver, task.configuration_overrides))
    assert execute(task) == emr.started[0].id
    assert names(facets(task).inputs) == READ
    assert degradations(task) == {}
    run, conf = emr.given()
    assert conf["spark.shop"] == "1"
    own, listener = conf["spark.jars"].split(",")
    assert own == "/own.jar"
    assert listener.endswith(LISTENER)
    assert conf["spark.submit.pyFiles"].endswith("/sparklineage_observer.zip")
    assert conf["spark.extraListeners"] == "io.openlineage.spark.agent.OpenLineageSparkListener"
    assert conf["spark.openlineage.parentJobName"] == "shop.revenue"
    assert "spark.driver.extraJavaOptions" not in conf  # EMR has some of its own
    assert run.job_driver[emr.driver]["sparkSubmitParameters"] == "--verbose"
    assert (task.job_driver, task.configuration_overrides) == before


def test_without_an_own_configuration_the_job_run_gets_one(emr, execute):
    task = emr.operator()
    before = copy.deepcopy((task.job_driver, task.configuration_overrides))
    execute(task)
    run, conf = emr.given()
    assert conf["spark.jars"].endswith(LISTENER)
    assert "sparkSubmitParameters" not in run.job_driver[emr.driver]
    assert (task.job_driver, task.configuration_overrides) == before


def test_other_classifications_stay_and_nested_ones_too(emr, execute):
    nested = [{"classification": "export", "properties": {"A": "1"}}]
    own = [
        {"classification": "spark-env", "configurations": nested},
        {"classification": "spark-defaults", "properties": {"spark.a": "1"}, "configurations": []},
    ]
    logs = {"s3MonitoringConfiguration": {"logUri": "s3://logs/"}}
    overrides = {"applicationConfiguration": own, "monitoringConfiguration": logs}
    execute(emr.operator(configuration_overrides=overrides))
    given = emr.started[0].configuration_overrides
    assert given["monitoringConfiguration"] == logs
    env, defaults = given["applicationConfiguration"]
    assert env == own[0]
    assert defaults["configurations"] == []
    assert defaults["properties"]["spark.a"] == "1"


def test_flags_win_and_are_changed_where_they_have_a_property_already(emr, execute):
    flags = (
        "--jars s3://a/own.jar  --conf spark.extraListeners=shop.Listener "
        "--conf 'spark.driver.extraJavaOptions=-Da=1 -Db=2' --conf spark.openlineage.appName=shop"
    )
    defaults = {"spark.extraListeners": "not.this"}
    execute(emr.operator(flags=flags, conf=defaults))
    run, conf = emr.given()
    text = run.job_driver[emr.driver]["sparkSubmitParameters"]
    assert text.startswith(flags)  # quotes and all; the last flag of a name wins
    jars, _, listeners = text.removeprefix(flags).partition(" --conf spark.extraListeners=")
    assert jars.startswith(" --jars s3://a/own.jar,")
    assert jars.endswith(LISTENER)
    assert listeners.startswith("shop.Listener,io.openlineage.")
    assert conf["spark.extraListeners"] == "not.this"
    assert "spark.jars" not in conf
    assert "spark.openlineage.appName" not in conf
    assert "spark.submit.pyFiles" in conf


def test_what_a_classification_does_not_take_goes_into_the_flags(emr, execute):
    many = {f"spark.shop.{number}": "1" for number in range(95)}
    execute(emr.operator(conf=many, flags="--conf spark.shop.1=2"))
    run, conf = emr.given()
    assert conf == many
    text = run.job_driver[emr.driver]["sparkSubmitParameters"]
    assert text.startswith("--conf spark.shop.1=2 --conf spark.")
    assert "--conf spark.extraListeners=" in text


def test_a_long_list_of_jars_goes_into_the_flags(emr, execute):
    jars = ",".join(f"s3://shop/jars/{number:030d}.jar" for number in range(20))
    execute(emr.operator(conf={"spark.jars": jars}))
    run, conf = emr.given()
    text = run.job_driver[emr.driver]["sparkSubmitParameters"]
    assert text.startswith(f"--conf spark.jars={jars},")
    assert text.endswith(LISTENER)
    assert all(len(value) <= 1024 for value in conf.values())


def test_a_job_run_that_fails_has_an_event_with_what_it_did(emr, execute):
    emr.state = emr.failed
    task = emr.operator()
    with pytest.raises(AirflowException):
        execute(task)
    assert names(facets(task, "failure").inputs) == READ


def test_a_job_run_that_emr_does_not_take_is_not_waited_for(emr, execute, lake, monkeypatch):
    def refuses(*_, **__):
        msg = "no"
        raise RuntimeError(msg)

    monkeypatch.setattr(emr.backend, "start_job_run", refuses)
    task = emr.operator()
    with pytest.raises(RuntimeError, match="no"):
        execute(task)
    assert facets(task, "failure").inputs == []
    assert not [*lake.glob("*-try*")]


def test_a_job_run_that_nobody_waits_for_is_collected_later(emr, execute):
    task = emr.operator(wait_for_completion=False)
    execute(task)
    assert "airflow sparklineage collect" in degradations(task)["application_unfinished"]


# --- the release ----------------------------------------------------------------------------------


def test_the_version_of_an_unknown_release_has_to_be_set(emr, execute, monkeypatch):
    monkeypatch.setattr(releases, "EMR", ())
    task = emr.operator(conf={"spark.shop": "1"})
    execute(task)
    assert emr.given()[1] == {"spark.shop": "1"}
    assert "Set [sparklineage] spark_version" in degradations(task)["listener_unavailable"]


def test_a_set_version_is_that_of_an_unknown_release(emr, execute, monkeypatch):
    monkeypatch.setattr(releases, "EMR", ())
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__SPARK_VERSION", "4.0.1")
    task = emr.operator()
    execute(task)
    assert names(facets(task).inputs) == READ


def test_an_application_that_the_worker_may_not_describe_keeps_its_properties(
    serverless, execute, monkeypatch
):
    task = serverless.operator()
    get, asked = task.hook.conn.get_application, []

    def get_application(**which):
        asked.append(which)
        if len(asked) == 1:
            msg = "not authorized"
            raise RuntimeError(msg)
        return get(**which)

    monkeypatch.setattr(task.hook.conn, "get_application", get_application)
    execute(task)
    assert serverless.given()[1] == {}
    assert "emr-serverless:GetApplication" in degradations(task)["injection_failed"]


@pytest.mark.parametrize(
    ("properties", "more", "reason"),
    [
        ({"spark.hadoop.javax.jdo.option.ConnectionPassword": "x"}, {}, "would show spark.hadoop"),
        ({}, {"config": {"configurationOverrides": {}}}, "`config` of the task"),
        ({}, {"flags": "--jars a.jar, b.jar --conf spark.a=b"}, "a word that is no option"),
    ],
    ids=["a secret of the application", "twice", "a stray word"],
)
def test_a_job_run_that_additions_could_harm_is_left_to_airflow(
    serverless, execute, monkeypatch, properties, more, reason
):
    spark = {"classification": "spark-defaults", "properties": properties}
    described = {"releaseLabel": "tests", "state": "STARTED", "runtimeConfiguration": [spark]}
    task = serverless.operator(**more)
    monkeypatch.setattr(task.hook.conn, "get_application", lambda **_: {"application": described})
    execute(task)
    assert serverless.given()[1] == {}
    assert reason in degradations(task)["injection_failed"]


def test_properties_of_the_application_are_not_lost(serverless, execute, monkeypatch):
    described = {"releaseLabel": "emr-7.5.0", "state": "STARTED"}
    spark = {"classification": "spark-defaults", "properties": {"spark.jars": "s3://a/own.jar"}}
    described["runtimeConfiguration"] = [spark]
    task = serverless.operator()
    monkeypatch.setattr(task.hook.conn, "get_application", lambda **_: {"application": described})
    execute(task)
    _, conf = serverless.given()
    assert conf["spark.jars"].startswith("s3://a/own.jar,")


# --- secrets --------------------------------------------------------------------------------------

TRANSPORT = "spark.openlineage.transport."
WITH_KEY = {
    f"{TRANSPORT}type": "http",
    f"{TRANSPORT}url": "http://marquez:5000",
    f"{TRANSPORT}auth.type": "api_key",
    f"{TRANSPORT}auth.apiKey": SECRET,
}


@pytest.mark.parametrize("by", ["the classification", "flags", "Airflow"])
def test_no_secret_is_shown_by_emr_and_the_lineage_is_whole(emr, execute, monkeypatch, by):
    if by == "Airflow":
        provider = "inject_transport_information_into_spark_properties"
        monkeypatch.setattr(adapters, provider, lambda *_: WITH_KEY)
        task = emr.operator(openlineage_inject_transport_info=True)
    elif by == "flags":
        words = " ".join(f"--conf {key}={value}" for key, value in WITH_KEY.items())
        task = emr.operator(flags=f"--conf spark.shop=1 {words}", conf=WITH_KEY)
    else:
        task = emr.operator(conf=WITH_KEY)
    before = copy.deepcopy((task.job_driver, task.configuration_overrides))
    execute(task)
    run, _ = emr.given()
    assert SECRET not in json.dumps([run.job_driver, run.configuration_overrides])
    assert "transport_left_out" in degradations(task)
    assert names(facets(task).inputs) == READ
    assert (task.job_driver, task.configuration_overrides) == before
    assert task.openlineage_inject_transport_info is (by == "Airflow")


def test_a_reference_to_a_secret_is_passed_on_and_redacted_by_spark(emr, execute):
    reference = "EMR.secret@arn:aws:secretsmanager:eu-west-1:1:secret:marquez"
    task = emr.operator(conf={**WITH_KEY, f"{TRANSPORT}auth.apiKey": reference})
    execute(task)
    _, conf = emr.given()
    assert conf[f"{TRANSPORT}transports.user.auth.apiKey"] == reference
    assert "auth" in conf["spark.redaction.regex"]
    assert degradations(task) == {}


# --- other forms ----------------------------------------------------------------------------------


def test_a_jvm_application_is_not_observed_and_says_what_it_takes(emr, execute):
    task = emr.operator(entry="s3://shop/shop.jar", flags="--class shop.Totals")
    execute(task)
    assert "capture_endpoint" in degradations(task)["driver_elsewhere"]


@pytest.mark.parametrize(
    ("driver", "conf"),
    [
        ({"hive": {"query": "q.sql"}}, None),
        ({"sparkSqlJobDriver": {"entryPoint": "q.sql"}}, None),
        ("text", None),
        ({"sparkSubmit": {}, "sparkSubmitJobDriver": {}}, None),
        (None, "spark.a=b"),
    ],
    ids=["Hive", "SQL", "a text", "no application", "properties as a text"],
)
def test_a_job_run_of_another_form_is_left_to_airflow(emr, driver, conf):
    task = emr.operator(conf=conf)
    task.job_driver = driver or task.job_driver
    before = copy.deepcopy((task.job_driver, task.configuration_overrides))
    given = _given_by_stock(emr, task)
    assert given == before
    assert "no Spark application" in degradations(task, "failure")["injection_failed"]


def _given_by_stock(emr, task):
    """Execute a task as far as EMR's client; give the job run that it would start."""
    given = []

    def start(*_, **kwargs):
        given.append((kwargs["jobDriver"], kwargs.get("configurationOverrides")))
        msg = "no"
        raise RuntimeError(msg)

    task.hook.conn.start_job_run = start
    token = ExecutorSafeguard.tracker.set(task)
    try:
        with pytest.raises(RuntimeError, match="no"):
            task.execute(task_context())
    finally:
        ExecutorSafeguard.tracker.reset(token)
    return given[0]


def test_a_properties_file_of_the_users_own_is_not_replaced(emr, execute):
    task = emr.operator(flags="--properties-file s3://a/b.conf")
    execute(task)
    assert emr.given()[1] == {}
    assert "--properties-file" in degradations(task)["injection_failed"]


def test_flags_that_no_shell_would_take_are_left_to_airflow(emr, execute):
    task = emr.operator(flags="--conf 'spark.a=b")
    execute(task)
    assert emr.given()[1] == {}
    assert "quotation" in degradations(task)["injection_failed"]


def test_templates_in_the_job_run_are_traced(emr):
    driver = {"entryPoint": "s3://a/b.py", "entryPointArguments": ["--date", "{{ ds }}"]}
    spark = {"classification": "spark-defaults", "properties": {"spark.day": "{{ ds_nodash }}"}}
    overrides = {"applicationConfiguration": [spark]}
    task = emr.operator(job_driver={emr.driver: driver}, configuration_overrides=overrides)
    found = {name: days for name, days in dated(rendered(task)).items() if days}
    assert found == {
        f"job_driver[{emr.driver}][entryPointArguments][1]": [DAY],
        "configuration_overrides[applicationConfiguration][0][properties][spark.day]": ["20240506"],
    }


def test_an_adopted_task_has_the_same_lineage(emr, execute):
    with DAG("d", schedule=None):
        task = emr.operator(emr.stock, deferrable=True)
    adopting.adopt(task)
    assert isinstance(task, emr.stock)
    assert isinstance(task, emr.ours)
    task.deferrable = False
    execute(task)
    assert names(facets(task).inputs) == READ


# --- a task that is deferred ----------------------------------------------------------------------


@pytest.fixture
def deferred(emr, execute):
    """Defer a task; give what Airflow is given."""
    emr.state = emr.running
    with pytest.raises(TaskDeferred) as caught:
        execute(emr.operator(deferrable=True))
    return caught.value


def test_the_process_that_resumes_has_the_whole_lineage(emr, deferred, lake):
    [folder] = lake.glob("*-try*")
    assert (folder / "manifest.json").exists()
    task = emr.operator(deferrable=True)
    resumed(task, deferred.method_name, {"event": emr.event()})
    assert names(facets(task).inputs) == READ
    assert degradations(task) == {}
    assert not [*lake.glob("*-try*")]


def test_a_trigger_that_reports_a_failed_job_run_is_an_end(emr, deferred):
    task = emr.operator(deferrable=True)
    with pytest.raises(AirflowException):
        resumed(task, deferred.method_name, {"event": emr.event("error")})
    assert names(facets(task, "failure").inputs) == READ


def test_a_trigger_that_fails_is_an_end(emr, deferred):
    task = emr.operator(deferrable=True)
    with pytest.raises(AirflowException):
        resumed(task, "__fail__", {"error": "Trigger failure"})
    assert names(facets(task, "failure").inputs) == READ


def test_a_task_that_has_only_waited_for_its_application_starts_the_job_run_with_the_listener(
    serverless, execute, lake
):
    application = emr_double.application(serverless.id)
    application.state = "STOPPED"
    serverless.state = "RUNNING"
    with pytest.raises(TaskDeferred) as first:
        execute(serverless.operator(deferrable=True))
    assert first.value.method_name == "execute"
    assert serverless.started == []
    event = {"status": "success", "application_id": serverless.id}
    with pytest.raises(TaskDeferred) as second:
        resumed(serverless.operator(deferrable=True), "execute", {"event": event})
    assert "spark.extraListeners" in serverless.given()[1]
    task = serverless.operator(deferrable=True)
    resumed(task, second.value.method_name, {"event": serverless.event()})
    assert names(facets(task).inputs) == READ
    assert degradations(task) == {}
    assert not [*lake.glob("*-try*")]


def test_a_deferrable_task_that_waits_for_nothing_is_not_deferred(serverless, execute):
    task = serverless.operator(deferrable=True, wait_for_completion=False)
    execute(task)
    assert "airflow sparklineage collect" in degradations(task)["application_unfinished"]


def test_switched_off_a_task_is_stock(emr, execute):
    task = emr.operator(lineage=False)
    execute(task)
    assert emr.given()[1] == {}
    assert task.get_openlineage_facets_on_complete is None


def test_without_airflows_provider_the_import_says_what_to_install():
    code = (
        "import sys; sys.modules['airflow.providers.amazon.aws.operators.emr'] = None\n"
        "import airflow_provider_sparklineage.operators.emr"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'airflow-provider-sparklineage[amazon]'" in done.stderr
