"""Tasks that send no event: Airflow does not run an ``EmptyOperator``, and so nobody reports it.

The event of a DAG's start lists them (job facet ``airflow``, ``emits_ol_events``). Without them the
tasks after such a one would depend on a job that DataHub does not have.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import islice
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.datahub.lenient import at, mapping, text, texts
from airflow_provider_sparklineage.datahub.patches import add
from airflow_provider_sparklineage.datahub.proposals import Proposal
from airflow_provider_sparklineage.datahub.values import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_sparklineage.datahub.proposals import Json
    from airflow_provider_sparklineage.datahub.subject import Subject

MAX_TASKS = 500
"""Tasks of a DAG that send no events; of more the others are left out."""
_EDGES = "inputDatajobEdges"


def silent_jobs(subject: Subject) -> Iterator[Proposal]:
    """Give the DataJobs of a DAG that send no event of their own, and what is before each."""
    if not subject.is_of_flow:
        return
    tasks = mapping(at(subject.job_facets, "airflow", "tasks"))
    before = _before(tasks)
    silent = (task for task in tasks if at(tasks, task, "emits_ol_events") is False)
    for task in islice(filter(text, silent), MAX_TASKS):
        urn = _urn(subject, task)
        yield Proposal(urn, "dataJobInfo", _info(subject, task, tasks[task]), is_patch=True)
        yield Proposal(urn, "status", {"removed": False})
        if edges := [_urn(subject, one) for one in before[task]]:
            yield Proposal(urn, "dataJobInputOutput", _after(edges), is_patch=True)


def _before(tasks: dict[str, Any]) -> dict[str, list[str]]:
    found = defaultdict(list)
    for task, details in tasks.items():
        if not text(task):
            continue
        for after in texts(at(details, "downstream_task_ids")):
            found[after].append(text(task))
    return found


def _info(subject: Subject, task: str, details: Json) -> list[Json]:
    properties = {
        "operator_class_path": details.get("operator"),
        "task_group": details.get("task_group"),
        "downstream_task_ids": ", ".join(texts(details.get("downstream_task_ids"))),
    }
    return [
        add("name", value=text(task)),
        add("type", value={"string": "COMMAND"}),
        add("flowUrn", value=subject.flow),
        *(
            add("customProperties", key, value=value)
            for key, value in shown(properties, properties).items()
        ),
    ]


def _after(urns: list[str]) -> Json:
    """Add what is before a job; DataHub fills the lists that it requires if they are named."""
    edges = (add(_EDGES, urn, value={"destinationUrn": urn}) for urn in urns)
    keys = {"inputDatasets": [], "outputDatasets": [], _EDGES: ["destinationUrn"]}
    return {"arrayPrimaryKeys": keys, "patch": list(edges)}


def _urn(subject: Subject, task: str) -> str:
    return subject.names._replace(job=text(task)).job_urn(subject.how)
