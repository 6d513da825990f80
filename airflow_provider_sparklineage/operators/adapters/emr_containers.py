"""EmrContainerOperator: EMR on EKS starts the driver of a job run in a pod.

The job run has the form of one of EMR Serverless, under another key, and names its release itself.
It knows no references to secrets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.operators.adapters import (
    TRANSPORT_FLAG,
    airflow_transport,
    emr_serverless,
)
from airflow_provider_sparklineage.spark.submit import releases
from airflow_provider_sparklineage.spark.submit.deploy_mode import Target

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sparklineage.spark.submit.submission import Submission

DRIVER = "sparkSubmitJobDriver"
"""The key of a Spark application in ``job_driver``."""


def read(operator: Any, context: Context) -> tuple[list[Submission], Target]:
    """Read the job run that the operator is going to start.

    :raise ListenerError: if it is none of Spark, or has another form than EMR takes
    """
    submission = emr_serverless.job_run(operator, DRIVER)
    target = Target(
        transport=airflow_transport(operator, TRANSPORT_FLAG, context),
        is_polled=operator.deferrable or operator.wait_for_completion,
        service="EMR on EKS",
        spark=releases.spark_of(releases.EMR, operator.release_label),
        is_deferred=operator.deferrable,
        account=f"{operator.virtual_cluster_id} {operator.execution_role_arn}",
    )
    return [submission], target


def write(operator: Any, submissions: list[Submission]) -> None:
    """Set the properties of the job run, and those flags that it has already."""
    [submission] = submissions
    emr_serverless.write_job_run(operator, DRIVER, submission)


def replace_application(operator: Any, application: str, arguments: list[str]) -> None:
    """Let the operator start a job run of another application."""
    emr_serverless.replace_entry_point(operator, DRIVER, application, arguments)
