"""LivyOperator: Apache Livy starts the driver of a batch, on its own machine or in its cluster.

All of a submission is in ``spark_params``, the fields of ``POST /batches``, in which lists are
lists and not texts. Livy's REST API tells no version of Spark, so ``spark_version`` has to. Livy
shows the properties of a batch to all its users.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.model.exceptions import ListenerError
from airflow_provider_sparklineage.operators.adapters import TRANSPORT_FLAG, airflow_transport
from airflow_provider_sparklineage.spark.submit.deploy_mode import Target
from airflow_provider_sparklineage.spark.submit.submission import Submission, listed

if TYPE_CHECKING:
    from collections.abc import Sequence

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
        conf={str(key): str(value) for key, value in (batch.get("conf") or {}).items()},
        jars=_text(batch.get("jars")),
        py_files=_text(batch.get("py_files")),
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
    conf = batch.get("conf") or {}
    operator.spark_params = {
        **batch,
        "conf": {
            key: conf[key] if str(conf.get(key)) == value else value
            for key, value in submission.conf.items()
        },
        "jars": _list(batch.get("jars"), submission.jars),
        "py_files": _list(batch.get("py_files"), submission.py_files),
    }


def _text(entries: Sequence[object] | str | None) -> str | None:
    return ",".join([entries] if isinstance(entries, str) else map(str, entries or ())) or None


def _list(own: Any, text: str | None) -> Any:
    """Append the entries of a text that the batch's own list does not have."""
    known = listed(_text(own))
    added = [entry for entry in listed(text) if entry not in known]
    return [*([own] if isinstance(own, str) else own or ()), *added] if added else own
