"""What a partition was made from and what was made from it, as far as a user may see.

Nothing is shown behind a run that the user may not see: not what it read, nor what it wrote. That
a version has a writer is shown, without the writer's name, where a run that the user may see names
the partition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sparklineage.plugins.history import naming, runs
from airflow_provider_sparklineage.plugins.history.texts import cell_of, partition_of

if TYPE_CHECKING:
    from airflow_provider_sparklineage.plugins.history.opened import Asked
    from airflow_provider_sparklineage.plugins.history.visibility import Visibility

MOST = 5000
"""Hops of one direction in an answer; nobody reads more of them, and a count is given."""
MAX_DEPTH = 50

_WRITTEN = """
SELECT DISTINCT out_column AS column FROM columns
WHERE out_namespace = $namespace AND out_name = $name AND out_column IS NOT NULL
  AND list_contains($ids, run_id)
"""
_READ = """
SELECT DISTINCT in_column AS column FROM columns
WHERE in_namespace = $namespace AND in_name = $name AND list_contains($ids, run_id)
"""


class Wanted(NamedTuple):
    """A partition, or all of a dataset for None, or one of its columns; how far to go."""

    dataset: tuple[str, str]
    partition: str | None = None
    column: str | None = None
    depth: int = 3


def of(wanted: Wanted, history: Asked, visibility: Visibility) -> dict[str, Any]:
    """Give the hops in both directions, and the columns that may be asked for.

    :return: ``upstream`` and ``downstream`` with ``hops`` and the number of those that are
        ``hidden``; ``columns``
    """
    shown = naming.checked(wanted.dataset, wanted.partition, history, visibility)
    up = history.trace(wanted.dataset, wanted.partition, wanted.column, wanted.depth)
    all_down = history.downstream(wanted.dataset, wanted.partition, wanted.column)
    down = [hop for hop in all_down if hop["depth"] <= wanted.depth]
    ids = {runs.id_of(hop) for hop in (*up, *down)} | {
        via for h in (*up, *down) for via in h["via"]
    }
    known = runs.of(ids - {""}, history)
    seen = runs.seen(known, visibility)
    named = None if seen.keys() == known.keys() else naming.by_runs(seen, history)
    up = [hop for hop in up if hop["depth"] or shown.has(cell_of(hop["partition"]))]
    upstream, downstream = _upstream(up, known, seen, named), _downstream(down, seen)
    return {
        "upstream": upstream,
        "downstream": downstream,
        "columns": _columns(wanted, history, upstream["hops"], downstream["hops"]),
        "is_more": any(hop["depth"] > wanted.depth for hop in all_down),
    }


def _upstream(
    hops: list[dict[str, Any]],
    known: dict[str, Any],
    seen: dict[str, Any],
    named: frozenset[tuple[str, str, str]] | None,
) -> dict[str, Any]:
    """Keep what a run read that is kept itself; a hidden writer is kept without a name.

    :param named: the partitions that runs name which are seen; None if all are
    """
    kept: list[dict[str, Any]] = []
    readers: set[str] = set()
    for hop in sorted(hops, key=lambda hop: hop["depth"]):
        via = [run_id for run_id in hop["via"] if run_id in readers]
        if hop["depth"] and not via:
            continue
        run_id = runs.id_of(hop)
        is_hidden = run_id in known and run_id not in seen
        if is_hidden and not naming.is_in(named or frozenset(), hop["dataset"], hop["partition"]):
            continue
        kept.append(_shown(hop, via, seen.get(run_id), is_hidden=is_hidden))
        readers |= {run_id} & seen.keys()
    return _bounded(kept, len(hops))


def _downstream(hops: list[dict[str, Any]], seen: dict[str, Any]) -> dict[str, Any]:
    """Keep what a run wrote that the user may see, of what is kept itself."""
    kept: list[dict[str, Any]] = []
    writers: set[str] = set()
    for hop in sorted(hops, key=lambda hop: hop["depth"]):
        run_id = runs.id_of(hop)
        via = [one for one in hop["via"] if one in writers]
        # At the first depth what is read is the partition itself, whoever wrote it.
        if run_id not in seen or (hop["depth"] > 1 and not via):
            continue
        kept.append(_shown(hop, via, seen[run_id], is_hidden=False))
        writers.add(run_id)
    return _bounded(kept, len(hops))


def _bounded(kept: list[dict[str, Any]], count: int) -> dict[str, Any]:
    return {"hops": kept[:MOST], "hidden": count - len(kept), "more": max(0, len(kept) - MOST)}


def _shown(
    hop: dict[str, Any], via: list[str], run: dict[str, Any] | None, *, is_hidden: bool
) -> dict[str, Any]:
    return {
        "depth": hop["depth"],
        "dataset": hop["dataset"],
        "partition": partition_of(hop["partition"]),
        "column": hop["column"],
        "transformations": hop["transformations"],
        "is_certain": hop["is_certain"],
        "note": hop.get("note"),
        "via": via,
        "run": run,
        "is_hidden": is_hidden,
    }


def _columns(wanted: Wanted, history: Asked, *sides: list[dict[str, Any]]) -> list[str]:
    """Name the columns that runs next to the partition wrote of it, or read."""
    named = {"namespace": wanted.dataset[0], "name": wanted.dataset[1]}
    found: set[str] = set()
    for sql, hops, depth in zip((_WRITTEN, _READ), sides, (0, 1), strict=True):
        ids = {runs.id_of(hop) for hop in hops if hop["depth"] == depth} - {""}
        if ids:
            found |= {r["column"] for r in history.rows(sql, {**named, "ids": sorted(ids)})}
    return sorted(found)
