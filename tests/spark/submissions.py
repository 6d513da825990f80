"""Submitting an application with what the operator injects, for the tests and the benchmarks."""

from __future__ import annotations

import shutil
import uuid
from typing import TYPE_CHECKING

import pytest

from airflow_provider_sparklineage.spark.submit import submitted_files
from airflow_provider_sparklineage.spark.submit.injection import Injection, Observation, inject
from airflow_provider_sparklineage.spark.submit.submission import Submission
from tests import record_events

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

TAG = "the-tag"
CONTAINER = "container"
"""Folder that a driver which delivers captures into, in the folder that it runs in."""
UNSEEN = {"spark.ui.enabled": "false", "spark.log.level": "WARN"}
"""What costs a job time for nobody who looks."""


def of_worker(spark: record_events.Spark, folder: Path) -> dict[str, str]:
    """Give the environment of a worker with this Spark, whose own files are in a folder."""
    (folder / "conf").mkdir(exist_ok=True)
    return record_events.environment(spark, folder / "conf") | {
        "AIRFLOW__SPARKLINEAGE__LISTENER_JAR": str(spark.listener),
        "AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION": str(folder / "captures"),
        "AIRFLOW_CONN_SPARK_DEFAULT": '{"conn_type": "spark", "host": "local[2]"}',
    }


def available(spark: record_events.Spark) -> tuple[str, ...]:
    """Name the connectors of tables that have a release for this Spark."""
    return tuple(c for c in ("delta", "iceberg") if spark.package(c))


def require(spark: record_events.Spark, connector: str | None) -> None:
    """Skip a test that needs a connector which has no release for this Spark."""
    if connector is not None and connector not in available(spark):
        pytest.skip(f"no release of {connector.title()} for Spark {spark.line}")


def submit(
    spark: record_events.Spark,
    application: Path,
    work: Path,
    *,
    listener: Path | None = None,
    observe: bool = True,
    connectors: Sequence[str] = (),
    conf: Mapping[str, str] | None = None,
    ends: int = 0,
    under: Sequence[str] = (),
    deliver: str = "",
) -> None:
    """Run an application on the lake `work/lake`, observed or listened to or both.

    What was observed is in `work/observations.ndjson`, the events in `work/events.ndjson`.

    :param ends: the exit code that it must have
    :param deliver: URL of a folder to deliver to what is captured; it is in `CONTAINER` then
    :raise AssertionError: if it has another one; with the end of its log
    """
    root, scratch = work / "lake", work / "scratch"
    root.mkdir(exist_ok=True)
    scratch.mkdir()
    folder = CONTAINER if deliver else work
    observation = Observation(
        str(submitted_files.write_observer(work)), f"{folder}/observations.ndjson", TAG, deliver
    )
    submission = inject(
        Submission(
            conf=record_events.spark_conf(root, scratch)
            | UNSEEN
            | connector_conf(connectors, root)
            | dict(conf or {}),
            application=application.name,
        ),
        Injection(
            (str(listener),) if listener else (),
            f"{folder}/events.ndjson",
            str(uuid.uuid4()),
            observation=observation if observe else None,
        ),
    )
    injected = dict(submission.conf)
    options = []
    if listener is None:
        del injected["spark.extraListeners"]
        injected = {k: v for k, v in injected.items() if not k.startswith("spark.openlineage")}
    else:
        options += ["--jars", str(submission.jars)]
    if observe:
        options += ["--py-files", str(submission.py_files)]
    if connectors:
        options += ["--packages", ",".join(str(spark.package(c)) for c in connectors)]
    options += record_events.conf_options(injected)
    exit_code, tail = record_events.submit(spark, application, root, scratch, options, under)
    assert exit_code == ends, tail


def run_without_lineage(
    spark: record_events.Spark,
    name: str,
    work: Path,
    conf: Mapping[str, str],
    connectors: Sequence[str] = (),
) -> None:
    """Run an application that imports what is tested, to its end.

    :param name: its file in ``tests/applications``
    :param work: its folder, which is its argument
    """
    (work / "scratch").mkdir()
    options = record_events.conf_options(
        UNSEEN | {"spark.master": "local[2]"} | dict(conf) | connector_conf(connectors, work)
    )
    if connectors:
        options += ["--packages", ",".join(str(spark.package(c)) for c in connectors)]
    # The Python of executors finds what is tested as this one does.
    under = ("env", f"PYTHONPATH={record_events.TESTS.parent}")
    application = record_events.APPLICATIONS / name
    code, tail = record_events.submit(spark, application, work, work / "scratch", options, under)
    assert code == 0, tail


NO_CODEGEN = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""For a few rows: to compile code for them takes longer than to run without it."""


def connector_conf(connectors: Sequence[str], lake: Path) -> dict[str, str]:
    """Unite the configurations of connectors: of what several of them set, Spark takes a list."""
    conf: dict[str, str] = {}
    for connector in connectors:
        for key, value in record_events.CONNECTOR_CONF[connector].items():
            text = value.format(lake=lake)
            conf[key] = f"{conf[key]},{text}" if key in conf else text
    if "delta" in connectors:
        # Or each query of its log is 50 tasks.
        conf["spark.databricks.delta.snapshotPartitions"] = "2"
    return conf


def submit_on(lake: Path, spark: record_events.Spark, name: str, work: Path, ends: int = 0) -> None:
    """Run an application of `tests/applications` on a copy of a lake, observed and listened to.

    :param ends: the exit code that it must have
    """
    shutil.copytree(lake, work / "lake")
    application = record_events.APPLICATIONS / name
    submit(spark, application, work, listener=spark.listener, ends=ends)
