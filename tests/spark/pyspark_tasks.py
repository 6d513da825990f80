"""PySpark tasks that one process runs one after the other, as ``airflow dags test`` does.

A program of its own: its first task starts a JVM, and what later ones meet is left by those before.
It writes down what each task gave and reported, and what was left in the process.

``python -m tests.spark.pyspark_tasks <work>``, or ``… <work> defects`` for tasks in which something
of ours fails
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path
from unittest import mock

import msgspec
from airflow.providers.apache.spark.decorators.pyspark import pyspark_task
from airflow.providers.apache.spark.operators.spark_pyspark import PySparkOperator
from airflow.providers.common.compat.sdk import AirflowTaskTimeout, timeout
from airflow.sdk import DAG
from pyspark import SparkContext  # noqa: TID253  (of a process that is PySpark's)
from pyspark.sql import SparkSession  # noqa: TID253

from airflow_provider_sparklineage.operators.adoption import adopting
from airflow_provider_sparklineage.operators.attempt import task_driver
from airflow_provider_sparklineage.operators.pyspark import SparkLineagePySparkOperator
from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator
from airflow_provider_sparklineage.spark import in_process
from tests import record_events, spark_submit_double

WORK = Path(sys.argv[1])
LAKE = WORK / "lake"
SECRET = "pl4nted-s3cr3t"
TRANSPORT = "spark.openlineage.transport."
UNSEEN = {"spark.ui.enabled": "false", "spark.log.level": "ERROR", "spark.master": "local[2]"}
DYNAMIC = {"spark.sql.sources.partitionOverwriteMode": "dynamic"}
DEFECTS = {
    "asking the JVM": (in_process.Jvm, "spark"),
    "finding listeners": (in_process.Jvm, "listeners"),
    "adding jars": (in_process.Jvm, "add"),
    "reading properties": (in_process.Jvm, "properties"),
    "making properties": (task_driver, "with_listener"),
    "setting properties": (task_driver, "_apply"),
    "noting": (task_driver, "noted"),
    "observing": (task_driver.TaskDriver, "_observe"),
    "a listener that comes late": (task_driver, "LateListener"),
    "a session that is there": (task_driver.TaskDriver, "_observe_session"),
    "importing the observer": (in_process, "import_module"),
    "looking for a SparkContext": (in_process, "active_context"),
    "the last records": (task_driver.TaskDriver, "_finish_observing"),
    "the last events": (task_driver.TaskDriver, "_end_listening"),
}
FEW_DEFECTS = ("making properties", "observing")
"""Those that are tried next to the other tasks, too."""
WRAPPED = (
    (SparkContext, "__init__"),
    (SparkContext, "_ensure_initialized"),
    (SparkContext, "_initialize_context"),
    (SparkSession, "__init__"),
)

# The same text is a function's body and a script's.
JOB = f"""
orders = spark.createDataFrame(
    [(day, region, 1.5) for day in ("2024-05-05", "2024-05-06") for region in ("eu", "us")],
    "dt string, region string, amount double",
)
orders.write.mode("overwrite").partitionBy("dt").parquet("{LAKE}/orders")
day = spark.read.parquet("{LAKE}/orders").where("dt = '2024-05-06'")
day.selectExpr("amount * 2 AS doubled", "region").write.mode("overwrite").partitionBy(
    "region").parquet("{LAKE}/revenue")
rates = spark.read.parquet("{LAKE}/rates").where("dt = '2024-05-06'")
rates.write.mode("overwrite").partitionBy("dt").parquet("{LAKE}/copied")
"""


def job(spark):
    exec(JOB, {"spark": spark})


def make_rates(spark):
    rates = [("2024-05-05", 1.0), ("2024-05-06", 2.0)]
    rates = spark.createDataFrame(rates, "dt string, rate double")
    rates.write.mode("overwrite").partitionBy("dt").parquet(f"{LAKE}/rates")


class GoesOn(PySparkOperator):
    """A user's operator, which leaves the session to the one who made it."""

    def execute_callable(self):
        return self.python_callable(spark=SparkSession.builder.getOrCreate())


class Process:
    """What the tasks of this process gave."""

    def __init__(self) -> None:
        self.results = {}
        self.untouched = [vars(of)[name] for of, name in WRAPPED]

    def run(self, name, task, seconds=None):
        context = spark_submit_double.task_context()
        result = self.results[name] = {"returned": None, "raised": None}
        own = {key: os.environ.get(key) for key in ("SPARK_SUBMIT_OPTS", "SPARK_REMOTE")}
        task = task.prepare_for_execution()
        task.render_template_fields({**context, "ds": "2024-05-06", "params": {}, "task": task})
        try:
            if seconds is None:
                result["returned"] = spark_submit_double.execute(task, context)
            else:
                with timeout(seconds):
                    result["returned"] = spark_submit_double.execute(task, context)
        except (Exception, AirflowTaskTimeout) as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            result["raised"] = [type(error).__name__, str(error), last.name]
        current = getattr(task, "_lineage_try", None)
        if current is not None and current.collected is not None:
            result["event"] = current.collected
            result["manifest"] = json.loads(msgspec.json.encode(current.capture.bundle.manifest))
        result["is_environment_as_before"] = own == {key: os.environ.get(key) for key in own}
        result["is_pyspark_as_before"] = self.untouched == [vars(o)[n] for o, n in WRAPPED]
        result["left"] = left()
        return result

    def write(self):
        (WORK / "results.json").write_text(json.dumps(self.results))


def left():
    """Count the listeners of a session that goes on."""
    context, session = SparkContext._active_spark_context, SparkSession._instantiatedSession
    if context is None:
        return None
    return {
        "queries": len(session._jsparkSession.listenerManager().listListeners()),
        "spark": [
            str(listener.getClass().getName())
            for listener in context._jsc.sc().listenerBus().listeners()
            if "openlineage" in str(listener.getClass().getName())
        ],
        "streams": len(session._jsparkSession.streams().listListeners()),
        "tag": session.conf.get("spark.databricks.delta.commitInfo.userMetadata", None),
    }


def pyspark(task_id="revenue", function=job, conf=None, of=SparkLineagePySparkOperator, **more):
    conf = UNSEEN | DYNAMIC | (conf or {})
    return of(task_id=task_id, python_callable=function, config_kwargs=conf, **more)


def session():
    builder = SparkSession.builder
    for key, value in (UNSEEN | DYNAMIC).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def main():
    process = Process()
    run = process.run

    # --- a JVM of its own, with a secret among the properties ---
    secret = {f"{TRANSPORT}type": "http", f"{TRANSPORT}url": "http://127.0.0.1:9"}
    secret[f"{TRANSPORT}auth.apiKey"] = SECRET

    def first(spark):
        make_rates(spark)
        job(spark)
        java = SparkContext._gateway.proc.pid
        return {
            "command": Path(f"/proc/{java}/cmdline").read_bytes().replace(b"\0", b" ").decode(),
            "conf": dict(spark.sparkContext.getConf().getAll()),
        }

    os.environ["AIRFLOW__SPARKLINEAGE__EXISTING_TRANSPORT"] = "collect_only"
    run("with_secret", pyspark(function=first, conf=secret))
    del os.environ["AIRFLOW__SPARKLINEAGE__EXISTING_TRANSPORT"]

    # --- the same job in every way ---
    run("second", pyspark())
    script = WORK / "job.py"
    script.write_text(
        f"from pyspark.sql import SparkSession\nspark = SparkSession.builder.getOrCreate()\n{JOB}"
    )
    conf = {key: value for key, value in (UNSEEN | DYNAMIC).items() if key != "spark.master"}
    run(
        "submitted",
        SparkLineageSubmitOperator(task_id="revenue", application=str(script), conf=conf),
    )
    session()
    run("existing", pyspark())
    spark = session()
    before = left()
    operator = pyspark(of=GoesOn)
    adopting.adopt(operator)
    run("goes_on", operator)["before"] = before
    spark.stop()

    # --- adopted: @task.pyspark, plain and mapped ---
    def decorated(day, spark):
        spark.read.parquet(f"{LAKE}/rates").where(f"dt = '{day}'").write.mode("overwrite").parquet(
            f"{LAKE}/decorated"
        )
        return {"day": day, "rows": 1}

    with DAG("shop", schedule=None):
        task = pyspark_task(task_id="revenue", config_kwargs=UNSEEN, multiple_outputs=True)
        operator = task(decorated)("{{ ds }}").operator
    adopting.adopt(operator)
    run("decorated", operator)

    # --- none of ours ---
    def stock(spark):
        job(spark)
        return dict(spark.sparkContext.getConf().getAll())

    run("off", pyspark(function=stock, lineage=False))
    os.environ["AIRFLOW__SPARKLINEAGE__DISABLED"] = "True"
    run("disabled", pyspark(function=stock))
    del os.environ["AIRFLOW__SPARKLINEAGE__DISABLED"]
    run("unobserved", pyspark(observe=False))

    # --- what functions do ---
    def stops(spark):
        job(spark)
        spark.stop()
        again = session()
        again.range(3).write.mode("overwrite").parquet(f"{LAKE}/again")
        again.stop()
        return "stopped"

    run("stops", pyspark(function=stops))

    def fails(spark):
        job(spark)
        msg = "the function's own"
        raise ValueError(msg)

    run("fails", pyspark(function=fails))

    def hangs(spark):
        job(spark)
        signal.setitimer(signal.ITIMER_REAL, 0.1)  # the time is up
        time.sleep(60)

    run("hangs", pyspark(function=hangs), seconds=600)

    def streams(spark):
        rows = spark.readStream.schema("rate double").parquet(f"{LAKE}/rates/dt=2024-05-06")
        query = rows.writeStream.format("parquet").trigger(availableNow=True)
        query = query.option("checkpointLocation", f"{WORK}/checkpoint").start(f"{LAKE}/streamed")
        query.awaitTermination()

    session()
    operator = pyspark(of=GoesOn, function=streams)
    adopting.adopt(operator)
    run("streams", operator)
    SparkSession.builder.getOrCreate().stop()

    meet_defects(run, FEW_DEFECTS)

    # --- where nothing can be collected ---
    os.environ["AIRFLOW__SPARKLINEAGE__LISTENER_JAR"] = str(WORK / "none.jar")
    called = []
    # As in a JVM of its own: this one has the listener by now.
    with mock.patch.object(in_process.Jvm, "listeners", return_value=()):
        run("without_jar", pyspark())
        run("strict", pyspark(function=lambda spark: called.append(spark), strict=True))
    process.results["strict"]["is_called"] = bool(called)
    with mock.patch.object(SparkSession.Builder, "getOrCreate"):  # no server is there
        run("no_context", pyspark(function=lambda spark: called.append(spark)))
    process.write()


def meet_defects(run, names):
    """Run a task without a session and one with a session, for each defect of ours."""

    def tiny(spark):
        spark.range(2).write.mode("overwrite").parquet(f"{LAKE}/tiny")
        return "done"

    for name in names:
        owner, attribute = DEFECTS[name]
        with mock.patch.object(owner, attribute, side_effect=ZeroDivisionError("a defect")):
            run(f"defect: {name}", pyspark(function=tiny))
            session()
            run(f"late defect: {name}", pyspark(function=tiny))


def meet_all_defects():
    process = Process()
    process.run("before", pyspark(function=make_rates))  # it starts the JVM
    meet_defects(process.run, DEFECTS)
    process.write()


if __name__ == "__main__":
    spark_submit = Path(sys.executable).with_name("spark-submit")
    environment = record_events.environment(record_events.Spark.of(spark_submit), WORK)
    # Of what it has, the options are ours to set.
    environment["SPARK_SUBMIT_OPTS"] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    environment["AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION"] = str(WORK / "captures")
    os.environ.update(environment)
    meet_all_defects() if sys.argv[2:] == ["defects"] else main()
