"""The versions made from a partition, or from one of its columns, and the plan to run them again.

One hop downstream goes from versions to the runs that read them, and on to the versions that these
runs wrote. The plan's reason for a run is the data that the run read: the subject of the question,
or data made from that subject.
"""

from __future__ import annotations

from collections import defaultdict
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from airflow_provider_sparklineage.history.queries import answers, sql
from airflow_provider_sparklineage.history.queries.datasets import cell_of, check_column, content
from airflow_provider_sparklineage.history.queries.plan import plan_for, with_unwritten
from airflow_provider_sparklineage.history.queries.unjudged import not_looked_for, of_impact
from airflow_provider_sparklineage.history.queries.unwritten import Part, since_of, unwritten
from airflow_provider_sparklineage.history.queries.walk import (
    Node,
    breadth_first,
    hops,
    link,
    outputs_with_columns,
)
from airflow_provider_sparklineage.model.datasets import DatasetName

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from datetime import datetime

    from airflow_provider_sparklineage.history.queries.walk import Level, Link


_VERSION = ("run_id", "at", "namespace", "name", "own_cell")
_READERS = f"""
WITH f AS ({sql.table_of(*_VERSION)}), whole AS (
    SELECT b.*, r.ended FROM bindings AS b
    JOIN (SELECT DISTINCT namespace, name FROM f) AS d
        ON b.namespace = d.namespace AND b.name = d.name
    JOIN runs AS r ON r.started = b.read_at AND r.run_id = b.reader_run_id
    WHERE b.extent <> 'partition' AND b.read_at >= list_min(CAST($at AS TIMESTAMP[]))
), versions AS (
    SELECT c.* FROM changes AS c JOIN f ON c.namespace = f.namespace AND c.name = f.name
        AND c.run_id = f.run_id AND c.cell IS NOT DISTINCT FROM f.own_cell AND c.valid_from = f.at
)
SELECT f.namespace, f.name, f.own_cell, f.run_id, b.reader_run_id, b.read_at,
    {sql.SURELY_BOUND} AS is_certain
FROM bindings AS b JOIN f ON b.namespace = f.namespace AND b.name = f.name
    AND b.version_run_id = f.run_id AND b.version_cell IS NOT DISTINCT FROM f.own_cell
    AND b.valid_from = f.at
WHERE b.extent = 'partition'
UNION ALL
SELECT c.namespace, c.name, c.cell, c.run_id, b.reader_run_id, b.read_at, {
    sql.surely_found("b", "c")
}
FROM whole AS b JOIN versions AS c
    ON c.namespace = b.namespace AND c.name = b.name AND {sql.found_by("b", "c")}
"""

_WRITES = f"""
WITH f AS ({sql.table_of("run_id", "started")}),
readers AS (
    SELECT r.run_id, r.ended FROM runs AS r
    JOIN f ON r.run_id = f.run_id AND r.started = f.started
)
SELECT c.run_id, c.namespace, c.name, c.cell, c.valid_from, c.valid_to
FROM changes_by_run AS c JOIN readers AS r ON c.valid_from = r.ended AND c.run_id = r.run_id
"""

_EDGES = f"""
{sql.column_edges("in", "out")}
WHERE f.of_column IS NULL OR c.in_column = f.of_column
"""


class Reading(NamedTuple):
    """A run's read of a dataset or column: of the question's subject, or of data made from it.

    :param run_id: the run that read
    :param started: when that run started
    :param column: None for all columns of the dataset, or if columns are not known
    """

    run_id: str
    started: Any
    namespace: str
    name: str
    column: str | None


Readings = dict[Reading, tuple[set[str], bool]]
"""For each reading, the run_ids of the versions that it read, and whether any is certain.

The set of run_ids is without versions whose run is not known, so it may be empty.
"""


Silent = set[tuple[str, Any]]
"""Run_id and start of each run that read the data and wrote nothing known."""


def add_reading(readings: Readings, reading: Reading, via: str | None, certain: object) -> None:
    """Note in ``readings`` that a reading has read one more version.

    :param via: run_id of the run that wrote the version; None if it is not known
    :param certain: whether it is certain that this version was read
    """
    versions, is_certain = readings.get(reading, (set(), False))
    if via:
        versions.add(via)
    readings[reading] = versions, is_certain or bool(certain)


def results(
    history: sql.Rows, level: Level, silent: Silent, *, is_of_column: bool
) -> Iterator[Link]:
    """Yield a link from each version of ``level`` to each version that was made from it.

    :param history: an opened store of the history
    :param silent: gets the runs that read a version and wrote nothing known
    :param is_of_column: whether the links follow the column lineage of the runs; else all writes of
        a run are made from each of its reads
    """
    columns: dict[tuple[Any, ...], set[str | None]] = defaultdict(set)
    versions = set()
    for node, visit in level.items():
        columns[node.namespace, node.name, node.cell, node.run_id].add(node.column)
        versions.add((node.run_id, visit.at, node.namespace, node.name, node.cell))
    readings: Readings = {}
    for row in history.rows(_READERS, sql.lists(_VERSION, versions)):
        key = row["namespace"], row["name"], row["own_cell"], row["run_id"]
        for column in columns[key]:
            reading = Reading(row["reader_run_id"], row["read_at"], *key[:2], column)
            add_reading(readings, reading, row["run_id"], row["is_certain"])
    return links_of(history, readings, silent, is_of_column=is_of_column)


def links_of(
    history: sql.Rows, readings: Readings, silent: Silent, *, is_of_column: bool
) -> Iterator[Link]:
    """Yield a link from the data of each reading to each version that the reading's run wrote.

    :param history: an opened store of the history
    :param readings: as :func:`add_reading` fills them
    :param silent: gets the runs that wrote nothing known
    :param is_of_column: whether the links follow the column lineage of the runs, as far as it is
        known
    """
    runs = {reading[:2] for reading in readings}
    writes = _writes(history, runs)
    silent.update(run for run in runs if run[0] not in writes)
    if is_of_column:
        yield from _by_columns(history, readings, writes)
        return
    for reading, (via, is_certain) in readings.items():
        for rows in writes[reading.run_id].values():
            yield from (link(row, None, via, is_certain) for row in rows)


_Writes = dict[str, dict[tuple[str, str], list[dict[str, Any]]]]


def _writes(history: sql.Rows, runs: Iterable[tuple[Any, ...]]) -> _Writes:
    writes: _Writes = defaultdict(lambda: defaultdict(list))
    runs = list(runs)
    for row in history.rows(_WRITES, sql.lists(("run_id", "started"), runs)) if runs else ():
        writes[row["run_id"]][row["namespace"], row["name"]].append(row)
    return writes


def _by_columns(history: sql.Rows, readings: Readings, writes: _Writes) -> Iterator[Link]:
    # All rows of a run have its end as their time.
    ended = {run: next(iter(of_run.values()))[0]["valid_from"] for run, of_run in writes.items()}
    read = [(r.run_id, ended[r.run_id], *r[2:]) for r in readings if r.run_id in ended]
    edges = defaultdict(list)
    for row in history.rows(_EDGES, sql.lists(sql.READ_OR_WRITTEN, read)) if read else ():
        edges[row["run_id"], row["namespace"], row["name"], row["of_column"]].append(row)
    known = outputs_with_columns(history, ended.items())
    for reading, (via, is_certain) in readings.items():
        outputs = writes.get(reading.run_id, {})
        for edge in edges[reading.run_id, *reading[2:]]:
            how = answers.transformation(edge)
            for row in outputs.get((edge["out_namespace"], edge["out_name"]), ()):
                yield link(row, edge["out_column"], via, is_certain, how)
        for dataset, rows in outputs.items():
            if (reading.run_id, *dataset) not in known:
                for row in rows:
                    yield link(row, None, via, is_certain, is_column_known=False)


# The reads of runs: a version of a partition, or a whole dataset; its version is null.
_READS_OF_RUNS = f"""
WITH f AS ({sql.table_of(*sql.RUN)})
SELECT DISTINCT b.reader_run_id, b.namespace, b.name,
    CASE WHEN b.extent = 'partition' THEN b.version_run_id END AS version_run_id,
    CASE WHEN b.extent = 'partition' THEN b.version_cell END AS version_cell
FROM bindings_by_run AS b
JOIN runs AS r ON b.read_at = r.started AND b.reader_run_id = r.run_id
JOIN f ON r.ended = f.ended AND r.run_id = f.run_id
WHERE b.extent <> 'partition' OR b.version_run_id IS NOT NULL
"""


def reasons_of(
    history: sql.Rows, visited: Level, affected: Mapping[str, datetime], of_subject: answers.Reason
) -> dict[str, list[answers.Reason]]:
    """Give the reasons of each run: its reads of the question's subject, or of data made from it.

    Only the versions that the run itself read are reasons. The runs that wrote these versions may
    have written other tables and partitions, too.

    :param history: an opened store of the history
    :param visited: all versions made from the subject, whether they still exist or were replaced
    :param affected: the runs to give reasons for: the end of each, by run_id
    :param of_subject: the reason of runs that read the subject itself
    :return: reasons by run_id
    """
    own = _by_run(visited, affected)
    depth = {run_id: min(visited[node].depth for node in nodes) for run_id, nodes in own.items()}
    further = {run_id: affected[run_id] for run_id, nearest in depth.items() if nearest > 1}
    reads = _reads_of_runs(history, further)
    via = {
        run_id: {
            one
            for node in own[run_id]
            if visited[node].depth == depth[run_id]
            for one in visited[node].via
        }
        for run_id in further
    }
    written = _by_run(visited, {one for runs in via.values() for one in runs})
    return {run_id: [of_subject] for run_id in own} | {
        run_id: _reasons_to_read(
            reads[run_id], (node for one in runs for node in written.get(one, ()))
        )
        for run_id, runs in via.items()
    }


def _by_run(visited: Level, runs: Collection[str]) -> dict[str, list[Node]]:
    nodes: dict[str, list[Node]] = defaultdict(list)
    for node in visited:
        if node.run_id and node.run_id in runs:
            nodes[node.run_id].append(node)
    return nodes


_Read = tuple[str, str, str | None, str | None]


def _reads_of_runs(history: sql.Rows, runs: Mapping[str, datetime]) -> dict[str, set[_Read]]:
    reads: dict[str, set[_Read]] = defaultdict(set)
    parameters = sql.lists(sql.RUN, runs.items())
    for row in history.rows(_READS_OF_RUNS, parameters) if runs else ():
        read = row["namespace"], row["name"], row["version_run_id"], row["version_cell"]
        reads[row["reader_run_id"]].add(read)
    return reads


def _reasons_to_read(reads: set[_Read], nodes: Iterable[Node]) -> list[answers.Reason]:
    columns: dict[tuple[str, str, str], set[str | None]] = defaultdict(set)
    for node in nodes:
        dataset = node[:2]
        if {(*dataset, node.run_id, node.cell), (*dataset, None, None)} & reads:
            columns[(*dataset, node.cell or "")].add(node.column)
    return [
        answers.Reason(answers.Dataset(*key[:2]), answers.values_of(key[2] or None), _named(of_key))
        for key, of_key in sorted(columns.items(), key=itemgetter(0))
    ]


def _named(columns: set[str | None]) -> tuple[str, ...]:
    """Give the names of columns, sorted; () if None, which means all columns, is among them."""
    named = tuple(sorted(one for one in columns if one is not None))
    return named if len(named) == len(columns) else ()


_OF_SUBJECT = "namespace = $namespace AND name = $name"
# All reads of the subject. A read of more than one cell has a row for each version of the subject
# that it found; the version is null if it found none (for a cell: only if no version is known).
_READINGS_OF_SUBJECT = f"""
WITH versions AS (
    SELECT c.*, CASE WHEN c.cell IS NULL THEN (
        SELECT min(x.valid_from) FROM changes AS x
        WHERE x.namespace = $namespace AND x.name = $name AND x.cell = $cell
            AND x.mode IN {sql.REPLACING} AND (x.valid_from > c.valid_from
                OR (x.valid_from = c.valid_from AND x.run_id > c.run_id))
    ) END AS without_cell_from
    FROM changes AS c WHERE {_OF_SUBJECT} AND ($cell IS NULL
        OR (c.cell IS NOT NULL AND {sql.meets("c.cell", "$cell")})
        OR (c.cell IS NULL AND (c.extent <> 'range' OR {sql.within("$cell", "c")})))
), whole AS (
    SELECT b.*, r.ended FROM (SELECT * FROM bindings WHERE {_OF_SUBJECT}) AS b
    JOIN runs AS r ON r.run_id = b.reader_run_id WHERE b.extent <> 'partition'
)
SELECT b.reader_run_id, b.read_at, b.version_run_id,
    COALESCE(b.evidence, '') NOT IN {sql.UNCERTAIN} AS is_certain
FROM bindings AS b
WHERE {_OF_SUBJECT} AND b.extent = 'partition' AND ($cell IS NULL OR ({sql.meets("b.cell", "$cell")}
    AND (b.version_cell IS NULL OR {sql.meets("b.version_cell", "$cell")})))
UNION ALL
SELECT b.reader_run_id, b.read_at, c.run_id,
    b.extent = 'all' AND ($cell IS NULL OR c.run_id IS NOT NULL)
FROM whole AS b LEFT JOIN versions AS c ON {sql.found_by("b", "c")}
    AND (c.without_cell_from IS NULL OR c.without_cell_from > b.read_at)
WHERE ($cell IS NULL OR b.extent <> 'range' OR {sql.within("$cell", "b")})
    AND ($cell IS NULL OR c.run_id IS NOT NULL OR NOT EXISTS (SELECT 1 FROM versions))
"""


def impact(
    history: sql.Rows,
    dataset: DatasetName,
    partition: str | None = None,
    column: str | None = None,
    as_of: datetime | None = None,
    depth: int | None = None,
    progress: Callable[[int], None] | None = None,
    *,
    is_planned: bool = True,
) -> answers.Impact:
    """Give all versions that still exist and were made from any version of a partition.

    The walk also goes through replaced versions, so the answer has each existing version, even if
    it was made from a version that no longer exists. For a column, the walk follows column lineage.
    The column of a hop is None if the version depends on the subject by a condition on all columns,
    such as a filter, or if the columns are not known. The plan for a partition also has partitions
    that are due, do not exist, and would be made from it (:mod:`.unwritten`).

    :param history: an opened store of the history
    :param dataset: the dataset that has the partition
    :param partition: its text, as for :func:`.cell_of`; None for all partitions
    :param column: None for all columns
    :param as_of: give only versions made from those versions of the partition that were there at
        this time
    :param depth: the last depth; None for no limit
    :param progress: a function that is called after each depth, with the number of hops so far
    :param is_planned: False to give the hops without a plan, which takes less time
    :raises HistoryError: there is no such partition or column, or there are too many hops
    """
    cell = cell_of(history, dataset, partition)
    readings = _readings_of_subject(history, dataset, cell, column, as_of)
    is_of_column = column is not None
    silent: Silent = set()
    visited = breadth_first(
        links_of(history, readings, silent, is_of_column=is_of_column),
        lambda level: results(history, level, silent, is_of_column=is_of_column),
        depth,
        1,
        progress,
    )
    if column is not None and not visited:
        check_column(history, dataset, column)
    there = {
        node: visit
        for node, visit in visited.items()
        if visit.valid_to is None and not _is_of_subject(node, dataset, cell)
    }
    answer = answers.Impact(tuple(hops(history, there)), unjudged=of_impact(history, silent))
    if not is_planned:
        return answer
    of_subject = answers.Reason(
        answers.Dataset(*dataset), answers.values_of(cell), () if column is None else (column,)
    )
    affected: dict[str, Any] = {node.run_id: v.at for node, v in there.items() if node.run_id}
    certain = {node.run_id for node, v in there.items() if node.run_id and v.is_certain}
    reasons = reasons_of(history, visited, affected, of_subject)
    plan = plan_for(history, affected, reasons, certain)
    if cell is None:
        return replace(answer, plan=plan)
    subject = Part(dataset, cell)
    since = since_of(history, subject, (reading.started for reading in readings))
    found = unwritten(history, _parts(there, plan) | {subject: 0}, since)
    unjudged = (*answer.unjudged, *not_looked_for(history, found.left_out))
    return replace(answer, plan=with_unwritten(plan, found.unwritten), unjudged=unjudged)


def _parts(there: Level, plan: answers.Plan) -> dict[Part, int]:
    """Give the partitions that the runs of a plan write again.

    :param there: the versions that still exist
    :return: for each partition, the number of the first wave (group of task instances that are
        cleared together) that can read it
    """
    waves = {step.run_id: step.wave for step in plan.steps}
    waves |= {one.run_id: one.wave for one in plan.by_hand}
    return {
        Part(DatasetName(*node[:2]), node.cell): waves[node.run_id] + 1
        for node in there
        if node.cell is not None and node.run_id in waves
    }


def _readings_of_subject(
    history: sql.Rows,
    dataset: DatasetName,
    cell: str | None,
    column: str | None,
    as_of: datetime | None,
) -> Readings:
    writers = None
    if as_of is not None:
        there = content(history, dataset, cell, as_of)
        writers = {row["run_id"] for row in there} or {None}
    readings: Readings = {}
    for row in history.rows(_READINGS_OF_SUBJECT, {**dataset._asdict(), "cell": cell}):
        if writers is None or row["version_run_id"] in writers:
            reading = Reading(row["reader_run_id"], row["read_at"], *dataset, column)
            add_reading(readings, reading, row["version_run_id"], row["is_certain"])
    return readings


def _is_of_subject(node: Node, dataset: DatasetName, cell: str | None) -> bool:
    if node[:2] != dataset or cell is None or node.cell is None:
        return node[:2] == dataset
    values, others = answers.values_of(node.cell) or {}, answers.values_of(cell) or {}
    return all(others.get(label, value) == value for label, value in values.items())
