"""Paths of columns through merged events: from task to task, by the datasets that they share.

Each event has the sources of its outputs' columns. A dataset that one task writes and another reads
connects their events, if both use the same name for it. A source that influences all columns of an
output (``dataset`` of the facet) leads to each of its columns. :func:`graph` joins events,
:meth:`ColumnGraph.hops` follows a column; a path is printed for people, one line a hop, or given as
a document (``schemas/columnPaths.json``).
"""

from __future__ import annotations

from collections import defaultdict
from enum import StrEnum
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import field

from airflow_provider_sparklineage.cli.show import console, escape
from airflow_provider_sparklineage.lineage.columns.edges import (
    DIRECT,
    INDIRECT,
    Column,
    Transformation,
)
from airflow_provider_sparklineage.lineage.columns.reported import decode
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.exceptions import UnusableInputError
from airflow_provider_sparklineage.model.terms import Frozen, JobName
from airflow_provider_sparklineage.model.texts import some

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping


_CANDIDATES = 10
"""Columns or datasets that an error lists."""


class Direction(StrEnum):
    """Which way a path is followed."""

    UPSTREAM = "upstream"
    DOWNSTREAM = "downstream"


class Edge(NamedTuple):
    """One column that influences another, in one task.

    :param of_dataset: whether it influences all columns of the dataset alike
    """

    source: Column
    target: Column
    job: JobName
    transformations: tuple[Transformation, ...]
    of_dataset: bool


class Hop(NamedTuple):
    """An edge on the way.

    :param depth: how many edges it is away; the first ones are 1
    :param repeated: whether what lies beyond it is listed at an earlier hop; so cycles end
    """

    depth: int
    edge: Edge
    repeated: bool


class ColumnGraph(Frozen, frozen=True):
    """All columns that events name, and the edges between them, by either end."""

    columns: Collection[Column] = ()
    by_target: Mapping[Column, list[Edge]] = field(default_factory=dict)
    by_source: Mapping[Column, list[Edge]] = field(default_factory=dict)

    def find(self, text: str) -> Column:
        """Find the column that ``dataset:column`` names, or the end of such a name.

        :raise UnusableInputError: if there is none, or more than one; lists what there is
        """
        exact = [c for c in self.columns if full_name(c) == text]
        ends = tuple(f"{boundary}{text}" for boundary in "/.")
        found = exact or [c for c in self.columns if ":" in text and full_name(c).endswith(ends)]
        if len(found) == 1:
            return found[0]
        if found:
            msg = f"{text} may be any of these columns: {_some_of(map(full_name, found))}."
            raise UnusableInputError(msg)
        raise self._unknown(text)

    def _unknown(self, text: str) -> UnusableInputError:
        if ":" not in text:
            problem = f"{text} is no column."
            return UnusableInputError(problem, "Give it as DATASET:COLUMN, e.g. revenue:amount.")
        problem = f"There is no column {text}."
        dataset = text.rpartition(":")[0]
        of_it = [
            c for c in self.columns if f"/{c.dataset}".endswith((f"/{dataset}", f".{dataset}"))
        ]
        if of_it:
            return UnusableInputError(problem, f"There are {_some_of(map(full_name, of_it))}.")
        datasets = {str(c.dataset) for c in self.columns}
        if not datasets:
            return UnusableInputError(
                f"There is no column {text}: the input names no column at all."
            )
        return UnusableInputError(problem, f"There are columns of {_some_of(datasets)}.")

    def hops(self, column: Column, direction: Direction) -> Iterator[Hop]:
        """Follow a column to its sources, or to what is made of it; depth first."""
        upstream = direction is Direction.UPSTREAM
        edges = self.by_target if upstream else self.by_source

        def further(at: Column, depth: int) -> list[tuple[int, Edge]]:
            return [(depth, edge) for edge in sorted(edges.get(at, ()), key=_rank, reverse=True)]

        listed = {column}
        ahead = further(column, 1)
        while ahead:
            depth, edge = ahead.pop()
            reached = edge.source if upstream else edge.target
            yield Hop(depth, edge, reached in listed and bool(edges.get(reached)))
            if reached not in listed:
                listed.add(reached)
                ahead += further(reached, depth + 1)


def graph(events: Iterable[Mapping[str, Any]]) -> ColumnGraph:
    """Join the column lineage of merged events.

    :raise UnusableInputError: if a facet cannot be read
    """
    known: set[Column] = set()
    by_target: defaultdict[Column, list[Edge]] = defaultdict(list)
    by_source: defaultdict[Column, list[Edge]] = defaultdict(list)
    for event in events:
        for dataset in (*(event.get("inputs") or ()), *(event.get("outputs") or ())):
            known.update(_schema(dataset))
        for edge in _edges(event):
            known |= {edge.source, edge.target}
            by_target[edge.target].append(edge)
            by_source[edge.source].append(edge)
    return ColumnGraph(sorted(known), by_target, by_source)


def full_name(column: Column) -> str:
    """Write a column as people name it: ``s3://lake/revenue:amount``."""
    return f"{column.dataset}:{column.field}"


def document(column: Column, direction: Direction, hops: Iterable[Hop]) -> dict[str, Any]:
    """Give hops as JSON; the schema is shipped as ``schemas/columnPaths.json``."""
    return {
        "column": _column(column),
        "direction": str(direction),
        "hops": [
            {
                "depth": depth,
                "from": _column(edge.source),
                "to": _column(edge.target),
                "job": msgspec.structs.asdict(edge.job),
                "transformations": [
                    {name: value for name, value in t._asdict().items() if value}
                    for t in edge.transformations
                ],
                "ofDataset": edge.of_dataset,
                "repeated": repeated,
            }
            for depth, edge, repeated in hops
        ],
    }


def _column(column: Column) -> dict[str, str]:
    return {**column.dataset._asdict(), "field": column.field}


def _rank(edge: Edge) -> tuple[Any, ...]:
    """Order what makes a value before what filters it."""
    direct = any(t.type == DIRECT for t in edge.transformations)
    return (edge.of_dataset, not direct, edge.source, edge.target, edge.job)


def _edges(event: Mapping[str, Any]) -> Iterator[Edge]:
    job = JobName(event["job"]["namespace"], event["job"]["name"])
    for output in event.get("outputs") or ():
        facet = (output.get("facets") or {}).get("columnLineage")
        if not facet:
            continue
        try:
            lineage = decode(msgspec.json.encode(facet), lambda name: name)
        except msgspec.MsgspecError as error:
            msg = f"The column lineage of {_name(output)} in {job.name} cannot be read: {error}."
            raise UnusableInputError(msg) from error
        # An event that was too large has lost these: how they influence is not known any more.
        bare = {
            Column(_name(entry), entry["field"])
            for entry in facet.get("dataset") or ()
            if not entry.get("transformations")
        }
        targets = dict.fromkeys((*_schema(output), *(_named(output, n) for n in lineage.fields)))
        for target in targets:
            for source, kinds in lineage.fields.get(target.field, {}).items():
                yield Edge(source, target, job, kinds, of_dataset=False)
            for source, kinds in lineage.dataset.items():
                how = (Transformation(INDIRECT),) if source in bare else kinds
                yield Edge(source, target, job, how, of_dataset=True)


def _schema(dataset: Mapping[str, Any]) -> list[Column]:
    schema = (dataset.get("facets") or {}).get("schema") or {}
    return [_named(dataset, f["name"]) for f in schema.get("fields") or ()]


def _named(dataset: Mapping[str, Any], column: str) -> Column:
    return Column(_name(dataset), column)


def _name(dataset: Mapping[str, Any]) -> DatasetName:
    return DatasetName(dataset["namespace"], dataset["name"])


def _some_of(texts: Iterable[str]) -> str:
    return some(sorted(texts), _CANDIDATES)


# --- for people -----------------------------------------------------------------------------------


def print_paths(column: Column, direction: Direction, hops: Iterable[Hop], file: IO[str]) -> None:
    """Print where a column comes from, or what is made of it."""
    out = console(file)
    upstream = direction is Direction.UPSTREAM
    out.print(f"[bold]{escape(full_name(column))}[/]", soft_wrap=True)
    empty = True
    for depth, edge, repeated in hops:
        empty = False
        reached = edge.source if upstream else edge.target
        note = " (its path is above)" if repeated else ""
        out.print(
            f"{'  ' * depth}{'←' if upstream else '→'} [cyan]{escape(full_name(reached))}[/]  "
            f"{escape(_how(edge.transformations, of_dataset=edge.of_dataset))}"
            f"  [dim]{escape(edge.job.name)}[/]{note}",
            soft_wrap=True,
        )
    if empty:
        unknown = "No sources of it are known." if upstream else "Nothing is known to use it."
        out.print(f"  [yellow]{unknown}[/]")


def _how(transformations: Iterable[Transformation], *, of_dataset: bool) -> str:
    kinds = dict.fromkeys(
        f"{t.type or 'unknown'}{f'/{t.subtype}' if t.subtype else ''}"
        f"{' masked' if t.masking else ''}"
        for t in transformations
    )
    how = " + ".join(kinds)
    return f"{how} of all columns" if of_dataset else how
