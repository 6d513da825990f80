"""What a job and a run depend on: tasks before it, runs that triggered it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.datahub.lenient import at, items, mapping, text, texts
from airflow_provider_sparklineage.datahub.naming.job_names import JobName, within

if TYPE_CHECKING:
    from airflow_provider_sparklineage.event.document import Event, Facets

MAX_DEPENDENCIES = 500
"""Jobs and runs that are named; a task that joins more of them is rare."""
_IDS = re.compile(r"'([^']+)'")  # Airflow writes lists of ids as Python does: ['a', 'b']


def jobs_before(event: Event, name: JobName) -> list[JobName]:
    """Name the jobs that have to end before this one starts, each once.

    Of a task of Airflow those before it in its DAG, and the one of another DAG that a sensor waits
    for (``airflow`` facet, ``ExternalTaskSensor``); of others those of ``jobDependencies``.
    """
    facets = mapping(at(event, "run", "facets"))
    task = mapping(at(facets, "airflow", "task"))
    found = [
        *(name._replace(job=job) for job in _ids(task.get("upstream_task_ids"))),
        *_waited_for(task, name.orchestrator),
        *(within(name.orchestrator, job) for job in _names(facets)),
    ]
    return list(dict.fromkeys(one for one in found if one != name))[:MAX_DEPENDENCIES]


def runs_before(event: Event) -> list[str]:
    """Give the ids of the runs that triggered this one, each once (``jobDependencies``)."""
    found = (text(at(one, "run", "runId")).strip() for one in _upstream(at(event, "run", "facets")))
    return list(dict.fromkeys(filter(None, found)))[:MAX_DEPENDENCIES]


def _waited_for(task: dict[str, Any], orchestrator: str) -> list[JobName]:
    flow = text(task.get("external_dag_id"))
    ids = [text(task.get("external_task_id")), *_ids(task.get("external_task_ids"))]
    return [JobName(orchestrator, flow, job) for job in ids if flow and job]


def _ids(value: Any) -> list[str]:
    """Read the ids of tasks; in Airflow's facet a list is a text, of a set in no order."""
    return sorted(_IDS.findall(value) if isinstance(value, str) else texts(value))


def _names(facets: Facets) -> list[str]:
    return [name for one in _upstream(facets) if (name := text(at(one, "job", "name")))]


def _upstream(facets: Any) -> list[dict[str, Any]]:
    return items(at(facets, "jobDependencies", "upstream"))
