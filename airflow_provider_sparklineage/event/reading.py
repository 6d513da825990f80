"""What a merged event says of itself, for whoever shows it; without the libraries of a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.event.document import name_of
from airflow_provider_sparklineage.model.degradations import DegradationCode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_sparklineage.model.datasets import DatasetName


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
