"""Whether an event has every partition that was observed: nothing is lost silently.

:func:`lost` reads the observer's file and the event by itself, as JSON, and uses nothing of
``lineage/observed``. Each partition that a query read from outside or wrote, and each that a commit
names, must be in the event: in the subset of its dataset, or in its list of partitions, those that
it removed included, or the event says that all of the dataset was accessed. Else a degradation has
to say so: one of the dataset (:data:`EXCUSES`), or one of a cut (:data:`CUTS`).

Not asked for are reads that only inferred columns, reads of metadata tables, writes that were
skipped, and partitions that were read after a query had written them.
"""

from __future__ import annotations

import json
from operator import eq, ge, gt, le, lt, ne
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    Partition = frozenset[tuple[str, str | None]]
    Json = dict[str, Any]

EXCUSES = {
    "read": {"partitions_unknown", "internal_read_assumed"},
    "write": {"partitions_unknown", "action_failed", "action_unfinished"},
}
"""Side -> degradations of a dataset after which its partitions on that side may be missing."""
CUTS = {
    "clock_went_backwards",
    "collection_cut",
    "malformed_observations",
    "observation_cut",
    "observations_missing",
    "observer_failed",
}
"""Degradations after which any partition may be missing."""
SLACK_MS = 20
NULL = "__HIVE_DEFAULT_PARTITION__"


class Observed(NamedTuple):
    """A partition that a query read or wrote.

    :param path: of the dataset, without the partition's folders
    :param at: when the query had written it, or began to read it, in ms since the epoch
    """

    side: str
    path: str
    table: str
    partition: Partition
    at: int


def lost(observations: Path, event: Json) -> list[str]:
    """Name what was observed, and is neither in an event nor declared to be missing.

    :param observations: the observer's file
    """
    degradations = event["run"]["facets"]["sparkLineage_capture"]["degradations"]
    if CUTS & {d["code"] for d in degradations}:
        return []
    seen = list(observed(map(json.loads, observations.read_text().splitlines())))
    written = [one for one in seen if one.side == "write"]
    reported = {side: list(_reported(event, side)) for side in ("read", "write")}
    return sorted(
        {
            f"{one.side} {one.path} {dict(sorted(one.partition))}"
            for one in seen
            if not _is_internal(one, written)
            and not any(dataset.has(one) for dataset in reported[one.side])
            and not any(_excuses(degradation, one) for degradation in degradations)
        }
    )


def observed(records: Iterable[Json]) -> Iterator[Observed]:
    """Give all partitions that records name."""
    records = list(records)
    maintained = {one["path"] for record in records for one in record.get("maintenance", ())}
    for record in records:
        # The record of a clone has the times of the commit only.
        started = record.get("started") or record.get("writes", [{}])[0].get("time")
        for read in record.get("reads", ()):
            if _has_read(read, maintained):
                layouts = read.get("layouts")
                bare = [{"base": root} for root in read.get("roots") or ()]
                for layout in bare if layouts is None else layouts:
                    yield from _partitions("read", read, layout, started)
        for write in record.get("writes", ()):
            at = record.get("ended") if write.get("time") is None else write["time"]
            if not write.get("skipped"):
                for layout in (*write.get("layouts", ()), *write.get("emptied", ())):
                    yield from _partitions("write", write, layout, at)


def _has_read(read: Json, maintained: set[str]) -> bool:
    """Whether a read is one of data: no step of a command that maintains its table, and so on."""
    is_step = read.get("index") == "TahoeBatchFileIndex"
    roots = {root.removeprefix("file:") for root in read.get("roots") or ()}
    if is_step and roots & {path.removeprefix("file:") for path in maintained}:
        return False
    return not read.get("inference") and not read.get("not_data")


def _partitions(side: str, access: Json, layout: Json, at: int) -> Iterator[Observed]:
    names = [d.get("name") or d["field"] for d in layout.get("dimensions", ())]
    path, above = urlsplit(layout["base"]).path.rstrip("/"), []
    while "=" in path.rpartition("/")[2]:
        path, _, folder = path.rpartition("/")
        above.append(tuple(map(unquote, folder.split("=", 1))))
    for values in layout.get("partitions", ([],)):
        found = zip(names, (NULL if v is None else v for v in values), strict=True)
        partition = frozenset((*above, *found))
        yield Observed(side, path, access.get("table") or "", partition, at)


def _is_internal(read: Observed, written: list[Observed]) -> bool:
    return read.side == "read" and any(
        (write.path, write.partition) == (read.path, read.partition)
        and write.at <= read.at + SLACK_MS
        for write in written
    )


class _Reported(NamedTuple):
    """A dataset on one side of the event.

    :param part: ``all``, ``part``, ``none`` or ``unknown``
    :param condition: of the facet ``subset``; {} without one
    :param is_described: whether it has a text alone, for rows that no condition can express, such
        as those of a LIKE: such rows may be in any partition
    :param listed: the partitions that the dataset's facets name
    """

    names: set[str]
    part: str
    condition: Json
    is_described: bool
    listed: set[Partition]

    def has(self, one: Observed) -> bool:
        if not _is_named(one, self.names):
            return False
        if not one.partition:  # of a dataset without partitions, a condition is of its rows
            return self.part != "none"
        is_whole = self.part == "all" and one.side == "read"
        is_chosen = bool(self.condition) and _holds(self.condition, one.partition)
        return is_whole or is_chosen or self.is_described or one.partition in self.listed


_COMPARE = {
    "EQUAL": eq,
    "NOT_EQUAL": ne,
    "GREATER_THAN": gt,
    "GREATER_EQUAL_THAN": ge,
    "LESS_THAN": lt,
    "LESS_EQUAL_THAN": le,
}


def _holds(condition: Json, partition: Partition) -> bool:
    """Whether a partition is in the part that a condition describes; its rows may be any."""
    match condition["type"]:
        case "partition":
            return partition in map(_values, condition["partitions"])
        case "binary":
            both = (_holds(condition[side], partition) for side in ("left", "right"))
            return all(both) if condition["operator"] == "AND" else any(both)
        case "compare":
            value = dict(partition).get(condition["left"]["field"])
            compare = _COMPARE[condition["comparison"]]
            return value is None or compare(value, condition["right"]["value"])
    return False


def _values(partition: Json) -> Partition:
    return frozenset(partition["dimensions"].items())


def _is_named(one: Observed, names: set[str]) -> bool:
    path = one.path.strip("/")
    ends = {".".join(one.table.split(".")[-n:]) for n in (1, 2)} - {""}
    return bool(ends & names) or any(path == n or path.startswith(f"{n}/") for n in names)


def _reported(event: Json, side: str) -> Iterator[_Reported]:
    facets = event["run"]["facets"]
    parts = {
        d["dataset"]["name"]: d["accessed"]
        for d in facets["sparkLineage_capture"].get("datasets", ())
        if d["side"] == side
    }
    key, condition = {
        "read": ("inputFacets", "inputCondition"),
        "write": ("outputFacets", "outputCondition"),
    }[side]
    for dataset in event["inputs" if side == "read" else "outputs"]:
        links = dataset["facets"].get("symlinks", {}).get("identifiers", ())
        names = {dataset["name"].strip("/"), *(link["name"] for link in links)}
        facets_of_side = dataset.get(key, {})
        subset = facets_of_side.get("subset", {}).get(condition, {})
        is_described = not subset and "sparkLineage_subsetDescription" in facets_of_side
        of_output = dataset["facets"].get("sparkLineage_partitions", {})
        removed = of_output.get("removed", {}).get("partitions", ())
        listed = (*of_output.get("partitions", ()), *removed)
        of_side = map(_values, listed if side == "write" else ())
        yield _Reported(names, parts[dataset["name"]], subset, is_described, set(of_side))


def _excuses(degradation: Json, one: Observed) -> bool:
    if degradation["code"] == "observation_untied":
        return one.path in degradation["message"]
    names = {degradation.get("dataset", {}).get("name", "-").strip("/")}
    return degradation["code"] in EXCUSES[one.side] and _is_named(one, names)
