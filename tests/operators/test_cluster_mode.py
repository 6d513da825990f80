"""Drivers that run in a cluster: what they are submitted with, and who waits for their end."""

from __future__ import annotations

import hashlib
import json
import re
import uuid
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from airflow import sdk
from airflow.providers.apache.spark.hooks import spark_submit as hook_module
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

from airflow_provider_sparklineage.cli.doctor import cluster as doctor
from airflow_provider_sparklineage.hooks import sources
from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator
from airflow_provider_sparklineage.settings.resolution import resolve
from airflow_provider_sparklineage.spark.capture import bundle
from airflow_provider_sparklineage.spark.capture.bundle import Manifest, TaskIdentity
from airflow_provider_sparklineage.spark.submit import submitted_files
from tests.clusters import TaskState
from tests.conftest import golden
from tests.spark_submit_double import argument, degradations, injected
from tests.unit.listener_jars import listener_jar, other_jar

pytestmark = pytest.mark.airflow

OL = "spark.openlineage."
OBSERVER = "spark.sparklineage."
SECRET = "pl4nted-s3cr3t"
KEYED = {
    f"{OL}transport.type": "http",
    f"{OL}transport.url": "http://marquez:5000",
    f"{OL}transport.auth.type": "api_key",
    f"{OL}transport.auth.apiKey": SECRET,
}


def operator(**kwargs):
    return SparkLineageSubmitOperator(task_id="revenue", application="job.py", **kwargs)


# --- without a way back ---------------------------------------------------------------------------

CLUSTER = {"spark.submit.deployMode": "cluster"}


@pytest.fixture
def cluster(monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", "spark://host:7077")


def test_with_a_remote_driver_nothing_is_injected_and_the_event_reports_what_is_missing(
    spark_submit, execute, cluster
):
    task = operator(conf=CLUSTER | KEYED)
    execute(task)
    given = spark_submit.given
    assert not injected(given)
    assert (argument(given, "--jars"), argument(given, "--py-files")) == (None, None)
    message = degradations(task)["driver_elsewhere"]
    assert "neither the datasets, the columns nor the partitions" in message
    assert SECRET not in json.dumps(given.argv)


def test_strict_refuses_a_remote_driver_before_submitting(spark_submit, execute, cluster):
    with pytest.raises(Exception, match="not on this worker"):
        execute(operator(conf=dict(CLUSTER), strict=True))
    assert not spark_submit.ran


def test_on_a_shared_mount_a_remote_driver_is_collected(
    spark_submit, execute, cluster, monkeypatch, tmp_path
):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION_SHARED", "True")
    spark_submit.does("staging_chain")
    task = operator(conf=CLUSTER | {"spark.standalone.submit.waitAppCompletion": "true"})
    execute(task)
    given = spark_submit.given
    shared = tmp_path / "captures" / "jars" / spark_submit.jar.name
    assert argument(given, "--jars") == f"local://{shared}"
    assert zipfile.is_zipfile(shared)
    assert "SPARK_SUBMIT_OPTS" not in given.env
    names = [d.name for d in task.get_openlineage_facets_on_complete(None).inputs]
    assert names == ["/lake/customers", "/lake/orders", "/lake/rates"]


# --- delivered to a capture location that is a URL ------------------------------------------------


@pytest.fixture
def submits_to(monkeypatch):
    """Set where the connection submits to."""

    def submits_to(host, deploy_mode="cluster", **extra):
        extra = {"deploy-mode": deploy_mode, "namespace": "spark", **extra}
        connection = {"conn_type": "spark", "host": host, "extra": extra}
        monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(connection))

    return submits_to


@pytest.fixture
def in_spark(lake, monkeypatch):
    """Let Spark know the capture location by another URL."""
    url = "hdfs://nn:8020/lake"
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION_IN_SPARK", f"{url}/")
    return url


@pytest.fixture(autouse=True)
def kubernetes(monkeypatch):
    """Let Airflow's hook find a client of Kubernetes, which it only looks for here."""
    monkeypatch.setattr(hook_module, "kube_client", SimpleNamespace(), raising=False)


KUBERNETES = "k8s://https://kubernetes:6443"
UPLOAD = {"spark.kubernetes.file.upload.path": "s3a://lake/uploads"}


def test_a_driver_on_yarn_keeps_what_it_captures_until_it_has_delivered_it(
    spark_submit, execute, submits_to, in_spark
):
    submits_to("yarn")
    execute(operator(durable=False))
    given = spark_submit.given
    run_id = given.conf[f"{OL}applicationRunId"]
    folder = f"sparklineage-{run_id}"
    assert given.conf[f"{OL}transport.location"] == f"{folder}/events.ndjson"
    assert given.conf[f"{OBSERVER}observations"] == f"{folder}/observations.ndjson"
    assert given.conf[f"{OBSERVER}run"] == run_id
    delivered_to = given.conf[f"{OBSERVER}deliver"]
    assert re.fullmatch(rf"{in_spark}/shop\.revenue-try1-[a-z0-9_]{{8}}", delivered_to)
    # spark-submit uploads what is on the worker.
    assert argument(given, "--jars") == str(spark_submit.jar)
    zipped = Path(argument(given, "--py-files"))
    assert (zipped.name, zipped.parent.name) == (
        "sparklineage_observer.zip",
        delivered_to.rpartition("/")[2],
    )


def test_the_url_in_spark_is_derived_without_the_connections_id(
    spark_submit, execute, submits_to, lake, monkeypatch
):
    location = f"file://lake_default@{lake}"
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION", location)
    submits_to("yarn")
    execute(operator(durable=False))
    assert spark_submit.given.conf[f"{OBSERVER}deliver"].startswith(f"file://{lake}/shop.revenue-")


@pytest.mark.parametrize("host", ["yarn", KUBERNETES])
def test_in_client_mode_the_driver_writes_on_the_worker(
    spark_submit, execute, submits_to, lake, host, tmp_path
):
    submits_to(host, "client")
    spark_submit.does("staging_chain")
    task = operator()
    execute(task)
    conf = spark_submit.given.conf
    assert Path(conf[f"{OL}transport.location"]).is_relative_to(tmp_path)
    assert f"{OBSERVER}deliver" not in conf
    names = [d.name for d in task.get_openlineage_facets_on_complete(None).inputs]
    assert names == ["/lake/customers", "/lake/orders", "/lake/rates"]
    assert not lake.exists()


@pytest.mark.parametrize("host", ["yarn", KUBERNETES])
@pytest.mark.parametrize("deploy_mode", ["cluster", "client"])
def test_no_secret_is_an_argument_and_no_variable_becomes_one(
    spark_submit, execute, submits_to, lake, host, deploy_mode
):
    """On YARN and Kubernetes, Airflow makes arguments of variables for the environment."""
    submits_to(host, deploy_mode)
    if host == KUBERNETES:
        spark_submit.does(code="print('Exit code: 0')")
    execute(operator(conf=KEYED | UPLOAD, durable=False))
    given = spark_submit.given
    [(mode, text)] = given.files.values()
    assert (mode, SECRET in text) == ("0o600", True)
    assert SECRET not in json.dumps(given.argv) + json.dumps(given.env)
    assert not any("Env." in key for key in given.conf)
    assert "--add-opens" in given.conf["spark.driver.extraJavaOptions"]


@pytest.fixture
def pod(spark_submit, submits_to, lake):
    """Submit to Kubernetes, where drivers end well."""
    submits_to(KUBERNETES)
    spark_submit.does(code="print('Exit code: 0')")


IN_IMAGE = "local:///opt/spark/lineage/openlineage-spark_2.13-1.53.0.jar"


def test_what_is_uploaded_into_a_pod_is_written_to_its_temporary_folder(
    spark_submit, execute, pod, lake
):
    execute(operator(conf=dict(UPLOAD)))
    given = spark_submit.given
    location = given.conf[f"{OL}transport.location"]
    folder = location.removesuffix("/events.ndjson")
    assert folder.startswith(f"/tmp/sparklineage-{given.conf[f'{OL}applicationRunId']}-")
    assert given.conf[f"{OBSERVER}observations"] == f"{folder}/observations.ndjson"
    assert argument(given, "--jars") == str(spark_submit.jar)
    assert Path(argument(given, "--py-files")).is_absolute()
    assert list(lake.rglob("*.zip")) == []


DELIVERS = "from tests.remote_driver import deliver; deliver(conf); print('Exit code: 0')"


def tools(lake):
    """Give the tools folder's files, without their marks, by name."""
    files = (lake / ".tools").glob("*/*")
    return {f.name: f for f in files if not f.name.startswith(("used-", "reached-by-"))}


def marks(lake, kind):
    return sorted(f.name for f in (lake / ".tools").glob(f"*/{kind}-*"))


def test_a_pod_to_which_nothing_can_be_uploaded_gets_its_files_from_the_tools_folder(
    spark_submit, execute, pod, lake
):
    execute(operator())
    given, files = spark_submit.given, tools(lake)
    assert sorted(files) == [spark_submit.jar.name, "sparklineage_observer.zip"]
    # `local:`, because spark-submit would upload a `file:` URL.
    assert argument(given, "--jars") == f"local://{files[spark_submit.jar.name]}"
    observer = files["sparklineage_observer.zip"]
    assert argument(given, "--py-files") == f"local://{observer}"
    assert observer.read_bytes() == submitted_files.observer_zip()
    assert observer.parent.name == hashlib.sha256(observer.read_bytes()).hexdigest()
    assert given.conf[f"{OBSERVER}deliver"].startswith(f"file://{lake}/")


def test_the_next_task_puts_nothing_there_and_names_the_same(spark_submit, execute, pod, lake):
    execute(operator())
    first, files = spark_submit.given.argv, tools(lake)
    before = {name: (file.stat().st_mtime_ns, file.stat().st_ino) for name, file in files.items()}
    execute(operator())
    named = [argument(spark_submit.given, name) for name in ("--jars", "--py-files")]
    assert set(named) <= set(first)
    assert {n: (f.stat().st_mtime_ns, f.stat().st_ino) for n, f in tools(lake).items()} == before
    assert len(marks(lake, "used")) == 2


def test_a_listener_in_an_image_is_named_there_and_the_observer_is_never_an_old_one(
    spark_submit, execute, pod, lake, monkeypatch
):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__LISTENER_JAR", IN_IMAGE)
    execute(operator())
    assert argument(spark_submit.given, "--jars") == IN_IMAGE
    assert [*tools(lake)] == ["sparklineage_observer.zip"]


@pytest.mark.parametrize("url", ["s3a://jars/listener.jar", "hdfs://nn:8020/jars/listener.jar"])
@pytest.mark.parametrize("host", ["k8s://https://api:6443", "yarn"])
def test_a_listener_at_a_url_is_named_everywhere(
    spark_submit, execute, submits_to, lake, monkeypatch, url, host
):
    submits_to(host)
    spark_submit.does(code="print('Exit code: 0')")
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__LISTENER_JAR", url)
    execute(operator(durable=False))
    assert argument(spark_submit.given, "--jars") == url


def test_an_extension_on_the_worker_comes_from_the_tools_folder_too(
    spark_submit, execute, pod, lake, monkeypatch, tmp_path
):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__LISTENER_JAR", IN_IMAGE)
    there, here = "local:///opt/spark/lineage/shop.jar", other_jar(tmp_path / "audit.jar")
    task = operator(listener_extensions=[there, str(here)])
    execute(task)
    named = f"local://{tools(lake)['audit.jar']}"
    assert argument(spark_submit.given, "--jars") == f"{IN_IMAGE},{there},{named}"


def test_while_no_driver_has_reported_a_retry_is_submitted_as_it_is(
    spark_submit, execute, pod, lake, context
):
    """A Spark that cannot read the URLs ends the job, and lineage would have failed it twice."""
    task = operator()
    context["ti"].try_number = 2
    execute(task)
    assert not injected(spark_submit.given)
    message = degradations(task)["driver_elsewhere"]
    assert "could not read" in message
    assert str(lake / ".tools") in message


def test_when_a_driver_has_reported_retries_have_lineage_too(
    spark_submit, execute, pod, lake, context
):
    spark_submit.does("staging_chain", code=DELIVERS)
    execute(operator())
    assert len(set(marks(lake, "reached-by"))) == 1
    task = operator()
    context["ti"].try_number = 2
    execute(task)
    assert injected(spark_submit.given)
    assert "driver_elsewhere" not in degradations(task)


def test_when_drivers_report_no_more_a_retry_is_submitted_as_it_is(
    spark_submit, execute, pod, lake, context
):
    """Somebody may have taken the right to read from them."""
    spark_submit.does("staging_chain", code=DELIVERS)
    execute(operator())
    spark_submit.does(code="print('Exit code: 0')")
    execute(operator())
    assert injected(spark_submit.given)
    context["ti"].try_number = 2
    execute(operator())
    assert not injected(spark_submit.given)


def test_the_doctors_trial_counts_for_the_tasks_of_the_same_account(
    spark_submit, execute, pod, lake, context, monkeypatch
):
    monkeypatch.setenv("HADOOP_USER_NAME", "etl")
    spark_submit.does("staging_chain", code=DELIVERS)
    settings = resolve(*sources.for_settings(None))
    machine = SimpleNamespace(spark=SimpleNamespace(version="4.0.1"), defaults={})
    doctor.run(machine, "spark_default", {}, settings)
    context["ti"].try_number = 2
    execute(operator())
    assert injected(spark_submit.given)


def test_what_one_account_has_reached_says_nothing_of_another(
    spark_submit, execute, pod, lake, context
):
    spark_submit.does("staging_chain", code=DELIVERS)
    execute(operator())
    spark_submit.does(code="print('Exit code: 0')")
    account = {"spark.kubernetes.authenticate.driver.serviceAccountName": "guest"}
    context["ti"].try_number = 2
    execute(operator(conf=account))
    assert not injected(spark_submit.given)


def test_a_tools_folder_that_cannot_be_filled_leaves_the_job_as_it_is(
    spark_submit, execute, pod, lake
):
    lake.mkdir(exist_ok=True)
    (lake / ".tools").write_text("in the way")
    task = operator()
    execute(task)
    assert not injected(spark_submit.given)
    assert "tools folder" in degradations(task)["capture_unavailable"]


def test_yarn_uploads_until_a_driver_of_this_user_has_reported(
    spark_submit, execute, submits_to, lake, in_spark
):
    submits_to("yarn")
    key = "spark.sparklineage.deliver"
    there = f"conf[{key!r}] = conf[{key!r}].replace({in_spark!r}, 'file://{lake}')"
    spark_submit.does("staging_chain", code=f"{there}; {DELIVERS}")
    execute(operator(durable=False))
    assert argument(spark_submit.given, "--jars") == str(spark_submit.jar)
    execute(operator(durable=False))
    given, files = spark_submit.given, tools(lake)
    jar = files[spark_submit.jar.name].relative_to(lake)
    assert argument(given, "--jars") == f"{in_spark}/{jar}"
    assert argument(given, "--py-files").startswith(f"{in_spark}/.tools/")


@pytest.mark.parametrize("given_by", ["operator", "connection", "property"])
def test_yarn_uploads_for_another_principal(
    spark_submit, execute, submits_to, lake, in_spark, given_by
):
    """Who logs in decides what may be read, wherever it is given."""
    submits_to("yarn")
    key = "spark.sparklineage.deliver"
    there = f"conf[{key!r}] = conf[{key!r}].replace({in_spark!r}, 'file://{lake}')"
    spark_submit.does("staging_chain", code=f"{there}; {DELIVERS}")

    def jar(principal):
        given = {"operator": {"principal": principal}}.get(given_by, {})
        if given_by == "connection":
            submits_to("yarn", principal=principal)
        elif given_by == "property":
            given = {"conf": {"spark.kerberos.principal": principal}}
        execute(operator(durable=False, **given))
        return argument(spark_submit.given, "--jars")

    uploaded = [jar("etl@SHOP"), jar("audit@SHOP")]
    assert uploaded == [str(spark_submit.jar)] * 2
    assert jar("etl@SHOP").startswith(f"{in_spark}/.tools/")


def test_yarn_uploads_where_its_own_spark_may_not_know_the_file_system(
    spark_submit, execute, submits_to, lake, monkeypatch
):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION_IN_SPARK", "s3a://lake")
    submits_to("yarn")
    execute(operator(durable=False))
    assert argument(spark_submit.given, "--jars") == str(spark_submit.jar)
    assert tools(lake) == {}


@pytest.mark.parametrize(
    ("conf", "jars"),
    [
        pytest.param({}, None, id="uploaded from the worker"),
        pytest.param({"spark.yarn.jars": "local:/opt/spark/jars/*"}, None, id="the same there"),
        pytest.param({"spark.yarn.archive": "hdfs:///spark.zip"}, "added", id="other ones"),
    ],
)
def test_a_listener_among_the_jars_of_the_workers_spark_counts_where_the_driver_has_those(
    spark_submit, execute, submits_to, lake, conf, jars
):
    listener_jar(spark_submit.home / "jars" / "openlineage-spark_2.13-1.53.0.jar")
    submits_to("yarn")
    execute(operator(conf=conf, durable=False))
    assert argument(spark_submit.given, "--jars") == (jars and str(spark_submit.jar))


def test_a_listener_in_an_image_is_looked_for_on_the_worker_if_the_driver_runs_there(
    spark_submit, execute, monkeypatch, tmp_path
):
    jar = listener_jar(tmp_path / "openlineage-spark_2.13-1.53.0.jar")
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__LISTENER_JAR", f"local://{jar}")
    execute(operator())
    assert argument(spark_submit.given, "--jars") == str(jar)
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__LISTENER_JAR", IN_IMAGE)
    task = operator()
    execute(task)
    assert not injected(spark_submit.given)
    assert "does not exist" in degradations(task)["listener_unavailable"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param({"application": "job.jar"}, "is no Python file", id="no Python driver"),
        pytest.param({"observe": False}, "Leave out observe=False", id="without the observer"),
    ],
)
def test_where_nothing_delivers_nothing_is_injected(
    spark_submit, execute, submits_to, lake, arguments, message
):
    submits_to("yarn")
    task = SparkLineageSubmitOperator(
        task_id="revenue", **{"application": "job.py", "durable": False, **arguments}
    )
    execute(task)
    assert not injected(spark_submit.given)
    assert message in degradations(task)["driver_elsewhere"]


def test_an_odd_path_of_a_jar_that_spark_submit_uploads_is_not_in_the_way(
    spark_submit, execute, submits_to, lake, monkeypatch, tmp_path
):
    submits_to("yarn")
    jar = listener_jar(tmp_path / "a,b" / "openlineage-spark_2.13-1.53.0.jar")
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__LISTENER_JAR", str(jar))
    spark_submit.does(
        code="import zipfile; flags = dict(zip(sys.argv, sys.argv[1:]))\n"
        "assert all(zipfile.is_zipfile(flags[f]) for f in ('--jars', '--py-files'))"
    )
    execute(operator(durable=False))
    assert injected(spark_submit.given)
    assert "," not in argument(spark_submit.given, "--jars")


# --- who waits for the end of the application -----------------------------------------------------

YARN_RM = {"yarn_resourcemanager_webapp_address": "http://127.0.0.1:9"}
NOT_WAITING = {"spark.yarn.submit.waitAppCompletion": "false"}
K8S_NOT_WAITING = {"spark.kubernetes.submission.waitAppCompletion": "false"}


@pytest.mark.parametrize(
    ("host", "deploy_mode", "arguments", "is_awaited"),
    [
        pytest.param("yarn", "cluster", {}, True, id="spark-submit"),
        pytest.param("yarn", "cluster", {"conf": NOT_WAITING}, False, id="nobody"),
        pytest.param(
            "yarn", "cluster", {"yarn_track_via_rm_api": True}, True, id="Airflow, at YARN"
        ),
        pytest.param(
            "yarn",
            None,
            {"conf": {**NOT_WAITING, "spark.submit.deployMode": "cluster"}}
            | {"yarn_track_via_rm_api": True},
            False,
            id="nobody, for Airflow knows the mode of connections and arguments only",
        ),
        pytest.param(
            KUBERNETES,
            "cluster",
            {"conf": K8S_NOT_WAITING, "track_driver_via_k8s_api": True},
            True,
            id="Airflow, at Kubernetes",
        ),
        pytest.param(
            KUBERNETES, "cluster", {"conf": K8S_NOT_WAITING}, False, id="nobody for a pod"
        ),
        pytest.param("spark://host:7077", "cluster", {}, True, id="Airflow, at Spark's master"),
        pytest.param("yarn", "client", {"conf": NOT_WAITING}, True, id="spark-submit, the driver"),
    ],
)
def test_the_try_knows_whether_anybody_waits_for_the_end(
    submits_to, lake, context, host, deploy_mode, arguments, is_awaited
):
    submits_to(host, deploy_mode, **YARN_RM)
    conf = {**UPLOAD, **arguments.pop("conf", {})}
    task = operator(conf=conf, **arguments)
    capture = task.lineage_try.begin(
        task, context, lambda capture: task._inject_lineage(capture, context)
    )
    assert capture.is_awaited is is_awaited
    capture.abandon()


# --- going on with what an earlier try submitted --------------------------------------------------


@pytest.fixture
def resume(monkeypatch, execute, context):
    """Execute a second try, of a job that a first one had submitted and that has ended."""
    if not hasattr(sdk, "ResumableJobMixin"):
        pytest.skip("Airflow resumes submissions from 3.3 on")
    connection = {"conn_type": "spark", "host": "spark://host", "port": 7077}
    connection["extra"] = {"deploy-mode": "cluster"}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(connection))
    monkeypatch.setattr(SparkSubmitOperator, "get_job_status", lambda *_: "FINISHED")

    def run(task):
        context["ti"].try_number = 2
        context["task_state_store"] = TaskState({task.external_id_key: "driver-20240506-0001"})
        execute(task, context)

    return run


def test_what_an_earlier_try_submitted_is_reported_as_unknown(spark_submit, resume):
    task = operator()
    resume(task)
    assert not spark_submit.ran
    assert "whose capture bundle is not here" in degradations(task)["submission_resumed"]


def test_what_an_earlier_try_had_captured_is_reported_by_the_one_that_resumed(
    spark_submit, resume, monkeypatch, tmp_path, captures
):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION_SHARED", "True")
    application = str(uuid.uuid4())
    identity = TaskIdentity("shop", "revenue", "manual", 1, -1)
    first = bundle.create(tmp_path / "captures", Manifest(application, task=identity))
    recorded = golden("staging_chain").read_text()
    of_recording = json.loads(recorded.splitlines()[0])["run"]["runId"]
    first.events_path.write_text(recorded.replace(of_recording, application))
    first.release()
    task = operator()
    resume(task)
    lineage = task.get_openlineage_facets_on_complete(None)
    assert [d.name for d in lineage.inputs] == ["/lake/customers", "/lake/orders", "/lake/rates"]
    assert "submitted by try 1" in degradations(task)["submission_resumed"]
    [manifest] = captures()  # a degraded one is kept: the first try's, as this one's
    assert json.loads(manifest.read_text())["task"]["try_number"] == 2
