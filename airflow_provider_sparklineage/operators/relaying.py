"""Airflow's half of relaying: whether Spark's events may be sent on, and by which transport."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowTaskTimeout
from airflow.providers.openlineage.api import is_openlineage_active
from airflow.providers.openlineage.plugins.adapter import OpenLineageAdapter
from airflow.providers.openlineage.utils.emission_policy import resolve_task_emission_policy
from msgspec.structs import replace

from airflow_provider_sparklineage.event.relay import relay
from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode
from airflow_provider_sparklineage.operators.masking import masked

if TYPE_CHECKING:
    from airflow_provider_sparklineage.lineage.dataset import TaskLineage
    from airflow_provider_sparklineage.operators.deadline import Deadline
    from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle

log = logger(__name__)


def relayed(
    lineage: TaskLineage, bundle: CaptureBundle, task: Any, deadline: Deadline
) -> TaskLineage:
    """Send Spark's events on, and note in the lineage what was not sent. Never raises.

    :param task: the operator, which Airflow's emission policy may keep silent
    :param deadline: by which it has to be done
    """
    if bundle.events_path is None or lineage.application is None:
        return lineage  # there are no events, which is a degradation already
    try:
        missing = _relay(bundle, task, deadline)
    except AirflowTaskTimeout:
        missing = (
            "The task's execution_timeout fired while Spark's events were being sent on; give the "
            "task a little more time."
        )
    except Exception as error:
        log.debug("Relaying failed.", exc_info=True)
        missing = masked(f"Spark's events were not sent on ({type(error).__name__}: {error}).")
    if not missing:
        return lineage
    entry = Degradation(DegradationCode.RELAY_INCOMPLETE, missing)
    return replace(lineage, degradations=(*lineage.degradations, entry))


def _relay(bundle: CaptureBundle, task: Any, deadline: Deadline) -> str:
    if not is_openlineage_active():
        return "Spark's events were not sent on, because Airflow's OpenLineage provider is off."
    identity = bundle.manifest.task
    if identity and not resolve_task_emission_policy(task, identity.dag_id, identity.task_id).emit:
        return ""  # neither are the task's own events
    if deadline.is_killed or deadline.has_passed():
        # Of a task that is killed Airflow's server may have sent the end.
        return "Spark's events were not sent on, because there was no time left."
    path = bundle.events_path
    assert path is not None  # noqa: S101  (as the caller has seen)
    configuration = OpenLineageAdapter().get_openlineage_config()
    missing, sent = relay(
        path,
        configuration,
        masked,
        seconds=deadline.left,
        literals=bundle.manifest.redact_literals,
        past_deadline=lambda: deadline.is_killed or deadline.has_passed(),
    )
    for line in sent.printed.splitlines():  # events of the console transport, warnings of others
        log.info("%s", line)
    if not missing:
        log.info(
            "%d Spark events were sent on through Airflow's OpenLineage transport", sent.events
        )
    return missing
