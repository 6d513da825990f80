"""SparkPipelinesOperator: a Python client of Spark Connect, whose server may run on the worker.

``spark-pipelines`` starts Python, and if the remote is ``local``, Python starts the server, which
is the driver, by a second ``spark-submit``. The properties of the first one do not all reach the
second: of each ten, PySpark 4.1 and 4.2 keep the last few (``SparkSession._start_connect_server``).
A property that is added there could displace one of the user's. So nothing is added there. The
second ``spark-submit`` also takes the environment variable ``PYSPARK_SUBMIT_ARGS``, which wins over
its other arguments. But Python sets its own properties again in the server
(``SparkContext._do_init``), so none of them may be one that has changed. The queries of a pipeline
are reported to no listener that the observer could register with a session, so it is not added.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from msgspec.structs import replace

from airflow_provider_sparklineage.model.exceptions import ListenerError
from airflow_provider_sparklineage.model.files import open_regular
from airflow_provider_sparklineage.operators.adapters import airflow_transport
from airflow_provider_sparklineage.operators.adapters.spark_submit import TRANSPORT_FLAG
from airflow_provider_sparklineage.spark.submit.deploy_mode import PIPELINES, Target
from airflow_provider_sparklineage.spark.submit.listener import LISTENER_CLASS
from airflow_provider_sparklineage.spark.submit.submission import (
    Submission,
    as_texts,
    changes,
    read_arguments,
    with_arguments,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow.providers.common.compat.sdk import Context

_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
_REMOTE = "SPARK_REMOTE"
_MAX_SPEC = 1024 * 1024
_TRANSPORT = "spark.openlineage.transport."


def refusal(operator: Any) -> str:
    """Give the reason why nothing can be added to a pipeline; empty if something can be."""
    if _remote(operator).startswith("local"):
        return ""
    return (
        "The driver of the pipeline is a Spark Connect server, to which nothing can be added from "
        "here, so it runs without lineage. Start the server with the OpenLineage listener (its "
        f"jar in --jars, spark.extraListeners={LISTENER_CLASS}, and {_TRANSPORT}* with the URL of "
        "your backend), which then reports the reads and writes of all clients of the server."
    )


def _remote(operator: Any) -> str:
    """Give the URL of the server, or ``local[…]`` if Python starts it."""
    connection = _connection(operator)
    remote = connection.get("spark_remote")
    if not remote:
        return str(connection["master"])
    return str((operator.env_vars or {}).get(_REMOTE) or remote)


def _connection(operator: Any) -> Mapping[str, Any]:
    vars(operator).pop("hook", None)  # it may have been made before the arguments were changed
    connection: Mapping[str, Any] = operator.hook._connection  # noqa: SLF001
    del operator.hook
    return connection


def _is_client(operator: Any) -> bool:
    """Whether the operator starts Python alone, which gets none of the operator's properties."""
    return bool(_connection(operator).get("spark_remote"))


def read(operator: Any, context: Context) -> tuple[list[Submission], Target]:
    """Read what the server's spark-submit will get."""
    transport = airflow_transport(operator, TRANSPORT_FLAG, context)
    target = Target(PIPELINES, "local", starts_connect_server=True, transport=transport)
    given = {} if _is_client(operator) else as_texts(operator.conf)
    return [_submission(operator, given, _specified(operator.pipeline_spec))], target


def write(operator: Any, submissions: list[Submission]) -> None:
    """Set the environment variable; remove properties that injection has changed or moved.

    :raise ListenerError: if a changed property has its old value in a file, too
    """
    [after], is_client = submissions, _is_client(operator)
    given = {} if is_client else as_texts(operator.conf)
    specified, own = _specified(operator.pipeline_spec), _own_arguments(operator)
    ours = changes(_submission(operator, given, specified), after)
    base = read_arguments(own)
    _refuse_old_values(operator.pipeline_spec, specified, ours.conf)
    if not is_client:
        _refuse_old_values("spark-defaults.conf", after.file_properties, ours.conf)
    arguments = replace(
        base,
        conf={**base.conf, **ours.conf},
        jars=ours.jars or base.jars,
        properties_file=ours.properties_file or base.properties_file,
    )
    env_vars = {**(operator.env_vars or {}), **after.env_vars}
    env_vars[_ARGUMENTS] = shlex.join(with_arguments(own, arguments))
    operator.env_vars = env_vars
    if given:
        kept = {key for key, value in given.items() if after.conf.get(key) == value}
        operator.conf = {k: v for k, v in operator.conf.items() if str(k) in kept}


def _refuse_old_values(
    file: str, properties: Mapping[str, str], changed: Mapping[str, str]
) -> None:
    for name in sorted(changed.keys() & properties.keys()):
        if properties[name] != changed[name]:
            problem = f"{file} has {name}, which Python would set again in the pipeline's server."
            raise ListenerError(problem, "Give this property in the task's `conf` instead.")


def _submission(
    operator: Any, given: Mapping[str, str], specified: Mapping[str, str]
) -> Submission:
    """Give what the server's spark-submit gets.

    :param given: the operator's properties, as far as it passes them on
    :param specified: the properties in the pipeline's file
    """
    own = read_arguments(_own_arguments(operator))
    env_vars = as_texts(operator.env_vars)
    conf = {**given, **specified, **own.conf}
    return replace(own, conf=conf, application=PIPELINES, env_vars=env_vars)


def _own_arguments(operator: Any) -> list[str]:
    """List the arguments that the user gives to the spark-submit of the server."""
    own = (operator.env_vars or {}).get(_ARGUMENTS) or os.environ.get(_ARGUMENTS)
    return shlex.split(own or "pyspark-shell")


def _specified(path: str | None) -> Mapping[str, str]:
    """Read the properties in a pipeline's file, which win over the operator's.

    :return: {} if they cannot be read; the pipeline then ends with an error
    """
    try:
        with open_regular(Path(path or "")) as file:
            document = yaml.safe_load(file.read(_MAX_SPEC))
        return as_texts(document.get("configuration"))
    except (OSError, ValueError, AttributeError, yaml.YAMLError):
        return {}
