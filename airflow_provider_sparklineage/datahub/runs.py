"""Describe runs as DataProcessInstances: a run of a DAG, an application or an action, or a try.

The aspects of a run name its job, its result, and the datasets that the run read and wrote. Custom
properties have the other facts that people look for in a run: above all the gaps in its lineage.

The id of a DataProcessInstance is OpenLineage's run id, as in DataHub's OpenLineage endpoint: each
try is a run with a result of its own, and the ``parent`` facet names the parent run by that id
alone. DataHub's own Airflow plugin makes the id by an MD5 of DAG, task and run: all tries, and all
instances of a mapped task, have the same id. The plugin's id of a DAG's run is the same for all
DAGs with a run of that name.

DataHub stores time-series aspects by run, time and ``messageId``, so that sending an event again
changes nothing.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import islice
from typing import TYPE_CHECKING, TypeGuard

from airflow_provider_sparklineage.datahub import jobs, naming
from airflow_provider_sparklineage.datahub.partitions import Access, accesses, expectation
from airflow_provider_sparklineage.datahub.proposals import (
    ACTOR,
    Json,
    Proposal,
    name_of_property,
    plain,
    shown,
    stored,
    value_of,
)
from airflow_provider_sparklineage.datahub.subject import (
    millis,
    task_instance_page,
    web_page,
)
from airflow_provider_sparklineage.event import model
from airflow_provider_sparklineage.model.credentials import scrub
from airflow_provider_sparklineage.model.datasets import short_names
from airflow_provider_sparklineage.model.terms import Side
from airflow_provider_sparklineage.model.texts import some, truncated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_sparklineage.datahub.subject import Subject


_RESULTS_BY_STATE = {"COMPLETE": "SUCCESS", "FAIL": "FAILURE", "ABORT": "FAILURE"}
"""The ``RunResultType`` of an event's type. Airflow sends COMPLETE for a skipped task, too; no
event shows that a task was skipped."""
_STATUS_BY_STATE = {"START": "STARTED", "RUNNING": "STARTED"} | dict.fromkeys(
    _RESULTS_BY_STATE, "COMPLETE"
)
"""The ``DataProcessRunStatus`` of an event's type; other types do not change the status."""
_DESCRIBED_STATES = frozenset({"START", *_RESULTS_BY_STATE})
_AD_HOC_TYPES = frozenset({"manual", "backfill", "operator_triggered"})
"""Types of DAG runs that were not started by a schedule."""
_MAX_ATTEMPT = 2**31 - 1
_MAX_DURATION_S = 2**53


def run(subject: Subject) -> Iterator[Proposal]:
    """Yield the aspects of the event's run: its properties, its job and parent, its status.

    Nothing is yielded if the event has no DataProcessInstance.
    """
    if not subject.has_run:
        return
    if subject.state in _DESCRIBED_STATES:
        # Few events at the end of a run have its start; the event before has stored it.
        keeps = "created" if started(subject) is None else ""
        properties = _instance_properties(subject)
        yield Proposal(subject.run, "dataProcessInstanceProperties", properties, keeps=keeps)
        yield Proposal(subject.run, "dataProcessInstanceRelationships", _relationships(subject))
        yield from jobs.platform_instance(subject, subject.run)
    if status := _STATUS_BY_STATE.get(subject.state):
        yield Proposal(subject.run, "dataProcessInstanceRunEvent", _run_event(subject, status))


def _instance_properties(subject: Subject) -> Json:
    # The page in Spark's history server comes before that of the driver, because it outlives it.
    details = _spark_application(subject)
    pages = details.historyUrl, details.proxyUrl
    url = task_instance_page(subject) or next(filter(None, map(web_page, pages)), "")
    kind = _process_type(subject)
    return {
        "name": run_name(subject),
        "created": {"time": started(subject) or subject.time, "actor": ACTOR},
        "customProperties": run_properties(subject),
        **({"externalUrl": url} if url else {}),
        **({"type": kind} if kind else {}),
    }


def run_name(subject: Subject) -> str:
    """Name the event's run: ``scheduled__2024-05-06T00:00:00+00:00, map index 3, try 2``.

    Without a run of a DAG, the name is that of the job or the flow.
    """
    run_id = plain(subject.dag_run.run_id or "")
    if not run_id:
        return subject.names.job or subject.names.flow
    index, attempt = subject.task_instance.map_index, subject.task_instance.try_number
    parts = [run_id]
    parts += [f"map index {index}"] if _is_count(index) else []
    parts += [f"try {attempt}"] if _is_count(attempt) else []
    return ", ".join(parts)


def _is_count(number: int | None) -> TypeGuard[int]:
    return number is not None and 0 <= number < 2**63


def started(subject: Subject) -> int | None:
    """Give the start of the run, in ms since the epoch; None if the event does not have it.

    Airflow's event at the end of a DAG run has the time of the run's start. The event at the end of
    a task has only a duration, which is subtracted from the time of the event.
    """
    if subject.state == "START":
        return subject.time
    if subject.is_of_flow:
        return millis(subject.dag_run.start_date)
    seconds = subject.task_instance.duration
    if not subject.time or seconds is None or not 0 <= seconds < _MAX_DURATION_S:
        return None
    return subject.time - int(seconds * 1000)


def _relationships(subject: Subject) -> Json:
    parent = subject.parent_run
    return {
        "parentTemplate": subject.flow if subject.is_of_flow else subject.job,
        **({"parentInstance": parent} if parent else {}),
        "upstreamInstances": subject.runs_before,
    }


def _run_event(subject: Subject, status: str) -> Json:
    attempt = subject.task_instance.try_number
    begun = started(subject)
    event: Json = {
        "timestampMillis": subject.time,
        "messageId": f"{subject.run}-{subject.state}",
        "status": status,
    }
    if attempt is not None and 0 <= attempt <= _MAX_ATTEMPT:
        event["attempt"] = attempt
    if result := _RESULTS_BY_STATE.get(subject.state):
        event["result"] = {"type": result, "nativeResultType": subject.state}
        if begun is not None and subject.time is not None and subject.time >= begun:
            event["durationMillis"] = subject.time - begun
    return event


def _process_type(subject: Subject) -> str:
    """Give the ``DataProcessType``; empty if the job is not streaming and its DAG run has no type.

    A streaming job has the type ``STREAMING``. The type of any other job is ``BATCH_AD_HOC`` or
    ``BATCH_SCHEDULED``, by the type of the DAG run.
    """
    if model.read_facet(subject.job_facets, "jobType", model.JobType).processingType == "STREAMING":
        return "STREAMING"
    run_type = subject.dag_run.run_type
    if not run_type:
        return ""
    return "BATCH_AD_HOC" if run_type in _AD_HOC_TYPES else "BATCH_SCHEDULED"


def _spark_application(subject: Subject) -> model.SparkApplication:
    return model.read_facet(subject.run_facets, "spark_applicationDetails", model.SparkApplication)


# Custom properties of a run have Airflow's own names, as in DataHub's Airflow plugin. The
# properties that people read first have names of this package: ``error``, ``lineage``,
# ``missing: …``, ``partitions …``.

MAX_ERROR = 2000
"""The most characters of an error's message; ``externalUrl`` leads to the log, which has the stack
trace."""
MAX_ACCESSES = 50
"""The most properties of a run that are of one kind; the kinds are: sentences about datasets; tags;
states of tasks."""
_MAX_TASKS = 30  # the most tasks that a property names

_DAG_RUN_PROPERTIES = (
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
_TRY_PROPERTIES = ("try_number", "map_index", "rendered_map_index", "pool", "queued_dttm", "note")


def run_properties(subject: Subject) -> dict[str, str]:
    """Give the custom properties of the event's run."""
    return {
        **_airflow_properties(subject),
        **_nominal_time(subject),
        **_spark_properties(subject),
        **_run_tags(subject),
        **_task_states(subject),
        **_error(subject),
        **_partition_check(subject),
        **missing(subject.run_facets),
    }


def _airflow_properties(subject: Subject) -> dict[str, str]:
    values = subject.airflow_values
    return {
        **shown(values.get("dagRun", {}), _DAG_RUN_PROPERTIES),
        **shown(values.get("task", {}), ("task_id",)),
        **shown(values.get("taskInstance", {}), _TRY_PROPERTIES),
    }


def _nominal_time(subject: Subject) -> dict[str, str]:
    """Give the start and end of the nominal time as properties.

    The properties of an Airflow run are ``data_interval_start`` and ``data_interval_end``.
    """
    nominal = model.read_facet(subject.run_facets, "nominalTime", model.NominalTime)
    start, end = nominal.nominalStartTime, nominal.nominalEndTime
    if subject.names.orchestrator == naming.AIRFLOW:
        return shown({"data_interval_start": start, "data_interval_end": end})
    return shown({"nominalStartTime": start, "nominalEndTime": end})


def _spark_properties(subject: Subject) -> dict[str, str]:
    facets, capture = subject.run_facets, subject.capture
    application = _spark_application(subject)
    engine = model.read_facet(facets, "processing_engine", model.Engine)
    version = engine.version if engine.name.lower() == "spark" else None
    query = model.read_facet(facets, "externalQuery", model.ExternalQuery)
    return shown(
        {
            "spark_application_id": capture.applicationId or application.applicationId,
            "spark_version": capture.sparkVersion or version,
            "spark_actions": capture.actions,
            "spark_master": application.master,
            "external_query_id": query.externalQueryId,
        }
    )


def _run_tags(subject: Subject) -> dict[str, str]:
    """Give the tags of the run by key: those of users, and the version of OpenLineage's client."""
    tags = model.read_facet(subject.run_facets, "tags", model.Tags).tags[:MAX_ACCESSES]
    texts = ((name_of_property(one.key), value_of(one.value)) for one in tags)
    return {key: value for key, value in texts if key and value}


def _task_states(subject: Subject) -> dict[str, str]:
    """Give the tasks of a DAG's run by their state, including tasks that sent no event.

    :return: e.g. ``{"tasks failed": "extract, load"}``
    """
    states = model.read_facet(subject.run_facets, "airflowState", model.TaskStates).tasksState
    by_state = defaultdict(list)
    for task, state in states.items():
        by_state[stored(state or "") or "none"].append(stored(task))
    return {
        name_of_property(f"tasks {state}"): some(sorted(tasks), _MAX_TASKS)
        for state, tasks in sorted(by_state.items())[:MAX_ACCESSES]
    }


def _error(subject: Subject) -> dict[str, str]:
    message = model.read_facet(subject.run_facets, "errorMessage", model.ErrorMessage).message
    text = truncated(scrub(stored(message, 10 * MAX_ERROR)), MAX_ERROR)
    return {"error": text} if text else {}


def _partition_check(subject: Subject) -> dict[str, str]:
    """Give the accessed partitions, and the result of their comparison to the expected ones.

    :return: the status and the summary of the check, and a property for each dataset, e.g.
        ``{"wrote revenue": "dt=2024-05-06"}``; outputs come first
    """
    check = subject.check
    entries = [(side, one) for side in (Side.WRITE, Side.READ) for one in check.of_side(side)]
    names = short_names(one.dataset.dataset_name for _, one in entries)
    named = ((f"{one.how(side)} {names[one.dataset.dataset_name]}", one) for side, one in entries)
    return shown({"partitions": check.status, "partition_summary": check.summary}) | {
        name_of_property(key): value
        for key, one in islice(named, MAX_ACCESSES)
        if (value := value_of(one.part))
    }


# A run has a property for each kind of gap in its lineage, so that people see the gap, and can
# search for runs by the gap's code.
#
# =============================  =================================================================
# property                       its value
# =============================  =================================================================
# ``lineage``                    ``complete``, or e.g. ``incomplete: 12 things are missing``
# ``missing: no_events``         the sentences of the degradations that have this code, one per
#                                line: at most ``MAX_SENTENCES``, and the number of the others
# =============================  =================================================================
#
# The codes are those of the run facet ``sparkLineage_capture`` (docs/operator.md). A run whose
# event has no such facet has neither property: its lineage was not checked.

MAX_SENTENCES = 5
"""The most sentences that a property has; the other sentences are only in the event."""
MAX_CODES = 60
"""The most codes of degradations that become properties of a run. This package has fewer codes, but
other writers may have more."""
_MAX_SENTENCE = 400  # DataHub shows about five sentences of this length in a property


def missing(facets: model.Facets) -> dict[str, str]:
    """Give the properties that describe the gaps in a run's lineage.

    :param facets: the facets of the run
    :return: ``lineage``, a summary, and ``missing: CODE`` for each code of the degradations; {} if
        the run has no facet ``sparkLineage_capture``
    """
    if model.CAPTURE_KEY not in facets:
        return {}
    capture = model.read_facet(facets, model.CAPTURE_KEY, model.Capture)
    sentences = _sentences_by_code(capture)
    # If the facet does not list all degradations, it also has their numbers.
    counted = capture.degradationCounts or {}
    counts = {code: len(texts) for code, texts in sentences.items()}
    counts |= {stored(code): count for code, count in counted.items() if count}
    if not counts:
        return {"lineage": "complete"}
    listed = dict(list(counts.items())[:MAX_CODES])
    total = sum(counts.values())
    things = "thing is" if total == 1 else "things are"
    return {"lineage": f"incomplete: {total} {things} missing"} | {
        name_of_property(f"missing: {code}"): _listed_sentences(sentences[code], count)
        for code, count in listed.items()
    }


def _sentences_by_code(capture: model.Capture) -> dict[str, list[str]]:
    sentences = defaultdict(list)
    for one in capture.degradations or ():
        if one.code:
            message = scrub(stored(one.message or ""))
            sentences[stored(one.code)].append(truncated(message, _MAX_SENTENCE))
    return sentences


def _listed_sentences(sentences: list[str], count: int) -> str:
    lines = list(filter(None, sentences[:MAX_SENTENCES]))
    more = count - len(lines)
    if more > 0:
        lines.append(f"… and {more} more" if lines else str(count))
    return "\n".join(lines)


# ``dataProcessInstanceInput`` and ``…Output`` name each dataset twice: in ``inputs``, which all
# versions of DataHub's pages list, and as an edge, whose properties describe the accessed part.
# Only this run writes these two aspects, so they are written as a whole.


def run_datasets(subject: Subject) -> Iterator[Proposal]:
    """Yield an aspect with the inputs of the event's run, and an aspect with its outputs.

    Nothing is yielded before the run has ended.

    After a run that failed, the aspects have only the datasets whose access the listener or the
    observer has seen.
    """
    if not subject.has_ended or not subject.has_run:
        return
    for side, of in ((Side.READ, "input"), (Side.WRITE, "output")):
        accessed: dict[str, dict[str, str]] = {}
        for access in accesses(subject, side):
            if _is_of_run(access, subject):
                known = accessed.get(access.dataset.urn, {})
                joined = _joined_properties(known, _access_properties(access))
                accessed[access.dataset.urn] = joined
        if accessed:
            edges = [_dataset_edge(*one) for one in accessed.items()]
            aspect = {f"{of}s": list(accessed), f"{of}Edges": edges}
            yield Proposal(subject.run, f"dataProcessInstance{of.capitalize()}", aspect)


def _is_of_run(access: Access, subject: Subject) -> bool:
    is_claimed = subject.state == "COMPLETE" and not (access.seen and access.seen.failed)
    return access.is_of_this_run or is_claimed


def _dataset_edge(urn: str, properties: dict[str, str]) -> Json:
    return {"destinationUrn": urn, **({"properties": properties} if properties else {})}


def _joined_properties(before: dict[str, str], properties: dict[str, str]) -> dict[str, str]:
    """Join the properties of one dataset that the event has twice: as files, and as a table.

    Two different values of one property are joined by a comma.

    :param before: those of the earlier entries of the dataset; {} for its first entry
    :param properties: those of its next entry
    """
    both = before | properties
    for key in before.keys() & properties.keys():
        if before[key] != properties[key]:
            both[key] = stored(f"{before[key]}, {properties[key]}")
    return both


def _access_properties(access: Access) -> dict[str, str]:
    witness = stored((access.seen and access.seen.witness) or "")
    part = {
        "partitions": access.summary,
        "removed": ", ".join(one.partition for one in access.removed(1)),
        "condition": access.condition if access.condition != access.summary else "",
        "lifecycle": access.dataset.lifecycle,
        "reported by": witness or ("" if access.is_of_this_run else "nobody, but the last run"),
    }
    counts: dict[str, model.Value] = {
        "rows": access.statistics.rowCount,
        "bytes": access.statistics.size,
        "files": access.statistics.fileCount,
        "partitions only planned": access.seen.planned if access.seen else None,
    }
    properties = {**part, **shown(counts), **expectation(access)}
    return {key: value for key, value in properties.items() if value}
