"""DataprocInstantiateInlineWorkflowTemplateOperator: Dataproc runs the jobs of a workflow.

Each job of the template that starts Spark is a submission, and the task's event has all of them;
jobs of Hive, Pig and others are left as they are. The jobs run on a cluster that Dataproc makes for
the workflow, whose image the template may name, or on one that is selected by labels, whose image
is not known. Templates and jobs are mappings or messages, as jobs are (:mod:`.dataproc`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from airflow_provider_sparklineage.model.exceptions import ListenerError
from airflow_provider_sparklineage.operators.adapters import (
    TRANSPORT_FLAG,
    airflow_transport,
    dataproc,
)
from airflow_provider_sparklineage.operators.adapters.dataproc import (
    JOBS,
    account,
    field,
    of_cluster,
    selected,
    spark_of_cluster,
    with_fields,
    with_submission,
)
from airflow_provider_sparklineage.spark.submit.deploy_mode import Target

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sparklineage.spark.submit.submission import Submission


def read(operator: Any, context: Context) -> tuple[list[Submission], Target]:
    """Read the jobs of the workflow that start Spark.

    :raise ListenerError: if none does, or ``template`` has another form than Dataproc takes, or the
        cluster has Dataproc's own lineage
    """
    jobs = [job for job in field(operator.template, "jobs") or () if starts_spark(job)]
    if not jobs:
        msg = f"No job of `template` has one of the fields {', '.join(JOBS)}: it starts no Spark."
        raise ListenerError(msg)
    placement = field(operator.template, "placement")
    config = field(placement, "managed_cluster", "config")
    defaults = dataproc.defaults_of(config)
    read_jobs = (dataproc.submission_of_job(job) for job in jobs)
    submissions = [replace(job, file_properties=defaults) for job in read_jobs]
    spark = spark_of_cluster(config)
    cluster = selected(None, field(placement, "cluster_selector"))
    target = Target(
        transport=airflow_transport(operator, TRANSPORT_FLAG, context),
        is_polled=True,
        service="Dataproc",
        spark=spark,
        is_deferred=operator.deferrable,
        account=account(operator, of_cluster(config, cluster)),
    )
    return submissions, target


def write(operator: Any, submissions: list[Submission]) -> None:
    """Set properties, jars and Python files of the jobs that start Spark."""
    left = iter(submissions)
    jobs = [
        with_submission(job, next(left)) if starts_spark(job) else job
        for job in field(operator.template, "jobs")
    ]
    operator.template = with_fields(operator.template, jobs=jobs)


def starts_spark(job: Any) -> bool:
    """Whether a job of a template starts Spark, and takes jars."""
    return any(field(job, name) for name in JOBS)


def properties_of(template: Any) -> dict[str, Any]:
    """Give the properties of all jobs of a template; ``{}`` if it has another form."""
    jobs = field(template, "jobs")
    jobs = jobs if isinstance(jobs, Sequence) else ()
    return {key: value for job in jobs for key, value in dataproc.properties_of(job).items()}
