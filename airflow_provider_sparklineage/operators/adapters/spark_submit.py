"""SparkSubmitOperator: the worker runs spark-submit, with the arguments of the operator.

Master, deploy mode and the command are in the Spark connection, which only the operator's hook
reads. What spark-submit takes as flags are attributes of the operator. A hook that was made before
has the arguments without the listener, so it is dropped.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.operators.adapters import airflow_transport
from airflow_provider_sparklineage.spark.submit.deploy_mode import Target
from airflow_provider_sparklineage.spark.submit.submission import Submission

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

TRANSPORT_FLAG = "_openlineage_inject_transport_info"


def read(operator: Any, context: Context) -> tuple[list[Submission], Target]:
    """Read the operator's arguments, and those of its hook's connection."""
    hook = operator._get_hook()  # noqa: SLF001
    target = target_of(hook)._replace(
        transport=airflow_transport(operator, TRANSPORT_FLAG, context)
    )
    submission = Submission(
        conf=dict(operator.conf or {}),
        jars=operator.jars,
        packages=operator.packages,
        driver_class_path=operator.driver_class_path,
        py_files=operator.py_files,
        application=operator.application or "",
        env_vars=dict(operator.env_vars or {}),
        properties_file=operator.properties_file,
    )
    return [submission], target


def target_of(hook: Any) -> Target:
    """Give the target to which a hook submits: an operator's, or that of the doctor's trial."""
    # Private, but only these members of Airflow's know the master, the deploy mode, and whether
    # Airflow asks the cluster for the end of the application.
    connection = hook._connection  # noqa: SLF001
    user = hook._proxy_user or connection["principal"]  # noqa: SLF001
    return Target(
        connection["spark_binary"],
        connection["master"],
        connection["deploy_mode"],
        is_polled=hook._should_track_driver_status  # noqa: SLF001
        or hook._should_track_driver_via_k8s_api()  # noqa: SLF001
        or hook._should_track_yarn_application_via_rm_api(),  # noqa: SLF001
        account=str(user or os.environ.get("HADOOP_USER_NAME", "")),
    )


def write(operator: Any, submissions: list[Submission]) -> None:
    """Set the arguments that injection can change."""
    [submission] = submissions
    operator._hook = None  # noqa: SLF001
    operator.conf = dict(submission.conf)
    operator.jars = submission.jars
    operator.py_files = submission.py_files
    operator.env_vars = dict(submission.env_vars) or operator.env_vars
    operator.properties_file = submission.properties_file
