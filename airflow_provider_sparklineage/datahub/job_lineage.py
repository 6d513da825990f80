"""What DataHub has of a job: ``dataJobInputOutput``, which is the job's own.

A run that has completed puts all of it in the place of what was there. One that has failed may know
less than DataHub, and only adds its edges. Each condition of an output is one ``FIELD_SET →
FIELD_SET``: as long as its columns and those of the output together, never their product.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.datahub import lenient
from airflow_provider_sparklineage.datahub.audit import stamp
from airflow_provider_sparklineage.datahub.columns import by_kind, grouped
from airflow_provider_sparklineage.datahub.patches import add
from airflow_provider_sparklineage.datahub.proposals import Proposal
from airflow_provider_sparklineage.datahub.transformations import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from airflow_provider_sparklineage.datahub.feeding import Fed
    from airflow_provider_sparklineage.datahub.fields import Fields
    from airflow_provider_sparklineage.datahub.proposals import Json
    from airflow_provider_sparklineage.datahub.subject import Subject

_ASPECT = "dataJobInputOutput"

_LARGEST = 2_000_000
"""Characters of the columns' lineage. Kafka takes 5 MB as DataHub configures it, and a message
about a change has the aspect twice: before and after it."""

_LEFT_OUT = {"columnLineage": "On the dataset: that of all outputs is too much for one job."}


def job_lineage(subject: Subject, outputs: list[Fed], fields: Fields) -> Iterator[Proposal]:
    """Give what a job that has ended read and wrote; nothing if that is not known."""
    if not subject.has_job:
        return
    edges, before = _edges(subject), _jobs_before(subject)
    if subject.state == "COMPLETE" and (subject.inputs or subject.outputs):
        yield Proposal(subject.job, _ASPECT, _aspect(edges, outputs, fields) | before)
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


def _aspect(edges: Edges, outputs: list[Fed], fields: Fields) -> Json:
    lineages = _lineages(edges["outputDatasetEdges"], outputs, fields)
    return {
        "inputDatasets": [],
        "outputDatasets": [],
        **{of: list(given.values()) for of, given in edges.items()},
        "inputDatasetFields": _all(one["upstreams"] for one in lineages),
        "outputDatasetFields": _all(one["downstreams"] for one in lineages),
        "fineGrainedLineages": lineages,
    }


def _lineages(edges: dict[str, Json], outputs: list[Fed], fields: Fields) -> list[Json]:
    """Give as much as there is room for; conditions first, because datasets do not have them.

    :param edges: to the outputs; one that there is no room for is marked
    """
    made = [(output, _of_conditions(output, fields)) for output in outputs]
    made += [(output, _of_columns(output, fields)) for output in outputs]
    kept: dict[tuple[str, ...], Json] = {}
    room = _LARGEST
    for output, lineages in made:
        found, left = _within(room, lineages)
        if left < 0:
            edges[output.dataset.urn]["properties"] = _LEFT_OUT
        else:
            kept |= {_key(one): one for one in found}  # two outputs can be one dataset of DataHub
            room = left
    return list(kept.values())


def _of_conditions(output: Fed, fields: Fields) -> Iterator[Json]:
    own = output.dataset.name
    groups = by_kind(output.columns.conditions)
    every = [fields[(*own, column)] for column in _columns_of(output)] if groups else []
    for kind, group in groups.items() if every else ():
        yield _lineage(kind, [fields[source] for source in group], "FIELD_SET", every)


def _of_columns(output: Fed, fields: Fields) -> Iterator[Json]:
    own = output.dataset.name
    for column, sources in output.columns.fields.items():
        downstream = fields[(*own, column)]
        for operation, group in grouped(sources).items():
            upstreams = [urn for urn in map(fields.__getitem__, group) if urn != downstream]
            if upstreams:
                yield _lineage(operation, upstreams, "FIELD", [downstream])


def _columns_of(output: Fed) -> Iterable[str]:
    schema = lenient.items(lenient.at(output.dataset.facets, "schema", "fields"))
    names = filter(None, (lenient.text(field.get("name")) for field in schema))
    return dict.fromkeys((*names, *output.columns.fields))


def _lineage(operation: str, upstreams: list[str], of: str, downstreams: list[str]) -> Json:
    made: Json = {
        "upstreamType": "FIELD_SET",
        "upstreams": upstreams,
        "downstreamType": of,
        "downstreams": downstreams,
        "confidenceScore": 1.0,
    }
    return made | ({} if operation == UNKNOWN else {"transformOperation": operation})


def _within(room: int, lineages: Iterator[Json]) -> tuple[list[Json], int]:
    """Take lineages while there is room; give how much is left, below 0 if not all of them fit."""
    taken = []
    for one in lineages:
        room -= _size(one)
        if room < 0:
            break
        taken.append(one)
    return taken, room


def _key(one: Json) -> tuple[str, ...]:
    return (one.get("transformOperation", ""), *one["upstreams"], *one["downstreams"])


def _size(one: Json) -> int:
    return 200 + sum(map(len, one["upstreams"])) + sum(map(len, one["downstreams"]))


def _all(lists: Iterable[list[str]]) -> list[str]:
    return list(dict.fromkeys(urn for urns in lists for urn in urns))
