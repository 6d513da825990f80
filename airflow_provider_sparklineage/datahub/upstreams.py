"""What DataHub has of an output: ``upstreamLineage``, changed by patches.

The aspect is of the dataset, and other jobs write the same one. So nothing is put in its place:
edges are added, by the keys that DataHub's server (GMS) has for them.

- Edges of tables are added by a patch that leaves all else alone (``GenericPatchTemplate``).
- Edges of columns are added by the patch of the aspect (``UpstreamLineageTemplate``): its path is
  ``/fineGrainedLineages/<transformOperation>/<downstream>/<query>/<upstream>``, where the first
  three make one ``FineGrainedLineage``. The server refuses every patch of an aspect that has one
  with several downstreams: no condition of a whole output is stored here, where it would keep all
  jobs from adding theirs. The edge of the tables has it as a property, and the job as
  ``FIELD_SET → FIELD_SET`` (:mod:`.job_lineage`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.datahub import lenient
from airflow_provider_sparklineage.datahub.audit import stamp
from airflow_provider_sparklineage.datahub.columns import by_kind, grouped
from airflow_provider_sparklineage.datahub.proposals import Proposal
from airflow_provider_sparklineage.datahub.transformations import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_sparklineage.datahub.feeding import Fed
    from airflow_provider_sparklineage.datahub.fields import Fields
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
    edges = _edges(subject, output, query)
    if edges:
        added = [_added(f"/upstreams/{escaped(one['dataset'])}", one) for one in edges]
        yield Proposal(urn, _ASPECT, {"arrayPrimaryKeys": _BY_DATASET, "patch": added}, True)
    operations = list(_column_edges(output, fields, query or UNKNOWN))
    for start in range(0, len(operations), _MOST_OPERATIONS):
        yield Proposal(urn, _ASPECT, operations[start : start + _MOST_OPERATIONS], True)


_BY_DATASET = {"upstreams": ["dataset"]}


def _added(path: str, value: Json) -> Json:
    return {"op": "add", "path": path, "value": value}


def escaped(key: str) -> str:
    """Escape a key of a path, as RFC 6901 has it."""
    return key.replace("~", "~0").replace("/", "~1")


def _edges(subject: Subject, output: Fed, query: str | None) -> list[Json]:
    given = _properties(output)
    kind = {"type": "COPY" if output.is_copy else "TRANSFORMED", "auditStamp": stamp(subject)}
    edges = {}
    for source in output.sources:
        urn = subject.dataset(source)
        edge = {"dataset": urn, **kind} | ({"query": query} if query else {})
        edges[urn] = edge | ({"properties": given[source]} if source in given else {})
    edges.pop(output.dataset.urn, None)
    return list(edges.values())


def _properties(output: Fed) -> dict[tuple[str, str], dict[str, str]]:
    """Give the conditions on each source: ``{"INDIRECT:FILTER": "amount, region"}``."""
    found: dict[tuple[str, str], dict[str, list[str]]] = {}
    for kind, sources in by_kind(output.conditions).items():
        for namespace, name, field in sources:
            found.setdefault((namespace, name), {}).setdefault(kind, []).append(field)
    return {
        source: {kind: lenient.text(", ".join(columns)) for kind, columns in kinds.items()}
        for source, kinds in found.items()
    }


def _column_edges(output: Fed, fields: Fields, query: str) -> Iterator[Json]:
    own = output.dataset.name
    end = f"/{escaped(query)}/"
    for column, sources in output.columns.fields.items():
        downstream = escaped(fields[(*own, column)])
        for operation, group in grouped(sources).items():
            path = f"/fineGrainedLineages/{operation}/{downstream}{end}"
            for source in group:
                if source[:2] != own:
                    yield _added(path + escaped(fields[source]), _CERTAIN)
