"""DataprocCreateBatchOperator: Serverless for Apache Spark starts the driver of a batch.

The properties of a batch are not in its ``pyspark_batch``, ``spark_batch`` or ``spark_sql_batch``,
but in its ``runtime_config``, with the version of the runtime. Without a version the service takes
its default, which changes, so then ``spark_version`` has to tell the Spark. A batch is a mapping or
a message of Dataproc's library, as a job is (:mod:`.dataproc`). Its id may name a batch that is
there already, of an earlier try: that batch has the listener of its own try, if it has one.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.operators.adapters import (
    TRANSPORT_FLAG,
    airflow_transport,
    with_properties,
)
from airflow_provider_sparklineage.operators.adapters.dataproc import (
    account,
    field,
    longer_lists,
    of_python,
    started,
    submission_of,
    with_alone,
    with_fields,
)
from airflow_provider_sparklineage.spark.submit import releases
from airflow_provider_sparklineage.spark.submit.deploy_mode import Target

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sparklineage.spark.submit.submission import Submission

BATCHES = ("pyspark_batch", "spark_batch", "spark_sql_batch")
"""The fields of a batch that start Spark and take jars: ``spark_r_batch`` takes none."""


def read(operator: Any, context: Context) -> tuple[list[Submission], Target]:
    """Read the batch that the operator is going to create.

    :raise ListenerError: if ``batch`` starts no Spark that takes jars, or has another form than
        Dataproc takes, or asks for Dataproc's own lineage
    """
    batch = operator.batch
    spark = field(batch, started(batch, BATCHES, "`batch` of the task"))
    runtime = field(batch, "runtime_config")
    user = field(batch, "environment_config", "execution_config", "service_account")
    target = Target(
        transport=airflow_transport(operator, TRANSPORT_FLAG, context),
        is_polled=operator.deferrable or not operator.asynchronous,
        service="Dataproc",
        spark=releases.spark_of(releases.DATAPROC_SERVERLESS, field(runtime, "version")),
        is_deferred=operator.deferrable,
        account=account(operator, user or ""),
    )
    return [submission_of(spark, field(runtime, "properties"))], target


def write(operator: Any, submissions: list[Submission]) -> None:
    """Set the batch's properties, jars and Python files; a property keeps its type."""
    [submission], batch = submissions, operator.batch
    name = started(batch, BATCHES, "`batch` of the task")
    spark, runtime = field(batch, name), field(batch, "runtime_config")
    properties = with_properties(field(runtime, "properties"), submission)
    changed = {
        name: with_fields(spark, **longer_lists(spark, submission)),
        "runtime_config": with_fields(runtime or {}, properties=properties),
    }
    operator.batch = with_fields(batch, **changed)


def replace_application(operator: Any, application: str, arguments: list[str]) -> None:
    """Let the operator create a batch of another application, with a new id."""
    batch = operator.batch
    spark = field(batch, started(batch, BATCHES, "`batch` of the task"))
    own = of_python(spark, application, arguments)
    operator.batch = with_alone(batch, BATCHES, pyspark_batch=own)
    operator.batch_id = f"sparklineage-doctor-{uuid.uuid4().hex[:12]}"


def properties_of(batch: Any) -> Mapping[str, Any]:
    """Give the properties of a batch; ``{}`` if it has none, or has another form."""
    properties = field(batch, "runtime_config", "properties")
    return properties if isinstance(properties, Mapping) else {}
