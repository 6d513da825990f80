"""Lineage of tables and of columns, as aspects of three entities of DataHub.

=======================  ===========================================================================
the output               ``upstreamLineage``: patched, because other jobs write the same dataset
the job                  ``dataJobInputOutput``: replaced by a run that completed
the job's SQL            a Query, to which the edges of tables and of columns refer
=======================  ===========================================================================
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.datahub.lineage_facets import (
    UNKNOWN_OPERATION,
    by_kind,
    grouped,
    output_lineages,
)
from airflow_provider_sparklineage.datahub.proposals import (
    Proposal,
    add,
    escaped,
    job_edges,
    keyed,
    plain,
    remove,
    stored,
)
from airflow_provider_sparklineage.datahub.subject import audit_stamp
from airflow_provider_sparklineage.event import model
from airflow_provider_sparklineage.model.datasets import DatasetName

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from airflow_provider_sparklineage.datahub.lineage_facets import OutputLineage, Source
    from airflow_provider_sparklineage.datahub.proposals import Json
    from airflow_provider_sparklineage.datahub.subject import Subject


def lineage(subject: Subject) -> Iterator[Proposal]:
    """Yield the lineage of the event's run, as aspects of the job's Query, the outputs and the job.

    Nothing is yielded before the run has ended.
    """
    if not subject.has_ended:
        return
    query, columns = query_urn(subject), JobColumns(subject)
    if query is not None:
        yield from job_query(subject, query)
    for output in output_lineages(subject):
        yield from upstream_lineage(subject, output, query)
        columns.add(output)
    yield from job_lineage(subject, columns)


# ``upstreamLineage`` of an output. The aspect is the dataset's, and other jobs write the same
# dataset. So the aspect is never replaced: edges are added, by the keys that DataHub's server (GMS)
# has for them.
#
# - Edges of tables are added by a patch that leaves everything else alone
#   (``GenericPatchTemplate``), also other values of the same edge.
# - Edges of columns are added by the patch of the aspect (``UpstreamLineageTemplate``): its path is
#   ``/fineGrainedLineages/<transformOperation>/<downstream>/<query>/<upstream>``, where the first
#   three make one ``FineGrainedLineage``. The server refuses every patch of an aspect with a
#   ``FineGrainedLineage`` of several downstreams. So a condition of a whole output is not stored as
#   an edge of columns here: that edge would keep all jobs from adding their edges. The condition is
#   a property of the table's edge instead, and the aspect of the job has the condition as
#   ``FIELD_SET → FIELD_SET`` (:class:`JobColumns`).

_UPSTREAM_LINEAGE = "upstreamLineage"

_MAX_OPERATIONS = 1000
"""The most operations of one patch: they have half a megabyte, which Kafka and the server take in
one message."""

_CERTAIN = {"confidenceScore": 1.0}
"""The value of an edge of columns that was observed, not guessed."""


def upstream_lineage(
    subject: Subject, output: OutputLineage, query: str | None
) -> Iterator[Proposal]:
    """Yield the patches that add source datasets and source columns to an output's lineage.

    :param subject: the event's entities with their URNs
    :param query: URN of the job's Query; None if the job has no SQL
    """
    urn = output.dataset.urn
    if edges := list(_table_edges(subject, output, query)):
        patch = keyed("upstreams", ["dataset"], edges)
        yield Proposal(urn, _UPSTREAM_LINEAGE, patch, is_patch=True, keeps="upstreams")
    operations = list(_column_edges(subject, output, query or UNKNOWN_OPERATION))
    for start in range(0, len(operations), _MAX_OPERATIONS):
        part = operations[start : start + _MAX_OPERATIONS]
        yield Proposal(urn, _UPSTREAM_LINEAGE, part, is_patch=True)


def _table_edges(subject: Subject, output: OutputLineage, query: str | None) -> Iterator[Json]:
    """Yield the operations that add the edges from source datasets to an output.

    The operations set only the values that the event has. The other values of an edge that a person
    has drawn are not changed, because those values mark the edge as drawn by a person. Of an edge
    that others have stored, :func:`.proposals.with_stored` leaves out all but the conditions.

    :param subject: the event's entities with their URNs
    :param query: URN of the job's Query; None if the job has no SQL
    """
    values = {
        "type": "COPY" if output.is_copy else "TRANSFORMED",
        "auditStamp": audit_stamp(subject),
    } | ({"query": query} if query else {})
    conditions = _conditions_by_source(subject, output)
    for urn in output.sources:
        for key, value in {"dataset": urn, **values}.items():
            yield add("upstreams", urn, key, value=value)
        path = "upstreams", urn, "properties", "conditions"
        yield add(*path, value=conditions[urn]) if urn in conditions else remove(*path)


def _conditions_by_source(subject: Subject, output: OutputLineage) -> dict[str, str]:
    """Give the conditions on each source dataset as one text, by the dataset's URN.

    A condition is a column of the source that influences all columns of the output. The text is for
    one property: ``INDIRECT:FILTER amount, region; INDIRECT:JOIN id``. There is not a property for
    each condition, because each property's name is a field in DataHub's index of edges, which has
    room for few fields.

    :param subject: the event's entities with their URNs
    """
    texts: dict[str, list[str]] = {}
    for kind, sources in by_kind(output.conditions).items():
        names: dict[str, list[str]] = {}
        for namespace, name, field in sources:
            names.setdefault(subject.dataset(DatasetName(namespace, name)), []).append(field)
        for urn, columns in names.items():
            texts.setdefault(urn, []).append(f"{kind} {', '.join(columns)}")
    return {urn: stored("; ".join(every)) for urn, every in texts.items()}


def _column_edges(subject: Subject, output: OutputLineage, query: str) -> Iterator[Json]:
    own = f"urn:li:schemaField:({output.dataset.urn},"
    for operation, downstream, upstreams in _column_groups(subject, output):
        path = f"/fineGrainedLineages/{operation}/{escaped(downstream)}/{escaped(query)}/"
        for upstream in upstreams:
            if not upstream.startswith(own):
                yield {"op": "add", "path": path + escaped(upstream), "value": _CERTAIN}


def _column_groups(subject: Subject, output: OutputLineage) -> Iterator[tuple[str, str, list[str]]]:
    """Yield each column of an output once for each operation by which it is made.

    :param subject: the event's entities with their URNs
    :return: tuples of the operation (:func:`.transform_operation`), the URN of the column, and the
        URNs of the source columns of which this operation makes the column
    """
    for column, sources in output.columns.fields.items():
        downstream = subject.field(output.dataset.name, column)
        for operation, group in grouped(sources).items():
            yield operation, downstream, _field_urns(subject, group)


def _field_urns(subject: Subject, sources: list[Source]) -> list[str]:
    return [
        subject.field(DatasetName(namespace, name), column) for namespace, name, column in sources
    ]


# Only the job itself writes its ``dataJobInputOutput``. A run that has completed, and whose event
# names datasets, replaces the whole aspect. Any other run may know less than DataHub: it adds its
# edges to datasets, and replaces only the edges to the jobs before the job.

_JOB_LINEAGE = "dataJobInputOutput"

_LEFT_OUT = {"columnLineage": "On the dataset: that of all outputs is too much for one job."}


def job_lineage(subject: Subject, columns: JobColumns) -> Iterator[Proposal]:
    """Yield the aspect with the datasets and columns of the event's job, and the jobs before it.

    It replaces the stored aspect if the run has completed and the event names datasets; else it is
    a patch. Nothing is yielded if the event has no job, or has neither datasets nor jobs before the
    job.

    :param columns: the column lineage of the job's outputs
    """
    if not subject.has_job:
        return
    sides = {"inputDatasetEdges": subject.inputs, "outputDatasetEdges": subject.outputs}
    edges = {of: {one.urn: _edge(subject, one.urn) for one in side} for of, side in sides.items()}
    jobs = [_edge(subject, urn) for urn in subject.jobs_before]
    before: Json = {"inputDatajobEdges": jobs} if jobs else {}
    if subject.state == "COMPLETE" and (subject.inputs or subject.outputs):
        yield Proposal(subject.job, _JOB_LINEAGE, _job_aspect(edges, columns) | before)
    elif before or any(edges.values()):
        yield Proposal(subject.job, _JOB_LINEAGE, _job_patch(edges, before), is_patch=True)


_Edges = dict[str, dict[str, "Json"]]
"""A job's edges to datasets: by the field of the aspect, then by the URN of the dataset."""


def _edge(subject: Subject, urn: str) -> Json:
    return {"destinationUrn": urn, "lastModified": audit_stamp(subject)}


def _job_patch(edges: _Edges, before: Json) -> Json:
    """Give the patch that adds a job's edges to datasets, and replaces those to the jobs before it.

    The event may name only some of the job's datasets, so the stored edges to other datasets stay,
    and so do the columns. But the event names all jobs before the job, or the first
    :data:`~.subject.MAX_DEPENDENCIES` of them, so stored edges to other jobs are dropped.

    :param edges: the edges to datasets that are added
    :param before: the edges to the jobs before the job, as a list by the field of the aspect; if it
        is {}, the stored edges to jobs stay
    """
    added = [
        add(of, urn, value=edge) for of, by_urn in edges.items() for urn, edge in by_urn.items()
    ]
    replaced = [add(of, value=value) for of, value in before.items()]
    return job_edges(edges, [*added, *replaced])


def _job_aspect(edges: _Edges, columns: JobColumns) -> Json:
    for urn in columns.left_out:
        edges["outputDatasetEdges"][urn]["properties"] = _LEFT_OUT
    lineages = columns.lineages()
    return {
        "inputDatasets": [],
        "outputDatasets": [],
        **{of: list(by_urn.values()) for of, by_urn in edges.items()},
        "inputDatasetFields": _each_once(one["upstreams"] for one in lineages),
        "outputDatasetFields": _each_once(one["downstreams"] for one in lineages),
        "fineGrainedLineages": lineages,
    }


def _each_once(lists: Iterable[list[str]]) -> list[str]:
    return list(dict.fromkeys(urn for urns in lists for urn in urns))


# The column lineage in the aspect of a job is limited to the size of one message: a long patch can
# be divided, but an aspect that is stored as a whole cannot. Each condition of an output is one
# ``FIELD_SET → FIELD_SET``: its size grows with the sum of the condition's columns and the output's
# columns, not with their product.

_MAX_SIZE = 1_000_000
"""The most characters of all conditions together, and also of all columns together. DataHub
configures Kafka for messages of 5 MB, and a message about a change has the aspect twice: the old
and the new one."""


class JobColumns:
    """The column lineage of a job: the lineages of its outputs, as far as they fit into a limit.

    Conditions (sources that influence all columns) and columns have separate limits, so that many
    columns leave no condition out: DataHub has the columns in the output's aspect, too, but the
    conditions only here.
    """

    def __init__(self, subject: Subject) -> None:
        self.left_out: set[str] = set()
        self._subject = subject
        self._conditions = _Room()
        self._columns = _Room()

    def add(self, output: OutputLineage) -> None:
        """Add an output's conditions and columns.

        If all conditions, or all columns, do not fit, none of them are added, and the output's URN
        is added to ``left_out``.
        """
        has_conditions = self._conditions.take(_condition_lineages(self._subject, output))
        has_columns = self._columns.take(_column_lineages(self._subject, output))
        if not (has_conditions and has_columns):
            self.left_out.add(output.dataset.urn)

    def lineages(self) -> list[Json]:
        """Give the added lineages, each once: two outputs can be the same dataset of DataHub."""
        return [*self._conditions.taken.values(), *self._columns.taken.values()]


class _Room:
    def __init__(self) -> None:
        self.taken: dict[tuple[str, ...], Json] = {}
        self._left = _MAX_SIZE

    def take(self, lineages: Iterator[Json]) -> bool:
        """Add all of the lineages if they fit, else none of them; return whether they fit."""
        fitting, left = {}, self._left
        for one in lineages:
            urns = *one["upstreams"], *one["downstreams"]
            left -= 200 + sum(map(len, urns))
            if left < 0:
                return False
            fitting[one.get("transformOperation", ""), *urns] = one
        self.taken |= fitting
        self._left = left
        return True


def _condition_lineages(subject: Subject, output: OutputLineage) -> Iterator[Json]:
    groups = by_kind(output.columns.conditions)
    names = (stored(field.name) for field in output.dataset.schema_fields if field.name)
    columns = dict.fromkeys((*names, *output.columns.fields)) if groups else ()
    every = [subject.field(output.dataset.name, column) for column in columns]
    for kind, group in groups.items() if every else ():
        yield _fine_grained_lineage(kind, _field_urns(subject, group), "FIELD_SET", every)


def _column_lineages(subject: Subject, output: OutputLineage) -> Iterator[Json]:
    for operation, downstream, upstreams in _column_groups(subject, output):
        if others := [urn for urn in upstreams if urn != downstream]:
            yield _fine_grained_lineage(operation, others, "FIELD", [downstream])


def _fine_grained_lineage(
    operation: str, upstreams: list[str], of: str, downstreams: list[str]
) -> Json:
    aspect: Json = {
        "upstreamType": "FIELD_SET",
        "upstreams": upstreams,
        "downstreamType": of,
        "downstreams": downstreams,
        "confidenceScore": 1.0,
    }
    return aspect | ({} if operation == UNKNOWN_OPERATION else {"transformOperation": operation})


# A job has one Query, which holds the SQL that the job ran last. DataHub's own converter makes a
# Query for each text. A text with a date in it would then be a new Query every day, and every day
# new edges would be added to the dataset, without end: the Query is a key in DataHub's patches.

_MAX_STATEMENT = 100_000
"""The most characters of a statement, which DataHub shows on a page and holds in an index."""

_MAX_SUBJECTS = 500


def query_urn(subject: Subject) -> str | None:
    """Give the URN of the job's Query; None if the event has no job, or no SQL."""
    if not subject.has_job or not _sql(subject):
        return None
    return f"urn:li:query:{sha256(subject.job.encode()).hexdigest()}"


def job_query(subject: Subject, urn: str) -> Iterator[Proposal]:
    """Yield the aspects of the job's Query: its SQL, and the datasets that the run accessed.

    :param urn: URN of the Query
    """
    yield Proposal(urn, "queryProperties", _query_properties(subject))
    datasets = dict.fromkeys(one.urn for one in (*subject.inputs, *subject.outputs))
    subjects = [{"entity": dataset} for dataset in list(datasets)[:_MAX_SUBJECTS]]
    if subjects:
        yield Proposal(urn, "querySubjects", {"subjects": subjects})


def _query_properties(subject: Subject) -> dict[str, object]:
    return {
        "statement": {"value": _sql(subject), "language": "SQL"},
        "source": "SYSTEM",
        "name": stored(subject.event.job.name),
        "origin": subject.job,
        "created": audit_stamp(subject),
        "lastModified": audit_stamp(subject),
    }


def _sql(subject: Subject) -> str:
    return plain(
        model.read_facet(subject.job_facets, "sql", model.Sql).query, _MAX_STATEMENT
    ).strip()
