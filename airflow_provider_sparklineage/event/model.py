"""A merged event that is read again: from XCom, from the archive or from a file.

XCom, archive and files hold the event itself, in no envelope. Which version wrote it is in the
capture facet's ``_schemaURL``: another minor version is shown, a newer major one is refused.

An event in a file can be anybody's. :func:`readable` gives back one of which all that commands read
has its shape. What they do not read may be as it likes, and all that is absent or null is not
known.
Nothing here needs the libraries of a terminal: the tab reads events as well.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import msgspec

from airflow_provider_sparklineage.event.capture_facet import CAPTURE_KEY
from airflow_provider_sparklineage.event.document import name_of
from airflow_provider_sparklineage.model.degradations import DegradationCode
from airflow_provider_sparklineage.model.exceptions import DocumentError
from airflow_provider_sparklineage.model.producer import SCHEMA_BASE
from airflow_provider_sparklineage.spark.capture.raw_facets import is_too_deep

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_sparklineage.model.datasets import DatasetName


# --- whether it is a merged event -----------------------------------------------------------------


MAJOR = 1
"""The newest version of the capture facet that is understood."""

_VERSION = re.compile(re.escape(f"{SCHEMA_BASE}:capture:") + r"(\d{1,9})-")


def validate(value: object) -> dict[str, Any]:
    """Give a stored value back as the merged event that it is.

    :raise DocumentError: if it is none, or of a version that is too new; a sentence for people
    """
    event = value if isinstance(value, dict) else {}
    capture = _at(event, "run", "facets", CAPTURE_KEY)
    is_event = isinstance(_at(event, "job", "name"), str) and isinstance(capture, dict)
    if not is_event:
        problem = "What is stored is no lineage of a Spark job."
        fix = "Run the task again to replace it."
        raise DocumentError(problem, fix)
    for side in ("inputs", "outputs"):
        datasets = event.get(side) or []
        if not isinstance(datasets, list) or not all(map(_is_dataset, datasets)):
            msg = f"The stored lineage is damaged: its {side} are no list of datasets."
            raise DocumentError(msg)
    missing = capture.get("degradations") or []
    if not isinstance(missing, list) or not all(isinstance(entry, dict) for entry in missing):
        msg = "The stored lineage is damaged: its degradations are no list of entries."
        raise DocumentError(msg)
    found = _VERSION.match(str(capture.get("_schemaURL")))
    if found and int(found[1]) > MAJOR:
        problem = (
            "This lineage was written by a newer airflow-provider-sparklineage (format "
            f"{found[1]}; this one reads up to {MAJOR})."
        )
        fix = "Update the package where it is to be shown."
        raise DocumentError(problem, fix)
    return event


def stored(text: bytes) -> dict[str, Any]:
    """Give the merged event that was stored as a text.

    :raise DocumentError: if it is none that can be read; says why
    """
    try:
        value = json.loads(text)  # not by msgspec, which takes no halves of surrogate pairs
    except (ValueError, RecursionError) as error:
        msg = f"The stored lineage is damaged and cannot be read ({error})."
        raise DocumentError(msg) from error
    return validate(value)


def _is_dataset(value: object) -> bool:
    return isinstance(value, dict) and all(
        isinstance(value.get(key), str) for key in ("namespace", "name")
    )


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


# --- whether it has its shape ---------------------------------------------------------------------


class _Name(msgspec.Struct):
    namespace: str
    name: str


class _Transformation(msgspec.Struct):
    type: str | None = None
    subtype: str | None = None
    description: str | None = None
    masking: bool | None = None


class _InputField(_Name):
    field: str
    transformations: list[_Transformation] | None = None


class _ColumnSources(msgspec.Struct):
    inputFields: list[_InputField] | None = None  # noqa: N815  (OpenLineage's names, here and below)
    transformationType: str | None = None  # noqa: N815


class _ColumnLineage(msgspec.Struct):
    fields: dict[str, _ColumnSources] | None = None
    dataset: list[_InputField] | None = None


class _SchemaField(msgspec.Struct):
    name: str
    type: str | None = None


class _Schema(msgspec.Struct):
    fields: list[_SchemaField] | None = None


class _Partitions(msgspec.Struct):
    summary: str | None = None


class _DatasetFacets(msgspec.Struct):
    schema: _Schema | None = None
    columnLineage: _ColumnLineage | None = None  # noqa: N815
    sparkLineage_partitions: _Partitions | None = None  # noqa: N815


class _Partition(msgspec.Struct):
    identifier: str | None = None
    dimensions: dict[str, str | None] | None = None


class _Condition(msgspec.Struct):
    type: str | None = None
    locations: list[str] | None = None
    partitions: list[_Partition] | None = None
    left: _Condition | None = None
    right: _Condition | None = None
    operator: str | None = None
    comparison: str | None = None
    field: str | None = None
    value: str | None = None

    def __post_init__(self) -> None:
        parts = {
            "binary": (self.left, self.operator, self.right),
            "compare": (self.left, self.comparison, self.right),
        }
        if None in parts.get(self.type or "", ()):
            msg = f"A condition of the type {self.type} is incomplete"
            raise ValueError(msg)


class _Subset(msgspec.Struct):
    inputCondition: _Condition | None = None  # noqa: N815
    outputCondition: _Condition | None = None  # noqa: N815


class _Description(msgspec.Struct):
    description: str | None = None


class _Statistics(msgspec.Struct):
    rowCount: int | None = None  # noqa: N815


class _SideFacets(msgspec.Struct):
    subset: _Subset | None = None
    sparkLineage_subsetDescription: _Description | None = None  # noqa: N815
    outputStatistics: _Statistics | None = None  # noqa: N815


class _Dataset(_Name):
    facets: _DatasetFacets | None = None
    inputFacets: _SideFacets | None = None  # noqa: N815
    outputFacets: _SideFacets | None = None  # noqa: N815


class _Counted(msgspec.Struct):
    summary: str


class _Source(msgspec.Struct):
    value: str
    kind: str
    field: str
    dimension: str | None = None
    expressions: list[str] | None = None


class _Entry(msgspec.Struct):
    dataset: _Name
    status: str | None = None
    sources: list[_Source] | None = msgspec.field(name="from", default=None)
    expected: _Counted | None = None
    observed: _Counted | None = None
    planned: _Counted | None = None
    failed: bool | None = None
    unreported: str | None = None
    unexpected: _Counted | None = None
    missing: _Counted | None = None


class _Check(msgspec.Struct):
    summary: str | None = None
    status: str | None = None
    reads: list[_Entry] | None = None
    writes: list[_Entry] | None = None


class _Access(msgspec.Struct):
    dataset: _Name
    side: str
    witness: str
    accessed: str
    planned: int | None = None
    failed: bool | None = None


class _Degradation(msgspec.Struct):
    code: str | None = None
    message: str | None = None


class _Capture(msgspec.Struct):
    datasets: list[_Access] | None = None
    degradations: list[_Degradation] | None = None
    degradationCounts: dict[str, int] | None = None  # noqa: N815


class _RunFacets(msgspec.Struct):
    sparkLineage_capture: _Capture | None = None  # noqa: N815
    sparkLineage_partitionCheck: _Check | None = None  # noqa: N815


class _Run(msgspec.Struct):
    runId: str | None = None  # noqa: N815
    facets: _RunFacets | None = None


class _Event(msgspec.Struct):
    run: _Run
    job: _Name
    eventType: str | None = None  # noqa: N815
    eventTime: str | None = None  # noqa: N815
    inputs: list[_Dataset] | None = None
    outputs: list[_Dataset] | None = None


def readable(event: object) -> dict[str, Any]:
    """Give a stored event back as a merged event of which all that commands read has its shape.

    :raise DocumentError: if it is none, or of a version that is too new; says what is wrong
    """
    try:
        if is_too_deep(msgspec.json.encode(event), event):
            msg = "The stored lineage is damaged: it is nested too deeply."
            raise DocumentError(msg)
        known = validate(event)
        msgspec.convert(known, _Event)
    except (ValueError, RecursionError) as error:
        msg = f"The stored lineage is damaged: {error}."
        raise DocumentError(msg) from error
    return known


# --- what an event says of itself -----------------------------------------------------------------


def degradations(event: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Entries of the event's capture facet that say what is missing."""
    entries: list[dict[str, Any]] = _capture(event).get("degradations") or []
    return entries


def misses_detail(event: Mapping[str, Any]) -> bool:
    """Whether detail was dropped so that it fits where it was kept; another place may have it."""
    return any(d.get("code") == DegradationCode.DETAIL_DROPPED for d in degradations(event))


_OF_COLLECTING = frozenset(code for code in DegradationCode if code.is_of_collecting)


def is_preliminary(event: Mapping[str, Any]) -> bool:
    """Whether the archive may have more of its try: all detail, or what was collected later."""
    is_all_collected = _OF_COLLECTING.isdisjoint(d.get("code") for d in degradations(event))
    return misses_detail(event) or not is_all_collected


def unlisted_degradations(event: Mapping[str, Any]) -> int:
    """Count what is also missing, where that is more than the facet lists."""
    counts: dict[str, int] = _capture(event).get("degradationCounts") or {}
    return max(0, sum(counts.values()) - len(degradations(event)))


def accesses(event: Mapping[str, Any]) -> dict[tuple[str, DatasetName], Mapping[str, Any]]:
    """Give who saw the datasets of the event and how much of them was accessed, by side and name.

    The event has it of as many as it lists.
    """
    entries = _capture(event).get("datasets") or ()
    return {(entry["side"], name_of(entry["dataset"])): entry for entry in entries}


def partition_check(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give the event's facet on expected and observed partitions; empty if it has none."""
    return (event["run"].get("facets") or {}).get("sparkLineage_partitionCheck") or {}


def _capture(event: Mapping[str, Any]) -> Mapping[str, Any]:
    facets = event["run"].get("facets") or {}
    return facets.get("sparkLineage_capture") or {}
