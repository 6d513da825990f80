"""The PySpark operator without Spark: its templates, its arguments, and whom it leaves alone."""

from __future__ import annotations

import json
import os
import sys
import threading
from types import SimpleNamespace

import pytest
from airflow.providers.apache.spark.decorators.pyspark import pyspark_task
from airflow.providers.apache.spark.operators.spark_pyspark import PySparkOperator
from airflow.providers.common.compat.sdk import AirflowTaskTimeout
from airflow.sdk import DAG

from airflow_provider_sparklineage.model.exceptions import ListenerError
from airflow_provider_sparklineage.operators.adoption import adopting
from airflow_provider_sparklineage.operators.attempt import task_driver
from airflow_provider_sparklineage.operators.attempt.submit import OwnFiles
from airflow_provider_sparklineage.operators.attempt.task_driver import TaskDriver
from airflow_provider_sparklineage.operators.pyspark import (
    PySparkLineageMixin,
    SparkLineagePySparkOperator,
)
from airflow_provider_sparklineage.spark.submit.distribution import SparkDistribution
from airflow_provider_sparklineage.spark.submit.injection import (
    DELTA_TAG,
    QUIET_JVM,
    ExistingTransport,
)
from airflow_provider_sparklineage.spark.submit.listener import Identity
from airflow_provider_sparklineage.spark.submit.listener_selection import (
    JobListener,
    ListenerSource,
)
from airflow_provider_sparklineage.spark.submit.submission import Submission
from tests import spark_submit_double
from tests.operators.test_rendering import DAY, dated, expanded, rendered

pytestmark = pytest.mark.airflow


def job(*days, spark, **more):
    raise NotImplementedError


def operator(**more):
    return SparkLineagePySparkOperator(task_id="revenue", python_callable=job, **more)


@pytest.fixture
def without_spark(monkeypatch):
    """Let Airflow's operator call nothing, and give what was called."""
    called = []
    monkeypatch.setattr(PySparkOperator, "execute_callable", lambda self: called.append(self))
    return called


# --- templates ------------------------------------------------------------------------------------


def test_all_fields_that_can_name_data_are_traced():
    task = rendered(
        operator(
            op_args=["{{ ds }}"],
            op_kwargs={"orders": "s3://lake/orders/dt={{ ds }}"},
            templates_dict={"day": "{{ ds_nodash }}"},
            config_kwargs={"spark.shop.day": "{{ logical_date | ds }}"},
            reads=["/lake/rates/dt={{ ds }}"],
        )
    )
    assert dated(task) == {
        "op_args[0]": [DAY],
        "op_kwargs[orders]": [DAY],
        "templates_dict[day]": ["20240506"],
        "config_kwargs[spark.shop.day]": [DAY],
        "reads[0]": [DAY],
    }
    assert task.op_kwargs == {"orders": f"s3://lake/orders/dt={DAY}"}


def test_arguments_of_an_adopted_function_are_traced():
    with DAG("d", schedule=None):
        task = pyspark_task(task_id="t")(job)("{{ ds }}", orders="/lake/{{ ds_nodash }}").operator
    adopting.adopt(task)
    assert dated(rendered(task)) == {"op_args[0]": [DAY], "op_kwargs[orders]": ["20240506"]}


def test_arguments_that_an_adopted_function_is_expanded_over_are_traced():
    def load(day, spark):
        raise NotImplementedError

    with DAG("d", schedule=None):
        mapped = pyspark_task(task_id="t")(load).expand(day=["{{ ds }}", "/x"]).operator
    adopting.adopt(mapped)
    task = expanded(mapped, 0)
    assert isinstance(task, SparkLineagePySparkOperator)
    assert dated(task) == {"op_kwargs[day]": [DAY]}
    assert task.op_kwargs["day"] == DAY


def test_a_subclass_of_the_users_own_takes_the_mixin():
    class Shop(PySparkOperator):
        template_fields = ("shop", *PySparkOperator.template_fields)

        def __init__(self, *, shop, **more):
            self.shop = shop
            super().__init__(**more)

    class ShopWithLineage(PySparkLineageMixin, Shop):
        pass

    task = ShopWithLineage(task_id="t", python_callable=job, shop="{{ ds }}", reads=["/{{ ds }}"])
    task = rendered(task)
    assert task.shop == DAY
    assert dated(task) == {"reads[0]": [DAY]}


# --- what it leaves alone -------------------------------------------------------------------------

CONNECT = {
    "configured": ({"config_kwargs": {"spark.remote": "sc://shop:15002"}}, {}),
    "mode": ({"config_kwargs": {"spark.api.mode": "connect"}}, {}),
    "environment": ({}, {"SPARK_REMOTE": "sc://shop:15002"}),
    "connection": ({"conn_id": "shop"}, {"conn_type": "spark_connect", "host": "sc://shop"}),
    "extra": (
        {"conn_id": "shop"},
        {"conn_type": "spark", "extra": {"spark.remote": "sc://shop:15002"}},
    ),
    "host": ({"conn_id": "shop"}, {"conn_type": "spark", "host": "sc://shop"}),
}


@pytest.fixture(params=CONNECT)
def connect(request, monkeypatch):
    arguments, given = CONNECT[request.param]
    if "conn_type" in given:
        monkeypatch.setenv("AIRFLOW_CONN_SHOP", json.dumps(given))
    else:
        for key, value in given.items():
            monkeypatch.setenv(key, value)
    return arguments


def test_a_session_of_spark_connect_is_left_alone_and_the_event_says_so(
    connect, without_spark, execute
):
    task = operator(**connect)
    execute(task)
    assert without_spark == [task]
    found = spark_submit_double.degradations(task)
    assert list(found) == ["listener_unavailable"]
    assert "start the server with the OpenLineage listener" in found["listener_unavailable"]


def test_strict_refuses_spark_connect_before_the_function_is_called(
    connect, without_spark, execute
):
    with pytest.raises(Exception, match="Spark Connect"):
        execute(operator(**connect, strict=True))
    assert without_spark == []


def test_without_pyspark_the_message_is_airflows(monkeypatch, execute):
    for name in [name for name in sys.modules if name.split(".")[0] == "pyspark"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(ModuleNotFoundError) as stock:
        execute(PySparkOperator(task_id="t", python_callable=job))
    task = operator()
    with pytest.raises(ModuleNotFoundError) as ours:
        execute(task)
    assert str(ours.value) == str(stock.value)
    assert list(spark_submit_double.degradations(task)) == ["no_events"]


@pytest.mark.parametrize("how", ["argument", "configuration"])
def test_without_lineage_nothing_is_added(how, without_spark, execute, monkeypatch):
    monkeypatch.setattr(TaskDriver, "running", None)
    if how == "configuration":
        monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__DISABLED", "True")
    task = operator(lineage=how != "argument")
    execute(task)
    assert without_spark == [task]
    assert task.get_openlineage_facets_on_complete is None


def test_a_connection_that_is_not_there_is_airflows_to_report(execute):
    pytest.importorskip("pyspark")
    with pytest.raises(Exception, match="shop"):
        execute(operator(conn_id="shop"))


def test_without_a_thread_to_wait_in_the_event_says_what_may_be_missing(
    without_spark, monkeypatch, execute
):
    pytest.importorskip("pyspark")

    def met(self, *_):
        self._is_met = True

    class NoThread(threading.Thread):
        def start(self):
            msg = "can't start new thread"
            raise RuntimeError(msg)

    monkeypatch.setattr(TaskDriver, "_attach", met)
    monkeypatch.setattr(task_driver, "threading", SimpleNamespace(Thread=NoThread))
    task = operator()
    execute(task)
    assert without_spark == [task]
    assert "may be missing" in spark_submit_double.degradations(task)["observer_failed"]


# --- a JVM that starts ----------------------------------------------------------------------------


@pytest.mark.parametrize("own", [None, "-Xmx1g"], ids=["none of the user's", "the user's"])
def test_a_jvm_starts_with_our_options_and_without_the_transport(own, monkeypatch):
    from pyspark import SparkConf

    class ShopConf(SparkConf):
        """A configuration of the user's own, which nobody else can make."""

        def __init__(self, entries):
            super().__init__(loadDefaults=False)
            self.setAll(entries.items())

    monkeypatch.delenv("SPARK_SUBMIT_OPTS", raising=False)
    if own is not None:
        monkeypatch.setenv("SPARK_SUBMIT_OPTS", own)
    entries = {"spark.openlineage.transport.auth.apiKey": "s3cr3t", "spark.driver.memory": "2g"}
    conf = ShopConf(entries)
    with TaskDriver(None, {}).starting(conf) as given:
        assert given.getAll() == [("spark.driver.memory", "2g")]
        assert os.environ["SPARK_SUBMIT_OPTS"] == " ".join([*([own] if own else []), *QUIET_JVM])
    assert os.environ.get("SPARK_SUBMIT_OPTS") == own
    assert dict(conf.getAll()) == entries


# --- the configuration of a SparkContext ----------------------------------------------------------

T = "spark.openlineage.transport."


@pytest.fixture
def capture(tmp_path):
    manifest = SimpleNamespace(application_run_id="the-run")
    return SimpleNamespace(
        settings=SimpleNamespace(observe=True, existing_transport=ExistingTransport.KEEP),
        bundle=SimpleNamespace(path=tmp_path, manifest=manifest),
        own_files=OwnFiles(tmp_path),
    )


def configured(capture, *, is_late=False, **properties):
    given = Submission(conf={key.replace("__", "."): value for key, value in properties.items()})
    after = task_driver.with_listener(given, capture, {}, is_late=is_late)
    return {**after.in_file, **after.conf}


def test_a_transport_of_the_users_stays_and_starts_no_threads(capture, tmp_path):
    http = {f"{T}type": "http", f"{T}url": "http://marquez:5000"}
    conf = configured(capture, **http)
    assert conf[f"{T}type"] == "composite"
    assert conf[f"{T}withThreadPool"] == "false"
    assert conf[f"{T}transports.user.url"] == "http://marquez:5000"
    assert conf[f"{T}transports.sparklineage.location"] == str(tmp_path / "events.ndjson")


def test_a_listener_that_comes_late_only_collects(capture):
    http = {f"{T}type": "http", f"{T}url": "http://marquez:5000"}
    conf = configured(capture, is_late=True, **http)
    assert conf[f"{T}type"] == "file"
    assert f"{T}url" not in conf


def test_nothing_is_added_that_only_a_submission_needs(capture):
    conf = configured(capture)
    assert not {"spark.jars", "spark.submit.pyFiles", "spark.driver.extraJavaOptions"} & set(conf)
    assert not [key for key in conf if key.startswith("spark.sparklineage.")]


@pytest.mark.parametrize(
    ("observe", "own", "tag"),
    [
        pytest.param(True, None, "the-run", id="ours"),
        pytest.param(True, "mine", "mine", id="the user's own"),
        pytest.param(False, None, None, id="not observed"),
    ],
)
def test_delta_commits_are_marked_unless_the_user_marks_them(capture, observe, own, tag):
    capture.settings.observe = observe
    conf = configured(capture, **({DELTA_TAG: own} if own else {}))
    assert conf.get(DELTA_TAG) == tag


# --- the listener's jar ---------------------------------------------------------------------------


def chosen(spark_submit, found=(), **settings):
    settings = {"listener_jar": spark_submit.jar, "fetch_listener": False} | settings
    settings = {"listener_extensions": (), "strict": False} | settings
    spark = SparkDistribution(None, "4.0.1", "2.13")
    return task_driver.chosen_jars(Submission(), spark, found, SimpleNamespace(**settings))


def test_the_configured_jar_is_added(spark_submit):
    assert chosen(spark_submit).paths == (str(spark_submit.jar),)


def test_a_listener_that_the_jvm_has_is_the_only_one(spark_submit):
    identity = Identity("1.53.0", "2.13")
    found = JobListener(ListenerSource.JARS, str(spark_submit.jar), identity, spark_submit.jar)
    assert chosen(spark_submit, (found,)).paths == ()


def test_a_listener_for_another_spark_is_not_added(spark_submit):
    old = JobListener(ListenerSource.DRIVER, "openlineage-spark_2.12", Identity("1.9.0", "2.12"))
    with pytest.raises(ListenerError, match=r"Scala 2\.12"):
        chosen(spark_submit, (old,))


def test_a_jar_that_is_no_file_here_is_refused(spark_submit):
    with pytest.raises(ListenerError, match="no file of this worker"):
        chosen(spark_submit, listener_jar="https://repo/openlineage-spark_2.13-1.53.0.jar")


def test_an_extension_that_is_no_file_here_is_left_out(spark_submit):
    jars = chosen(spark_submit, listener_extensions=("https://repo/extension.jar",))
    assert jars.paths == (str(spark_submit.jar),)
    assert [error.problem[:26] for error in jars.errors] == ["https://repo/extension.jar"]


# --- a PySpark that is other than it was ----------------------------------------------------------


def test_a_pyspark_without_what_is_replaced_runs_the_function(without_spark, execute, monkeypatch):
    other = SimpleNamespace(SparkContext=object)
    monkeypatch.setitem(sys.modules, "pyspark", other)
    task = operator()
    execute(task)
    assert without_spark == [task]
    assert list(spark_submit_double.degradations(task)) == ["injection_failed"]


def test_strict_calls_nothing_of_a_pyspark_without_what_is_replaced(
    without_spark, execute, monkeypatch
):
    monkeypatch.setitem(sys.modules, "pyspark", SimpleNamespace(SparkContext=object))
    with pytest.raises(AttributeError):
        execute(operator(strict=True))
    assert without_spark == []


def test_what_fails_at_the_end_is_no_failure_of_the_task(without_spark, execute, monkeypatch):
    def fails(_):
        msg = "at the end"
        raise RuntimeError(msg)

    monkeypatch.setattr(TaskDriver, "_end", fails)
    task = operator()
    execute(task)
    assert without_spark == [task]


def test_a_timeout_at_the_end_is_no_failure_of_a_function_that_has_returned(
    without_spark, execute, monkeypatch
):
    def fires(_):
        raise AirflowTaskTimeout

    monkeypatch.setattr(TaskDriver, "_end", fires)
    task = operator()
    execute(task)
    assert task.lineage_try.collected["eventType"] == "COMPLETE"


def test_a_jvm_that_never_answers_is_not_waited_for(without_spark, execute, monkeypatch):
    hangs = threading.Event()
    monkeypatch.setattr(TaskDriver, "_last_records", lambda _: hangs.wait(60))
    monkeypatch.setattr(TaskDriver, "_attach", lambda self, *_: setattr(self, "_is_met", True))
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__COLLECT_TIMEOUT", "0.2")
    task = operator()
    try:
        execute(task)
    finally:
        hangs.set()
    assert "observer_failed" in spark_submit_double.degradations(task)
