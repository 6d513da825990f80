"""Which run an event is of: its task of Airflow, its data interval, its parent, its start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sparklineage.history.facts.shapes import (
    AirflowFacet,
    DagRun,
    NominalTime,
    RunFacets,
    Sending,
    TaskInstance,
)
from airflow_provider_sparklineage.history.facts.times import utc

if TYPE_CHECKING:
    from airflow_provider_sparklineage.history.facts.shapes import Event

NOT_MAPPED = -1
"""Airflow's map index of a task instance that is none of several."""
_MAX_INT = 2**31 - 1


class Try(NamedTuple):
    """A task's try as whoever kept its event knows it; the event itself may not say.

    :param started: ISO 8601; empty if it is not known
    """

    dag_id: str
    task_id: str
    dag_run_id: str
    map_index: int
    try_number: int
    started: str = ""


def run(event: Event, of: Try | None) -> dict[str, Any]:
    """Give the fields of :class:`.line.Facts` that are about the run, but those of its job.

    :param of: the try, if the event is of an archive or a bundle
    """
    sending = event.sending or Sending()
    own, added = event.run.facets or RunFacets(), sending.facets or RunFacets()
    airflow = own.airflow or added.airflow or own.airflow_dag_run
    task = _task(airflow, of) if airflow or of else {}
    instance = (airflow and airflow.task_instance) or TaskInstance()
    started = sending.started or (of and of.started) or instance.start_date
    nominal = own.nominal_time or added.nominal_time or NominalTime()
    return {
        **task,
        **_interval((airflow and airflow.dag_run) or DagRun(), nominal),
        **_above(own, added),
        "started": utc(started),
    }


def _task(airflow: AirflowFacet | None, of: Try | None) -> dict[str, Any]:
    facet = airflow or AirflowFacet()
    instance = facet.task_instance
    task_id = facet.task.task_id if facet.task else None
    known = {
        "dag_id": facet.dag.dag_id if facet.dag else None,
        "task_id": task_id,
        "dag_run_id": facet.dag_run.run_id if facet.dag_run else None,
        "map_index": _int(instance.map_index) if instance else None,
        "try_number": _int(instance.try_number) if instance else None,
    }
    if of is not None:
        kept = of._asdict()
        return {key: kept[key] if value is None else value for key, value in known.items()}
    if task_id and known["map_index"] is None:
        known["map_index"] = NOT_MAPPED
    return known


def _int(number: int | None) -> int | None:
    return number if number is not None and -_MAX_INT <= number <= _MAX_INT else None


def _interval(dag_run: DagRun, nominal: NominalTime) -> dict[str, Any]:
    return {
        "logical_date": utc(dag_run.logical_date or dag_run.execution_date),
        "data_interval_start": utc(dag_run.data_interval_start or nominal.nominalStartTime),
        "data_interval_end": utc(dag_run.data_interval_end or nominal.nominalEndTime),
    }


def _above(own: RunFacets, added: RunFacets) -> dict[str, Any]:
    parent = own.parent or added.parent
    if parent is None:
        return {}
    root = parent.root and parent.root.run
    return {
        "parent_run_id": parent.run and parent.run.runId,
        "root_run_id": root and root.runId,
    }
