"""The right answers of a world, from its ledger by the rules of the history alone.

Nothing here is quick, and nothing is taken from the engine. A *moment* is a time and the order of
what happens at this time: runs that take no time read first, then all writes, then the other reads.

The rules leave these open:

- Of writes at one time the run with the greater id is the later one, and the later run of a job.
- A replacing write of a finer cell leaves the version of a coarser one there, and of a table, less
  that cell: a read of the finer cell alone does not get it any more.
- A version without a cell may have been in any cell: a later change of a cell changes, uncertainly,
  what a read of the whole table got.
- A read that found no version got data that nobody is known to have written, of the cell that it
  read. A read of a whole table may have got each cell that nobody has ever written.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from tests.history.ledger import REMOVING, meet

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from tests.history.ledger import Access, Cell, Ledger, Run, Table

    Key = tuple[str, str, str, str, int]

_READS_FIRST, _WRITES, _READS = range(3)
_REPLACING = ("overwrite", "create", *REMOVING)


class Moment(NamedTuple):
    """A time, the order of things at this time, and the run."""

    time: datetime
    order: int
    run: str


class Change(NamedTuple):
    """A write of a COMPLETE run to a cell, or to a table (``cell`` None).

    :param is_part: whether an unknown part of the table was written
    """

    moment: Moment
    table: Table
    cell: Cell | None
    mode: str
    is_part: bool

    @property
    def run(self) -> str:
        return self.moment.run

    @property
    def is_whole(self) -> bool:
        return self.cell is None and not self.is_part

    @property
    def is_unknown(self) -> bool:
        """Whether it is a write as other producers report it: nobody knows where, nor how."""
        return self.is_part and self.mode == "unknown"

    def ends(self, other: Change) -> bool:
        """Whether nothing is left of an earlier write after this one."""
        if self.table != other.table or self.run == other.run or self.moment < other.moment:
            return False
        if self.mode not in _REPLACING or self.is_part:
            return False
        return self.cell is None or (other.cell is not None and _is_in(other.cell, self.cell))


class Part(NamedTuple):
    """A cell that a run read, or (``cell`` None) all or an unknown part of a table."""

    table: Table
    cell: Cell | None
    is_whole: bool

    @property
    def is_unknown(self) -> bool:
        return self.cell is None and not self.is_whole


class Version(NamedTuple):
    """A version as answers name it; ``run`` None if nobody is known to have written it."""

    table: Table
    cell: Cell | None
    run: str | None


class Hop(NamedTuple):
    depth: int
    version: Version


class Stale(NamedTuple):
    version: Version
    is_direct: bool
    is_certain: bool


class Oracle:
    """The answers about a world, now that all of it has happened."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.runs = {run.id: run for run in ledger.runs}
        self.complete = [run for run in ledger.runs if run.state == "COMPLETE"]
        changes = [change for run in self.complete for change in _changes(run)]
        self.changes = sorted(changes, key=lambda one: one.moment)
        self._reads: dict[str, list[tuple[Part, list[Change]]]] = {}

    # --- what was there ---------------------------------------------------------------------------

    @cached_property
    def ended(self) -> dict[Change, Change]:
        """Of each write that nothing is left of: the write that ended it."""
        found = {}
        for one in self.changes:
            later = [other for other in self.changes if other.ends(one)]
            if later:
                found[one] = later[0]
        return found

    def there(self, table: Table, at: Moment | None = None) -> list[Change]:
        """Give the versions that a table has at a moment; now, if it is None."""
        return [
            one
            for one in self.changes
            if one.table == table
            and one.mode not in REMOVING
            and (at is None or one.moment < at)
            and (one not in self.ended or (at is not None and at < self.ended[one].moment))
        ]

    def got(self, part: Part, at: Moment | None = None) -> list[Change]:
        """Give the versions that a read of a part gets at a moment."""
        there = [one for one in self.there(part.table, at) if _meet(part.cell, one.cell)]
        return [one for one in there if not self._is_replaced(one, part, at)]

    def _is_replaced(self, version: Change, part: Part, at: Moment | None) -> bool:
        """Whether a write has replaced all that a part and a version have in common."""
        if part.cell is None:
            return False
        common = set(part.cell) | set(version.cell or ())
        return any(
            one.table == version.table
            and one.run != version.run
            and version.moment < one.moment
            and (at is None or one.moment < at)
            and one.mode in _REPLACING
            and one.cell is not None
            and set(one.cell) <= common
            for one in self.changes
        )

    def reads(self, run: Run) -> list[tuple[Part, list[Change]]]:
        """Give each part that a run read, with the versions that it got."""
        if run.id not in self._reads:
            parts = [part for access in run.reads for part in _parts(access)]
            self._reads[run.id] = [(part, self.got(part, _read_at(run))) for part in parts]
        return self._reads[run.id]

    # --- trace and impact -------------------------------------------------------------------------

    def trace(self, table: Table, cell: Cell | None) -> set[Hop]:
        """Give the versions of a cell, and those that they were made of, at their least depth."""
        part = Part(table, cell, is_whole=cell is None)
        depths: dict[Version, int] = {}
        found = [(part, self.got(part))]
        walked: set[str] = set()
        depth = 0
        while found:
            runs = set()
            for asked, versions in found:
                for one in versions:
                    version = Version(asked.table, one.cell or asked.cell, one.run)
                    depths.setdefault(version, depth)
                    runs.add(one.run)
                if not versions and depth:
                    depths.setdefault(Version(asked.table, asked.cell, None), depth)
            found = [each for run in sorted(runs - walked) for each in self.reads(self.runs[run])]
            walked |= runs
            depth += 1
        return {Hop(depth, version) for version, depth in depths.items()}

    def impact(self, table: Table, cell: Cell | None) -> set[Version]:
        """Give all that is there and was made from any version that a cell has or had."""
        affected = {
            run.id
            for run in self.complete
            for part, versions in self.reads(run)
            if part.table == table and self._is_made_of(part, versions, cell)
        }
        before: set[str] = set()
        while affected != before:
            before = set(affected)
            affected |= {
                run.id
                for run in self.complete
                for _, versions in self.reads(run)
                if any(one.run in affected for one in versions)
            }
        return {
            Version(one.table, one.cell, one.run)
            for each in self.ledger.tables
            for one in self.there(each)
            if one.run in affected and not (each == table and _is_subject(one.cell, cell))
        }

    def _is_made_of(self, part: Part, versions: list[Change], cell: Cell | None) -> bool:
        """Whether a read got a version of a cell of its table, or what nobody wrote there."""
        if not _meet(part.cell, cell):
            return False
        if versions and any(_meet(one.cell, cell) for one in versions):
            return True
        is_known = any(
            one.table == part.table and one.mode not in REMOVING and _meet(one.cell, cell)
            for one in self.changes
        )
        return not is_known or (not versions and (part.cell is not None or cell is None))

    # --- stale ------------------------------------------------------------------------------------

    def missed(self, run: Run) -> dict[Change, bool]:
        """Give the changes of what a run read that came later, and whether they are certain."""
        found = {}
        for change in self.changes:
            if change.run != run.id and change.moment.time > run.started:
                counts = [self._counts(run, part, change) for part, _ in self.reads(run)]
                if any(counts):
                    is_later = change.moment.time >= run.ended
                    found[change] = is_later and "certain" in counts
        return found

    def _counts(self, run: Run, part: Part, change: Change) -> str:
        """Whether a later change is one of what a run had read: certain, maybe, or not (empty)."""
        if part.table != change.table or not _meet(part.cell, change.cell):
            return ""
        if part.cell is not None:
            return "maybe" if change.is_unknown else "certain"
        if part.is_unknown and change.is_unknown:
            return "maybe" if self.is_latest(run) else ""
        there = self.there(part.table, _read_at(run))
        if change.cell is None:
            is_all = change.is_whole and change.mode in _REPLACING
            return "certain" if is_all and there else ""
        if any(one.cell is not None and meet(one.cell, change.cell) for one in there):
            return "certain"
        return "maybe" if any(one.cell is None for one in there) else ""

    @cached_property
    def stale_runs(self) -> dict[str, dict[Change, bool]]:
        """All stale runs, with the changes that each missed itself; see :meth:`missed`."""
        found = {run.id: missed for run in self.complete if (missed := self.missed(run))}
        size = -1
        while size != len(found):
            size = len(found)
            for run in self.complete:
                if run.id not in found and self._has_read_stale(run, found):
                    found[run.id] = {}
        return found

    def _has_read_stale(self, run: Run, stale: Iterable[str]) -> bool:
        for _, versions in self.reads(run):
            for one in versions:
                if one.run not in stale:
                    continue
                end = self.ended.get(one)
                if end is None:
                    return True
                if end.run == run.id and not self._has_run_again(self.runs[one.run]):
                    return True
        return False

    def _has_run_again(self, run: Run) -> bool:
        """Whether the task instance of a run has a later run."""
        key = key_of(run)
        return key is not None and any(
            key_of(other) == key and _age(other) > _age(run) for other in self.complete
        )

    def is_latest(self, run: Run) -> bool:
        """Whether no later run of its job was COMPLETE."""
        return not any(
            (other.namespace, other.job) == (run.namespace, run.job) and _age(other) > _age(run)
            for other in self.complete
        )

    def stale(self) -> set[Stale]:
        """Give the versions that are there and that stale runs wrote."""
        return {
            Stale(
                Version(one.table, one.cell, one.run),
                bool(missed := self.stale_runs[one.run]),
                any(missed.values()),
            )
            for table in self.ledger.tables
            for one in self.there(table)
            if one.run in self.stale_runs and self._is_listed(one)
        }

    def _is_listed(self, change: Change) -> bool:
        """Whether it is the last write of its job to its table, if nobody knows what it wrote."""
        if not change.is_unknown:
            return True
        run = self.runs[change.run]
        return not any(
            other.table == change.table
            and (of := self.runs[other.run]).job == run.job
            and of.namespace == run.namespace
            and _age(of) > _age(run)
            for other in self.changes
        )

    # --- plan -------------------------------------------------------------------------------------

    def planned(self, listed: Iterable[Version]) -> Plan:
        """Give what is to run again for versions, and what has to run before what."""
        versions = set(listed)
        writers = [self.runs[one.run] for one in versions if one.run]
        latest: dict[Key | str, Run] = {}
        for run in sorted(writers, key=_age):
            latest[key_of(run) or run.id] = run
        before = {key: self._before(run, versions, is_again=False) for key, run in latest.items()}
        again = {key: self._before(run, versions, is_again=True) for key, run in latest.items()}
        circles = {key: _circle(key, again) | {key} for key in latest}
        return Plan(latest, {key: found - circles[key] for key, found in before.items()})

    def _before(self, run: Run, versions: set[Version], *, is_again: bool) -> set[Key | str]:
        """Name the writers of the versions that a run read, or would read if it ran again."""
        return {
            key_of(self.runs[one.run]) or one.run
            for part, found in self.reads(run)
            for one in (self.got(part) if is_again else found)
            if Version(one.table, one.cell, one.run) in versions
        }


class Plan(NamedTuple):
    """What is to run again, by task instance or, of other producers, by run.

    :param before: what has to run before each, as it wrote what that read; nothing has, where they
        would read from each other, over any number of others, if they ran again
    """

    latest: dict[Key | str, Run]
    before: dict[Key | str, set[Key | str]]

    @property
    def instances(self) -> set[Key]:
        return {key for key in self.latest if not isinstance(key, str)}

    @property
    def by_hand(self) -> set[str]:
        return {key for key in self.latest if isinstance(key, str)}


def key_of(run: Run) -> Key | None:
    """Name the task instance of a run; None if Airflow did not start it."""
    one = run.instance
    if one is None:
        return None
    return (run.namespace, one.dag_id, one.task_id, one.dag_run_id, one.map_index)


def _circle(key: Key | str, before: dict[Key | str, set[Key | str]]) -> set[Key | str]:
    """Give all that has to run both before and after something."""
    return {one for one in _reached(key, before) if key in _reached(one, before)}


def _reached(key: Key | str, before: dict[Key | str, set[Key | str]]) -> set[Key | str]:
    found: set[Key | str] = set()
    left = [key]
    while left:
        for one in before[left.pop()] - found:
            found.add(one)
            left.append(one)
    return found


def _age(run: Run) -> tuple[datetime, str]:
    return run.ended, run.id


def _read_at(run: Run) -> Moment:
    return Moment(run.started, _READS_FIRST if run.started == run.ended else _READS, run.id)


def _changes(run: Run) -> Iterator[Change]:
    moment = Moment(run.ended, _WRITES, run.id)
    for access in run.claimed():
        for part in _parts(access):
            yield Change(moment, part.table, part.cell, access.mode, part.is_unknown)


def _parts(access: Access) -> list[Part]:
    match access.extent:
        case "cells":
            return [Part(access.table, one, is_whole=False) for one in access.cells]
        case "all" | "unknown":
            return [Part(access.table, None, is_whole=access.extent == "all")]
    raise AssertionError(access.extent)  # the rules are of exact accesses, and of other producers


def _meet(one: Cell | None, other: Cell | None) -> bool:
    return one is None or other is None or meet(one, other)


def _is_in(one: Cell, other: Cell) -> bool:
    """Whether a cell is another one, or a finer one in it."""
    return set(other) <= set(one)


def _is_subject(one: Cell | None, asked: Cell | None) -> bool:
    """Whether a version of the asked table can have rows of the asked cell."""
    return one is None or asked is None or _meet(one, asked)
