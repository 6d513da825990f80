"""AzureSynapseRunSparkBatchOperator: a Spark pool of Azure Synapse starts the driver of a batch.

All of a submission is in ``payload``, the fields of a batch of Livy: a ``SparkBatchJobOptions`` of
Azure's client, or a mapping, which the client reads by the names of the REST API and by those of
that class. The field is no template. The API tells no version of Spark, so ``spark_version`` has
to. All who may look at the batches of a workspace see their properties.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.model.exceptions import ListenerError
from airflow_provider_sparklineage.operators.adapters import (
    configured_transport,
    text_of,
    with_entries,
    with_properties,
)
from airflow_provider_sparklineage.spark.submit.deploy_mode import Target
from airflow_provider_sparklineage.spark.submit.submission import Submission, as_texts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow.providers.common.compat.sdk import Context

_ATTRIBUTES = {
    "args": "arguments",
    "conf": "configuration",
    "pyFiles": "python_files",
    "className": "class_name",
    "numExecutors": "executor_count",
}
"""The attributes of Azure's class that have another name in the REST API, by that name."""


def read(operator: Any, context: Context) -> tuple[list[Submission], Target]:
    """Read the batch that the operator is going to submit.

    :raise ListenerError: if ``payload`` is no batch
    """
    payload = operator.payload
    conf = _value(payload, "conf") or {}
    lists = [_value(payload, name) or [] for name in ("jars", "pyFiles")]
    is_known = isinstance(conf, dict) and all(isinstance(each, list) for each in lists)
    if not (is_known and _value(payload, "file")):
        msg = (
            "`payload` of the task is no batch of Synapse, with a `file`, a mapping as `conf`, and "
            "lists as `jars` and `pyFiles`."
        )
        raise ListenerError(msg)
    submission = Submission(
        conf=as_texts(conf),
        jars=text_of(_value(payload, "jars")),
        py_files=text_of(_value(payload, "pyFiles")),
        application="" if _value(payload, "className") else str(_value(payload, "file")),
    )
    target = Target(
        transport=configured_transport(context),
        is_polled=operator.wait_for_termination,
        service="Azure Synapse",
        account=f"{operator.azure_synapse_conn_id} {operator.spark_pool}",
    )
    return [submission], target


def write(operator: Any, submissions: list[Submission]) -> None:
    """Set the batch's properties, jars and Python files; a property keeps its type."""
    [submission], payload = submissions, operator.payload
    changed = {
        "conf": with_properties(_value(payload, "conf"), submission),
        "jars": with_entries(_value(payload, "jars"), submission.jars),
        "pyFiles": with_entries(_value(payload, "pyFiles"), submission.py_files),
    }
    operator.payload = copy(payload)
    for name, value in changed.items():
        if value or _value(payload, name):
            _set(operator.payload, name, value)


def replace_application(operator: Any, application: str, arguments: list[str]) -> None:
    """Let the operator submit a batch of another application."""
    operator.payload = copy(operator.payload)
    _set(operator.payload, "file", application)
    _set(operator.payload, "args", arguments)
    if _value(operator.payload, "numExecutors"):
        _set(operator.payload, "numExecutors", 1)
    if isinstance(operator.payload, dict):
        operator.payload.pop(_name(operator.payload, "className"), None)
    else:
        _set(operator.payload, "className", None)


def properties_of(payload: Any) -> Mapping[str, Any]:
    """Give the properties of a batch; none if it has none, or is no batch."""
    conf = _value(payload, "conf")
    return conf if isinstance(conf, dict) else {}


def _name(payload: Any, name: str) -> str:
    """Give the name that a field of the REST API has in a batch."""
    attribute = _ATTRIBUTES.get(name, name)
    return attribute if not isinstance(payload, dict) or attribute in payload else name


def _value(payload: Any, name: str) -> Any:
    key = _name(payload, name)
    return payload.get(key) if isinstance(payload, dict) else getattr(payload, key, None)


def _set(payload: Any, name: str, value: Any) -> None:
    key = _name(payload, name)
    if isinstance(payload, dict):
        payload[key] = value
    else:
        setattr(payload, key, value)
