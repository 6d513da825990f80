"""Airflow's half of relaying: whether Spark's events may be sent on, and by which transport."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowTaskTimeout
from airflow.providers.openlineage.api import is_openlineage_active
from airflow.providers.openlineage.plugins.adapter import OpenLineageAdapter
from airflow.providers.openlineage.utils.emission_policy import resolve_task_emission_policy

from airflow_provider_sparklineage.event.relay import relay
from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode
from airflow_provider_sparklineage.operators.masking import masked

if TYPE_CHECKING:
    from airflow_provider_sparklineage.lineage.dataset import TaskLineage
    from airflow_provider_sparklineage.operators.deadline import Budget
    from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle

log = logger(__name__)


def relayed(lineage: TaskLineage, bundle: CaptureBundle, task: Any, budget: Budget) -> TaskLineage:
    """Send Spark's events on; the lineage then says what was not sent. Never raises.

    :param task: the operator, which Airflow's emission policy may keep silent
    :param budget: what is left of it is the time that this may take
    """
    if bundle.events_path is None or lineage.application is None:
        return lineage  # there are no events, which is said already
    try:
        missing = _relay(bundle, task, budget)
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


def _relay(bundle: CaptureBundle, task: Any, budget: Budget) -> str:
    if not is_openlineage_active():
        return "Spark's events were not sent on, because Airflow's OpenLineage provider is off."
    identity = bundle.manifest.task
    if identity and not resolve_task_emission_policy(task, identity.dag_id, identity.task_id).emit:
        return ""  # neither are the task's own events
    if (
        budget.is_killed or budget.past_deadline()
    ):  # killed: the server may have told the task's end
        return "Spark's events were not sent on, because there was no time left."
    path = bundle.events_path
    assert path is not None  # noqa: S101  (as the caller has seen)
    configuration = OpenLineageAdapter().get_openlineage_config()
    missing, sent = relay(
        path,
        configuration,
        masked,
        seconds=budget.left,
        literals=bundle.manifest.redact_literals,
        past_deadline=lambda: budget.is_killed or budget.past_deadline(),
    )
    for line in sent.printed.splitlines():  # the console transport's events, others' complaints
        log.info("%s", line)
    if not missing:
        log.info(
            "%d Spark events were sent on through Airflow's OpenLineage transport", sent.events
        )
    return missing
