"""A breadth-first walk through versions: upstream to sources, or downstream to results."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sparklineage.history import bounds
from airflow_provider_sparklineage.history.queries import answers, sql
from airflow_provider_sparklineage.model.exceptions import LimitError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from datetime import datetime


MOST_HOPS = 200_000
"""Greatest number of nodes in an answer, which is in memory; a larger graph has no use."""

UNKNOWN_WRITER = "No run is known that wrote it."
UNKNOWN_COLUMNS = "Which columns is not known: the run has no column lineage of that dataset."


class Node(NamedTuple):
    """A version of a partition, of a dataset or of one of its columns.

    :param cell: canonical text of the partition, ``dt=2024-10-15``; None for the whole dataset, or
        if the part is not known
    :param column: None for all columns, or if the column is not known
    :param run_id: the run that wrote the version; None if no such run is known
    """

    namespace: str
    name: str
    cell: str | None
    column: str | None
    run_id: str | None


@dataclass(slots=True)
class Visit:
    """The facts about a node, collected from all links that lead to it.

    :param at: when the node's version was written
    :param valid_to: when the version was replaced; None if it is still there
    :param is_certain: whether one of the links is certain: nothing about it is assumed
    :param is_column_known: False if no link tells which columns of the version are concerned
    :param via: run ids of the versions from which the links lead, one step nearer to the start
    :param depth: least number of links from the start of the walk
    """

    at: datetime | None
    valid_to: datetime | None
    is_certain: bool
    is_column_known: bool = True
    via: set[str] = field(default_factory=set)
    transformations: set[answers.Transformation] = field(default_factory=set)
    depth: int = 0

    def add(self, other: Visit) -> None:
        """Add the facts that another link gives about the node.

        The node is certain if one of its links is certain; its columns are known if one link knows
        them.
        """
        self.is_certain |= other.is_certain
        self.is_column_known |= other.is_column_known
        self.via |= other.via
        self.transformations |= other.transformations


Level = dict[Node, Visit]
"""Nodes of one or several depths, each with the facts about it."""
Link = tuple[Node, Visit]
"""An edge that leads to a node, with the facts that this edge alone gives."""


def link(
    row: Mapping[str, Any],
    column: str | None,
    via: Iterable[str],
    is_certain: bool,
    transformations: Iterable[answers.Transformation] = (),
    *,
    is_column_known: bool = True,
) -> Link:
    """Make the link to a version, or to a column of it, from the version's row.

    :param via: run ids of the versions from which the link leads
    :param is_certain: whether nothing about the link is assumed
    :param transformations: of the column on its way along the link
    :param is_column_known: False if the run has no column lineage, so that the columns of the link
        are not known
    """
    node = Node(row["namespace"], row["name"], row["cell"], column, row["run_id"])
    at, valid_to = row["valid_from"], row.get("valid_to")
    return node, Visit(at, valid_to, is_certain, is_column_known, {*via}, {*transformations})


_WITH_COLUMNS = f"""
WITH f AS ({sql.table_of(*sql.RUN)})
SELECT DISTINCT c.run_id, c.out_namespace, c.out_name
FROM columns AS c JOIN f ON c.ended = f.ended AND c.run_id = f.run_id
"""


def outputs_with_columns(
    history: sql.Rows, runs: Collection[tuple[Any, Any]]
) -> set[tuple[str, str, str]]:
    """Give the outputs of runs, without the outputs for which a run has no column lineage.

    :param history: an opened store of the history
    :param runs: run_id and end of each run
    :return: for each output, the run_id, and the namespace and name of the dataset
    """
    rows = history.rows(_WITH_COLUMNS, sql.lists(sql.RUN, runs)) if runs else []
    return {(row["run_id"], row["out_namespace"], row["out_name"]) for row in rows}


def breadth_first(
    links: Iterable[Link],
    following: Callable[[Level], Iterable[Link]],
    depth: int | None = None,
    first: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Level:
    """Find all nodes, each at its least depth; follow each only once, so that cycles end.

    :param links: links to the nodes of the first depth
    :param following: a function that gives the links from all nodes of a depth
    :param depth: the last depth; None for no limit
    :param first: number of the first depth
    :param progress: a function that is called after each depth, with the number of nodes so far
    :raises LimitError: there are more nodes than :data:`MOST_HOPS`
    """
    visited: Level = {}
    level = first
    while new := _new(links, visited, level):
        visited |= new
        if progress:
            progress(len(visited))
        if len(visited) > MOST_HOPS:
            msg = f"There are more than {MOST_HOPS:,} hops until depth {level}."
            raise LimitError(msg, "Ask for a partition, for a column, or for less depth.")
        if level == depth:
            break
        level += 1
        links = following(new)
    return visited


def _new(links: Iterable[Link], visited: Level, depth: int) -> Level:
    new: Level = {}
    for node, one in links:
        bounds.check()
        if node in new:
            new[node].add(one)
        elif node not in visited:
            one.depth = depth
            new[node] = one
    return new


def hops(history: sql.Rows, visited: Mapping[Node, Visit]) -> list[answers.Hop]:
    """Convert the nodes of a walk to the hops of an answer.

    :param history: an opened store of the history
    :return: the hops, sorted by depth, dataset, partition and column
    """
    versions = {(node.run_id, one.at) for node, one in visited.items() if node.run_id}
    runs = runs_of(history, versions)
    ordered = sorted(visited.items(), key=lambda item: (item[1].depth, *(v or "" for v in item[0])))
    return [
        answers.Hop(
            one.depth,
            answers.Dataset(*node[:2]),
            answers.values_of(node.cell),
            node.column,
            runs.get(node.run_id) if node.run_id else None,
            tuple(sorted(one.transformations)),
            one.is_certain,
            tuple(sorted(one.via)),
            _note(node, one),
        )
        for node, one in ordered
    ]


class Size(NamedTuple):
    """How large some versions are, as far as the store has their sizes.

    :param versions: number of the versions, each partition of a run once
    :param known: number of those of which the store has rows or bytes
    :param rows: their rows; 0 if it has none
    :param bytes: their bytes; 0 if it has none
    """

    versions: int
    known: int
    rows: int
    bytes: int


_WRITTEN = ("run_id", "at", "namespace", "name")
# A size is that of the only write of a dataset by a run, so that it needs no partition.
_SIZE = f"""
WITH f AS ({sql.table_of(*_WRITTEN)})
SELECT count(*) AS known, CAST(COALESCE(sum(a.row_count), 0) AS BIGINT) AS row_count,
    CAST(COALESCE(sum(a.byte_count), 0) AS BIGINT) AS byte_count
FROM accesses AS a SEMI JOIN f ON f.at = a.accessed_at AND f.run_id = a.run_id
    AND f.namespace = a.namespace AND f.name = a.name
WHERE a.side = 'write' AND (a.row_count IS NOT NULL OR a.byte_count IS NOT NULL)
"""


def size_of(history: sql.Rows, versions: Iterable[answers.Hop | answers.Stale]) -> Size:
    """Look up how large versions are.

    :param history: an opened store of the history
    """
    distinct, written = set(), set()
    for one in versions:
        if one.run:
            run_id, name = one.run.run_id, (one.dataset.namespace, one.dataset.name)
            distinct.add((run_id, *name, tuple((one.partition or {}).items())))
            written.add((run_id, answers.of_tables(one.run.ended), *name))
    if not written:
        return Size(0, 0, 0, 0)
    [row] = history.rows(_SIZE, sql.lists(_WRITTEN, written))
    return Size(len(distinct), row["known"], row["row_count"], row["byte_count"])


def _note(node: Node, one: Visit) -> str | None:
    if node.run_id is None:
        return UNKNOWN_WRITER
    return None if one.is_column_known else UNKNOWN_COLUMNS


_RUNS = f"""
WITH f AS ({sql.table_of(*sql.RUN)})
SELECT r.run_id, r.job, r.started, r.ended FROM runs AS r
JOIN f ON r.ended = f.ended AND r.run_id = f.run_id
"""


def rows_of_runs(history: sql.Rows, runs: Iterable[tuple[Any, Any]]) -> list[dict[str, Any]]:
    """Look up run_id, job, start and end of runs; one that is not in the tables has no row.

    :param history: an opened store of the history
    :param runs: run_id and end of each run
    """
    runs = list(runs)
    return history.rows(_RUNS, sql.lists(sql.RUN, runs)) if runs else []


def runs_of(history: sql.Rows, versions: Iterable[tuple[Any, Any]]) -> dict[str, answers.Run]:
    """Look up the runs that wrote versions; a run that is not in the tables has no job.

    :param history: an opened store of the history
    :param versions: run_id and end of each run
    :return: the runs by run_id
    """
    versions = list(versions)
    jobs = {row["run_id"]: row["job"] for row in rows_of_runs(history, versions)}
    return {run: answers.Run(run, jobs.get(run), answers.at_utc(ended)) for run, ended in versions}
