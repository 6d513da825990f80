"""Jobs in pods on the node of this machine, and the lineage that their tasks have collected."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.lineage.bundle import task_lineage
from airflow_provider_sparklineage.spark.capture.event_files import open_bundle
from tests.conftest import GOLDEN
from tests.lineage_text import Truth, lines_of

if TYPE_CHECKING:
    from pathlib import Path

IMAGE = "registry.example/spark-py:4.0"


def properties(api_url: str, user: str) -> dict[str, str]:
    """Give the Spark properties of a small job.

    :param api_url: where a pod finds the API: in a cluster, by a name that it has there
    :param user: the driver's and the executors', for HDFS
    """
    return {
        "spark.kubernetes.container.image": IMAGE,
        "spark.kubernetes.authenticate.driver.serviceAccountName": "spark",
        "spark.kubernetes.driverEnv.HADOOP_USER_NAME": user,
        # Or executors are the user who has submitted, whoever the driver is.
        "spark.executorEnv.SPARK_USER": user,
        "spark.kubernetes.driver.master": api_url,
        # Pods have an address of their own; here they have one in common.
        "spark.driver.port": _free_port(),
        "spark.driver.blockManager.port": _free_port(),
        "spark.ui.enabled": "false",
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
        "spark.executor.instances": "1",
        "spark.kubernetes.allocation.batch.delay": "200ms",
        "spark.sql.shuffle.partitions": "1",
    }


def _free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return str(server.getsockname()[1])


def reported(temporary: Path, lake: str) -> list[str]:
    """Give the lineage of the one task of a worker, with names as if the lake were on a laptop.

    :param temporary: the worker's temporary folder
    """
    [bundle] = temporary.glob("sparklineage-*/shop.*")
    with open_bundle([str(bundle)]) as opened:
        text = "\n".join(lines_of(task_lineage(opened)))
    return sorted(text.replace(f"{lake}/", "").splitlines())


def truth(application: str) -> list[str]:
    """Give the lineage of an application that is observed on a laptop."""
    text = (GOLDEN / "lineage" / "observed" / f"{application}.txt").read_text()
    return sorted(Truth(text, "4.0").reported)
