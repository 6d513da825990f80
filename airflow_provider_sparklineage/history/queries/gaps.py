"""Gaps: partitions that a schedule's runs should have written, and that are not there.

A partition that a run removed is no gap: its data was deleted on purpose. A partition of a table
that was dropped or truncated is one.

The partitions that a run should have written are learned, like patterns: from the relation between
the data intervals or logical dates of a task's runs and the partitions that these runs wrote. If a
date between the first and the last run has no known run, the date follows from the step between the
other dates. If runs have no dates, as with other schedulers, the step between the partitions
themselves is used.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from airflow_provider_sparklineage.history.queries import answers
from airflow_provider_sparklineage.history.queries.datasets import Folders
from airflow_provider_sparklineage.history.queries.patterns.axes import UNITS, Step, axes_of
from airflow_provider_sparklineage.history.queries.patterns.learning import Learned, Pair, learn
from airflow_provider_sparklineage.history.queries.patterns.observed import (
    Run,
    Task,
    dates_of,
    run_of,
    writes_of,
)
from airflow_provider_sparklineage.history.queries.patterns.rules import (
    Points,
    Relation,
    product_of,
)
from airflow_provider_sparklineage.model.partitioning import Partition
from airflow_provider_sparklineage.model.timestamps import start_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from airflow_provider_sparklineage.history.queries.sql import Rows
    from airflow_provider_sparklineage.model.datasets import DatasetName

# All runs of the tasks that write the dataset, and for each date of their DAGs one other run.
_RUNS = """
WITH writers AS (
    SELECT DISTINCT r.namespace, r.job, r.dag_id FROM runs AS r JOIN accesses AS a
        ON a.run_id = r.run_id
    WHERE a.side = 'write' AND a.namespace = $namespace AND a.name = $name
), of_dags AS (
    SELECT r.*, w.job IS NOT NULL AS is_writer
    FROM runs AS r LEFT JOIN writers AS w
        ON w.namespace = r.namespace AND w.job = r.job AND w.dag_id = r.dag_id
    WHERE r.dag_id IN (SELECT dag_id FROM writers)
), ranked AS (
    SELECT *, row_number() OVER (
        PARTITION BY is_writer, dag_id, data_interval_end, data_interval_start, logical_date
        ORDER BY coalesce(try_number, 0), ended NULLS FIRST, run_id
    ) AS place
    FROM of_dags
)
SELECT run_id, namespace, job, dag_id, dag_run_id, try_number, state, started, ended,
       data_interval_end, data_interval_start, logical_date
FROM ranked
WHERE is_writer OR place = 1
ORDER BY coalesce(try_number, 0), ended NULLS FIRST, run_id
"""
_PARTITIONED = """
SELECT cell FROM changes
WHERE namespace = $namespace AND name = $name AND cell IS NOT NULL LIMIT 1
"""
_CHANGES = """
SELECT run_id, cell, partition, extent, valid_from, mode = 'removed' AS is_removed,
       valid_to IS NULL AND mode NOT IN ('drop', 'truncate', 'removed') AS is_there
FROM changes
WHERE namespace = $namespace AND name = $name AND extent <> 'none'
ORDER BY valid_from
"""


class Gap(msgspec.Struct, frozen=True):
    """A partition that is expected and not there.

    :param partition: values by dimension, of the dimensions that follow from the run, as they are
        in the names of the table's folders: ``hour=03``
    :param cell: the same as one text in canonical form, ``dt=2024-10-15/hour=3``
    :param job: the task that should have written the partition; empty if the partition is expected
        only because of the regular step between the others
    :param run: the last try of the task for that date, if one is known
    :param reason: ``failed``, ``running``, ``not_written`` (the run succeeded and wrote other
        partitions), ``dropped`` (it was there), ``no_run`` (no run of the task is recorded)
    :param confidence: confidence of the rule by which the partition is expected, as in patterns
    """

    dataset: answers.Dataset
    partition: dict[str, str]
    cell: str
    reason: str
    namespace: str = ""
    job: str = ""
    dag_id: str | None = None
    dag_run_id: str | None = None
    logical_date: datetime | None = None
    run: Run | None = None
    confidence: float = 0.0


class _Due(NamedTuple):
    """A date on which a task should have written.

    :param points: the dates of the DAG run, such as its logical date, each as a point on an axis
        (:class:`.Axis`)
    :param rows: the runs of the DAG's tasks on this date; () if no DAG run is known
    """

    points: Points
    rows: Sequence[dict[str, Any]]


class _Partitions:
    """The partitions of a dataset that exist now, and all that were ever written."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self.folders = Folders(rows)
        self.ever = {row["cell"] for row in rows if row["cell"]}
        self.cells = {row["cell"] for row in rows if row["cell"] and row["is_there"]}
        last = {row["cell"]: row for row in rows if row["cell"]}
        self.removed = {cell for cell, row in last.items() if row["is_removed"]}
        """Partitions that a run removed, and that no run wrote later."""
        whole = [row["valid_from"] for row in rows if row["extent"] == "all" and row["is_there"]]
        self.whole = max(whole, default=None)
        """When a run last wrote the whole dataset, and so all partitions that were due by then."""
        named = ("partition", "all")
        self.vague = {row["run_id"] for row in rows if row["extent"] not in named}
        """Ids of the runs whose written partitions are not known; due ones may be among them."""


def is_expected(history: Rows, dataset: DatasetName) -> bool:
    """Whether gaps of a dataset can be found: only if a run ever wrote one of its partitions.

    :param history: an opened store of the history
    """
    return bool(history.rows(_PARTITIONED, dataset._asdict()))


def gaps(history: Rows, dataset: DatasetName) -> list[Gap]:
    """List the partitions that are expected and not there, sorted by their texts.

    :param history: an opened store of the history
    """
    there = _Partitions(history.rows(_CHANGES, dataset._asdict()))
    runs = history.rows(_RUNS, dataset._asdict())
    pairs: dict[Task, list[Pair]] = defaultdict(list)
    for run_id, write in writes_of(history, dataset).items():
        if write.cells and not write.dates.startswith("run="):
            pairs[write.task].append(Pair(run_id, (write.dates,), write.cells))
    by_cell: dict[str, Gap] = {}
    is_scheduled = False
    for task, observed in sorted(pairs.items()):
        learned = learn(observed)
        is_scheduled |= bool(learned.relation.links)
        for gap in _of_task(dataset, task, learned, runs, there):
            by_cell.setdefault(gap.cell, gap)
    if not is_scheduled:
        by_cell = {gap.cell: gap for gap in _by_step(dataset, there)}
    return sorted(by_cell.values(), key=lambda gap: gap.cell)


def _of_task(
    dataset: DatasetName,
    task: Task,
    learned: Learned,
    runs: Sequence[dict[str, Any]],
    there: _Partitions,
) -> Iterator[Gap]:
    relation = learned.relation
    points = (relation.found.read(cell) for cell in there.cells)
    kept = set(relation.on_kept(one for one in points if one is not None))
    for due in _dues(task, relation, runs) if relation.links else ():
        own = [row for row in due.rows if Task(row["namespace"], row["job"]) == task]
        if not there.vague.isdisjoint(row["run_id"] for row in own):
            continue
        if there.whole is not None and _due_at(relation, due, own) <= there.whole:
            continue
        last = own[-1] if own else None
        any_row = last or (due.rows[0] if due.rows else None) or {}
        for wanted in product_of(relation.boxes([due.points])):
            if wanted in kept or not (values := _values(relation, wanted)):
                continue
            cell = str(Partition(tuple(values.items())))
            if cell in there.removed:
                continue
            yield Gap(
                answers.Dataset(*dataset),
                there.folders.of(cell),
                cell,
                "dropped" if cell in there.ever else _reason(last),
                task.namespace,
                task.job,
                any_row.get("dag_id"),
                any_row.get("dag_run_id"),
                answers.at_utc_if_known(any_row.get("logical_date")),
                run_of(last) if last else None,
                learned.confidence,
            )


def _dues(task: Task, relation: Relation, runs: Iterable[dict[str, Any]]) -> list[_Due]:
    """List the dates of the task's DAG from the task's first run on, including dates without a run.

    A date without a run is found by the regular step (:class:`.Step`) between the other dates. For
    that, the relation must use exactly one axis (:class:`.Axis`) of dates; if it uses another
    number of them, only the dates of runs are listed, also those before the task's first run.

    :param relation: leads from the dates of a run of the task to the partitions that the run writes
    :param runs: rows of runs of the task and of other tasks
    """
    own = [row for row in runs if Task(row["namespace"], row["job"]) == task]
    dags = {row["dag_id"] for row in own}
    by_date: dict[Points, list[dict[str, Any]]] = defaultdict(list)
    for row in runs:
        points = relation.given.read(dates_of(row)) if row["dag_id"] in dags else None
        if points is not None:
            by_date[points].append(row)
    used = {relation.links[n].axis for n in relation.kept}
    first = min(
        (points for row in own if (points := relation.given.read(dates_of(row)))), default=None
    )
    if len(used) != 1 or first is None:
        return [_Due(points, rows) for points, rows in by_date.items()]
    axis = used.pop()
    dated = {points[axis]: _Due(points, rows) for points, rows in by_date.items()}
    numbers = [int(point) for point in dated if int(point) >= int(first[axis])]
    step = Step.of(relation.given.axes[axis].unit, numbers)
    between = step.between(min(numbers), max(numbers))
    every = sorted({*numbers, *between})
    return [dated.get(n) or _Due((n,) * len(relation.given.axes), ()) for n in every]


def _due_at(relation: Relation, due: _Due, own: Sequence[Mapping[str, Any]]) -> datetime:
    if own and own[-1]["started"]:
        started: datetime = own[-1]["started"]
        return started
    axis = relation.links[relation.kept[0]].axis if relation.kept else 0
    unit = relation.given.axes[axis].unit
    return start_of(unit, int(due.points[axis])) if unit in UNITS else datetime.max  # noqa: DTZ901


def _values(relation: Relation, wanted: Points) -> dict[str, str]:
    """Convert points to values by dimension; {} if a time is outside of the years 1 to 9999.

    :param wanted: a point for each axis of :attr:`.Relation.kept`
    """
    values: dict[str, str] = {}
    try:
        for n, point in zip(relation.kept, wanted, strict=True):
            values |= relation.found.axes[n].write(point)
    except (ValueError, OverflowError):
        return {}
    return dict(sorted(values.items()))


def _reason(run: Mapping[str, Any] | None) -> str:
    if run is None:
        return "no_run"
    known = {"COMPLETE": "not_written", "FAIL": "failed", "ABORT": "failed"}
    return known.get(run["state"], "running")


def _by_step(dataset: DatasetName, there: _Partitions) -> Iterator[Gap]:
    """Yield the missing partitions between the first and the last partition that exist.

    They lie on the regular step (:class:`.Step`) of the existing partitions. There are none unless
    the dataset has exactly one axis (:class:`.Axis`), an axis of times. The reason of a gap is
    ``dropped`` if a run once wrote the partition, else ``no_run``.

    :param there: the partitions that exist now, and those that were ever written
    """
    axes = axes_of(sorted(there.ever))
    points = [point for cell in there.cells if (point := axes.read(cell)) is not None]
    if len(axes.axes) != 1 or axes.axes[0].unit not in UNITS or not points:
        return
    numbers = sorted(int(point[0]) for point in points)
    for number in Step.of(axes.axes[0].unit, numbers).between(numbers[0], numbers[-1]):
        cell = axes.write((number,))
        if cell not in there.cells | there.removed:
            reason = "dropped" if cell in there.ever else "no_run"
            yield Gap(answers.Dataset(*dataset), there.folders.of(cell), cell, reason)
