"""Random worlds: a DAG of tasks over partitioned tables, its schedule over some days, and trouble.

::

    raw tables  → some are ingested by a task, one by another producer, one by nobody
    made tables → each by a task that reads one to three tables, by a rule for each

Every day the tasks run in their order. Some tries fail and are tried again; later some task
instances are cleared, days are backfilled by one run, tables are emptied, and partitions come late.
In worlds that are not exact, some accesses are known as ranges, conditions or not at all.

Times are whole minutes, so that some are equal; a seed gives the same world in every process.
"""

from __future__ import annotations

import random
import uuid
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from tests.history.ledger import Access, Cell, Edge, Instance, Ledger, Run, Table, cell

if TYPE_CHECKING:
    from collections.abc import Iterable

FIRST_DAY = date(2024, 2, 26)
"""Worlds of a few days see a leap day and the end of a month."""
REGIONS = ("eu", "us/ca=1")
_DIMS = ((), ("dt",), ("dt",), ("dt", "region"), ("region", "dt"), ("month",))
_RULES = ("same", "same", "yesterday", "window", "whole")


@dataclass(frozen=True)
class Input:
    """How a task reads a table.

    :param rule: same, yesterday, window (three days up to it), month, days, constant or whole
    :param is_coarse: whether of two dimensions only the day is known
    """

    table: Table
    rule: str
    is_coarse: bool = False


@dataclass(frozen=True)
class Task:
    """A task of the world.

    :param outputs: with the mode of each write
    :param minute: of the day at which it starts
    """

    name: str
    inputs: tuple[Input, ...]
    outputs: tuple[tuple[Table, str], ...]
    edges: tuple[Edge, ...]
    minute: int
    is_ours: bool = True


@dataclass
class World:
    """A world in the making.

    :param is_exact: whether all partitions are known of all that Airflow's tasks do
    :param dag: what its DAG is called, which tells it from other worlds in one store
    :param lake: namespace of its tables
    """

    seed: int
    days: int = 6
    is_exact: bool = True
    dag: str = "world"
    lake: str = "s3://lake"
    ledger: Ledger = field(default_factory=Ledger)

    def __post_init__(self) -> None:
        self.chance = random.Random(f"{self.seed}/{self.days}/{self.is_exact}")

    def make(self) -> Ledger:
        """Make tables, tasks and all that happens to them."""
        tables = self._tables()
        self.ledger.tables = tables
        self.tasks = self._tasks(tables)
        for task in self.tasks:
            for each in task.inputs:
                for output, _ in task.outputs:
                    key = (f"{self.dag}.{task.name}", each.table.name, output.name)
                    self.ledger.rules[key] = each.rule
        for number in range(self.days):
            for task in self.tasks:
                self._scheduled(task, number)
        self._trouble()
        self.ledger.happen()
        return self.ledger

    # --- what there is ----------------------------------------------------------------------------

    def _tables(self) -> list[Table]:
        raw = [self._table(f"raw{i}") for i in range(self.chance.choice((2, 3)))]
        made = [self._table(f"made{i}") for i in range(self.chance.randint(2, 4))]
        return raw + made

    def _table(self, name: str) -> Table:
        return Table(name, self.chance.choice(_DIMS), namespace=self.lake)

    def _tasks(self, tables: list[Table]) -> list[Task]:
        raw = [table for table in tables if table.name.startswith("raw")]
        tasks, minute = [], 60
        for table in raw[:-1]:  # nobody's events tell who writes the last one
            is_ours = self.chance.random() < 0.7
            mode = (
                self.chance.choice(("overwrite", "overwrite", "append")) if is_ours else "unknown"
            )
            tasks.append(Task(f"load_{table.name}", (), ((table, mode),), (), minute, is_ours))
        for place in range(len(raw), len(tables)):
            minute += self.chance.choice((20, 30, 60))
            tasks.append(self._task(tables[place], tables[:place], minute))
        return tasks

    def _task(self, output: Table, before: list[Table], minute: int) -> Task:
        count = min(len(before), self.chance.choice((1, 1, 2, 3)))
        inputs = [self._input(output, table) for table in self.chance.sample(before, count)]
        if output.dims and self.chance.random() < 0.2:
            inputs.append(Input(output, "yesterday"))  # a running total
        outputs = [(output, self.chance.choice(("overwrite", "overwrite", "append")))]
        others = [t for t in before if t.name.startswith("made")]
        if others and self.chance.random() < 0.15:  # a second writer of a table
            outputs.append((self.chance.choice(others), "append"))
        read = {each.table.name for each in inputs}
        outputs = [one for one in outputs if one[0] is output or one[0].name not in read]
        is_ours = self.chance.random() < 0.85
        if not is_ours:
            outputs = [(table, "unknown") for table, _ in outputs]
        edges = self._edges(inputs, [table for table, _ in outputs])
        name = f"make_{output.name}"
        return Task(name, tuple(inputs), tuple(outputs), edges, minute, is_ours)

    def _input(self, output: Table, table: Table) -> Input:
        if not table.dims:
            return Input(table, "whole")
        if not output.dims:
            return Input(table, "whole")
        match (output.dims == ("month",), table.dims == ("month",)):
            case (True, True):
                rule = "same"
            case (False, True):
                rule = "month"
            case (True, False):
                rule = "days"
            case _:
                rule = self.chance.choice(_RULES)
        is_coarse = len(table.dims) == 2 and self.chance.random() < 0.4
        return Input(table, rule, is_coarse and rule != "whole")

    def _edges(self, inputs: list[Input], outputs: list[Table]) -> tuple[Edge, ...]:
        edges = []
        for output in outputs:
            if self.chance.random() < 0.2:
                continue  # nothing is known of its columns
            for each in inputs:
                if self.chance.random() < 0.2:
                    continue  # feeds rows only, and no condition says so
                edges.append(Edge(output, "key", each.table, "key", subtype="IDENTITY"))
                if self.chance.random() < 0.6:
                    edges.append(
                        Edge(output, "amount", each.table, "amount", subtype="AGGREGATION")
                    )
                if self.chance.random() < 0.3:
                    edges.append(Edge(output, None, each.table, "key", "INDIRECT", "JOIN"))
        return tuple(edges)

    # --- what happens -----------------------------------------------------------------------------

    def _scheduled(self, task: Task, number: int) -> None:
        day = FIRST_DAY + timedelta(days=number)
        at = _midnight(day) + timedelta(days=1, minutes=task.minute + self.chance.randint(0, 10))
        instance = self._instance(task, day, "scheduled")
        tries = 1
        if self.chance.random() < 0.12:
            self._run(task, [day], at, instance, tries, state="FAIL")
            tries, at = 2, at + timedelta(minutes=25)
        self._run(task, [day], at, instance, tries)

    def _trouble(self) -> None:
        """Clear task instances, backfill, empty tables, at any time from the third day on."""
        first = _midnight(FIRST_DAY) + timedelta(days=min(3, self.days))
        for number in range(self.chance.randint(1, 3 + self.days // 3)):
            at = first + timedelta(minutes=self.chance.randint(0, 60 * 24 * (self.days + 1)))
            task = self.chance.choice(self.tasks)
            begun = max(1, min(self.days, (at - _midnight(FIRST_DAY)).days))
            match self.chance.choice(("clear", "clear", "clear", "backfill", "empty")):
                case "clear":
                    self._clear(task, FIRST_DAY + timedelta(days=self.chance.randrange(begun)), at)
                case "backfill":
                    self._backfill(task, begun, at, number)
                case "empty":
                    self._empty(task, begun, at, number)

    def _clear(self, task: Task, day: date, at: datetime) -> None:
        """Run a task instance again: its next try, with another run id."""
        instance = self._instance(task, day, "scheduled")
        tries = [run.try_number for run in self.ledger.runs if run.instance == instance]
        self._run(task, [day], at, instance, max(tries, default=0) + 1)

    def _backfill(self, task: Task, begun: int, at: datetime, number: int) -> None:
        since = self.chance.randrange(begun)
        until = self.chance.randint(since, begun - 1)
        days = [FIRST_DAY + timedelta(days=i) for i in range(since, until + 1)]
        instance = self._instance(task, days[-1], f"manual_{number}")
        self._run(task, days, at, instance, 1)

    def _empty(self, task: Task, begun: int, at: datetime, number: int) -> None:
        """Truncate or drop some of a table, which reads nothing."""
        table, _ = self.chance.choice(task.outputs)
        days = [FIRST_DAY + timedelta(days=self.chance.randrange(begun))]
        whole = Access(table, "all", mode=self.chance.choice(("truncate", "drop")))
        part = Access(table, "cells", _cells(table, days), mode="drop")
        instance = self._instance(replace(task, name="cleanup"), days[0], f"manual_{number}")
        is_whole = not table.dims or self.chance.random() < 0.3
        self.ledger.runs.append(
            Run(
                self._id(),
                f"{self.dag}.cleanup",
                at,
                at + timedelta(minutes=self.chance.randint(0, 5)),
                writes=(whole if is_whole else part,),
                instance=instance,
            )
        )

    def _instance(self, task: Task, day: date, kind: str) -> Instance:
        logical = _midnight(day)
        return Instance(self.dag, task.name, f"{kind}__{logical.isoformat()}", logical)

    def _run(
        self,
        task: Task,
        days: list[date],
        at: datetime,
        instance: Instance,
        try_number: int,
        state: str = "COMPLETE",
    ) -> None:
        is_breaking = self.chance.random() < 0.03 and task.is_ours
        read_days = [day - timedelta(days=4) for day in days] if is_breaking else days
        run = Run(
            self._id(),
            f"{self.dag}.{task.name}",
            at,
            at + timedelta(minutes=self.chance.choice((0, 5, 10, 20, 45))),
            tuple(self._read(task, each, read_days) for each in task.inputs),
            tuple(self._write(task, table, mode, days, state) for table, mode in task.outputs),
            task.edges if state == "COMPLETE" else (),
            state,
            instance if task.is_ours else None,
            try_number,
        )
        self.ledger.runs.append(run)
        if is_breaking:
            self.ledger.breaking.add(run.id)

    def _read(self, task: Task, each: Input, days: list[date]) -> Access:
        table = each.table
        if not task.is_ours:
            return Access(table, "unknown", actual=_cells(table, days))
        if each.rule == "whole":
            return Access(table, "all")
        cells = _cells(table, _days_of(each.rule, days))
        if each.is_coarse:
            cells = tuple(sorted({tuple(p for p in one if p[0] == "dt") for one in cells}))
        if self.is_exact or self.chance.random() < 0.8:
            return Access(table, "cells", cells)
        kind = self.chance.choice(("range", "condition", "unknown", "none"))
        if kind == "range" and (each.is_coarse or len(cells) < 2):
            kind = "unknown"  # one partition is always named
        return Access(table, kind, actual=() if kind == "none" else cells)

    def _write(self, task: Task, table: Table, mode: str, days: list[date], state: str) -> Access:
        is_failed = state == "FAIL"
        if is_failed:
            return Access(table, "unknown", mode=mode, is_failed=True)
        cells = _cells(table, days)
        truly = self.chance.choice(("append", "overwrite")) if mode == "unknown" else ""
        if not task.is_ours:
            return Access(table, "unknown", mode=mode, actual=cells, truly_mode=truly)
        if not table.dims:
            return Access(table, "all", mode=mode, actual=cells)
        if mode == "overwrite" and self.chance.random() < 0.05:  # a full load
            since = (max(days) - FIRST_DAY).days
            every = [FIRST_DAY + timedelta(days=i) for i in range(since + 1)]
            return Access(table, "all", mode=mode, actual=_cells(table, every))
        if self.is_exact or self.chance.random() < 0.85:
            return Access(table, "cells", cells, mode=mode)
        kind = self.chance.choice(("range", "range", "unknown", "none"))
        if kind == "range" and len(cells) < 2:
            kind = "unknown"
        return Access(table, kind, mode=mode, actual=() if kind == "none" else cells)

    def _id(self) -> str:
        return str(uuid.UUID(int=self.chance.getrandbits(128), version=4))


def _days_of(rule: str, days: Iterable[date]) -> list[date]:
    """Say which days a run reads for the days that it writes, by a rule."""
    found: set[date] = set()
    for day in days:
        match rule:
            case "yesterday":
                found.add(day - timedelta(days=1))
            case "window":
                found |= {day - timedelta(days=i) for i in range(3)}
            case "days":  # of the month, up to this one
                found |= {day.replace(day=i) for i in range(1, day.day + 1)}
            case _:
                found.add(day)
    return sorted(found)


def _cells(table: Table, days: Iterable[date]) -> tuple[Cell, ...]:
    found: set[Cell] = set()
    for day in days:
        if not table.dims:
            found.add(())
        elif table.dims == ("month",):
            found.add(cell(month=f"{day:%Y-%m}"))
        elif "region" in table.dims:
            found |= {cell(dt=day.isoformat(), region=region) for region in REGIONS}
        else:
            found.add(cell(dt=day.isoformat()))
    return tuple(sorted(found))


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def world(seed: int, days: int = 6, *, is_exact: bool | None = None, **names: str) -> Ledger:
    """Make a random world; of those that are not exact every second one.

    :param names: ``dag`` and ``lake`` of :class:`World`
    """
    return World(seed, days, seed % 2 == 0 if is_exact is None else is_exact, **names).make()
