"""Describe the DAG as DataFlow and the task as DataJob, for readers without access to Airflow.

The aspects with info, tags and owners are patched: DataHub's own Airflow plugin writes
``dataJobInfo`` with properties of its own, and people add tags and owners. So a tag that is removed
from a DAG stays in DataHub until it is removed there.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import islice
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.datahub import naming
from airflow_provider_sparklineage.datahub.configuration import ENVS
from airflow_provider_sparklineage.datahub.proposals import (
    Proposal,
    add,
    job_edges,
    keyed,
    plain,
    shown,
    stored,
    value_of,
)
from airflow_provider_sparklineage.datahub.subject import dag_page, task_page, web_page
from airflow_provider_sparklineage.event import model
from airflow_provider_sparklineage.event.model import DOCUMENTATION_KEY, read_facet
from airflow_provider_sparklineage.model.credentials import is_secret

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from airflow_provider_sparklineage.datahub.proposals import Json
    from airflow_provider_sparklineage.datahub.subject import Subject


MAX_DESCRIPTION = 64 * 1024
"""The most characters of a description; Airflow's provider sends at most as many bytes."""

_TYPE = {"string": "COMMAND"}
"""The type of a DataJob, as a value of a union."""
_DAG_PROPERTIES = ("fileloc", "timetable_summary", "start_date", "description")
_TASK_PROPERTIES = (
    "operator_class_path",
    "operator_provider_version",
    "trigger_rule",
    "retries",
    "depends_on_past",
    "wait_for_downstream",
    "mapped",
    "deferrable",
    "queue",
    "downstream_task_ids",
    "inlets",
    "outlets",
)
"""Attributes in Airflow's facet that become custom properties of the same names: of a DAG in the
first tuple, of a task in the second."""


def flow(subject: Subject) -> Iterator[Proposal]:
    """Yield the aspects of the DataFlow; none if the event has no job name.

    Every event of a task gives these aspects too, because some schedulers send no events of DAGs.
    """
    if not subject.names.flow:
        return
    fields = {
        "name": subject.names.flow,
        "env": _environment(subject.how.cluster),
        "externalUrl": dag_page(subject),
        "description": _documentation(subject) if subject.is_of_flow else "",
    }
    properties = shown(subject.airflow_values.get("dag", {}), _DAG_PROPERTIES)
    yield Proposal(subject.flow, "dataFlowInfo", _info(fields, properties), is_patch=True)
    yield from _shared_aspects(subject, subject.flow)
    dag = subject.airflow.dag
    of_dag = stored((dag and dag.owner) or "").split(",")
    owner = owners(subject.job_facets) if subject.is_of_flow else owners({}, of_dag)
    yield from _patched(subject.flow, "ownership", owner)


def job(subject: Subject) -> Iterator[Proposal]:
    """Yield the aspects of the DataJob; none if the event has no DataJob."""
    if not subject.has_job:
        return
    source = read_facet(subject.job_facets, "sourceCodeLocation", model.SourceCodeLocation)
    fields = {
        "name": subject.names.job or subject.names.flow,
        "type": _TYPE,
        "flowUrn": subject.flow,
        "env": _environment(subject.how.cluster),
        "externalUrl": task_page(subject) or web_page(source.url),
        "description": _documentation(subject),
    }
    aspect = _info(fields, _task_properties(subject))
    yield Proposal(subject.job, "dataJobInfo", aspect, is_patch=True)
    yield from _shared_aspects(subject, subject.job)
    yield from _patched(subject.job, "ownership", owners(subject.job_facets))


def _shared_aspects(subject: Subject, urn: str) -> Iterator[Proposal]:
    """Yield the aspects that both a flow and a job have: status, platform instance, tags.

    :param urn: URN of the event's flow or job
    """
    yield Proposal(urn, "status", {"removed": False})
    yield from platform_instance(subject, urn)
    yield from _patched(urn, "globalTags", tags(subject.job_facets))


def platform_instance(subject: Subject, urn: str) -> Iterator[Proposal]:
    """Yield the platform instance of a flow, a job or a run, if an instance is configured.

    :param urn: URN of the event's flow, job or run
    """
    if instance := subject.how.platform_instance:
        platform = subject.names.orchestrator
        aspect = {
            "platform": naming.data_platform_urn(platform),
            "instance": naming.platform_instance_urn(platform, instance),
        }
        yield Proposal(urn, "dataPlatformInstance", aspect)


def _info(fields: Mapping[str, Any], properties: Mapping[str, str]) -> list[Json]:
    """Give the operations of a patch of ``dataFlowInfo`` or ``dataJobInfo``.

    :param fields: values of the aspect's fields, by name; empty values are left out
    :param properties: the custom properties in the aspect
    """
    return [
        *(add(key, value=value) for key, value in fields.items() if value),
        *(add("customProperties", key, value=value) for key, value in properties.items()),
    ]


def _patched(urn: str, aspect_name: str, patch: Json) -> Iterator[Proposal]:
    if patch["patch"]:
        yield Proposal(urn, aspect_name, patch, is_patch=True)


def _environment(cluster: str) -> str:
    """Give the cluster as DataHub's environment; empty if no environment has the cluster's name."""
    return cluster.upper() if cluster.upper() in ENVS else ""


def _documentation(subject: Subject) -> str:
    documentation = read_facet(subject.job_facets, DOCUMENTATION_KEY, model.Documentation)
    return plain(documentation.description, MAX_DESCRIPTION)


def _task_properties(subject: Subject) -> dict[str, str]:
    group = subject.task.task_group
    more: dict[str, model.Value] = {
        "task_group": group.group_id if group else None,
        "namespace": subject.event.job.namespace,
    }
    return shown(subject.airflow_values.get("task", {}), _TASK_PROPERTIES) | shown(more)


# Patches of owners and tags leave alone the entries that people have added in DataHub. A patch
# identifies an entry by the keys that every entry has. The SDK's builders add ``typeUrn`` and
# ``attribution`` to these, and servers from before April 2026 fail at a stored entry without those
# two (``ArrayMergingTemplate.arrayFieldToMap``), as nearly all stored entries are. The keys of an
# entry are set one by one, so that other values of a stored entry stay.

MAX_ENTRIES = 100
"""The most owners, or tags, of one entity."""
_OWNER_KEYS = ("owner", "type")
_NOBODY = "airflow"
"""The owner that Airflow gives to a task without a named owner (``default_owner``)."""
_ENTITIES_BY_PREFIX = {"user": "corpuser", "team": "corpGroup", "group": "corpGroup"}
"""Prefixes of names in OpenLineage (``team:data``), with the types of DataHub's entities."""
_OWNER_TYPES = frozenset(
    {"TECHNICAL_OWNER", "BUSINESS_OWNER", "DATA_STEWARD", "DATAOWNER", "PRODUCER"}
)
_DEFAULT_OWNER_TYPE = "TECHNICAL_OWNER"
"""Airflow's owners have no type. DataHub's plugin writes DEVELOPER, which DataHub deprecates."""


def owners(facets: model.Facets, names: Iterable[str] = ()) -> Json:
    """Give the patch of ``ownership`` with the owners in the job's facet, and other owners.

    :param facets: the facets of the job
    :param names: the names of the other owners, from Airflow; Airflow's default owner is left out
    """
    facet = read_facet(facets, "ownership", model.Ownership)
    typed = [(plain(one.name).strip(), one.type.upper()) for one in facet.owners]
    typed += [(name.strip(), "") for name in names]
    urns = dict.fromkeys(
        (_owner_urn(name), type_ if type_ in _OWNER_TYPES else _DEFAULT_OWNER_TYPE)
        for name, type_ in typed[:MAX_ENTRIES]
        if name not in ("", _NOBODY)
    )
    operations = [
        add("owners", *entry, key, value=value)
        for entry in urns
        for key, value in zip(_OWNER_KEYS, entry, strict=True)
    ]
    return keyed("owners", _OWNER_KEYS, operations)


def tags(facets: model.Facets) -> Json:
    """Give the patch of ``globalTags`` with the tags in the job's facet."""
    urns = dict.fromkeys(_tag_urns(facets))
    return keyed("tags", ["tag"], [add("tags", tag, "tag", value=tag) for tag in urns])


def _owner_urn(name: str) -> str:
    prefix, _, rest = name.partition(":")
    kind = _ENTITIES_BY_PREFIX.get(prefix) if rest else None
    before = f"urn:li:{kind or 'corpuser'}:"
    return before + naming.fitted(rest if kind else name, before, "")


def _tag_urns(facets: model.Facets) -> Iterator[str]:
    for one in read_facet(facets, "tags", model.Tags).tags[:MAX_ENTRIES]:
        key, value = plain(one.key).strip(), value_of(one.value).strip()
        is_key_all = value in ("", "true", key) or is_secret(key)
        if name := key if is_key_all else f"{key}:{value}":
            yield "urn:li:tag:" + naming.fitted(name, "urn:li:tag:", "")


# Airflow does not run an ``EmptyOperator``, and so no event reports that task. The event of a DAG's
# start lists such tasks (job facet ``airflow``, ``emits_ol_events``). Without DataJobs for them, a
# task that comes after such a task would depend on a job that DataHub does not have.

MAX_TASKS = 500
"""The most tasks of one DAG that get a DataJob without sending events; more are left out."""
_JOB_EDGES = "inputDatajobEdges"


def silent_jobs(subject: Subject) -> Iterator[Proposal]:
    """Yield the aspects of DataJobs for those tasks of a DAG that send no events.

    The aspects of such a task also name the tasks before it. Only an event of the DAG's run lists
    the tasks; for any other event nothing is yielded.
    """
    if not subject.is_of_flow:
        return
    facet = read_facet(subject.job_facets, "airflow", model.AirflowJob)
    tasks = {stored(task): details for task, details in facet.tasks.items() if task}
    before = _tasks_before(tasks)
    silent = (task for task, details in tasks.items() if not details.emits_ol_events)
    for task in islice(silent, MAX_TASKS):
        urn = _silent_job_urn(subject, task)
        yield Proposal(urn, "dataJobInfo", _silent_info(subject, task, tasks[task]), is_patch=True)
        yield Proposal(urn, "status", {"removed": False})
        urns = [_silent_job_urn(subject, one) for one in before[task]]
        if edges := [add(_JOB_EDGES, one, value={"destinationUrn": one}) for one in urns]:
            patch = job_edges([_JOB_EDGES], edges)
            yield Proposal(urn, "dataJobInputOutput", patch, is_patch=True)


def _tasks_before(tasks: Mapping[str, model.TaskOfDag]) -> dict[str, list[str]]:
    before = defaultdict(list)
    for task, details in tasks.items():
        for after in filter(None, details.downstream_task_ids):
            before[stored(after)].append(task)
    return before


def _silent_info(subject: Subject, task: str, details: model.TaskOfDag) -> list[Json]:
    properties: dict[str, model.Value] = {
        "operator_class_path": details.operator,
        "task_group": details.task_group,
        "downstream_task_ids": ", ".join(map(stored, filter(None, details.downstream_task_ids))),
    }
    return _info({"name": task, "type": _TYPE, "flowUrn": subject.flow}, shown(properties))


def _silent_job_urn(subject: Subject, task: str) -> str:
    return subject.names._replace(job=task).job_urn(subject.how)
