"""Applications that one process runs one after the other, listened to and observed from within.

A program of its own, on any Spark; it writes down what the JVM has, and what is left in it.

``python -m tests.spark.in_process_driver <work> <listener> <properties as JSON>``
"""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession  # noqa: TID253  (of a process that is PySpark's)

from airflow_provider_sparklineage.spark import in_process
from airflow_provider_sparklineage.spark.in_process import Jvm, LateListener
from airflow_provider_sparklineage.spark.submit.listener import LISTENER_CLASS

WORK, LISTENER = Path(sys.argv[1]), sys.argv[2]
PROPERTIES = json.loads(sys.argv[3])
LAKE = WORK / "lake"
OL = "spark.openlineage."
RUNS = {
    name: f"00000000-0000-7000-8000-00000000000{number}"
    for number, name in enumerate(("tables", "second", "late", "later"))
}


def of_listener(name):
    return {
        "spark.extraListeners": LISTENER_CLASS,
        f"{OL}transport.type": "file",
        f"{OL}transport.location": str(WORK / f"{name}.events"),
        f"{OL}applicationRunId": RUNS[name],
        "spark.databricks.delta.commitInfo.userMetadata": RUNS[name],
    }


def of_observer(name):
    prefix = "spark.sparklineage."
    return {f"{prefix}observations": str(WORK / f"{name}.records"), f"{prefix}tag": RUNS[name]}


class Watcher:
    """Adds what is for one application."""

    def __init__(self, name, results):
        self._name = name
        self._results = results

    @contextmanager
    def starting(self, conf):
        yield conf

    def prepared(self, client, conf):
        conf = conf.clone()
        add(Jvm(client), conf, self._name, self._results)
        return conf


def add(jvm, conf, name, results):
    found = jvm.listeners()
    spark = jvm.spark()
    results[name] = {
        "spark": [str(spark.home), spark.version, spark.scala],
        "found": [[entry.source.name, entry.name] for entry in found],
    }
    jvm.add([] if found else [LISTENER])
    for key, value in of_listener(name).items():
        conf.set(key, value)
    in_process.observer_module("in_process").begin(of_observer(name))


def end():
    observing = in_process.observer_module("in_process")
    observing.finish(10_000)
    observing.end()


def session():
    builder = SparkSession.builder
    for key, value in PROPERTIES.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def write(spark, name):
    rows = spark.createDataFrame([("eu", 1), ("us", 2)], "region string, amount int")
    rows.write.mode("overwrite").partitionBy("region").parquet(f"{LAKE}/{name}")
    return rows


def write_tables(spark):
    rows = write(spark, "tables")
    if "delta" in str(PROPERTIES):
        rows.write.format("delta").partitionBy("region").save(f"{LAKE}/delta")
        eu = rows.where("region = 'eu'")
        eu.write.format("delta").mode("append").save(f"{LAKE}/delta")
    if "iceberg" in str(PROPERTIES):
        rows.writeTo("lakehouse.shop.orders").partitionedBy("region").create()


def application(name, job, results):
    with in_process.watched_contexts(Watcher(name, results)):
        spark = session()
        job(spark)
        spark.stop()
        end()


def late(name, results):
    context, spark = in_process.active_context()
    java, jvm = context._jsc.sc(), Jvm(context._gateway._gateway_client)
    conf = java.conf().clone()
    add(jvm, conf, name, results)
    listener = LateListener(jvm, java, conf)
    in_process.observer_module("attaching").attach(spark)
    write(spark, name)
    end()
    listener.end()
    results[name]["left"] = [
        len(spark._jsparkSession.listenerManager().listListeners()),
        sum("openlineage" in str(left) for left in java.listenerBus().listeners()),
    ]


def main():
    results = {}
    application("tables", write_tables, results)
    application("second", lambda spark: write(spark, "second"), results)
    spark = session()
    late("late", results)
    late("later", results)
    write(spark, "unseen")
    spark.stop()
    (WORK / "results.json").write_text(json.dumps(results))


if __name__ == "__main__":
    main()
