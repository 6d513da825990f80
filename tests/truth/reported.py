"""What a merged event reports, in the terms of the oracles."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.truth.columns import Sources
    from tests.truth.values import Partition

Table = tuple[str, str]
"""The last two folders of a dataset: (query, table), (out, query)."""

_COUNTED_INDIRECT = {"WINDOW", "CONDITIONAL"}


@dataclass(frozen=True)
class Accessed:
    """How much of a dataset was accessed on one side.

    :param how: ``all``, ``part``, ``none``, ``removed`` or ``unknown``
    :param partitions: where the event names them
    :param rows: condition in SQL where it says which rows, and not which partitions
    """

    how: str
    partitions: set[Partition] | None = None
    rows: str = ""
    counts: Mapping[Partition, tuple[int, int]] = field(default_factory=dict)
    """The rows and bytes of each of the partitions that were written."""
    statistics: tuple[int, int] | None = None
    """The rows and bytes of ``outputStatistics``."""
    removed: frozenset[Partition] = frozenset()
    """The partitions that were emptied; the empty one is all of a dataset without partitions."""


class Reported:
    """The event of one application.

    :param place: gives the table that a dataset's name stands for
    """

    def __init__(self, event: dict[str, Any], place: Callable[[str], Table] | None = None) -> None:
        place = place or _table
        capture = event["run"]["facets"]["sparkLineage_capture"]
        self.degradations: list[dict[str, Any]] = capture["degradations"]
        how = {(d["side"], d["dataset"]["name"]): d["accessed"] for d in capture["datasets"]}
        self.inputs = {
            place(d["name"]): _accessed(d, "input", how["read", d["name"]]) for d in event["inputs"]
        }
        self.outputs = {
            place(d["name"]): _accessed(d, "output", how["write", d["name"]])
            for d in event["outputs"]
        }
        self.columns = {place(d["name"]): _columns(d, place) for d in event["outputs"]}


def _accessed(dataset: dict[str, Any], side: str, how: str) -> Accessed:
    removed = dataset.get("facets", {}).get("sparkLineage_partitions", {}).get("removed")
    named = [p["dimensions"].values() for p in removed["partitions"]] if removed else []
    emptied = frozenset(tuple(map(_value, values)) for values in named)
    if how == "removed":
        return Accessed(how, set(), removed=emptied or frozenset({()}))
    statistics = dataset.get(f"{side}Facets", {}).get("outputStatistics")
    total = (statistics.get("rowCount"), statistics.get("size")) if statistics else None
    return replace(_written(dataset, side, how), removed=emptied, statistics=total)


def _written(dataset: dict[str, Any], side: str, how: str) -> Accessed:
    if how == "none":
        return Accessed(how, set())
    facets = dataset.get(f"{side}Facets", {})
    subset = facets.get("subset")
    if subset is None:
        # Rows that only a text describes may be of every partition.
        return Accessed(how, None, "true" if "sparkLineage_subsetDescription" in facets else "")
    condition = subset[f"{side}Condition"]
    if condition["type"] != "partition":
        return Accessed(how, None, _sql(condition))
    values = [p["dimensions"] for p in condition["partitions"]]
    named = [tuple(map(_value, v.values())) for v in values]
    of = dataset.get("facets", {}).get("sparkLineage_partitions", {})
    counted = zip(named, of.get("rows", ()), of.get("bytes", ()), strict=False)
    return Accessed(how, set(named), counts={one: (rows, size) for one, rows, size in counted})


_COMPARISONS = {
    "EQUAL": "=",
    "NOT_EQUAL": "<>",
    "GREATER_THAN": ">",
    "GREATER_EQUAL_THAN": ">=",
    "LESS_THAN": "<",
    "LESS_EQUAL_THAN": "<=",
}


def _sql(condition: dict[str, Any]) -> str:
    if condition["type"] == "binary":
        left, right = _sql(condition["left"]), _sql(condition["right"])
        return f"({left} {condition['operator']} {right})"
    value = condition["right"]["value"].replace("'", "''")
    return f"{condition['left']['field']} {_COMPARISONS[condition['comparison']]} '{value}'"


def _table(name: str) -> Table:
    path = PurePosixPath(name)
    return path.parent.name.removesuffix(".db"), path.name


def _value(value: str | None) -> str | None:
    return None if value == "__HIVE_DEFAULT_PARTITION__" else value


def _columns(dataset: dict[str, Any], place: Callable[[str], Table]) -> dict[str, Sources]:
    facet = dataset.get("facets", {}).get("columnLineage", {})
    return {
        column: frozenset(
            (place(source["name"])[1], source["field"])
            for source in entry["inputFields"]
            if any(map(_counts, source.get("transformations", ())))
        )
        for column, entry in facet.get("fields", {}).items()
    }


def _counts(transformation: dict[str, Any]) -> bool:
    kind, subtype = transformation["type"], transformation.get("subtype")
    return kind == "DIRECT" or subtype in _COUNTED_INDIRECT
