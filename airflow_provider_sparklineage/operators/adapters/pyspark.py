"""PySparkOperator: the task's own process becomes the driver, and nothing is submitted.

The submission has the properties of the session that the operator is going to make: those of its
connection, and its own. There is nothing to write: the listener is added when there is a JVM
(:mod:`airflow_provider_sparklineage.operators.attempt.task_driver`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import BaseHook

from airflow_provider_sparklineage.spark.submit.deploy_mode import Target
from airflow_provider_sparklineage.spark.submit.submission import Submission, as_texts

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context


def read(operator: Any, context: Context) -> tuple[list[Submission], Target]:  # noqa: ARG001  (of an adapter)
    """Read the master and the properties that Airflow's operator is going to set.

    The master is ``sc://`` for a connection of Spark Connect, and ``""`` if no master is known.
    """
    master, properties = "", {}
    if operator.conn_id:
        connection = BaseHook.get_connection(operator.conn_id)
        is_connect = connection.conn_type == "spark_connect"
        master = "sc://" if is_connect else str(connection.host or "")
        properties = dict(connection.extra_dejson)
    properties |= operator.lineage_properties
    conf = as_texts(properties)
    target = Target(master=conf.get("spark.master", master), is_in_process=True)
    return [Submission(conf=conf)], target


def write(operator: Any, submissions: list[Submission]) -> None:
    """Do nothing: there are no arguments for a listener."""
