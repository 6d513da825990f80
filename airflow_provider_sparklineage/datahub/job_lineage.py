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
from airflow_provider_sparklineage.datahub.proposals import Proposal
from airflow_provider_sparklineage.datahub.transformations import UNKNOWN
from airflow_provider_sparklineage.datahub.upstreams import escaped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from airflow_provider_sparklineage.datahub.feeding import Fed
    from airflow_provider_sparklineage.datahub.fields import Fields
    from airflow_provider_sparklineage.datahub.proposals import Json
    from airflow_provider_sparklineage.datahub.subject import Dataset, Subject

_ASPECT = "dataJobInputOutput"

_LARGEST = 2_000_000
"""Characters of the columns' lineage. Kafka takes 5 MB as DataHub configures it, and a message
about a change has the aspect twice: before and after it."""

_LEFT_OUT = {"columnLineage": "On the dataset: that of all outputs is too much for one job."}


def job_lineage(subject: Subject, outputs: list[Fed], fields: Fields) -> Iterator[Proposal]:
    """Give what a job that has ended read and wrote; nothing if that is not known."""
    if not subject.has_job:
        return
    edges = _edges(subject)
    if subject.state == "COMPLETE" and (subject.inputs or subject.outputs):
        yield Proposal(subject.job, _ASPECT, _aspect(edges, outputs, fields))
    elif any(edges.values()):
        yield Proposal(subject.job, _ASPECT, _patch(edges), True)


Edges = dict[str, dict[str, "Json"]]
"""By field of the aspect, by URN."""


def _edges(subject: Subject) -> Edges:
    seen = {"lastModified": stamp(subject)}
    return {
        "inputDatasetEdges": {one.urn: _edge(one, seen) for one in subject.inputs},
        "outputDatasetEdges": {one.urn: _edge(one, seen) for one in subject.outputs},
    }


def _edge(dataset: Dataset, seen: Json) -> Json:
    return {"destinationUrn": dataset.urn, **seen}


def _patch(edges: Edges) -> Json:
    """Add edges, and leave all others, and the columns, as they are.

    DataHub fills the lists that it names, of URNs, with nothing where there is no aspect yet: it
    does not store one without them.
    """
    keys: dict[str, list[str]] = {"inputDatasets": [], "outputDatasets": []}
    keys |= {of: ["destinationUrn"] for of in edges}
    added = [
        {"op": "add", "path": f"/{of}/{escaped(urn)}", "value": edge}
        for of, given in edges.items()
        for urn, edge in given.items()
    ]
    return {"arrayPrimaryKeys": keys, "patch": added}


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
