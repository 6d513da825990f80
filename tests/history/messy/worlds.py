"""Random worlds with all that goes wrong in lakes.

::

    loaders  → tables of days, of regions, of both, of neither
    tasks    → read one or two tables, and some of them their own; some are mapped over regions
    rivals   → tasks of a second DAG that write tables of the first
    dbt      → a chain of models of another producer, in some worlds
    Airflows → one, or two with the same DAGs, tasks and DAG runs, on tables of their own or shared

Runs take from no time to more than a day, so that they overlap. A task may start up to a second
before the end of what it waits for, by its own clock. Later some task instances are cleared, days
are backfilled, partitions are emptied, and some of these are written again.

A seed gives the same world in every process.
"""

from __future__ import annotations

import random
import uuid
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from tests.history.ledger import Access, Cell, Edge, Instance, Ledger, Run, Table, cell
from tests.history.simulation import Input

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FIRST_DAY = date(2024, 2, 27)
REGIONS = ("eu", "us")
AIRFLOWS = ("world", "second")
_DIMS = ((), ("dt",), ("dt",), ("dt", "region"), ("region", "dt"), ("region",))
_MINUTES = (0, 1, 1, 5, 5, 20, 45, 180)
_LONGEST = 60 * 26


@dataclass(frozen=True)
class Task:
    """A task of a DAG, or (``dag`` empty) a job of another producer.

    :param regions: of a mapped task: what each index writes
    :param is_whole: whether it overwrites a table of partitions as a whole
    :param minute: of the day at which it starts
    :param is_chained: whether it starts at the end of the task before it, give or take a second
    """

    name: str
    output: Table
    minute: int
    inputs: tuple[Input, ...] = ()
    mode: str = "overwrite"
    dag: str = "daily"
    namespace: str = AIRFLOWS[0]
    regions: tuple[str, ...] = ()
    is_whole: bool = False
    is_coarse: bool = False
    is_chained: bool = False

    @property
    def job(self) -> str:
        return f"{self.dag}.{self.name}" if self.dag else self.name

    @property
    def indexes(self) -> list[int]:
        return list(range(len(self.regions))) or [-1]


class Messy:
    """A world in the making.

    :param is_exact: whether there is no other producer than Airflow
    """

    def __init__(self, seed: int, *, is_exact: bool) -> None:
        self.chance = random.Random(f"messy/{seed}/{is_exact}")
        self.is_exact = is_exact
        self.days = self.chance.choice((2, 3, 3, 4, 5))
        self.ledger = Ledger()
        self.renamed = self.chance.randrange(self.days + 1)
        """The day from which on the column ``amount`` is called ``total``."""

    def make(self) -> Ledger:
        """Make tables, tasks and all that happens to them."""
        tasks = self._tasks()
        if self.chance.random() < 0.3:
            tasks += self._copies(tasks)
        tables = {task.output: None for task in tasks}
        tables |= {each.table: None for task in tasks for each in task.inputs}
        self.ledger.tables = list(tables)
        for number in range(self.days):
            self._day(tasks, FIRST_DAY + timedelta(days=number))
        for number in range(self.chance.randint(1, 6)):
            self._trouble(tasks, number)
        self.ledger.happen()
        return self.ledger

    # --- what there is ----------------------------------------------------------------------------

    def _maybe(self, probability: float) -> bool:
        return self.chance.random() < probability

    def _tasks(self) -> list[Task]:
        tables = [Table("raw0", self.chance.choice(_DIMS)), Table("raw1", ("dt",))]
        tasks = [self._writing(table, 10) for table in tables[: self.chance.choice((1, 1, 2))]]
        for number in range(self.chance.randint(1, 4)):
            table = Table(f"made{number}", self.chance.choice(_DIMS))
            minute = 60 + 20 * number
            tasks.append(self._reading(self._writing(table, minute), tables[-3:]))
            tables.append(table)
        if not self.is_exact:
            tasks += self._models(tables)
        if self._maybe(0.5):
            output = self.chance.choice(tasks).output
            rival = replace(self._writing(output, 70), name=f"also_{output.name}", dag="rival")
            mode = self.chance.choice(("overwrite", "append"))
            others = [table for table in tables if table != output]
            tasks.append(replace(self._reading(rival, others), mode=mode))
        return tasks

    def _writing(self, table: Table, minute: int) -> Task:
        is_mapped = "region" in table.dims and self._maybe(0.7)
        return Task(
            f"make_{table.name}",
            table,
            minute,
            mode=self.chance.choice(("overwrite", "overwrite", "overwrite", "create", "append")),
            regions=REGIONS if is_mapped else (),
            is_coarse=len(table.dims) == 2 and not is_mapped and self._maybe(0.4),
        )

    def _reading(self, task: Task, tables: list[Table]) -> Task:
        count = self.chance.choice((1, 1, 2))
        chosen = self.chance.sample(tables, min(count, len(tables)))
        inputs = [self._input(table) for table in chosen]
        if self._maybe(0.35):  # a snapshot, or a running total
            is_total = "dt" in task.output.dims and self._maybe(0.7)
            is_own = "region" in task.output.dims and not is_total and bool(task.regions)
            inputs.append(Input(task.output, "yesterday" if is_total or is_own else "whole"))
            is_whole = not is_total and not is_own and not task.regions
            task = replace(task, mode="overwrite", is_whole=is_whole)
        return replace(task, inputs=tuple(inputs), is_chained=self._maybe(0.4))

    def _input(self, table: Table) -> Input:
        rule = self.chance.choice(("same", "same", "same", "yesterday", "window", "whole"))
        is_coarse = len(table.dims) == 2 and rule != "whole" and self._maybe(0.5)
        return Input(table, rule if table.dims else "whole", is_coarse)

    def _models(self, tables: list[Table]) -> Iterator[Task]:
        """Give a chain of models; nobody knows which partitions they read and write."""
        sources = list(tables)
        for number in range(self.chance.randint(1, 3)):
            made = Table(f"model{number}", self.chance.choice(((), ("dt",))))
            output = self.chance.choice(tables) if self._maybe(0.1) else made
            found = [sources[-1], self.chance.choice(sources)]
            inputs = {
                table: Input(table, "unknown") for table in found[: self.chance.randint(1, 2)]
            }
            minute = 50 + 25 * number
            yield Task(
                f"model.{output.name}",
                output,
                minute,
                tuple(inputs.values()),
                "unknown",
                dag="",
                is_chained=number > 0 and self._maybe(0.5),
            )
            sources.append(output)
        if self._maybe(0.7):
            read = replace(self._writing(Table("after", ("dt",)), 200), inputs=())
            yield replace(read, inputs=(self._input(sources[-1]),))

    def _copies(self, tasks: list[Task]) -> list[Task]:
        """Give another Airflow with the same DAGs; it has its own copy of some of the tables."""
        names = sorted({t.name for task in tasks for t in _tables_of(task)})
        shared = {name for name in names if self._maybe(0.4)}

        def theirs(table: Table) -> Table:
            return table if table.name in shared else replace(table, namespace="s3://other")

        return [
            replace(
                task,
                namespace=AIRFLOWS[1],
                output=theirs(task.output),
                inputs=tuple(replace(one, table=theirs(one.table)) for one in task.inputs),
            )
            for task in tasks
            if self._maybe(0.8)
        ]

    # --- what happens -----------------------------------------------------------------------------

    def _day(self, tasks: list[Task], day: date) -> None:
        """Run all tasks once, with failed tries, some of which nobody repeats."""
        midnight = _midnight(day) + timedelta(days=1)
        last = midnight
        for task in tasks:
            at = midnight + timedelta(minutes=task.minute + self.chance.randint(0, 10))
            if task.is_chained and last > midnight:  # by its own clock
                at = last + timedelta(seconds=self.chance.choice((-1, -1, 0, 0, 1)))
            last = max(self._try(task, day, at, index) for index in task.indexes)
        if self._maybe(0.1):
            self._clear(self.chance.choice(tasks), day, last)

    def _try(self, task: Task, day: date, at: datetime, index: int) -> datetime:
        tries = 1
        if self._maybe(0.12):
            ended = self._run(task, [day], at, index, state=self.chance.choice(("FAIL", "ABORT")))
            if self._maybe(0.3):
                return ended
            at, tries = ended + timedelta(minutes=5), 2
        return self._run(task, [day], at, index, tries)

    def _trouble(self, tasks: list[Task], number: int) -> None:
        at = _midnight(FIRST_DAY) + timedelta(days=1)
        at += timedelta(minutes=self.chance.randint(60, 60 * 24 * (self.days + 1)))
        task = self.chance.choice(tasks)
        day = FIRST_DAY + timedelta(days=self.chance.randrange(self.days))
        match self.chance.choice(("clear", "clear", "down", "backfill", "empty", "empty", "merge")):
            case "clear":
                self._clear(task, day, at)
            case "down":  # with all that comes after it, at once or in order
                for each in tasks[tasks.index(task) :]:
                    self._clear(each, day, at)
                    at += timedelta(minutes=self.chance.choice((0, 0, 30)))
            case "backfill":
                last = min(day + timedelta(days=2), FIRST_DAY + timedelta(days=self.days - 1))
                days = _days(day, last)
                for index in task.indexes:
                    self._run(task, days, at, index, kind=f"manual_{number}")
            case "empty":
                self._empty(task, day, at, number)
            case "merge" if task.output.dims == ("dt", "region") and task.dag:
                eu, us = (cell(dt=day.isoformat(), region=region) for region in REGIONS)
                written = Access(task.output, "cells", (eu,), "overwrite")
                self._maintain(
                    (written, Access(task.output, "cells", (us,), "removed")), at, number
                )
        if self._maybe(0.3):  # written again
            self._clear(task, day, at + timedelta(minutes=self.chance.choice((0, 30, 600))))

    def _clear(self, task: Task, day: date, at: datetime) -> None:
        """Run a task again, of a mapped one often an index alone."""
        indexes = task.indexes
        if self._maybe(0.6):
            indexes = [self.chance.choice(indexes)]
        for index in indexes:
            instance = self._instance(task, day, "scheduled", index)
            known = (task.namespace, instance)
            tries = sum((run.namespace, run.instance) == known for run in self.ledger.runs)
            state = "FAIL" if self._maybe(0.1) else "COMPLETE"
            self._run(task, [day], at, index, tries + 1, state)

    def _empty(self, task: Task, day: date, at: datetime, number: int) -> None:
        table = task.output
        if table.dims and self._maybe(0.7):
            cells = _cells(table, [day], self.chance.choice(((), REGIONS[:1], REGIONS)))
            if len(table.dims) == 2 and self._maybe(0.3):
                cells = (cell(dt=day.isoformat()),)
            mode = self.chance.choice(("removed", "removed", "drop"))
            self._maintain((Access(table, "cells", cells, mode),), at, number)
        else:
            mode = self.chance.choice(("truncate", "drop", "drop" if table.dims else "removed"))
            self._maintain((Access(table, "all", mode=mode),), at, number)

    def _maintain(self, writes: tuple[Access, ...], at: datetime, number: int) -> None:
        task = Task("maintain", writes[0].table, 0, dag="maintenance")
        instance = self._instance(task, FIRST_DAY, f"manual_{number}", -1)
        self._happened(task, at, self._end(at), (), writes, instance, 1, "COMPLETE", ())

    def _run(
        self,
        task: Task,
        days: list[date],
        at: datetime,
        index: int,
        tries: int = 1,
        state: str = "COMPLETE",
        kind: str = "scheduled",
    ) -> datetime:
        """Let a task run; gives its end."""
        regions = task.regions[index : index + 1] if index >= 0 else ()
        instance = self._instance(task, days[-1], kind, index) if task.dag else None
        reads = tuple(self._read(one, days, regions) for one in task.inputs)
        writes = (_write(task, days, regions, state),)
        edges = self._edges(task, days[-1]) if state == "COMPLETE" else ()
        ended = self._end(at)
        self._happened(task, at, ended, reads, writes, instance, tries, state, edges)
        return ended

    def _happened(
        self,
        task: Task,
        started: datetime,
        ended: datetime,
        reads: tuple[Access, ...],
        writes: tuple[Access, ...],
        instance: Instance | None,
        tries: int,
        state: str,
        edges: tuple[Edge, ...],
    ) -> None:
        run = Run(
            str(uuid.UUID(int=self.chance.getrandbits(128), version=4)),
            task.job,
            started,
            ended,
            reads,
            writes,
            edges,
            state,
            instance,
            tries,
            task.namespace,
        )
        self.ledger.runs.append(run)

    def _end(self, at: datetime) -> datetime:
        minutes = _LONGEST if self._maybe(0.03) else self.chance.choice(_MINUTES)
        return at + timedelta(minutes=minutes)

    def _instance(self, task: Task, day: date, kind: str, index: int) -> Instance:
        logical = _midnight(day)
        return Instance(task.dag, task.name, f"{kind}__{day.isoformat()}", logical, index)

    def _read(self, one: Input, days: list[date], regions: tuple[str, ...]) -> Access:
        table = one.table
        match one.rule:
            case "unknown":
                return Access(table, "unknown")
            case "whole":
                return Access(table, "all")
            case "yesterday":
                days = [day - timedelta(days=1) for day in days]
            case "window":
                days = _days(days[0] - timedelta(days=2), days[-1])
        cells = _cells(table, days, regions)
        if one.is_coarse and not regions:
            cells = tuple(sorted({tuple(p for p in each if p[0] == "dt") for each in cells}))
        return Access(table, "cells", cells)

    def _edges(self, task: Task, day: date) -> tuple[Edge, ...]:
        amount = "total" if (day - FIRST_DAY).days >= self.renamed else "amount"
        if self._maybe(0.2):
            return ()
        return tuple(
            edge
            for one in task.inputs
            for edge in (
                Edge(task.output, "key", one.table, "key"),
                Edge(task.output, amount, one.table, "amount", subtype="AGGREGATION"),
            )
        )


def _tables_of(task: Task) -> list[Table]:
    return [task.output, *(each.table for each in task.inputs)]


def _write(task: Task, days: list[date], regions: tuple[str, ...], state: str) -> Access:
    table = task.output
    if state != "COMPLETE":
        return Access(table, "unknown", mode=task.mode, is_failed=True)
    if not task.dag:
        return Access(table, "unknown", mode=task.mode)
    if not table.dims or task.is_whole:
        return Access(table, "all", mode=task.mode)
    cells = _cells(table, days, regions)
    if task.is_coarse:
        cells = tuple(sorted({tuple(p for p in one if p[0] == "dt") for one in cells}))
    return Access(table, "cells", cells, task.mode)


def _cells(table: Table, days: Iterable[date], regions: tuple[str, ...]) -> tuple[Cell, ...]:
    every = (
        [{"region": region} for region in regions or REGIONS] if "region" in table.dims else [{}]
    )
    found = set()
    for day in days:
        of_day = {"dt": day.isoformat()} if "dt" in table.dims else {}
        found |= {cell(**of_day, **of_region) for of_region in every}
    return tuple(sorted(found))


def _days(first: date, last: date) -> list[date]:
    return [first + timedelta(days=i) for i in range((last - first).days + 1)]


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def is_exact(seed: int) -> bool:
    """Whether nobody but Airflow writes in the world of a seed: in every second one."""
    return seed % 2 == 0


def world(seed: int) -> Ledger:
    return Messy(seed, is_exact=is_exact(seed)).make()
