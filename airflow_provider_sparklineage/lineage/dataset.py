"""A dataset of the task: what several actions say of it, joined into one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from airflow_provider_sparklineage.datasets import DatasetName

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from airflow_provider_sparklineage.lineage.application import ActionDataset
    from airflow_provider_sparklineage.lineage.columns import ColumnLineage


@dataclass(frozen=True)
class LineageDataset:
    """A dataset of the task: facets as Spark said them, columns composed.

    :param locations: partition locations that were touched; None is the whole dataset, or unknown
    """

    name: DatasetName
    facets: Mapping[str, msgspec.Raw] = field(default_factory=dict)
    side_facets: Mapping[str, msgspec.Raw] = field(default_factory=dict)
    locations: frozenset[str] | None = None
    columns: ColumnLineage | None = None


# Spark rounds the snapshot ids in these to doubles, and they describe single scans and commits.
_DROPPED = frozenset({"icebergScanReport", "icebergCommitReport"})


def joined(
    known: LineageDataset | None, dataset: ActionDataset, *, is_input: bool
) -> LineageDataset:
    """Join what a later action says of a dataset to what is known of it on the same side.

    Facets are the later action's; symlinks are united; output statistics are summed; an input's
    ``version`` stays the earliest; one action without locations makes the whole.
    """
    facets = {k: v for k, v in dataset.facets.items() if k != "columnLineage"}
    sides = {k: v for k, v in dataset.side_facets.items() if k not in _DROPPED}
    if known is None:
        return LineageDataset(dataset.name, facets, sides, dataset.locations)
    both = {**known.facets, **facets}
    if "symlinks" in known.facets and "symlinks" in facets:
        both["symlinks"] = _united_symlinks(known.facets["symlinks"], facets["symlinks"])
    if is_input and "version" in known.facets:
        both["version"] = known.facets["version"]
    both_sides = {**known.side_facets, **sides}
    if not is_input and "outputStatistics" in known.side_facets and "outputStatistics" in sides:
        both_sides["outputStatistics"] = _summed(
            known.side_facets["outputStatistics"], sides["outputStatistics"]
        )
    whole = known.locations is None or dataset.locations is None
    locations = (
        None if whole else (known.locations or frozenset()) | (dataset.locations or frozenset())
    )
    return LineageDataset(dataset.name, both, both_sides, locations)


def _united_symlinks(first: msgspec.Raw, second: msgspec.Raw) -> msgspec.Raw:
    facet = msgspec.json.decode(second)
    identifiers = [
        *msgspec.json.decode(first).get("identifiers", ()),
        *facet.get("identifiers", ()),
    ]
    unique = {msgspec.json.encode(i, order="sorted"): i for i in identifiers}
    facet["identifiers"] = [unique[key] for key in sorted(unique)]
    return msgspec.Raw(msgspec.json.encode(facet))


def _summed(first: msgspec.Raw, second: msgspec.Raw) -> msgspec.Raw:
    facet, other = msgspec.json.decode(second), msgspec.json.decode(first)
    for key, value in other.items():
        if isinstance(value, int) and not isinstance(value, bool):
            facet[key] = value + (facet.get(key) or 0)
    return msgspec.Raw(msgspec.json.encode(facet))


class _SchemaField(msgspec.Struct):
    name: str


class _Schema(msgspec.Struct):
    fields: list[_SchemaField] | None = None


def column_names(dataset: ActionDataset | LineageDataset) -> list[str]:
    """Read the names of the top-level columns; empty where the schema is not said."""
    facet = dataset.facets.get("schema")
    if facet is None:
        return []
    try:
        return [f.name for f in msgspec.json.decode(facet, type=_Schema).fields or ()]
    except msgspec.ValidationError:
        return []


class _Symlinks(msgspec.Struct):
    identifiers: list[dict[str, str]] = []


def with_declared(
    observed: dict[DatasetName, LineageDataset], declared: Iterable[DatasetName]
) -> dict[DatasetName, LineageDataset]:
    """Add declared datasets that were not observed under that name or a symlink of theirs."""
    known = set(observed)
    for dataset in observed.values():
        if "symlinks" in dataset.facets:
            links = msgspec.json.decode(dataset.facets["symlinks"], type=_Symlinks).identifiers
            known.update(DatasetName(i.get("namespace", ""), i.get("name", "")) for i in links)
    return observed | {name: LineageDataset(name) for name in declared if name not in known}


class _Statistics(msgspec.Struct):
    size: int | None = None


def size_of(dataset: ActionDataset, statistics: str) -> int | None:
    """Read the bytes of ``inputStatistics`` or ``outputStatistics``; None where nobody says."""
    facet = dataset.side_facets.get(statistics)
    try:
        return None if facet is None else msgspec.json.decode(facet, type=_Statistics).size
    except msgspec.ValidationError:
        return None
