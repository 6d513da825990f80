"""DataFlow and DataJob: the DAG and its task, as whoever has no Airflow at hand wants to see them.

All but ``status`` is patched: DataHub's own Airflow plugin writes ``dataJobInfo`` with properties
of its own, and people add tags and owners. What a DAG has no more, such as a tag,
therefore stays in DataHub until somebody removes it there.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sparklineage.datahub.lenient import at, mapping, text
from airflow_provider_sparklineage.datahub.naming import urns
from airflow_provider_sparklineage.datahub.patches import add
from airflow_provider_sparklineage.datahub.proposals import Proposal
from airflow_provider_sparklineage.datahub.runs import airflow_pages
from airflow_provider_sparklineage.datahub.runs.people import owners, tags
from airflow_provider_sparklineage.datahub.values import plain, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from airflow_provider_sparklineage.datahub.proposals import Json
    from airflow_provider_sparklineage.datahub.subject import Subject

MAX_DESCRIPTION = 64 * 1024
"""Characters of a documentation; Airflow's provider sends as many bytes."""

_ENVIRONMENT = re.compile(
    r"DEV|TEST|QA|UAT|EI|PRE|STG|NON_PROD|PROD|CORP|RVW|PRD|TST|SIT|SBX|SANDBOX|CERT"
)
"""``FabricType``."""
_OF_DAGS = ("fileloc", "timetable_summary", "start_date", "description")
_OF_TASKS = (
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
"""What is shown of a DAG and a task: attributes of Airflow, by the names that it has for them."""


class _Info(NamedTuple):
    """What an entity's info aspect has."""

    urn: str
    aspect_name: str
    name: str
    url: str
    description: str
    properties: Mapping[str, str]
    more: Json


def flow(subject: Subject) -> Iterator[Proposal]:
    """Give the DataFlow: every event of a task has it, for schedulers that send none of DAGs."""
    if not subject.names.flow:
        return iter(())
    dag = mapping(at(subject.airflow, "dag"))
    info = _Info(
        subject.flow,
        "dataFlowInfo",
        subject.names.flow,
        airflow_pages.dag(subject),
        _documentation(subject) if subject.is_of_flow else "",
        shown(dag, _OF_DAGS),
        {},
    )
    of_dag = text(dag.get("owner")).split(",")
    owner = owners(subject.job_facets) if subject.is_of_flow else owners({}, of_dag)
    return chain(_entity(subject, info), _patched(subject.flow, "ownership", owner))


def job(subject: Subject) -> Iterator[Proposal]:
    """Give the DataJob, if the event is of one."""
    if not subject.has_job:
        return iter(())
    info = _Info(
        subject.job,
        "dataJobInfo",
        subject.names.job or subject.names.flow,
        airflow_pages.task(subject) or _source(subject),
        _documentation(subject),
        _task_properties(subject),
        {"type": {"string": "COMMAND"}, "flowUrn": subject.flow},
    )
    owner = owners(subject.job_facets)
    return chain(_entity(subject, info), _patched(subject.job, "ownership", owner))


def _entity(subject: Subject, info: _Info) -> Iterator[Proposal]:
    yield Proposal(info.urn, info.aspect_name, _operations(subject, info), is_patch=True)
    yield Proposal(info.urn, "status", {"removed": False})
    yield from platform_instance(subject, info.urn)
    yield from _patched(info.urn, "globalTags", tags(subject.job_facets))


def platform_instance(subject: Subject, urn: str) -> Iterator[Proposal]:
    """Name the instance of the orchestrator, if there are several."""
    if instance := subject.how.platform_instance:
        platform = subject.names.orchestrator
        found = {
            "platform": urns.data_platform(platform),
            "instance": urns.platform_instance(platform, instance),
        }
        yield Proposal(urn, "dataPlatformInstance", found)


def _operations(subject: Subject, info: _Info) -> list[Json]:
    fields = {
        "name": info.name,
        **info.more,
        "env": _environment(subject.how.cluster),
        "externalUrl": info.url,
        "description": info.description,
    }
    properties = info.properties.items()
    return [
        *(add(key, value=value) for key, value in fields.items() if value),
        *(add("customProperties", key, value=value) for key, value in properties),
    ]


def _patched(urn: str, aspect_name: str, patch: Json) -> Iterator[Proposal]:
    if patch["patch"]:
        yield Proposal(urn, aspect_name, patch, is_patch=True)


def _environment(cluster: str) -> str:
    """Give the cluster as an environment, if it is one of those that DataHub knows."""
    return cluster.upper() if _ENVIRONMENT.fullmatch(cluster.upper()) else ""


def _documentation(subject: Subject) -> str:
    return plain(at(subject.job_facets, "documentation", "description"), MAX_DESCRIPTION)


def _task_properties(subject: Subject) -> dict[str, str]:
    task = mapping(at(subject.airflow, "task"))
    more: dict[str, Any] = {
        "task_group": at(task, "task_group", "group_id"),
        "namespace": at(subject.event, "job", "namespace"),
    }
    return shown({**task, **more}, (*_OF_TASKS, *more))


def _source(subject: Subject) -> str:
    return airflow_pages.page(at(subject.job_facets, "sourceCodeLocation", "url"))
