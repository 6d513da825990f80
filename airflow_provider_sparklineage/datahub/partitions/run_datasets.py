"""What a run read and wrote, on the run itself: ``dataProcessInstanceInput`` and ``…Output``.

Each dataset is named twice: as ``inputs``, which all versions of DataHub's pages list, and as an
edge, whose properties have which part of it was accessed. Both aspects are the run's own, so they
are written as a whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.datahub import lenient
from airflow_provider_sparklineage.datahub.partitions.accesses import Access, accesses
from airflow_provider_sparklineage.datahub.proposals import Json, Proposal
from airflow_provider_sparklineage.datahub.values import plain
from airflow_provider_sparklineage.model.terms import Side

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_sparklineage.datahub.subject import Subject

MAX_SOURCES = 10
"""Templates that expected partitions come from, in one property."""


def run_datasets(subject: Subject) -> Iterator[Proposal]:
    """Give the datasets of a run that has ended; of one that failed, what it was seen to do."""
    if not subject.has_ended or not subject.has_run:
        return
    for side, of in ((Side.READ, "input"), (Side.WRITE, "output")):
        edges: dict[str, Json] = {}
        for access in accesses(subject, side):
            if _is_of(access, subject):
                urn = access.dataset.urn
                edges[urn] = _edge(urn, _joined(edges.get(urn, {}), _properties(access)))
        if edges:
            aspect = {f"{of}s": list(edges), f"{of}Edges": list(edges.values())}
            yield Proposal(subject.run, f"dataProcessInstance{of.capitalize()}", aspect)


def _is_of(access: Access, subject: Subject) -> bool:
    is_claimed = subject.state == "COMPLETE" and not access.seen.get("failed")
    return access.is_of_this_run or is_claimed


def _edge(urn: str, properties: dict[str, str]) -> Json:
    return {"destinationUrn": urn, **({"properties": properties} if properties else {})}


def _joined(known: Json, properties: dict[str, str]) -> dict[str, str]:
    """Join what two documents of the event have of one dataset: its files, and it as a table."""
    before: dict[str, str] = known.get("properties", {})
    both = before | properties
    for key in before.keys() & properties.keys():
        if before[key] != properties[key]:
            both[key] = lenient.text(f"{before[key]}, {properties[key]}")
    return both


def _properties(access: Access) -> dict[str, str]:
    found = {**_part(access), **_counts(access), **expectation(access)}
    return {key: value for key, value in found.items() if value}


def _part(access: Access) -> dict[str, str]:
    witness = lenient.text(access.seen.get("witness"))
    return {
        "partitions": access.summary,
        "condition": access.condition if access.condition != access.summary else "",
        "lifecycle": access.lifecycle,
        "reported by": witness or ("" if access.is_of_this_run else "nobody, but the last run"),
    }


def _counts(access: Access) -> dict[str, str]:
    counts = {
        "rows": access.statistics.get("rowCount"),
        "bytes": access.statistics.get("size"),
        "files": access.statistics.get("fileCount"),
        "partitions only planned": access.seen.get("planned"),
    }
    found = {key: lenient.number(count) for key, count in counts.items()}
    return {key: str(count) for key, count in found.items() if count is not None}


def expectation(access: Access) -> dict[str, str]:
    """Say what was expected of an access and how that compares; nothing if nothing was."""
    status = lenient.text(access.check.get("status"))
    if status in ("", "undeclared"):
        return {}
    parts = ("expected", "missing", "unexpected")
    found = {part: plain(lenient.at(access.check, part, "summary")) for part in parts}
    sources = [
        f"{lenient.text(source.get('field'))}: {lenient.text(source.get('template'))}"
        for source in lenient.items(access.check.get("from"))
    ]
    listed = plain("; ".join(dict.fromkeys(sources[:MAX_SOURCES])))
    return {"check": status, **found, "expected from": listed}
