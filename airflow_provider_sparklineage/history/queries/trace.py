"""The sources of a partition, or of one of its columns, hop by hop upstream.

One hop goes from versions to the versions that the writing runs read. For a column, a hop follows
column lineage.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.history.queries import datasets, sql
from airflow_provider_sparklineage.history.queries.answers import transformation
from airflow_provider_sparklineage.history.queries.walk import (
    Link,
    breadth_first,
    hops,
    link,
    outputs_with_columns,
    rows_of_runs,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime

    from airflow_provider_sparklineage.history.queries.answers import Hop
    from airflow_provider_sparklineage.history.queries.walk import Level
    from airflow_provider_sparklineage.model.datasets import DatasetName


# A read of a partition has its version in the bindings; the versions in a read of more than one
# partition are found in the changes. The starts of the runs are parameters: DuckDB skips files by
# the times of a table that is joined, but not by those of one that is joined with that.
_RUN = ("run_id", "started", "ended")
_READS = f"""
WITH f AS ({sql.table_of(*_RUN)}), b AS (
    SELECT b.*, f.ended FROM bindings_by_run AS b
    JOIN f ON b.read_at = f.started AND b.reader_run_id = f.run_id
)
SELECT b.reader_run_id, b.namespace, b.name, COALESCE(b.version_cell, b.cell) AS cell,
    b.version_run_id AS run_id, b.valid_from, {sql.SURELY_BOUND} AS is_certain
FROM b WHERE b.extent = 'partition'
UNION ALL
SELECT b.reader_run_id, b.namespace, b.name, c.cell, c.run_id, c.valid_from,
    {sql.surely_found("b", "c")}
FROM b LEFT JOIN changes AS c
    ON c.namespace = b.namespace AND c.name = b.name AND {sql.found_by("b", "c")}
WHERE b.extent <> 'partition'
"""

_EDGES = f"""
{sql.column_edges("out", "in")}
WHERE (f.of_column IS NULL OR c.out_column IS NULL OR c.out_column = f.of_column)
    AND NOT ($is_direct AND COALESCE(c.type, '') = 'INDIRECT')
"""

_Reads = dict[str, dict[tuple[str, str], list[dict[str, Any]]]]
_Output = tuple[str, Any, str, str, str | None]
"""The id and the end of a run, namespace and name of a dataset it wrote, and a column or None."""


def sources(
    history: sql.Rows, level: Level, *, is_of_column: bool, is_direct: bool = False
) -> Iterable[Link]:
    """Give links from each version of ``level`` to each version that the writing run read.

    :param history: an opened store of the history
    :param is_of_column: whether to follow column lineage; else all reads of a run are sources of
        each of its writes
    :param is_direct: follow only columns whose values were used, not conditions
    """
    outputs = {
        (node.run_id, visit.at, node.namespace, node.name, node.column)
        for node, visit in level.items()
        if node.run_id
    }
    if not outputs:
        return []
    reads = _reads(history, {output[:2] for output in outputs})
    if not is_of_column:
        return (
            link(row, None, (run_id,), bool(row["is_certain"]))
            for run_id, by_dataset in reads.items()
            for rows in by_dataset.values()
            for row in rows
        )
    return _by_columns(history, outputs, reads, is_direct)


def _reads(history: sql.Rows, runs: Iterable[tuple[str, Any]]) -> _Reads:
    reads: _Reads = defaultdict(lambda: defaultdict(list))
    started = [[row[name] for name in _RUN] for row in rows_of_runs(history, runs)]
    for row in history.rows(_READS, sql.lists(_RUN, started)) if started else ():
        reads[row["reader_run_id"]][row["namespace"], row["name"]].append(row)
    return reads


def _by_columns(
    history: sql.Rows, outputs: set[_Output], reads: _Reads, is_direct: bool
) -> Iterator[Link]:
    asked = {**sql.lists(sql.READ_OR_WRITTEN, outputs), "is_direct": is_direct}
    fed: set[tuple[object, ...]] = set()
    for row in history.rows(_EDGES, asked):
        fed.add((row["run_id"], row["namespace"], row["name"], row["of_column"]))
        how = transformation(row)
        for read in reads[row["run_id"]].get((row["in_namespace"], row["in_name"]), ()):
            via, is_certain = (row["run_id"],), bool(read["is_certain"])
            yield link(read, row["in_column"], via, is_certain, how)
    unfed = [o for o in outputs if (o[0], *o[2:]) not in fed]
    known = outputs_with_columns(history, {o[:2] for o in unfed})
    for run_id in {o[0] for o in unfed if (o[0], *o[2:4]) not in known}:
        for row in (row for rows in reads[run_id].values() for row in rows):
            yield link(row, None, (run_id,), bool(row["is_certain"]), is_column_known=False)


def trace(
    history: sql.Rows,
    dataset: DatasetName,
    partition: str | None = None,
    column: str | None = None,
    as_of: datetime | None = None,
    depth: int | None = None,
    progress: Callable[[int], None] | None = None,
    *,
    is_direct: bool = False,
) -> list[Hop]:
    """Give the versions of a partition (depth 0), and then the versions from which they were made.

    The hops of the next depth are the versions that were there when the writing run started, in the
    datasets that this run read. For a column, they are its source columns, and the conditions on
    all columns. All reads of a run count as sources of all its writes, unless its column lineage
    says otherwise.

    :param history: an opened store of the history
    :param partition: its text, as for :func:`.cell_of`; None for all partitions
    :param column: None for all columns
    :param as_of: start at the versions that were there at this time; None for now
    :param depth: the last depth; None for no limit
    :param progress: a function that is called after each depth, with the number of hops so far
    :param is_direct: for a column, follow only columns whose values became its values, and not
        columns that only decide which rows there are: filters, joins, groups, sorting
    :raises HistoryError: there is no such partition or column, or there are too many hops
    """
    cell = datasets.cell_of(history, dataset, partition)
    versions = datasets.content(history, dataset, cell, as_of)
    visited = breadth_first(
        [link({**row, **dataset._asdict()}, column, (), row["is_certain"]) for row in versions],
        lambda level: sources(history, level, is_of_column=column is not None, is_direct=is_direct),
        depth,
        progress=progress,
    )
    if column is not None:
        own = [(node.run_id, one.at) for node, one in visited.items() if one.depth == 0]
        if not datasets.is_written(history, dataset, column, own):
            datasets.check_column(history, dataset, column)
    return hops(history, visited)
