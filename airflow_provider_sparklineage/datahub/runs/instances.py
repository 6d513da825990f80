"""DataProcessInstance: a try of a task, a run of a DAG, of an application, of an action.

Its id is OpenLineage's run id, as in DataHub's OpenLineage endpoint: each try is a run with a
result of its own, and the ``parent`` facet names the run above it by that id alone. DataHub's own
Airflow plugin makes one of an MD5 of DAG, task and run, in which all tries, and all instances of a
mapped task, are one; of a DAG's run it is the same for every DAG that has a run of that id.

Time-series aspects are stored by run, time and ``messageId``: an event that is sent again changes
nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.datahub.audit import ACTOR
from airflow_provider_sparklineage.datahub.lenient import at, mapping, millis, number, text
from airflow_provider_sparklineage.datahub.naming import urns
from airflow_provider_sparklineage.datahub.proposals import Proposal
from airflow_provider_sparklineage.datahub.runs import airflow_pages, jobs
from airflow_provider_sparklineage.datahub.runs.dependencies import runs_before
from airflow_provider_sparklineage.datahub.runs.run_properties import properties
from airflow_provider_sparklineage.datahub.values import plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_sparklineage.datahub.proposals import Json
    from airflow_provider_sparklineage.datahub.subject import Subject


_RESULTS = {"COMPLETE": "SUCCESS", "FAIL": "FAILURE", "ABORT": "FAILURE"}
"""``RunResultType``; that Airflow skipped a task is in no event of that task: it completes."""
_STATUSES = {"START": "STARTED", "RUNNING": "STARTED"} | dict.fromkeys(_RESULTS, "COMPLETE")
"""``DataProcessRunStatus``; an event of another type changes nothing of it."""
_DESCRIBED = frozenset({"START", *_RESULTS})
_AD_HOC = frozenset({"manual", "backfill", "operator_triggered"})
"""Types of DAG runs that no schedule has begun."""
_MAX_ATTEMPT = 2**31 - 1


def run(subject: Subject) -> Iterator[Proposal]:
    """Give the event's run: what it is, where it belongs, and that it starts or how it ended."""
    if not subject.has_run:
        return
    if subject.state in _DESCRIBED:
        yield Proposal(subject.run, "dataProcessInstanceProperties", _properties(subject))
        yield Proposal(subject.run, "dataProcessInstanceRelationships", _relationships(subject))
        yield from jobs.platform_instance(subject, subject.run)
    if status := _STATUSES.get(subject.state):
        yield Proposal(subject.run, "dataProcessInstanceRunEvent", _run_event(subject, status))


def _properties(subject: Subject) -> Json:
    url = airflow_pages.task_instance(subject) or _spark_page(subject)
    kind = _kind(subject)
    return {
        "name": name(subject),
        "created": {"time": started(subject) or subject.time, "actor": ACTOR},
        "customProperties": properties(subject),
        **({"externalUrl": url} if url else {}),
        **({"type": kind} if kind else {}),
    }


def name(subject: Subject) -> str:
    """Name a run for people: ``scheduled__2024-05-06T00:00:00+00:00, map index 3, try 2``."""
    attempt = mapping(at(subject.airflow, "taskInstance"))
    run_id = plain(at(subject.airflow, "dagRun", "run_id"))
    if not run_id:
        return subject.names.job or subject.names.flow
    index, number_of_try = number(attempt.get("map_index")), number(attempt.get("try_number"))
    parts = [run_id]
    parts += [f"map index {index}"] if index is not None else []
    parts += [f"try {number_of_try}"] if number_of_try is not None else []
    return ", ".join(parts)


def started(subject: Subject) -> int | None:
    """Give when the run started, in ms since the epoch; None if its event does not know.

    Airflow's events of a task's end have no time of its start, those of a DAG's run have.
    """
    if subject.state == "START":
        return subject.time
    if subject.is_of_flow:
        return millis(at(subject.airflow, "dagRun", "start_date"))
    duration = number(_thousandfold(at(subject.airflow, "taskInstance", "duration")))
    return subject.time - duration if subject.time and duration is not None else None


def _thousandfold(seconds: Any) -> Any:
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    return seconds * 1000 // 1 if is_number else None


def _relationships(subject: Subject) -> Json:
    parent = subject.parent_run
    before = runs_before(subject.event)
    return {
        "parentTemplate": subject.flow if subject.is_of_flow else subject.job,
        **({"parentInstance": parent} if parent else {}),
        "upstreamInstances": [urns.process_instance(run_id) for run_id in before],
    }


def _run_event(subject: Subject, status: str) -> Json:
    attempt = number(at(subject.airflow, "taskInstance", "try_number"))
    begun = started(subject)
    event: Json = {
        "timestampMillis": subject.time,
        "messageId": f"{subject.run}-{subject.state}",
        "status": status,
    }
    if attempt is not None and attempt <= _MAX_ATTEMPT:
        event["attempt"] = attempt
    if result := _RESULTS.get(subject.state):
        event["result"] = {"type": result, "nativeResultType": subject.state}
        if begun is not None and subject.time is not None and subject.time >= begun:
            event["durationMillis"] = subject.time - begun
    return event


def _kind(subject: Subject) -> str:
    """Give the ``DataProcessType``; empty if nobody knows what has begun the run."""
    if at(subject.job_facets, "jobType", "processingType") == "STREAMING":
        return "STREAMING"
    run_type = text(at(subject.airflow, "dagRun", "run_type"))
    if not run_type:
        return ""
    return "BATCH_AD_HOC" if run_type in _AD_HOC else "BATCH_SCHEDULED"


def _spark_page(subject: Subject) -> str:
    """Give the page of an application's history, which outlives the driver's own."""
    details = mapping(subject.run_facets.get("spark_applicationDetails"))
    pages = (airflow_pages.page(details.get(key)) for key in ("historyUrl", "proxyUrl"))
    return next(filter(None, pages), "")
