"""What DataHub has of a job: ``dataJobInputOutput``, which is the job's own.

A run that has completed puts all of it in the place of what was there. One that has failed may know
less than DataHub, and only adds its edges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.datahub.audit import stamp
from airflow_provider_sparklineage.datahub.patches import add
from airflow_provider_sparklineage.datahub.proposals import Proposal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from airflow_provider_sparklineage.datahub.lineage.job_columns import JobColumns
    from airflow_provider_sparklineage.datahub.proposals import Json
    from airflow_provider_sparklineage.datahub.subject import Subject

_ASPECT = "dataJobInputOutput"

_LEFT_OUT = {"columnLineage": "On the dataset: that of all outputs is too much for one job."}


def job_lineage(subject: Subject, columns: JobColumns) -> Iterator[Proposal]:
    """Give what a job that has ended read and wrote; nothing if that is not known.

    :param columns: what its outputs are made of
    """
    if not subject.has_job:
        return
    edges, before = _edges(subject), _jobs_before(subject)
    if subject.state == "COMPLETE" and (subject.inputs or subject.outputs):
        yield Proposal(subject.job, _ASPECT, _aspect(edges, columns) | before)
    elif before or any(edges.values()):
        yield Proposal(subject.job, _ASPECT, _patch(edges, before), is_patch=True)


Edges = dict[str, dict[str, "Json"]]
"""By field of the aspect, by URN."""


def _edges(subject: Subject) -> Edges:
    sides = {"inputDatasetEdges": subject.inputs, "outputDatasetEdges": subject.outputs}
    return {of: {one.urn: _edge(subject, one.urn) for one in side} for of, side in sides.items()}


def _jobs_before(subject: Subject) -> Json:
    edges = [_edge(subject, urn) for urn in subject.jobs_before]
    return {"inputDatajobEdges": edges} if edges else {}


def _edge(subject: Subject, urn: str) -> Json:
    return {"destinationUrn": urn, "lastModified": stamp(subject)}


def _patch(edges: Edges, before: Json) -> Json:
    """Add datasets, and leave others, and the columns, as they are; the jobs before are all known.

    DataHub fills the lists of URNs, which are named, with nothing where there is no aspect yet: it
    does not store one without them.
    """
    keys: dict[str, list[str]] = {"inputDatasets": [], "outputDatasets": []}
    keys |= {of: ["destinationUrn"] for of in edges}
    added = [add(of, urn, value=edge) for of, given in edges.items() for urn, edge in given.items()]
    replaced = [add(of, value=value) for of, value in before.items()]
    return {"arrayPrimaryKeys": keys, "patch": [*added, *replaced]}


def _aspect(edges: Edges, columns: JobColumns) -> Json:
    for urn in columns.left_out:
        edges["outputDatasetEdges"][urn]["properties"] = _LEFT_OUT
    lineages = columns.lineages()
    return {
        "inputDatasets": [],
        "outputDatasets": [],
        **{of: list(given.values()) for of, given in edges.items()},
        "inputDatasetFields": _all(one["upstreams"] for one in lineages),
        "outputDatasetFields": _all(one["downstreams"] for one in lineages),
        "fineGrainedLineages": lineages,
    }


def _all(lists: Iterable[list[str]]) -> list[str]:
    return list(dict.fromkeys(urn for urns in lists for urn in urns))
