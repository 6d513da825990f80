"""What the queries have to answer, found without them: plain lists, slow and obviously right.

It is written from the rules of the history alone, shares no code with its tables, SQL and queries,
and goes through all that happened again for each question. Where events do not say everything, it
says which of its steps are certain; what truly lay there is in the ledger.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from tests.history.ledger import REMOVING, REPLACING, Access, Cell, meet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.history.ledger import Ledger, Run, Table

END_OF_TIME = datetime.max.replace(tzinfo=UTC)
_EXACT = ("cells", "all")


@dataclass(frozen=True)
class Wanted:
    """What is asked of a table: a cell, or all, range, condition or unknown; of a run at a time."""

    extent: str = "all"
    cell: Cell | None = None
    first: str = ""
    last: str = ""


@dataclass(frozen=True)
class Change:
    """A write that counts: of one cell, or of an extent that names none (``cell`` None)."""

    run: Run
    table: Table
    extent: str
    cell: Cell | None
    mode: str
    first: str = ""
    last: str = ""

    @property
    def order(self) -> tuple[datetime, str]:
        return self.run.ended, self.run.id

    @property
    def is_whole(self) -> bool:
        return self.extent == "all"

    @property
    def is_exact(self) -> bool:
        return self.extent in _EXACT

    @property
    def is_vague(self) -> bool:
        """Whether nobody says what was written, nor how."""
        return (self.extent, self.mode) == ("unknown", "unknown")

    def reaches(self, cell: Cell) -> bool:
        """Whether it may have changed a cell."""
        if self.cell is not None:
            return meet(self.cell, cell)
        if self.extent == "range":
            return _is_between(self.table.text(cell), self.first, self.last)
        return True


@dataclass(eq=False)
class Version:
    """What a change left, as long as any of it is there."""

    change: Change
    holes: set[Cell] = field(default_factory=set)
    """Cells that were replaced since in a version of more than a cell."""
    doubts: list[Change] = field(default_factory=list)
    """Later changes of which nobody knows what they replaced."""

    def is_in(self, wanted: Wanted) -> bool:
        """Whether it may be in what is wanted."""
        own, other = self.change.cell, wanted.cell
        if own is not None and other is not None:
            return meet(own, other)
        if other is not None:
            return other not in self.holes and self.change.reaches(other)
        if wanted.extent != "range":
            return True
        if own is not None:
            return _is_between(self.change.table.text(own), wanted.first, wanted.last)
        one = self.change
        return one.extent != "range" or not (one.last < wanted.first or wanted.last < one.first)

    def is_certain(self, wanted: Wanted) -> bool:
        """Whether it is surely in what is wanted."""
        exact = self.change.is_exact and wanted.extent in _EXACT
        return exact and not any(self._is_reached(one) for one in self.doubts)

    def _is_reached(self, doubt: Change) -> bool:
        """Whether a change may have replaced some of it; of the whole it is not asked where."""
        return self.change.cell is None or doubt.reaches(self.change.cell)


class Hop(NamedTuple):
    """A node of an answer; ``run`` None where nobody knows who wrote it."""

    depth: int
    table: str
    cell: Cell | None
    column: str | None
    run: str | None


class Stale(NamedTuple):
    """A version that is not up to date: it lacks a change, or was made of one that does."""

    table: str
    cell: Cell | None
    run: str
    is_direct: bool


class _Node(NamedTuple):
    change: Change | None
    table: Table
    cell: Cell | None
    column: str | None

    @property
    def key(self) -> tuple[str, Cell | None, str | None, str | None]:
        return self.table.name, self.cell, self.column, self.change and self.change.run.id


class Oracle:
    """Answers about what happened."""

    def __init__(self, ledger: Ledger) -> None:
        self.runs = sorted(ledger.runs, key=lambda run: (run.ended, run.id))
        self.tables = {table.name: table for table in ledger.tables}
        self._found: dict[tuple[str, str, Wanted], list[Version]] = {}

    @cached_property
    def changes(self) -> list[Change]:
        """All writes that count, in the order of time."""
        return [
            change for run in self.runs for access in run.claimed() for change in _of(run, access)
        ]

    # --- what is there ----------------------------------------------------------------------------

    def content(self, table: Table, wanted: Wanted, at: datetime = END_OF_TIME) -> list[Version]:
        """Give the versions that may be in what is wanted, at a time."""
        changes = [c for c in self.changes if c.table == table and c.run.ended <= at]
        return [version for version in _live(changes) if version.is_in(wanted)]

    def found(self, run: Run, table: Table, wanted: Wanted) -> list[Version]:
        """Give what a run found when it started: nothing that it wrote itself.

        One that takes no time reads before anything is written then.
        """
        key = (run.id, table.name, wanted)
        if key not in self._found:  # which never changes
            changes = [
                change
                for change in self.changes
                if change.table == table
                and (change.run.ended < run.started or change.run.ended == run.started < run.ended)
            ]
            self._found[key] = [version for version in _live(changes) if version.is_in(wanted)]
        return self._found[key]

    # --- trace ------------------------------------------------------------------------------------

    def trace(
        self,
        table: Table,
        cell: Cell | None = None,
        column: str | None = None,
        as_of: datetime = END_OF_TIME,
        depth: int | None = None,
    ) -> dict[Hop, bool]:
        """Answer what fed a cell, or the table: each hop, and whether it is certain."""
        wanted = Wanted() if cell is None else Wanted("cells", cell)
        start = [
            (_node(version, wanted, column), version.is_certain(wanted))
            for version in self.content(table, wanted, as_of)
        ]
        return _breadth_first(start, lambda node: self._sources(node, column is not None), depth)

    def _sources(self, node: _Node, is_of_column: bool) -> Iterator[tuple[_Node, bool]]:
        if node.change is None:
            return
        run = node.change.run
        for access in run.reads:
            columns = _in_columns(run, node, access.table) if is_of_column else [None]
            for wanted in wanted_of(access):
                found = self.found(run, access.table, wanted) if columns else []
                for column in columns:
                    for version in found:
                        yield _node(version, wanted, column), version.is_certain(wanted)
                    if not found:
                        yield _Node(None, access.table, wanted.cell, column), True

    # --- impact -----------------------------------------------------------------------------------

    def impact(
        self,
        table: Table,
        cell: Cell | None = None,
        column: str | None = None,
        as_of: datetime | None = None,
    ) -> dict[Hop, bool]:
        """Answer what is there that was made of any version of a cell (of the table if None).

        :param as_of: only by runs that read something of what was there then
        """
        is_of_column = column is not None
        asked = Wanted() if cell is None else Wanted("cells", cell)
        then = self.content(table, asked, as_of) if as_of else []
        start = [
            (node, is_certain)
            for run in self.runs
            for wanted, is_certain in self._readings(run, table, cell)
            if as_of is None or self._is_of(run, table, wanted, then)
            for node in _results(run, table, column, is_of_column)
        ]
        found = _breadth_first(start, lambda node: self._readers(node, is_of_column), None, first=1)
        there = {(v.change.run.id, v.change.table.name, v.change.cell) for v in self._all_live()}
        return {
            hop: is_certain
            for hop, is_certain in found.items()
            if (hop.run, hop.table, hop.cell) in there and not _is_asked(hop, table, cell)
        }

    def _is_of(self, run: Run, table: Table, wanted: Wanted, versions: list[Version]) -> bool:
        """Whether a read found one of some versions; or nothing, where there was nothing."""
        found = {version.change.run.id for version in self.found(run, table, wanted)} or {None}
        return not found.isdisjoint({version.change.run.id for version in versions} or {None})

    def _readings(self, run: Run, table: Table, cell: Cell | None) -> Iterator[tuple[Wanted, bool]]:
        """Give each read by a run of what is asked about, and whether that is certain."""
        for access in run.reads:
            if access.table != table:
                continue
            for wanted in wanted_of(access):
                asked = wanted if cell is None else Wanted("cells", cell)
                if cell is None:
                    yield wanted, wanted.extent in _EXACT
                elif wanted.cell is not None:
                    if meet(wanted.cell, cell):
                        yield wanted, True
                elif wanted.extent == "range" and not _is_between(
                    table.text(cell), wanted.first, wanted.last
                ):
                    continue
                elif self.found(run, table, asked):
                    yield asked, wanted.extent in _EXACT
                elif not any(c.reaches(cell) for c in self.changes if c.table == table):
                    yield asked, False

    def _readers(self, node: _Node, is_of_column: bool) -> Iterator[tuple[_Node, bool]]:
        assert node.change is not None
        for run in self.runs:
            for access in run.reads:
                if access.table != node.table:
                    continue
                for wanted in wanted_of(access):
                    for version in self.found(run, node.table, wanted):
                        if version.change == node.change:
                            for result in _results(run, node.table, node.column, is_of_column):
                                yield result, version.is_certain(wanted)

    def _all_live(self) -> list[Version]:
        return [
            version for table in self.tables.values() for version in self.content(table, Wanted())
        ]

    # --- stale ------------------------------------------------------------------------------------

    def stale(self, table: Table | None = None) -> dict[Stale, str]:
        """Answer which versions are not up to date, each with the run that first made it so."""
        live = [version.change for version in self._all_live()]
        runs = [run for run in self.runs if run.state == "COMPLETE"]
        causes: dict[str, Change] = {}
        for run in runs:
            missed = [c for c in self.changes if self._has_missed(run, c)]
            if missed:
                causes[run.id] = min(missed, key=lambda one: one.order)
        direct = set(causes)
        while True:
            more = {
                run.id: min(upstream, key=lambda one: one.order)
                for run in runs
                if run.id not in causes
                and (
                    upstream := [
                        causes[one.run.id]
                        for one in self.bound(run)
                        if one.run.id in causes and (one in live or self._is_own(one, run))
                    ]
                )
            }
            if not more:
                break
            causes |= more
        return {
            Stale(one.table.name, one.cell, one.run.id, one.run.id in direct): (
                causes[one.run.id].run.id
            )
            for one in live
            if one.run.id in causes
            and (table is None or one.table == table)
            and not (one.is_vague and self._is_outdated(one))
        }

    def _is_own(self, version: Change, reader: Run) -> bool:
        """Whether a run replaced what it read, and no later try of its writer repaired it."""
        own = version.run
        later = (one for one in self.runs if one.instance and one.instance == own.instance)
        if any(one.state == "COMPLETE" and one.ended > own.ended for one in later):
            return False
        upto = [c for c in self.changes if c.table == version.table and c.order <= _order(reader)]
        without = [c for c in upto if c.run.id != reader.id]
        is_there = version in [one.change for one in _live(without)]
        return is_there and version not in [one.change for one in _live(upto)]

    def _is_outdated(self, change: Change) -> bool:
        """Whether a later run of the same job wrote the same table as vaguely."""
        return any(
            one.is_vague
            and one.table == change.table
            and one.run.job == change.run.job
            and one.order > change.order
            for one in self.changes
        )

    def bound(self, run: Run) -> list[Change]:
        """Give all that a run read."""
        return [
            version.change
            for access in run.reads
            for wanted in wanted_of(access)
            for version in self.found(run, access.table, wanted)
        ]

    def _has_missed(self, run: Run, change: Change) -> bool:
        """Whether a run read something that a change of another run changed after that."""
        other = change.run
        if other.id == run.id or other.ended <= run.started:
            return False
        return any(
            self._is_missed(run, wanted, change)
            for access in run.reads
            if access.table == change.table
            for wanted in wanted_of(access)
        )

    def _is_missed(self, run: Run, wanted: Wanted, change: Change) -> bool:
        if wanted.cell is not None:
            return change.reaches(wanted.cell)
        if change.cell is not None:  # new cells are growth
            if wanted.extent == "range" and not _is_between(
                change.table.text(change.cell), wanted.first, wanted.last
            ):
                return False
            return bool(self.found(run, change.table, Wanted("cells", change.cell)))
        if wanted.extent == "unknown" and change.is_vague:
            same = [one for one in self.runs if one.job == run.job and one.state == "COMPLETE"]
            return max(same, key=_order) is run
        is_replacing = change.is_whole and change.mode in REPLACING
        return is_replacing and bool(self.found(run, change.table, Wanted()))


def _of(run: Run, access: Access) -> Iterator[Change]:
    if access.extent == "cells":
        for cell in access.cells:
            yield Change(run, access.table, "cells", cell, access.mode)
    elif access.extent == "range":
        yield Change(run, access.table, "range", None, access.mode, *access.ends)
    else:
        yield Change(run, access.table, access.extent, None, access.mode)


def wanted_of(access: Access) -> list[Wanted]:
    """Give what a read wants: each cell by itself, or one of what names no cells."""
    if access.extent == "cells":
        return [Wanted("cells", cell) for cell in access.cells]
    if access.extent == "none":
        return []
    first, last = access.ends if access.extent == "range" else ("", "")
    return [Wanted(access.extent, None, first, last)]


def _is_between(text: str, first: str, last: str) -> bool:
    """Whether a partition may be in a range; of other lengths they may be numbers: 9 and 10."""
    return len({len(text), len(first), len(last)}) > 1 or first <= text <= last


def _order(run: Run) -> tuple[datetime, str]:
    return run.ended, run.id


def _live(changes: list[Change]) -> list[Version]:
    """Play changes of a table one after the other, and give what is left."""
    live: list[Version] = []
    for change in sorted(changes, key=lambda one: one.order):
        live = _after(live, change)
    return live


def _after(live: list[Version], change: Change) -> list[Version]:
    """Give what is left after one more change; of one run's own changes none replaces another."""
    before = [version for version in live if version.change.run.id != change.run.id]
    if change.mode in REPLACING and change.is_whole:
        live = [version for version in live if version not in before]
    elif change.mode in REPLACING and change.cell is not None:
        live = [v for v in live if v not in before or v.change.cell != change.cell]
        for version in before:
            version.holes.add(change.cell)
    elif change.mode in (*REPLACING, "unknown"):
        for version in before:
            version.doubts.append(change)
    return live if change.mode in REMOVING else [*live, Version(change)]


def _node(version: Version, wanted: Wanted, column: str | None) -> _Node:
    own = version.change.cell
    return _Node(version.change, version.change.table, wanted.cell if own is None else own, column)


def _in_columns(run: Run, node: _Node, source: Table) -> list[str | None]:
    edges = [edge for edge in run.edges if edge.output == node.table]
    if not edges:
        return [None]
    from_source = [edge for edge in edges if edge.input == source]
    if node.column is None:
        return [None] if from_source else []
    return sorted({e.in_column for e in from_source if e.out_column in (node.column, None)})


def _results(run: Run, source: Table, column: str | None, is_of_column: bool) -> Iterator[_Node]:
    """Give what a run made of a column of a table."""
    for access in run.claimed():
        columns = _out_columns(run, access.table, source, column) if is_of_column else [None]
        for change in _of(run, access):
            for each in columns:
                yield _Node(change, access.table, change.cell, each)


def _out_columns(run: Run, output: Table, source: Table, column: str | None) -> list[str | None]:
    edges = [edge for edge in run.edges if edge.output == output]
    if not edges:
        return [None]
    of_source = [edge for edge in edges if edge.input == source]
    if column is None:
        return [None] if of_source else []
    return list(dict.fromkeys(e.out_column for e in of_source if e.in_column == column))


def _is_asked(hop: Hop, table: Table, cell: Cell | None) -> bool:
    if hop.table != table.name:
        return False
    return cell is None or hop.cell is None or meet(hop.cell, cell)


def _breadth_first(start, following, depth, first=0) -> dict[Hop, bool]:  # type: ignore[no-untyped-def]
    """Give each node at its least depth; certain if one of the steps to it from there is."""
    known: set[object] = set()
    hops: dict[Hop, bool] = {}
    level, reached = first, list(start)
    while reached:
        new: dict[object, tuple[_Node, bool]] = {}
        for node, is_certain in reached:
            if node.key not in known:
                before = new.get(node.key)
                new[node.key] = (node, is_certain or (before is not None and before[1]))
        known |= new.keys()
        hops |= {Hop(level, *key): certain for key, (_, certain) in new.items()}
        if level == depth:
            break
        level += 1
        reached = [step for node, _ in new.values() for step in following(node)]
    return hops
