"""Custom properties of a run: which try of which DAG run, how it ended, what is missing of it.

Names are Airflow's own, which DataHub's Airflow plugin has as well; what people read first has
words of its own: ``error``, ``lineage``, ``missing: …``, ``partitions …``.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import islice
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.datahub.lenient import at, items, mapping, text
from airflow_provider_sparklineage.datahub.runs.missing import missing
from airflow_provider_sparklineage.datahub.values import name_of_property, shown, value_of
from airflow_provider_sparklineage.event.capture_facet import CAPTURE_KEY
from airflow_provider_sparklineage.model.credentials import scrub
from airflow_provider_sparklineage.model.texts import some, truncated

if TYPE_CHECKING:
    from airflow_provider_sparklineage.datahub.subject import Subject

MAX_ERROR = 2000
"""Characters of an error's message; its stack trace is in the log, where ``externalUrl`` leads."""
MAX_ACCESSES = 50
"""Datasets of which a sentence says what was read and written."""
_MAX_TASKS = 30  # that a property names

_OF_RUNS = (
    "dag_id",
    "run_id",
    "run_type",
    "logical_date",
    "run_after",
    "partition_key",
    "triggered_by",
    "triggering_user_name",
    "dag_version_number",
    "dag_bundle_name",
    "dag_bundle_version",
)
_OF_TRIES = ("try_number", "map_index", "rendered_map_index", "pool", "queued_dttm", "note")
_CHECK_KEY = "sparkLineage_partitionCheck"
_ACCESSES = ("read ", "wrote ", "declared ", "expected ")
"""What the keys of the check's sentences begin with: ``wrote revenue`` → ``dt=2024-05-06``."""


def properties(subject: Subject) -> dict[str, str]:
    """Give the custom properties of the event's run."""
    return {
        **_of_airflow(subject),
        **_interval(subject),
        **_of_spark(subject),
        **_tags(subject),
        **_states(subject),
        **_error(subject),
        **_check(subject),
        **missing(subject.run_facets),
    }


def _of_airflow(subject: Subject) -> dict[str, str]:
    task = {"task_id": at(subject.airflow, "task", "task_id")}
    return {
        **shown(mapping(at(subject.airflow, "dagRun")), _OF_RUNS),
        **shown(task, task),
        **shown(mapping(at(subject.airflow, "taskInstance")), _OF_TRIES),
    }


def _interval(subject: Subject) -> dict[str, str]:
    """Give the nominal time: Airflow's data interval."""
    nominal = mapping(subject.run_facets.get("nominalTime"))
    of_airflow = subject.names.orchestrator == "airflow"
    names = ("data_interval_start", "data_interval_end") if of_airflow else _NOMINAL
    found = {name: nominal.get(key) for name, key in zip(names, _NOMINAL, strict=True)}
    return shown(found, names)


_NOMINAL = ("nominalStartTime", "nominalEndTime")


def _of_spark(subject: Subject) -> dict[str, str]:
    facets = subject.run_facets
    ours = mapping(facets.get(CAPTURE_KEY))
    theirs = mapping(facets.get("spark_applicationDetails"))
    engine = mapping(facets.get("processing_engine"))
    of_engine = engine if text(engine.get("name")).lower() == "spark" else {}
    found = {
        "spark_application_id": ours.get("applicationId") or theirs.get("applicationId"),
        "spark_version": ours.get("sparkVersion") or of_engine.get("version"),
        "spark_actions": ours.get("actions"),
        "spark_master": theirs.get("master"),
        "external_query_id": at(facets, "externalQuery", "externalQueryId"),
    }
    return shown(found, found)


def _tags(subject: Subject) -> dict[str, str]:
    """Give the tags of the run: OpenLineage's client adds its version, and users what they like."""
    tags = islice(items(at(subject.run_facets, "tags", "tags")), MAX_ACCESSES)
    found = ((name_of_property(text(one.get("key"))), value_of(one.get("value"))) for one in tags)
    return {key: value for key, value in found if key and value}


def _states(subject: Subject) -> dict[str, str]:
    """Give what became of the tasks of a DAG's run, which need not have sent an event each."""
    states = mapping(at(subject.run_facets, "airflowState", "tasksState"))
    by_state = defaultdict(list)
    for task, state in states.items():
        by_state[text(state) or "none"].append(text(task))
    return {
        name_of_property(f"tasks {state}"): some(sorted(tasks), _MAX_TASKS)
        for state, tasks in sorted(by_state.items())[:MAX_ACCESSES]
    }


def _error(subject: Subject) -> dict[str, str]:
    message = at(subject.run_facets, "errorMessage", "message")
    found = truncated(scrub(text(message, 10 * MAX_ERROR)), MAX_ERROR)
    return {"error": found} if found else {}


def _check(subject: Subject) -> dict[str, str]:
    """Give which partitions were read and written, and whether they are those expected."""
    check = mapping(subject.run_facets.get(_CHECK_KEY))
    accesses = [key for key in check if key.startswith(_ACCESSES)]
    found: dict[str, Any] = {
        "partitions": check.get("status"),
        "partition_summary": check.get("summary"),
    }
    return shown(found, found) | {
        name_of_property(key): value
        for key in accesses[:MAX_ACCESSES]
        if (value := value_of(check[key]))
    }
