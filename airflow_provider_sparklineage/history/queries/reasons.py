"""Why a run is in the rerun plan of something: what it read that is made of that."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.history.queries.answers import Dataset, Reason, values_of
from airflow_provider_sparklineage.history.queries.frontier import lists, table_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from airflow_provider_sparklineage.history.queries.rows import Rows
    from airflow_provider_sparklineage.history.queries.walk import Level, Node

# What runs read: versions of partitions, and datasets as a whole, of which the version is null.
_READS = f"""
WITH f AS ({table_of(run_id="VARCHAR", ended="TIMESTAMP")})
SELECT DISTINCT b.reader_run_id, b.namespace, b.name,
    CASE WHEN b.extent = 'partition' THEN b.version_run_id END AS version_run_id,
    CASE WHEN b.extent = 'partition' THEN b.version_cell END AS version_cell
FROM bindings_by_run AS b
JOIN runs AS r ON b.read_at = r.started AND b.reader_run_id = r.run_id
JOIN f ON r.ended = f.ended AND r.run_id = f.run_id
WHERE b.extent <> 'partition' OR b.version_run_id IS NOT NULL
"""


def reasons_of(
    history: Rows, found: Level, affected: Mapping[str, datetime], asked: Reason
) -> dict[str, list[Reason]]:
    """Give for each run what it read of what was asked about, or of what is made of that.

    A run of which it read one table may have written others, too, and more partitions of it.

    :param found: all that was made of what was asked about, there or replaced since
    :param affected: the runs to give reasons for, with their ends
    :param asked: the reason of those that read it themselves
    """
    own = _by_run(found, affected)
    depth = {run_id: min(found[node].depth for node in nodes) for run_id, nodes in own.items()}
    further = {run_id: affected[run_id] for run_id, nearest in depth.items() if nearest > 1}
    reads = _reads(history, further)
    via = {
        run_id: {
            one
            for node in own[run_id]
            if found[node].depth == depth[run_id]
            for one in found[node].via
        }
        for run_id in further
    }
    written = _by_run(found, {one for runs in via.values() for one in runs})
    return {run_id: [asked] for run_id in own} | {
        run_id: _read(reads[run_id], (node for one in runs for node in written.get(one, ())))
        for run_id, runs in via.items()
    }


def _by_run(found: Level, runs: Iterable[str]) -> dict[str, list[Node]]:
    wanted = set(runs)
    nodes = defaultdict(list)
    for node in found:
        if node.run_id in wanted:
            nodes[node.run_id].append(node)
    return nodes


_Read = tuple[str, str, str | None, str | None]


def _reads(history: Rows, runs: Mapping[str, datetime]) -> dict[str, set[_Read]]:
    found: dict[str, set[_Read]] = defaultdict(set)
    asked = lists(("run_id", "ended"), runs.items())
    for row in history.rows(_READS, asked) if runs else ():
        read = row["namespace"], row["name"], row["version_run_id"], row["version_cell"]
        found[row["reader_run_id"]].add(read)
    return found


def _read(reads: set[_Read], nodes: Iterable[Node]) -> list[Reason]:
    columns: dict[tuple[str, str, str], set[str | None]] = defaultdict(set)
    for node in nodes:
        dataset = node[:2]
        if {(*dataset, node.run_id, node.cell), (*dataset, None, None)} & reads:
            columns[(*dataset, node.cell or "")].add(node.column)
    return [
        Reason(Dataset(namespace, name), values_of(cell or None), _named(columns[key]))
        for key in sorted(columns)
        for namespace, name, cell in (key,)
    ]


def _named(columns: set[str | None]) -> tuple[str, ...]:
    """Give the names of columns, none if they are all columns."""
    named = tuple(sorted(one for one in columns if one is not None))
    return named if len(named) == len(columns) else ()
