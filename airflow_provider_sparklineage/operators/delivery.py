"""Whether the event of a try has left: noted in the archive until Airflow's client has sent it.

The mark is made with the archive's entry, before anything is sent, and it is removed when the
client has returned from sending this run's event. So it stays if the process is killed, if Airflow
cuts it off, if the client gives up, and if one of the several places that a composite transport
sends to did not take the event. Where nobody can tell whether an event arrived, none is marked:
with transports that send later.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.event import sending
from airflow_provider_sparklineage.event.archive import archive_of
from airflow_provider_sparklineage.event.emitter import failures
from airflow_provider_sparklineage.hooks import sources
from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.model.exceptions import ArchiveError, SparkLineageError
from airflow_provider_sparklineage.operators import documentation
from airflow_provider_sparklineage.operators.masking import redacted
from airflow_provider_sparklineage.settings.connection import DATAHUB_TRANSPORT, types_of

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sparklineage.operators.try_capture import TryCapture
    from airflow_provider_sparklineage.spark.capture.bundle import Manifest, TaskIdentity

log = logger(__name__)

_WATCHED = frozenset({"http", "file", "console", DATAHUB_TRANSPORT})
"""Transports that return when the event has arrived, and raise if it has not."""

_TIMEOUT_S = 2.0  # to remove a mark: Airflow's time for an event runs


def additions(manifest: Manifest, context: Context) -> dict[str, Any] | None:
    """Give what Airflow's OpenLineage provider adds to the event of a try, and a backend needs.

    :return: None if Airflow's emission policy holds the event back
    """
    if manifest.task is None or not _is_emitted(context.get("task"), manifest.task):
        return None
    ti: Any = context["ti"]
    started = getattr(ti, "start_date", None) or manifest.started
    return {
        sending.STARTED: started.isoformat() if started else "",
        sending.RUN_FACETS: _run_facets(manifest.task.dag_id, manifest.run_id, context),
        sending.JOB_FACETS: _job_facets(context.get("task")),
        sending.OWN_TEXT: documentation.own_facet(context.get("task")),
    }


def _is_emitted(task: Any, identity: TaskIdentity) -> bool:
    from airflow.providers.openlineage.utils.emission_policy import resolve_task_emission_policy

    if task is None:
        return True
    policy = resolve_task_emission_policy(task, identity.dag_id, identity.task_id)
    return bool(policy.emit and policy.extract_operator_metadata)


def _run_facets(dag_id: str, run_id: str, context: Context) -> dict[str, Any]:
    from airflow.providers.openlineage.plugins.adapter import OpenLineageAdapter
    from airflow.providers.openlineage.utils.utils import get_task_parent_run_facet
    from openlineage.client.facet_v2 import nominal_time_run

    dag_run: Any = context["dag_run"]
    above = OpenLineageAdapter.build_dag_run_id(
        dag_id, dag_run.logical_date or dag_run.run_after, dag_run.clear_number
    )
    facets = get_task_parent_run_facet(above, dag_id, dr_conf=dag_run.conf or {})
    facets |= _airflow_facet(run_id, context)
    start, end = (getattr(dag_run, f"data_interval_{side}", None) for side in ("start", "end"))
    if start is not None:
        facets["nominalTime"] = nominal_time_run.NominalTimeRunFacet(
            start.isoformat(), end and end.isoformat()
        )
    return _as_sent(facets)


def _airflow_facet(run_id: str, context: Context) -> dict[str, Any]:
    """Give the facet that has run, try and the page of its log; none if it cannot be made."""
    from airflow.providers.openlineage.utils.utils import get_airflow_run_facet

    dag_run, dag, ti, task = (context.get(key) for key in ("dag_run", "dag", "ti", "task"))
    with suppress(Exception):  # it only describes, and Airflow may need more than there is
        made: dict[str, Any] = get_airflow_run_facet(dag_run, dag, ti, task, run_id)  # type: ignore[arg-type]
        return made
    return {}


def _job_facets(task: Any) -> dict[str, Any]:
    from airflow.providers.openlineage.utils import utils
    from openlineage.client.facet_v2 import documentation_job, job_type_job

    facets: dict[str, Any] = {"jobType": job_type_job.JobTypeJobFacet("BATCH", "AIRFLOW", "TASK")}
    # Of a task whose job has ended it says what that did.
    text, kind = utils.get_task_documentation(task)
    if not text and getattr(task, "dag", None):
        text, kind = utils.get_dag_documentation(task.dag)
    if text:
        facets["documentation"] = documentation_job.DocumentationJobFacet(text, kind)
    return _as_sent(facets)


def _as_sent(facets: dict[str, Any]) -> dict[str, Any]:
    """Give facets of Airflow's as JSON, with the secrets hidden that Airflow hides in them."""
    from openlineage.client.serde import Serde

    hidden = redacted({key: Serde.to_dict(facet) for key, facet in facets.items()})
    made: dict[str, Any] = json.loads(Serde.to_json(hidden))  # executor_config has any objects
    return made


def can_be_watched() -> bool:
    """Whether it is going to be known that an event was sent, or was not."""
    if sources.why_not_sent() is not None:
        return False  # nothing is, and nobody wants it to be
    try:
        transport, _ = sources.transport()
    except SparkLineageError:
        return True  # Airflow's client cannot be made, so the event is not sent
    return transport is not None and _WATCHED.issuperset(types_of(transport))


def watch(capture: TryCapture) -> None:
    """Remove the mark of a try once its event was sent; never raises.

    Called in the process, or the thread, in which the provider sends the event right after.
    """
    try:
        _watch(capture)
    except Exception:  # no client can be made, which the provider meets as well when it sends
        log.debug("It is not watched whether the event is sent.", exc_info=True)


def _watch(capture: TryCapture) -> None:
    from airflow.providers.openlineage.plugins.listener import get_openlineage_listener

    task, run_id = capture.bundle.manifest.task, capture.bundle.manifest.run_id
    archive = archive_of(capture.settings, _TIMEOUT_S)
    if archive is None or not archive.has_marks or task is None:
        return
    client = get_openlineage_listener().adapter.get_or_create_openlineage_client()
    emit = client.emit

    def watched(event: Any) -> None:
        with failures(client.transport) as missed:
            emit(event)  # raises if nobody took it
        if getattr(getattr(event, "run", None), "runId", None) == run_id:
            vars(client)["emit"] = emit
            if missed:
                return
            with suppress(ArchiveError):  # sent twice is no harm
                archive.sent(task)

    vars(client)["emit"] = watched
