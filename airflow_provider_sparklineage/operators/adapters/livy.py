"""LivyOperator: Apache Livy starts the driver of a batch, on its own machine or in its cluster.

All of a submission is in ``spark_params``, the fields of ``POST /batches``, in which lists are
lists and not texts. Livy's REST API tells no version of Spark, so ``spark_version`` has to. Livy
shows the properties of a batch to all its users.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.model.exceptions import ListenerError
from airflow_provider_sparklineage.operators.adapters import (
    TRANSPORT_FLAG,
    airflow_transport,
    text_of,
    with_entries,
    with_properties,
)
from airflow_provider_sparklineage.spark.submit.deploy_mode import Target
from airflow_provider_sparklineage.spark.submit.submission import Submission, as_texts

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context


def read(operator: Any, context: Context) -> tuple[list[Submission], Target]:
    """Read the batch that the operator is going to post.

    :raise ListenerError: if ``spark_params`` is no batch
    """
    batch = operator.spark_params
    if not (isinstance(batch, dict) and isinstance(batch.get("conf") or {}, dict)):
        msg = "`spark_params` of the task is no batch of Livy, whose `conf` is a mapping."
        raise ListenerError(msg)
    submission = Submission(
        conf=as_texts(batch.get("conf")),
        jars=text_of(batch.get("jars")),
        py_files=text_of(batch.get("py_files")),
        application="" if batch.get("class_name") else str(batch.get("file") or ""),
    )
    target = Target(
        transport=airflow_transport(operator, TRANSPORT_FLAG, context),
        is_polled=operator.deferrable or operator._polling_interval > 0,  # noqa: SLF001
        service="Livy",
        is_deferred=operator.deferrable,
        account=f"{operator._livy_conn_id} {batch.get('proxy_user') or ''}",  # noqa: SLF001
    )
    return [submission], target


def write(operator: Any, submissions: list[Submission]) -> None:
    """Set the batch's properties, jars and Python files; a property keeps its type."""
    [submission], batch = submissions, operator.spark_params
    operator.spark_params = {
        **batch,
        "conf": with_properties(batch.get("conf"), submission),
        "jars": with_entries(batch.get("jars"), submission.jars),
        "py_files": with_entries(batch.get("py_files"), submission.py_files),
    }


_POLLING_S = 5


def replace_application(operator: Any, application: str, arguments: list[str]) -> None:
    """Let the operator post a batch of another application, and wait for its end."""
    own = {"file": application, "args": arguments}
    without = dict.fromkeys(("class_name", "name", "num_executors"))
    operator.spark_params = {**operator.spark_params, **own, **without}
    if operator._polling_interval <= 0:  # noqa: SLF001
        operator._polling_interval = _POLLING_S  # noqa: SLF001
