"""Who a try is, in Airflow's and in OpenLineage's terms: the first version of its manifest."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import airflow
from airflow.providers import openlineage as openlineage_provider
from airflow.providers.apache import spark as spark_provider
from airflow.providers.openlineage.plugins.macros import (
    lineage_job_name,
    lineage_job_namespace,
    lineage_run_id,
)

from airflow_provider_sparklineage.event.document import DISTRIBUTION, version
from airflow_provider_sparklineage.model.terms import JobName
from airflow_provider_sparklineage.operators.masking import masked
from airflow_provider_sparklineage.spark.capture import bundle
from airflow_provider_sparklineage.spark.capture.bundle import Manifest, TaskIdentity

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sparklineage.settings.resolution import Settings


def manifest_of(context: Context, settings: Settings, *, of_command: bool = False) -> Manifest:
    """Make the manifest of a try that begins; nothing in it is a secret."""
    ti: Any = context["ti"]
    run_id = str(lineage_run_id(ti))
    namespace = lineage_job_namespace()  # type: ignore[no-untyped-call]
    map_index = getattr(ti, "map_index", None)
    return Manifest(
        # The same try always gets the same application run id, so that a replay is recognised.
        application_run_id=str(uuid.uuid5(uuid.UUID(run_id), "spark-application")),
        task=TaskIdentity(
            dag_id=ti.dag_id,
            task_id=ti.task_id,
            run_id=ti.run_id,
            try_number=ti.try_number,
            map_index=-1 if map_index is None else map_index,
        ),
        job=JobName(namespace, lineage_job_name(ti)),
        run_id=run_id,
        worker=bundle.this_worker(),
        started=datetime.now(UTC),
        partitioning=settings.partitioning.documents(),
        max_partitions=settings.max_partitions,
        max_locations=settings.max_locations,
        bare_partitions=settings.emit_bare_partitions_facet,
        max_event_bytes=settings.max_event_bytes,
        redact_literals=settings.redact_literals,
        column_lineage=settings.column_lineage,
        intermediate_datasets=str(settings.intermediate_datasets),
        lineage_facet=settings.emit_lineage_facet,
        backend=str(settings.backend),
        versions=_versions(),
        of_command=of_command,
        settings={name: masked(text) for name, text in settings.described().items()},
    )


def _versions() -> dict[str, str]:
    # Of Airflow's packages from their modules: to look it up in what is installed takes as long
    # as all else that is done for a manifest.
    return {
        DISTRIBUTION: version(),
        "apache-airflow": airflow.__version__,
        "apache-airflow-providers-apache-spark": spark_provider.__version__,
        "apache-airflow-providers-openlineage": openlineage_provider.__version__,
    }
