"""Ways in which a task and the application that it submitted to a cluster end, or do not."""

from __future__ import annotations

import json
import sys
import threading
import time
import uuid
from contextlib import ExitStack
from types import SimpleNamespace

import pytest
from airflow import sdk
from airflow.providers.apache.spark.hooks import spark_submit as hook_module
from airflow.providers.apache.spark.operators import spark_submit as operator_module

from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator
from airflow_provider_sparklineage.spark.capture.bundle import Manifest, TaskIdentity
from airflow_provider_sparklineage.spark.capture.remote_bundles import announce
from tests import clusters
from tests.clusters import APPLICATION, POD, TaskState
from tests.conftest import golden
from tests.remote_driver import RemoteDriver

pytestmark = pytest.mark.airflow

KUBERNETES = "k8s://https://kubernetes:6443"
# What spark-submit does where it waits for the end, and where it does not: a driver delivers.
DRIVES = "from tests.remote_driver import deliver; deliver(conf)"
SUBMITS = f"print('Submitted application {APPLICATION}'); print(' pod name: {POD}')"
ENDS_WELL = "print('Exit code: 0')"
READ = ["/lake/customers", "/lake/orders", "/lake/rates"]


def operator(**kwargs):
    conf = {"spark.kubernetes.file.upload.path": "s3a://lake/uploads", **kwargs.pop("conf", {})}
    return SparkLineageSubmitOperator(task_id="revenue", application="job.py", conf=conf, **kwargs)


def facets(task):
    return task.get_openlineage_facets_on_complete(None)


def degradations(task):
    facet = facets(task).run_facets["sparkLineage_capture"]
    return {d["code"]: d["message"] for d in facet.degradations}


@pytest.fixture
def sleeps(monkeypatch):
    """Let Airflow ask a cluster without the ten seconds between; what it does then may be set."""
    does = SimpleNamespace(then=lambda: None)
    clock = SimpleNamespace(sleep=lambda _: does.then(), monotonic=time.monotonic)
    monkeypatch.setattr(hook_module, "time", clock)
    return does


class Cluster:
    """What a task submits to: a connection, and the double that Airflow asks for the end."""

    def __init__(self, monkeypatch, stack):
        self._patch, self._stack = monkeypatch, stack
        self.double = None

    def yarn(self, *states):
        self.double = self._stack.enter_context(clusters.resource_manager(*states))
        self.connect("yarn", yarn_resourcemanager_webapp_address=self.double.url)
        return self

    def kubernetes(self, *phases):
        self.double = clusters.Kubernetes(*phases)
        for module in (hook_module, operator_module):
            self._patch.setattr(module, "kube_client", self.double, raising=False)
        client = SimpleNamespace(V1DeleteOptions=SimpleNamespace)
        self._patch.setitem(sys.modules, "kubernetes", SimpleNamespace(client=client))
        self.connect(KUBERNETES, namespace="spark")
        return self

    def connect(self, host, **extra):
        connection = {"conn_type": "spark", "host": host}
        connection["extra"] = {"deploy-mode": "cluster", **extra}
        self._patch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(connection))


@pytest.fixture
def cluster(monkeypatch, sleeps, lake):
    with ExitStack() as stack:
        yield Cluster(monkeypatch, stack)


@pytest.fixture
def store(context):
    context["task_state_store"] = TaskState()
    return context["task_state_store"]


RESUMES = pytest.mark.skipif(
    not hasattr(sdk, "ResumableJobMixin"), reason="Airflow resumes submissions from 3.3 on"
)
WAYS = [
    pytest.param("yarn", {"durable": False}, id="YARN, spark-submit waits"),
    pytest.param("yarn", {"yarn_track_via_rm_api": True}, id="YARN, Airflow asks it"),
    pytest.param(
        "yarn",
        {"yarn_track_via_rm_api": True, "durable": False},
        id="YARN, Airflow asks it and would not resume",
    ),
    pytest.param("kubernetes", {}, id="Kubernetes, spark-submit waits"),
    pytest.param("kubernetes", {"track_driver_via_k8s_api": True}, id="Kubernetes, Airflow asks"),
]


def runs(cluster, kind):
    """Let a cluster run the application for a while, and end it well."""
    if kind == "yarn":
        cluster.yarn("ACCEPTED", "RUNNING", "FINISHED")
    else:
        cluster.kubernetes("Pending", "Running", "Succeeded")


def fails(cluster, kind):
    if kind == "yarn":
        cluster.yarn("RUNNING", "FAILED")
    else:
        cluster.kubernetes("Running", "Failed")


# --- one try --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "arguments"), WAYS)
def test_what_was_delivered_is_collected_when_the_application_has_ended(
    spark_submit, execute, cluster, store, tmp_path, kind, arguments
):
    runs(cluster, kind)
    spark_submit.does("staging_chain", code=f"{DRIVES}; {SUBMITS}; {ENDS_WELL}")
    done = tmp_path / "done"
    task = operator(post_submit_commands=[f"touch {done}"], **arguments)
    execute(task)
    assert [d.name for d in facets(task).inputs] == READ
    assert set(degradations(task)) & {"driver_elsewhere", "delivery_incomplete"} == set()
    assert done.exists()


@pytest.mark.parametrize(("kind", "arguments"), WAYS)
def test_what_was_delivered_is_collected_when_the_application_has_failed(
    spark_submit, execute, cluster, store, kind, arguments
):
    fails(cluster, kind)
    is_polled = any("track" in name for name in arguments)
    code = f"{DRIVES}; {SUBMITS}; print('Exit code: 1')"
    spark_submit.does("staging_chain", code=code, exit=0 if is_polled else 1)
    task = operator(**arguments)
    with pytest.raises(Exception, match=r"FAILED|Failed|Error code is: 1"):
        execute(task)
    assert [d.name for d in facets(task).inputs] == READ


# --- refused by spark-submit ----------------------------------------------------------------------


NOT_WAITING = {
    "spark.yarn.submit.waitAppCompletion": "false",
    "spark.kubernetes.submission.waitAppCompletion": "false",
}
FAILED = "spark-submit failed (exit code 1)"
REFUSED = pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        *WAYS,
        pytest.param("yarn", {"durable": False, "conf": NOT_WAITING}, id="YARN, nobody waits"),
        pytest.param("kubernetes", {"conf": NOT_WAITING}, id="Kubernetes, nobody waits"),
        pytest.param("spark://master:7077", {"durable": False}, id="standalone, Airflow asks"),
        pytest.param(
            "spark://master:7077",
            {"durable": False, "conf": {"spark.submit.deployMode": "cluster"}},
            id="standalone, nobody waits",
        ),
    ],
)


@REFUSED
def test_a_submission_that_failed_is_no_job_that_runs(
    spark_submit, execute, cluster, store, kind, arguments
):
    if kind in ("yarn", "kubernetes"):
        runs(cluster, kind)
    else:
        is_asked = "conf" not in arguments
        cluster.connect(kind, **({} if is_asked else {"deploy-mode": None}))
    spark_submit.does(exit=1)
    task = operator(**arguments)
    begun = time.monotonic()
    with pytest.raises(Exception, match="Error code is: 1"):
        execute(task)
    assert time.monotonic() - begun < 5
    missing = degradations(task)
    assert missing["no_events"].startswith(f"{FAILED}, and its output names no application")
    assert not {"application_unfinished", "driver_elsewhere", "delivery_incomplete"} & {*missing}


def test_an_application_whose_files_could_not_be_uploaded_was_not_submitted(
    spark_submit, execute, cluster, store
):
    cluster.connect("yarn")
    upload = (
        f"print('Client: Uploading resource file:/a.jar -> /.sparkStaging/{APPLICATION}/a.jar')"
    )
    spark_submit.does(exit=1, code=f"{upload}; print('FileNotFoundException: nowhere.py')")
    task = operator(durable=False, conf=NOT_WAITING)
    with pytest.raises(Exception, match="Error code is: 1"):
        execute(task)
    assert degradations(task)["no_events"].startswith(f"{FAILED}, and its output names no")
    assert "application_unfinished" not in degradations(task)


def test_a_submission_that_failed_when_it_had_submitted_differs_from_one_that_had_not(
    spark_submit, execute, cluster, store
):
    runs(cluster, "yarn")
    spark_submit.does(exit=1, code=SUBMITS)
    task = operator(durable=False, conf=NOT_WAITING)
    with pytest.raises(Exception, match="Error code is: 1"):
        execute(task)
    message = degradations(task)["application_unfinished"]
    assert message.startswith(f"{FAILED} after it had submitted {APPLICATION}, of whose end")
    assert "airflow sparklineage collect" in message


def test_what_a_driver_delivered_is_reported_though_spark_submit_named_no_application(
    spark_submit, execute, cluster, store
):
    cluster.connect("yarn")
    spark_submit.does("staging_chain", code=DRIVES, exit=1)
    task = operator(durable=False)
    with pytest.raises(Exception, match="Error code is: 1"):
        execute(task)
    assert [d.name for d in facets(task).inputs] == READ
    assert "no_events" not in degradations(task)


# --- refused by Airflow ---------------------------------------------------------------------------

WAIT = "waitAppCompletion"


@pytest.mark.parametrize(
    ("kind", "arguments", "extra", "message"),
    [
        pytest.param("yarn", {}, {}, "requires yarn_track_via_rm_api", id="durable, nobody to ask"),
        pytest.param(
            "yarn",
            {"yarn_track_via_rm_api": True},
            {"yarn_resourcemanager_webapp_address": ""},
            "yarn_resourcemanager_webapp_address",
            id="no address to ask at",
        ),
        pytest.param(
            "yarn",
            {"yarn_track_via_rm_api": True, "conf": {f"spark.yarn.submit.{WAIT}": "true"}},
            {},
            WAIT,
            id="spark-submit and Airflow would wait",
        ),
        pytest.param(
            "kubernetes",
            {"track_driver_via_k8s_api": True},
            {"namespace": None},
            "requires a namespace",
            id="no namespace to ask in",
        ),
        pytest.param(
            "kubernetes",
            {
                "track_driver_via_k8s_api": True,
                "conf": {f"spark.kubernetes.submission.{WAIT}": "true"},
            },
            {},
            WAIT,
            id="spark-submit and Airflow would wait for the pod",
        ),
    ],
)
@RESUMES
def test_what_airflow_refuses_to_submit_leaves_nothing_where_drivers_deliver(
    spark_submit, execute, cluster, store, lake, kind, arguments, extra, message
):
    runs(cluster, kind)
    if extra:
        cluster.connect("yarn" if kind == "yarn" else KUBERNETES, **extra)
    task = operator(**arguments)
    with pytest.raises(ValueError, match=message):
        execute(task)
    assert not spark_submit.ran
    assert [*lake.glob("*")] == []
    assert not {"driver_elsewhere", "delivery_incomplete"} & set(degradations(task))


# --- going on with what an earlier try submitted --------------------------------------------------


@pytest.fixture
def earlier(lake, context, store):
    """Leave what a first try announced, and its driver delivered, before its worker was killed."""
    run_id = str(uuid.uuid4())
    url = f"file://{lake}/shop.revenue-try1-abcdefgh"
    identity = TaskIdentity("shop", "revenue", "manual", 1, -1)
    from airflow_provider_sparklineage.operators.attempt.timing import Deadline

    deadline = Deadline()
    deadline.begin(10)
    announce(Manifest(run_id, task=identity, remote=url), deadline.budget)
    recorded = golden("staging_chain").read_text()
    recorded = recorded.replace(json.loads(recorded.splitlines()[0])["run"]["runId"], run_id)
    driver = RemoteDriver(lake / "shop.revenue-try1-abcdefgh", run_id).starts()
    driver.delivers("events", recorded).ends()
    context["ti"].try_number = 2
    return url


RECONNECTS = [
    pytest.param("yarn", ["RUNNING", "FINISHED"], APPLICATION, {}, id="YARN, it runs"),
    pytest.param("yarn", ["FINISHED"], APPLICATION, {}, id="YARN, it has ended"),
    pytest.param(
        "kubernetes", ["Running", "Succeeded"], f"spark:{POD}", {}, id="Kubernetes, it runs"
    ),
    pytest.param("kubernetes", ["Succeeded"], f"spark:{POD}", {}, id="Kubernetes, it has ended"),
    pytest.param(
        "kubernetes",
        ["Unknown"],
        f"spark:{POD}",
        {"k8s_driver_status": "Succeeded"},
        id="Kubernetes, its pod is gone",
    ),
]
TRACKED = {
    "yarn": {"yarn_track_via_rm_api": True},
    "kubernetes": {"track_driver_via_k8s_api": True},
}


@pytest.mark.parametrize(("kind", "states", "external_id", "kept"), RECONNECTS)
@RESUMES
def test_a_second_try_reports_what_the_driver_delivered_that_the_first_had_submitted(
    spark_submit, execute, cluster, store, earlier, lake, kind, states, external_id, kept
):
    getattr(cluster, kind)(*states)
    task = operator(**TRACKED[kind])
    store.update({task.external_id_key: external_id, **kept})
    execute(task)
    assert not spark_submit.ran
    assert [d.name for d in facets(task).inputs] == READ
    assert "submitted by try 1" in degradations(task)["submission_resumed"]
    assert not [*lake.glob("shop.revenue-try2-*")]  # to which nobody delivers


@pytest.mark.parametrize("kind", ["yarn", "kubernetes"])
@RESUMES
def test_what_had_failed_is_submitted_again_and_reported_alone(
    spark_submit, execute, cluster, store, earlier, kind
):
    states = ["FAILED", "FINISHED"] if kind == "yarn" else ["Failed", "Succeeded"]
    getattr(cluster, kind)(*states)
    spark_submit.does(code=f"{DRIVES}; {SUBMITS}")
    task = operator(**TRACKED[kind])
    store[task.external_id_key] = APPLICATION if kind == "yarn" else f"spark:{POD}"
    execute(task)
    assert spark_submit.ran
    assert facets(task).inputs == []
    assert "submission_resumed" not in degradations(task)


@RESUMES
def test_where_the_cluster_does_not_answer_the_next_try_still_finds_what_is_delivered(
    spark_submit, execute, cluster, store, earlier, context, monkeypatch
):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__KEEP_CAPTURES", "none")
    cluster.connect("yarn", yarn_resourcemanager_webapp_address="http://127.0.0.1:9")
    task = operator(**TRACKED["yarn"])
    store[task.external_id_key] = APPLICATION
    with pytest.raises(RuntimeError, match=r"request for application .* failed"):
        execute(task)
    context["ti"].try_number = 3
    cluster.yarn("FINISHED")
    task = operator(**TRACKED["yarn"])
    execute(task)
    assert [d.name for d in facets(task).inputs] == READ


# --- killed ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["yarn", "kubernetes"])
@RESUMES
def test_a_try_that_is_killed_while_airflow_asks_the_cluster_stops_the_application(
    spark_submit, execute, cluster, store, sleeps, kind
):
    getattr(cluster, kind)("RUNNING" if kind == "yarn" else "Running")
    spark_submit.does("staging_chain", code=f"{DRIVES}; {SUBMITS}")
    task = operator(**TRACKED[kind])
    sleeps.then = task.on_kill
    if kind == "yarn":
        with pytest.raises(RuntimeError, match="KILLED"):
            execute(task)
        assert cluster.double.killed == [(f"/ws/v1/cluster/apps/{APPLICATION}/state", "KILLED")]
    else:
        execute(task)  # Airflow takes a pod that is gone for one that has ended
        assert cluster.double.deleted == [f"spark/{POD}"]
    assert [d.name for d in facets(task).inputs] == READ


def test_a_try_that_is_killed_while_spark_submit_waits_stops_the_application(
    spark_submit, execute, cluster, tmp_path
):
    cluster.yarn("RUNNING")
    begun, ended = tmp_path / "begun", tmp_path / "ended"
    code = f"{DRIVES}; {SUBMITS}; sys.stdout.flush(); pathlib.Path({str(begun)!r}).touch()"
    spark_submit.does("staging_chain", code=code, until=str(ended), exit=1)
    task = operator(durable=False)

    def kill():
        while not begun.exists():
            time.sleep(0.05)
        time.sleep(0.2)  # until Airflow has read the application's id
        task.on_kill()
        ended.touch()  # spark-submit asks YARN, too

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    with pytest.raises(Exception, match="Error code is: 1"):
        execute(task)
    thread.join(10)
    assert cluster.double.killed == [(f"/ws/v1/cluster/apps/{APPLICATION}/state", "KILLED")]
    assert [d.name for d in facets(task).inputs] == READ
