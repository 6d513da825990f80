"""What DataHub has of events, in short lines that a test can compare as a whole."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.datahub.configuration import Conversion, FieldPaths
from airflow_provider_sparklineage.datahub.conversion import proposals
from tests.unit.datahub.patching import Stored
from tests.unit.datahub.sdk import checked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Json = dict[str, Any]
_HOW = Conversion(field_paths=FieldPaths.V1)  # so that a column is called by its name
_SHORT = (
    (r"urn:li:dataset:\(urn:li:dataPlatform:([^,]+),(.*?),PROD\)", r"\1:\2"),
    (r"urn:li:schemaField:\((.*?),([^,]+)\)$", r"\1#\2"),
    (r"urn:li:dataFlow:\((.*?),(.*?),prod\)", r"\1:\2"),
    (r"urn:li:dataJob:\((.*?),(.*)\)$", r"\1/\2"),
    (r"urn:li:dataProcessInstance:", ""),
)


def stored(*events: Json) -> Stored:
    """Give what DataHub has after events, one after another; all of it is judged by the SDK."""
    found = Stored()
    for event in events:
        for one in checked(proposals(event, _HOW)):
            if not (one.only_if_absent and (one.urn, one.aspect_name) in found):
                found.take([one])
    return found


def summary(*events: Json) -> list[str]:
    """Give what DataHub has of runs, edges, operations, profiles, checks and SQL, a line each."""
    return [
        line
        for (urn, name), aspect in stored(*events).items()
        if name in _LINES
        for line in _LINES[name](short(urn), aspect)
    ]


def short(urn: str) -> str:
    """Give a URN as ``hive:shop.orders``, ``s3:lake/orders#id``, ``spark:app/action``."""
    for pattern, replacement in _SHORT:
        urn = re.sub(pattern, replacement, urn)
    return urn


def _run(_: str, aspect: Json) -> Iterator[str]:
    above = aspect.get("parentInstance")
    yield f"run of {short(aspect['parentTemplate'])}" + (f" in {short(above)}" if above else "")


def _status(_: str, aspect: Json) -> Iterator[str]:
    yield aspect.get("result", {}).get("type", aspect["status"])


def _upstreams(urn: str, aspect: Json) -> Iterator[str]:
    for edge in aspect["upstreams"]:
        conditions = edge.get("properties", {}).get("conditions")
        of = f" ({conditions})" if conditions else ""
        yield f"{urn} <- {short(edge['dataset'])} {edge['type']}{of}"
    for edge in aspect.get("fineGrainedLineages", []):
        sources = ", ".join(sorted(map(short, edge["upstreams"])))
        column = short(edge["downstreams"][0]).rpartition("#")[2]
        yield f"  {column} <- {sources} {edge['transformOperation']}"


def _operation(urn: str, aspect: Json) -> Iterator[str]:
    rows = aspect.get("numAffectedRows")
    yield f"{aspect['operationType']} {urn}" + (f" {rows} rows" if rows is not None else "")


def _profile(urn: str, aspect: Json) -> Iterator[str]:
    columns = [one["fieldPath"] for one in aspect.get("fieldProfiles", [])]
    yield f"profile of {urn}: {aspect.get('rowCount')} rows, {', '.join(columns)}"


def _check(_: str, aspect: Json) -> Iterator[str]:
    yield f"{short(aspect['customAssertion']['entity'])}: {aspect['description']}"


def _result(_: str, aspect: Json) -> Iterator[str]:
    yield f"  {aspect['result']['type']}"


def _query(_: str, aspect: Json) -> Iterator[str]:
    yield aspect["statement"]["value"]


def _siblings(urn: str, aspect: Json) -> Iterator[str]:
    if aspect["primary"]:
        yield f"{urn} is {short(aspect['siblings'][0])}"


# What is not named here (names, schemas, owners …) is for a test to look up in `stored`.
_LINES: dict[str, Callable[[str, Json], Iterator[str]]] = {
    "dataProcessInstanceRelationships": _run,
    "dataProcessInstanceRunEvent": _status,
    "siblings": _siblings,
    "queryProperties": _query,
    "upstreamLineage": _upstreams,
    "operation": _operation,
    "datasetProfile": _profile,
    "assertionInfo": _check,
    "assertionRunEvent": _result,
}
