"""What DataHub has of an output: ``upstreamLineage``, changed by patches.

The aspect is of the dataset, and other jobs write the same one. So nothing is put in its place:
edges are added, by the keys that DataHub's server (GMS) has for them.

- Edges of tables are added by a patch that leaves all else alone (``GenericPatchTemplate``), also
  what others have stored of the same edge.
- Edges of columns are added by the patch of the aspect (``UpstreamLineageTemplate``): its path is
  ``/fineGrainedLineages/<transformOperation>/<downstream>/<query>/<upstream>``, where the first
  three make one ``FineGrainedLineage``. The server refuses every patch of an aspect that has one
  with several downstreams: no condition of a whole output is stored here, where it would keep all
  jobs from adding theirs. The edge of the tables has it as a property, and the job as
  ``FIELD_SET → FIELD_SET`` (:mod:`.job_columns`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.datahub import lenient
from airflow_provider_sparklineage.datahub.audit import stamp
from airflow_provider_sparklineage.datahub.lineage.columns import by_kind, grouped
from airflow_provider_sparklineage.datahub.lineage.transformations import UNKNOWN
from airflow_provider_sparklineage.datahub.patches import add, escaped, keyed, remove
from airflow_provider_sparklineage.datahub.proposals import Proposal
from airflow_provider_sparklineage.model.datasets import DatasetName

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_sparklineage.datahub.lineage.feeding import Fed
    from airflow_provider_sparklineage.datahub.lineage.fields import Fields
    from airflow_provider_sparklineage.datahub.proposals import Json
    from airflow_provider_sparklineage.datahub.subject import Subject

_ASPECT = "upstreamLineage"

_MOST_OPERATIONS = 1000
"""Of a patch: half a megabyte, which Kafka and the server take in one message."""

_CERTAIN = {"confidenceScore": 1.0}
"""Of a lineage that was observed, not guessed."""


def upstreams(
    subject: Subject, output: Fed, fields: Fields, query: str | None
) -> Iterator[Proposal]:
    """Add what an output is made of to what DataHub has of it.

    :param query: the job's Query, if it has SQL; None names none
    """
    urn = output.dataset.urn
    edges = list(_table_edges(subject, output, query))
    if edges:
        yield Proposal(urn, _ASPECT, keyed("upstreams", ["dataset"], edges), is_patch=True)
    operations = list(_column_edges(output, fields, query or UNKNOWN))
    for start in range(0, len(operations), _MOST_OPERATIONS):
        yield Proposal(urn, _ASPECT, operations[start : start + _MOST_OPERATIONS], is_patch=True)


def _table_edges(subject: Subject, output: Fed, query: str | None) -> Iterator[Json]:
    """Change only what is known here: an edge that a person has drawn is marked as theirs."""
    given = {
        "type": "COPY" if output.is_copy else "TRANSFORMED",
        "auditStamp": stamp(subject),
    } | ({"query": query} if query else {})
    conditions = _conditions(subject, output)
    for urn in output.sources:
        for key, value in {"dataset": urn, **given}.items():
            yield add("upstreams", urn, key, value=value)
        path = "upstreams", urn, "properties", "conditions"
        yield add(*path, value=conditions[urn]) if urn in conditions else remove(*path)


def _conditions(subject: Subject, output: Fed) -> dict[str, str]:
    """Give the conditions on each source: ``INDIRECT:FILTER amount, region; INDIRECT:JOIN id``.

    They are one property: its name is a field in DataHub's index of edges, which has few of them.
    """
    found: dict[str, list[str]] = {}
    for kind, sources in by_kind(output.conditions).items():
        names: dict[str, list[str]] = {}
        for namespace, name, field in sources:
            names.setdefault(subject.dataset(DatasetName(namespace, name)), []).append(field)
        for urn, columns in names.items():
            found.setdefault(urn, []).append(f"{kind} {', '.join(columns)}")
    return {urn: lenient.text("; ".join(every)) for urn, every in found.items()}


def _column_edges(output: Fed, fields: Fields, query: str) -> Iterator[Json]:
    own = f"urn:li:schemaField:({output.dataset.urn},"
    end = f"/{escaped(query)}/"
    for column, sources in output.columns.fields.items():
        downstream = escaped(fields[(*output.dataset.name, column)])
        for operation, group in grouped(sources).items():
            path = f"/fineGrainedLineages/{operation}/{downstream}{end}"
            for upstream in map(fields.__getitem__, group):
                if not upstream.startswith(own):
                    yield {"op": "add", "path": path + escaped(upstream), "value": _CERTAIN}
