"""One hop downstream: who read versions, and what these runs wrote of them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sparklineage.history.queries.answers import Transformation
from airflow_provider_sparklineage.history.queries.frontier import (
    SURELY_BOUND,
    found_by,
    lists,
    surely_found,
    table_of,
)
from airflow_provider_sparklineage.history.queries.walk import Link, Node

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from airflow_provider_sparklineage.history.queries.rows import Rows
    from airflow_provider_sparklineage.history.queries.walk import Level

_READERS = f"""
WITH f AS ({
    table_of(
        run_id="VARCHAR",
        at="TIMESTAMP",
        namespace="VARCHAR",
        name="VARCHAR",
        own_cell="VARCHAR",
    )
}), whole AS (
    SELECT b.*, r.ended FROM bindings AS b
    JOIN (SELECT DISTINCT namespace, name FROM f) AS d
        ON b.namespace = d.namespace AND b.name = d.name
    JOIN runs AS r ON r.run_id = b.reader_run_id
    WHERE b.extent <> 'partition'
), versions AS (
    SELECT c.* FROM changes AS c JOIN f ON c.namespace = f.namespace AND c.name = f.name
        AND c.run_id = f.run_id AND c.cell IS NOT DISTINCT FROM f.own_cell
)
SELECT f.namespace, f.name, f.own_cell, f.run_id, b.reader_run_id, b.read_at,
    {SURELY_BOUND} AS is_certain
FROM bindings AS b JOIN f ON b.namespace = f.namespace AND b.name = f.name
    AND b.version_run_id = f.run_id AND b.version_cell IS NOT DISTINCT FROM f.own_cell
WHERE b.extent = 'partition'
UNION ALL
SELECT c.namespace, c.name, c.cell, c.run_id, b.reader_run_id, b.read_at, {surely_found("b", "c")}
FROM whole AS b JOIN versions AS c
    ON c.namespace = b.namespace AND c.name = b.name AND {found_by("b", "c")}
"""

_WRITES = f"""
WITH f AS ({table_of(run_id="VARCHAR", started="TIMESTAMP")}),
readers AS (
    SELECT r.run_id, r.ended FROM runs AS r
    JOIN f ON r.run_id = f.run_id AND r.started = f.started
)
SELECT c.run_id, c.namespace, c.name, c.cell, c.valid_from, c.valid_to
FROM changes_by_run AS c JOIN readers AS r ON c.valid_from = r.ended AND c.run_id = r.run_id
"""

_EDGES = f"""
WITH f AS ({
    table_of(
        run_id="VARCHAR",
        ended="TIMESTAMP",
        namespace="VARCHAR",
        name="VARCHAR",
        of_column="VARCHAR",
    )
})
SELECT DISTINCT f.run_id, f.namespace, f.name, f.of_column, c.out_namespace, c.out_name,
    CASE WHEN f.of_column IS NOT NULL THEN c.out_column END AS out_column,
    CASE WHEN f.of_column IS NOT NULL THEN c.type END AS type,
    CASE WHEN f.of_column IS NOT NULL THEN c.subtype END AS subtype,
    CASE WHEN f.of_column IS NOT NULL THEN c.masking END AS masking,
    CASE WHEN f.of_column IS NOT NULL THEN c.description END AS description
FROM columns AS c JOIN f ON c.ended = f.ended AND c.run_id = f.run_id
    AND c.in_namespace = f.namespace AND c.in_name = f.name
WHERE f.of_column IS NULL OR c.in_column = f.of_column
"""
_WITH_COLUMNS = f"""
WITH f AS ({table_of(run_id="VARCHAR", ended="TIMESTAMP")})
SELECT DISTINCT c.run_id, c.out_namespace, c.out_name
FROM columns AS c JOIN f ON c.ended = f.ended AND c.run_id = f.run_id
"""


class Reading(NamedTuple):
    """A dataset, or a column of it, that a run read, with something of interest in it."""

    run_id: str
    started: Any
    namespace: str
    name: str
    column: str | None


Readings = dict[Reading, tuple[set[str], bool]]
"""With whose versions they are of, and whether it is certain that one of these was read."""


def add_reading(readings: Readings, reading: Reading, via: str | None, certain: object) -> None:
    """Add one more version that was read."""
    versions, is_certain = readings.get(reading, (set(), False))
    if via:
        versions.add(via)
    readings[reading] = versions, is_certain or bool(certain)


def results(history: Rows, level: Level, *, is_of_column: bool) -> Iterator[Link]:
    """Give links from versions to those that were made of them."""
    columns: dict[tuple[Any, ...], set[str | None]] = defaultdict(set)
    versions = set()
    for node, found in level.items():
        columns[node.namespace, node.name, node.cell, node.run_id].add(node.column)
        versions.add((node.run_id, found.at, node.namespace, node.name, node.cell))
    names = ("run_id", "at", "namespace", "name", "own_cell")
    readings: Readings = {}
    for row in history.rows(_READERS, lists(names, versions)):
        key = row["namespace"], row["name"], row["own_cell"], row["run_id"]
        for column in columns[key]:
            reading = Reading(row["reader_run_id"], row["read_at"], *key[:2], column)
            add_reading(readings, reading, row["run_id"], row["is_certain"])
    return links_of(history, readings, is_of_column=is_of_column)


def links_of(history: Rows, readings: Readings, *, is_of_column: bool) -> Iterator[Link]:
    """Give links to all that runs wrote of what they read."""
    writes = _writes(history, {reading[:2] for reading in readings})
    if is_of_column:
        yield from _by_columns(history, readings, writes)
        return
    for reading, (via, is_certain) in readings.items():
        for rows in writes[reading.run_id].values():
            yield from (_link(row, None, via, is_certain) for row in rows)


_Writes = dict[str, dict[tuple[str, str], list[dict[str, Any]]]]


def _writes(history: Rows, runs: Iterable[tuple[Any, ...]]) -> _Writes:
    found: _Writes = defaultdict(lambda: defaultdict(list))
    runs = list(runs)
    for row in history.rows(_WRITES, lists(("run_id", "started"), runs)) if runs else ():
        found[row["run_id"]][row["namespace"], row["name"]].append(row)
    return found


def _link(
    row: dict[str, Any],
    column: str | None,
    via: Iterable[str],
    is_certain: bool,
    how: tuple[Transformation, ...] = (),
    is_column_known: bool = True,
) -> Link:
    node = Node(row["namespace"], row["name"], row["cell"], column, row["run_id"])
    at, to = row["valid_from"], row["valid_to"]
    return Link(node, at, is_certain, tuple(via), how, to, is_column_known)


def _by_columns(history: Rows, readings: Readings, writes: _Writes) -> Iterator[Link]:
    ended = {run: _ended(by_dataset) for run, by_dataset in writes.items()}
    asked = [(r.run_id, ended[r.run_id], *r[2:]) for r in readings if r.run_id in ended]
    edges = defaultdict(list)
    names = ("run_id", "ended", "namespace", "name", "of_column")
    for row in history.rows(_EDGES, lists(names, asked)) if asked else ():
        edges[row["run_id"], row["namespace"], row["name"], row["of_column"]].append(row)
    known = _outputs_with_columns(history, ended)
    for reading, (via, is_certain) in readings.items():
        outputs = writes.get(reading.run_id, {})
        for edge in edges[reading.run_id, *reading[2:]]:
            how = transformation(edge)
            for row in outputs.get((edge["out_namespace"], edge["out_name"]), ()):
                yield _link(row, edge["out_column"], via, is_certain, how)
        for dataset, rows in outputs.items():
            if (reading.run_id, *dataset) not in known:
                yield from (_link(row, None, via, is_certain, (), False) for row in rows)


def _ended(by_dataset: dict[tuple[str, str], list[dict[str, Any]]]) -> Any:
    return next(iter(by_dataset.values()))[0]["valid_from"]


def _outputs_with_columns(history: Rows, ended: dict[str, Any]) -> set[tuple[str, str, str]]:
    if not ended:
        return set()
    rows = history.rows(_WITH_COLUMNS, lists(("run_id", "ended"), ended.items()))
    return {(row["run_id"], row["out_namespace"], row["out_name"]) for row in rows}


def transformation(edge: dict[str, Any]) -> tuple[Transformation, ...]:
    """Give how an edge transforms its column; nothing of an edge between datasets."""
    if edge["type"] is None and edge["subtype"] is None:
        return ()
    texts = (edge["type"] or "", edge["subtype"] or "")
    return (Transformation(*texts, bool(edge["masking"]), edge["description"] or ""),)
