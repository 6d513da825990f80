"""What a try leaves in Airflow itself: its event as an XCom, and in the archive.

The document is the event with exactly the datasets and facets that Airflow's OpenLineage provider
sends, in the state in which it sends them; of what the provider adds (ownership, run facets of
Airflow) nothing is in it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowTaskTimeout
from openlineage.client.serde import Serde

from airflow_provider_sparklineage.event import xcom
from airflow_provider_sparklineage.event.archive import Archive
from airflow_provider_sparklineage.model.credentials import logger

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from openlineage.client.event_v2 import RunEvent

    from airflow_provider_sparklineage.operators.collecting import Collected
    from airflow_provider_sparklineage.operators.deadline import Deadline
    from airflow_provider_sparklineage.operators.try_capture import TryCapture
    from airflow_provider_sparklineage.settings.resolution import Settings
    from airflow_provider_sparklineage.spark.capture.bundle import Manifest

log = logger(__name__)

ARCHIVE_TIMEOUT_S = 10.0
_KILLED_TIMEOUT_S = 1.0  # Airflow sends SIGKILL 5 s after SIGTERM, and collecting had 3 of them
_XCOM_OPTION = "[sparklineage] xcom_max_bytes"


def publish(
    capture: TryCapture, deadline: Deadline, collected: Collected, context: Context
) -> None:
    """Push the XCom and write the archive; never raises, and what fails is one warning."""
    try:
        event = _event(capture.bundle.manifest, collected)
        document = Serde.to_dict(event)
        _push(event, document, capture.settings, context)
        _archive(document, capture, is_killed=deadline.is_killed)
    except (Exception, AirflowTaskTimeout) as error:
        # Spark has ended, and how it ended is the task's outcome.
        log.warning(
            "The lineage of this try is not shown in Airflow (%s: %s).", type(error).__name__, error
        )
        log.debug("Publishing lineage failed.", exc_info=True)


def _event(manifest: Manifest, collected: Collected) -> RunEvent:
    from airflow_provider_sparklineage.event import facets

    job = manifest.job
    return facets.event_of(
        collected.parts,
        str(collected.outcome),
        run_id=manifest.run_id,
        job_namespace=job.namespace if job else "default",
        job_name=job.name if job else "unknown",
        event_time=(manifest.ended or datetime.now(UTC)).isoformat(),
    )


def _push(event: RunEvent, document: dict[str, Any], settings: Settings, context: Context) -> None:
    max_bytes = settings.xcom_max_bytes
    if not max_bytes:
        return

    from airflow_provider_sparklineage.event.size import fitted_event

    def smaller(allowed: int) -> dict[str, Any]:
        return Serde.to_dict(fitted_event(event, allowed, _XCOM_OPTION)[0])

    value = xcom.encode(document, max_bytes, smaller)
    if value is None:
        log.warning(
            "The lineage of this try is not shown in Airflow: even without detail it is more than "
            "%s allows.",
            _XCOM_OPTION,
        )
        return
    context["ti"].xcom_push(key=xcom.KEY, value=value)


def _archive(document: dict[str, Any], capture: TryCapture, *, is_killed: bool) -> None:
    url, task = capture.settings.archive_url, capture.bundle.manifest.task
    if url and task:
        timeout_s = _KILLED_TIMEOUT_S if is_killed else ARCHIVE_TIMEOUT_S
        Archive(url, timeout_s).write(task, document)
