"""What happened in a simulated world: tables, runs, what each read and wrote, and what lay there.

The ledger is kept while the world is made (:mod:`.simulation`), and knows by construction what fed
what: :attr:`Ledger.fed` is what physically lay in the cells that a run read when it read them. What
events can say of it (:mod:`.events`) is less where partitions were cut or are not known.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from datetime import datetime

Cell = tuple[tuple[str, str], ...]
"""A partition: names of dimensions with values, sorted by name; ``()`` where there are none."""

REPLACING = frozenset({"overwrite", "create", "truncate", "drop", "removed"})
REMOVING = frozenset({"truncate", "drop", "removed"})
_READS_FIRST, _WRITES, _READS = range(3)


def cell(**values: str) -> Cell:
    return tuple(sorted(values.items()))


def meet(one: Cell, other: Cell) -> bool:
    """Whether two cells may have rows in common: no dimension that both have differs."""
    others = dict(other)
    return all(others.get(name, value) == value for name, value in one)


@dataclass(frozen=True)
class Table:
    """A dataset.

    :param dims: dimensions in the order of its folders
    """

    name: str
    dims: tuple[str, ...] = ()
    columns: tuple[str, ...] = ("amount", "key")
    namespace: str = "s3://lake"

    def text(self, cell: Cell) -> str:
        """Give the folder of a cell, in the order of the dimensions."""
        values = dict(cell)
        return "/".join(f"{dim}={_escaped(values[dim])}" for dim in self.dims if dim in values)


def _escaped(value: str) -> str:
    return value.replace("%", "%25").replace("/", "%2F").replace("=", "%3D")


@dataclass(frozen=True)
class Access:
    """What a run read of a table, or wrote to it, as it can be known from its event.

    :param extent: cells, all, range, condition, unknown or none
    :param actual: the cells in truth, where the extent does not name them
    :param truly_mode: what was done in truth, where the mode is ``unknown``
    """

    table: Table
    extent: str = "all"
    cells: tuple[Cell, ...] = ()
    mode: str = ""
    actual: tuple[Cell, ...] = ()
    truly_mode: str = ""
    is_failed: bool = False

    @property
    def truly(self) -> tuple[Cell, ...]:
        return self.cells or self.actual

    @property
    def ends(self) -> tuple[str, str]:
        """First and last partition of a range, as texts."""
        texts = [self.table.text(one) for one in self.actual]
        return min(texts), max(texts)


class Edge(NamedTuple):
    """Column lineage; ``out_column`` None is a condition of all columns of the output."""

    output: Table
    out_column: str | None
    input: Table
    in_column: str
    kind: str = "DIRECT"
    subtype: str = "IDENTITY"


@dataclass(frozen=True)
class Instance:
    """A task instance of Airflow."""

    dag_id: str
    task_id: str
    dag_run_id: str
    logical_date: datetime
    map_index: int = -1


@dataclass(frozen=True)
class Run:
    """A try of a task instance, or a run of another producer (``instance`` None).

    :param namespace: of its job: which Airflow ran it
    """

    id: str
    job: str
    started: datetime
    ended: datetime
    reads: tuple[Access, ...] = ()
    writes: tuple[Access, ...] = ()
    edges: tuple[Edge, ...] = ()
    state: str = "COMPLETE"
    instance: Instance | None = None
    try_number: int = 1
    namespace: str = "world"

    def claimed(self) -> tuple[Access, ...]:
        """Give what it changed: nothing if it failed."""
        if self.state != "COMPLETE":
            return ()
        return tuple(one for one in self.writes if not one.is_failed and one.extent != "none")


@dataclass
class Ledger:
    """All that happened.

    :param fed: of each run, table and cell that it read: the runs whose rows lay there
    :param rules: of each job and pair of tables how the read cells follow from the written ones
    """

    tables: list[Table] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    fed: dict[tuple[str, str], dict[Cell, frozenset[str]]] = field(default_factory=dict)
    rules: dict[tuple[str, str, str], str] = field(default_factory=dict)
    breaking: set[str] = field(default_factory=set)
    """Runs that read other partitions than their task's rules say."""

    def happen(self) -> None:
        """Play all runs through a lake, in the order of time, and note what each found there."""
        lake: dict[str, dict[Cell, list[str]]] = defaultdict(dict)
        timestamps = [(run.ended, _WRITES, run.id, run) for run in self.runs]
        for run in self.runs:  # what takes no time reads before anything is written then
            order = _READS_FIRST if run.started == run.ended else _READS
            timestamps.append((run.started, order, run.id, run))
        for _, order, _, run in sorted(timestamps, key=lambda one: one[:3]):
            if order != _WRITES:
                for access in run.reads:
                    self.fed[run.id, access.table.name] = _found(lake, access, run.id)
            else:
                for access in run.claimed():
                    _write(lake[access.table.name], access, run.id)

    def only(self, *ids: str) -> Ledger:
        """Give the same world without any other runs, for finding the least that goes wrong."""
        kept = Ledger(self.tables, [run for run in self.runs if run.id in ids], rules=self.rules)
        kept.happen()
        return kept

    def without(self, *ids: str) -> Ledger:
        return self.only(*(run.id for run in self.runs if run.id not in ids))

    def with_runs(self, *runs: Run) -> Ledger:
        """Give the world with these runs in place of those of the same ids."""
        new = {run.id: run for run in runs}
        made = replace(self, runs=[new.get(run.id, run) for run in self.runs], fed={})
        made.happen()
        return made


def _found(
    lake: dict[str, dict[Cell, list[str]]], access: Access, reader: str
) -> dict[Cell, frozenset[str]]:
    there = lake[access.table.name]
    wanted = access.truly if access.extent not in ("all", "none") else ()
    return {
        one: frozenset(runs) - {reader}
        for one, runs in there.items()
        if access.extent == "all" or any(meet(one, each) for each in wanted)
    }


def _write(there: dict[Cell, list[str]], access: Access, run: str) -> None:
    mode = access.truly_mode or access.mode
    if access.extent == "all" and mode in REPLACING:
        there.clear()
    for one in access.truly:
        if mode in REPLACING:
            there.pop(one, None)
        if mode not in REMOVING:
            there.setdefault(one, []).append(run)
