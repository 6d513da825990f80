"""DataprocSubmitJobOperator: Dataproc starts the driver of a job on a cluster.

All of a submission is in the job's ``pyspark_job``, ``spark_job`` or ``spark_sql_job``. A job, and
each part of it, is a mapping or a message of Dataproc's library; that library takes the names of
its fields and refuses those of the REST API, such as ``pysparkJob``. Dataproc shows the properties
of a job to all users who may see the job.

The version of Spark follows from the image of the cluster, which only the cluster tells. It tells
two more things. The account of its machines decides what a driver may read: clusters that are made
for one run have new names each time, but the same account. And a cluster with Dataproc's own
lineage already has an OpenLineage listener, of another version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from airflow_provider_sparklineage.model.exceptions import ListenerError
from airflow_provider_sparklineage.operators.adapters import (
    TRANSPORT_FLAG,
    airflow_transport,
    text_of,
    with_entries,
    with_properties,
)
from airflow_provider_sparklineage.spark.submit import releases
from airflow_provider_sparklineage.spark.submit.deploy_mode import Target
from airflow_provider_sparklineage.spark.submit.submission import Submission, as_texts

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

_OF_SPARK = "spark:"  # before the properties of spark-defaults.conf among those of a cluster
JOBS = ("pyspark_job", "spark_job", "spark_sql_job")
"""The fields of a job that start Spark and take jars: ``spark_r_job`` takes none."""


def read(operator: Any, context: Context) -> tuple[list[Submission], Target]:
    """Read the job that the operator is going to submit, and ask the job's cluster for its image.

    :raise ListenerError: if ``job`` starts no Spark that takes jars, or has another form than
        Dataproc takes, or the cluster has Dataproc's own lineage
    """
    submission = submission_of_job(operator.job)
    placement = field(operator.job, "placement")
    name = field(placement, "cluster_name")
    config = field(operator.lineage_cluster(name), "config") if name else None
    spark = spark_of_cluster(config)
    submission = replace(submission, file_properties=defaults_of(config))
    target = Target(
        transport=airflow_transport(operator, TRANSPORT_FLAG, context),
        is_polled=operator.deferrable or not operator.asynchronous,
        service="Dataproc",
        spark=spark,
        is_deferred=operator.deferrable,
        account=account(operator, of_cluster(config, selected(name, placement))),
    )
    return [submission], target


def write(operator: Any, submissions: list[Submission]) -> None:
    """Set the job's properties, jars and Python files; a property keeps its type."""
    [submission] = submissions
    operator.job = with_submission(operator.job, submission)


def replace_application(operator: Any, application: str, arguments: list[str]) -> None:
    """Let the operator submit a job of another application, with a new id."""
    job = operator.job
    spark = field(job, started(job, JOBS, "`job` of the task"))
    own = of_python(
        spark, application, arguments, properties=dict(field(spark, "properties") or {})
    )
    operator.job = with_alone(job, JOBS, pyspark_job=own, reference=None)


# A message of Dataproc's library is looked at like a mapping, so that nothing here imports it.


def field(message: Any, *names: str) -> Any:
    """Give a field of a mapping or message, or of the messages in it; None if it is not set."""
    for name in names:
        is_mapping = isinstance(message, Mapping)
        message = message.get(name) if is_mapping else getattr(message, name, None)
    return message


def with_fields(message: Any, **fields: Any) -> Any:
    """Give a copy of a mapping or message with other values of fields."""
    if isinstance(message, Mapping):
        return {**message, **fields}
    changed = deepcopy(message)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def with_alone(message: Any, names: Sequence[str], **fields: Any) -> Any:
    """Give a copy of a job or batch with other values of fields, of which None removes one.

    :param names: the fields of which only one may be set; those that have no new value are removed
    """
    changed = {**dict.fromkeys(names), **fields}
    if isinstance(message, Mapping):
        every = {**message, **changed}
        return {
            name: value for name, value in every.items() if value is not None or name not in changed
        }
    # The message removes a field of ``names`` itself when another one is set.
    return with_fields(message, **fields)


_FILES = ("jar_file_uris", "python_file_uris", "file_uris", "archive_uris")


def of_python(spark: Any, application: str, arguments: list[str], **fields: Any) -> dict[str, Any]:
    """Give the field of a job or batch that starts a Python application, with files of another.

    :param spark: the field that starts the other application
    :param fields: further fields
    """
    files = {name: list(uris) for name in _FILES if (uris := field(spark, name))}
    return {"main_python_file_uri": application, "args": arguments, **files, **fields}


def started(message: Any, names: Sequence[str], what: str) -> str:
    """Give the name of the field by which a job or batch starts Spark.

    :param names: the fields that start Spark and take jars
    :param what: a name for the job or batch, with which a sentence can begin
    :raise ListenerError: if none of the fields is set
    """
    for name in names:
        if field(message, name):
            return name
    msg = f"{what} has none of the fields {', '.join(names)}, so there is no Spark to listen to."
    raise ListenerError(msg)


def submission_of_job(job: Any) -> Submission:
    """Read the submission of a job.

    :raise ListenerError: like :func:`submission_of`, and if the job starts no Spark that takes jars
    """
    spark = field(job, started(job, JOBS, "`job` of the task"))
    return submission_of(spark, field(spark, "properties"))


def submission_of(job: Any, properties: Any) -> Submission:
    """Read a submission from the field of a job or batch that starts Spark.

    :raise ListenerError: if the service would not take it, or it asks for Dataproc's own lineage
    """
    if not isinstance(properties or {}, Mapping):
        msg = "`properties` of a Dataproc job or batch is a mapping, and here it is not."
        raise ListenerError(msg)
    conf = as_texts(properties)
    _refuse_own_lineage(
        conf.get("spark.dataproc.lineage.enabled"),
        "Set spark.dataproc.lineage.enabled=false among the properties of the task.",
    )
    return Submission(
        conf=conf,
        jars=_text(job, "jar_file_uris"),
        py_files=_text(job, "python_file_uris"),
        application=str(field(job, "main_python_file_uri") or ""),
    )


def with_submission(job: Any, submission: Submission) -> Any:
    """Give a job with the properties, jars and Python files of a submission that was read of it."""
    name = started(job, JOBS, "`job` of the task")
    spark = field(job, name)
    own, changed = field(spark, "properties") or {}, longer_lists(spark, submission)
    if (properties := with_properties(own, submission)) != dict(own):
        changed["properties"] = properties
    return with_fields(job, **{name: with_fields(spark, **changed)})


def properties_of(job: Any) -> Mapping[str, Any]:
    """Give the properties of a job; ``{}`` if it has none, or has another form."""
    found = [field(job, name, "properties") for name in JOBS]
    return next((each for each in found if isinstance(each, Mapping)), {})


def longer_lists(job: Any, submission: Submission) -> dict[str, Any]:
    """Give the lists of a job to which a submission adds entries, by the name of the field."""
    lists = {"jar_file_uris": submission.jars, "python_file_uris": submission.py_files}
    before = {name: field(job, name) for name in lists}
    after = {name: with_entries(before[name], text) for name, text in lists.items()}
    return {name: value for name, value in after.items() if value is not before[name]}


def _text(job: Any, name: str) -> str | None:
    entries = field(job, name) or ()
    if isinstance(entries, str) or not isinstance(entries, Sequence):
        msg = f"`{name}` of a Dataproc job or batch is a list, and here it is not."
        raise ListenerError(msg)
    return text_of(entries)


# What a cluster tells.


def defaults_of(config: Any) -> dict[str, str]:
    """Give the properties that a cluster was made with, which are below those of a job.

    :param config: the cluster's ``config``; None if it is not known
    """
    own = field(config, "software_config", "properties") or {}
    return {
        key.removeprefix(_OF_SPARK): str(value)
        for key, value in own.items()
        if key.startswith(_OF_SPARK)
    }


def spark_of_cluster(config: Any) -> tuple[str, str] | None:
    """Give the versions of Spark and of Scala of a cluster; None if they are not known.

    :param config: the cluster's ``config``; None if it is not known
    :raise ListenerError: if the cluster has Dataproc's own lineage
    """
    software = field(config, "software_config")
    _refuse_own_lineage(
        field(software, "properties", "dataproc:dataproc.lineage.enabled"),
        "Create the cluster with the property dataproc:dataproc.lineage.enabled=false.",
    )
    return releases.spark_of(releases.DATAPROC, field(software, "image_version"))


def selected(name: object, placement: Any) -> str:
    """Give a text for the cluster that a placement selects by a name, or else by labels."""
    labels = field(placement, "cluster_labels") or {}
    return f"cluster {name or sorted(labels.items())}"


def of_cluster(config: Any, otherwise: str) -> str:
    """Give the service account of a cluster's machines; empty if it is the project's default.

    :param config: the cluster's ``config``; None if it is not known
    :param otherwise: a name for the unknown account of an unknown cluster
    """
    own = field(config, "gce_cluster_config", "service_account")
    return str(own or ("" if config else otherwise))


def account(operator: Any, service_account: str) -> str:
    """Give the text for the account of the driver: the project of the connection, and its own."""
    return f"{operator.gcp_conn_id} {operator.project_id or ''} {service_account}"


def _refuse_own_lineage(enabled: object, fix: str) -> None:
    if str(enabled).lower() == "true":
        problem = (
            "Dataproc's own lineage is enabled, so the job has an OpenLineage listener of "
            "Dataproc's, and with a second one its SparkContext could end."
        )
        raise ListenerError(problem, fix)
