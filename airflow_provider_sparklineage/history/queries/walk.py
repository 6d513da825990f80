"""A breadth-first walk through versions: upstream to sources, or downstream to results."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sparklineage.history.queries import answers, sql
from airflow_provider_sparklineage.model.exceptions import HistoryError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime


MOST_HOPS = 200_000
"""Greatest number of nodes in an answer, which is in memory; a larger graph has no use."""

UNKNOWN_WRITER = "No run is known that wrote it."
UNKNOWN_COLUMNS = "Which columns is not known: the run has no column lineage of that dataset."


class Node(NamedTuple):
    """A version of a partition, dataset or column; :class:`.answers.Hop` explains None."""

    namespace: str
    name: str
    cell: str | None
    column: str | None
    run_id: str | None


class Link(NamedTuple):
    """An edge that leads to a node.

    :param at: when the node's version was written
    :param via: run ids of the versions from which the edge leads, one step nearer to the start
    :param valid_to: when the version was replaced; None if it is still there
    """

    node: Node
    at: datetime | None
    is_certain: bool
    via: tuple[str, ...] = ()
    transformations: tuple[answers.Transformation, ...] = ()
    valid_to: datetime | None = None
    is_column_known: bool = True


@dataclass(slots=True)
class Found:
    """The facts about a node, from all links that lead to the node from the depth before."""

    depth: int
    at: datetime | None
    valid_to: datetime | None
    is_certain: bool = False
    is_column_known: bool = False
    via: set[str] = field(default_factory=set)
    transformations: set[answers.Transformation] = field(default_factory=set)

    def add(self, link: Link) -> None:
        """Add a link to the node.

        The node is certain if one of its links is certain; its columns are known if one link knows
        them.
        """
        self.is_certain |= link.is_certain
        self.is_column_known |= link.is_column_known
        self.via.update(link.via)
        self.transformations.update(link.transformations)


Level = dict[Node, Found]


def breadth_first(
    links: Iterable[Link],
    following: Callable[[Level], Iterable[Link]],
    depth: int | None = None,
    first: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Level:
    """Find all nodes, each at its least depth; follow each only once, so that cycles end.

    :param links: links to the nodes of the first depth
    :param following: a function that gives the links from all nodes of a depth
    :param depth: the last depth; None for no limit
    :param first: number of the first depth
    :param progress: a function that is called with each depth and the number of nodes so far
    :raises HistoryError: there are more nodes than :data:`MOST_HOPS`
    """
    found: Level = {}
    level = first
    while new := _new(links, found, level):
        found |= new
        if progress:
            progress(level, len(found))
        if len(found) > MOST_HOPS:
            msg = f"There are more than {MOST_HOPS:,} hops until depth {level}."
            raise HistoryError(msg, "Ask for a partition, for a column, or for less depth.")
        if level == depth:
            break
        level += 1
        links = following(new)
    return found


def _new(links: Iterable[Link], found: Level, depth: int) -> Level:
    new: Level = {}
    for link in links:
        if link.node in found:
            continue
        node = new.get(link.node)
        if node is None:
            node = new[link.node] = Found(depth, link.at, link.valid_to)
        node.add(link)
    return new


def hops(history: sql.Rows, found: Mapping[Node, Found]) -> list[answers.Hop]:
    """Convert nodes to hops, in order of depth, dataset, partition and column."""
    versions = {(node.run_id, one.at) for node, one in found.items() if node.run_id}
    runs = runs_of(history, versions)
    datasets = {key: answers.Dataset(*key) for key in {node[:2] for node in found}}
    ordered = sorted(found.items(), key=lambda item: _order(*item))
    return [_hop(node, one, datasets[node[:2]], runs) for node, one in ordered]


def _order(node: Node, one: Found) -> tuple[object, ...]:
    return one.depth, *(value or "" for value in node)


def _hop(
    node: Node, one: Found, dataset: answers.Dataset, runs: Mapping[str, answers.Run]
) -> answers.Hop:
    note = None
    if node.run_id is None:
        note = UNKNOWN_WRITER
    elif not one.is_column_known:
        note = UNKNOWN_COLUMNS
    return answers.Hop(
        one.depth,
        dataset,
        answers.values_of(node.cell),
        node.column,
        runs.get(node.run_id) if node.run_id else None,
        tuple(sorted(one.transformations)),
        one.is_certain,
        tuple(sorted(one.via)),
        note,
    )


_RUNS = f"""
WITH f AS ({sql.table_of(run_id="VARCHAR", ended="TIMESTAMP")})
SELECT r.run_id, r.job, r.ended FROM runs AS r JOIN f ON r.ended = f.ended AND r.run_id = f.run_id
"""


def runs_of(history: sql.Rows, versions: Iterable[tuple[Any, Any]]) -> dict[str, answers.Run]:
    """Look up the runs that wrote versions; a run that is not in the tables has no job.

    :param versions: run_id and end of each run
    """
    versions = list(versions)
    found = history.rows(_RUNS, sql.lists(("run_id", "ended"), versions)) if versions else []
    runs = {run_id: answers.Run(run_id, None, answers.at_utc(ended)) for run_id, ended in versions}
    return runs | {
        r["run_id"]: answers.Run(r["run_id"], r["job"], answers.at_utc(r["ended"])) for r in found
    }
