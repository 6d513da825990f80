"""Gaps: partitions that a schedule's runs should have written, and that are not there.

A partition that a run removed is no gap: its data was deleted on purpose. A partition of a table
that was dropped or truncated is one.

The partitions that a run should have written are learned, like patterns: from the relation between
the data intervals or logical dates of a task's runs and the partitions that these runs wrote. All
runs of a task in one DAG run, those of all map indexes and tries, are one observation. If a date
between the first and the last run has no known run, the date follows from the step between the
other dates (:func:`.due.timeline`). If runs have no dates, as with other schedulers, the step
between the partitions themselves is used.

Dimensions whose values do not depend on a date, such as regions, have the values that were written
on nearly all dates (:func:`.due.expected_values`).

What a DAG run in progress has not written yet is no gap (:class:`.InProgress`).

Some runs, partitions, dates and values cannot be judged so; :class:`.Unjudged` says which.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from airflow_provider_sparklineage.history import bounds
from airflow_provider_sparklineage.history.queries import answers
from airflow_provider_sparklineage.history.queries.answers import Unjudged
from airflow_provider_sparklineage.history.queries.datasets import Folders
from airflow_provider_sparklineage.history.queries.due import (
    FREQUENT,
    InProgress,
    Table,
    expected_values,
    timeline,
)
from airflow_provider_sparklineage.history.queries.patterns.axes import (
    UNITS,
    axes_of,
    first_in,
)
from airflow_provider_sparklineage.history.queries.patterns.learning import (
    Learned,
    Pair,
    learn,
)
from airflow_provider_sparklineage.history.queries.patterns.observed import (
    Run,
    Task,
    Writes,
    dates_of,
    run_of,
)
from airflow_provider_sparklineage.history.queries.patterns.rules import (
    Constant,
    Every,
    Points,
    Span,
    product_of,
)
from airflow_provider_sparklineage.history.queries.recorded import Recorded
from airflow_provider_sparklineage.model.partitioning import Partition
from airflow_provider_sparklineage.model.timestamps import start_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from airflow_provider_sparklineage.history.queries.recorded import OfDataset
    from airflow_provider_sparklineage.history.queries.sql import Rows
    from airflow_provider_sparklineage.model.datasets import DatasetName

_PARTITIONED = """
SELECT cell FROM changes
WHERE namespace = $namespace AND name = $name AND cell IS NOT NULL LIMIT 1
"""


class Gap(msgspec.Struct, frozen=True):
    """A partition that is expected and not there.

    :param partition: values by dimension, as in the dataset's folders (``hour=03``); without the
        dimensions that have no values that are expected on the date
    :param cell: the same in canonical form as one text, ``dt=2024-10-15/hour=3``
    :param job: the task that should have written the partition; empty if the partition is expected
        only because of the regular step between the others
    :param map_index: the map index that wrote the same values of the other dimensions in the latest
        DAG run that wrote them; -1 if the task is not mapped, or if several indexes did. If the
        order of the indexes changes from day to day, it is a guess
    :param run: the last try of the task, or of this map index, for that date, if one is known
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
    map_index: int = -1
    logical_date: datetime | None = None
    run: Run | None = None
    confidence: float = 0.0

    @property
    def is_planned(self) -> bool:
        """Whether a run of the task can fill it: nobody removed it, and no run is writing it."""
        return self.reason in ("failed", "not_written", "no_run")


class Completeness(NamedTuple):
    """The gaps of a dataset, and a list of what could not be judged."""

    gaps: list[Gap]
    unjudged: list[Unjudged]


def is_expected(history: Rows, dataset: DatasetName) -> bool:
    """Whether gaps of a dataset can be found: only if a run ever wrote one of its partitions.

    :param history: an opened store of the history
    """
    return bool(history.rows(_PARTITIONED, dataset._asdict()))


def gaps(history: Rows, dataset: DatasetName) -> list[Gap]:
    """List the partitions that are expected and not there, in the order of their values.

    :param history: an opened store of the history
    """
    return completeness(history, dataset).gaps


def gaps_of(history: Rows, datasets: Sequence[DatasetName]) -> list[Gap]:
    """List the gaps of some datasets, in less time than to ask for each of them.

    :param history: an opened store of the history
    """
    recorded = Recorded(history, datasets)
    return [gap for one in datasets for gap in completeness_of(recorded.of(one)).gaps]


def completeness(history: Rows, dataset: DatasetName) -> Completeness:
    """List the gaps of a dataset, in the order of their values, and what could not be judged.

    :param history: an opened store of the history
    """
    return completeness_of(Recorded(history, [dataset]).of(dataset))


def completeness_of(recorded: OfDataset) -> Completeness:
    """List the gaps of a dataset as :func:`completeness` does, from what is recorded of it."""
    dataset, writes, changes, runs, latest = recorded
    there = _Partitions(changes)
    by_cell: dict[str, Gap] = {}
    unjudged = []
    readers: list[Callable[[str], bool]] = []
    pairs = _pairs(writes, runs)
    for task, observed in sorted(pairs.items()):
        learned = learn(observed)
        if not learned.relation.dependent:
            unjudged.append(Unjudged.no_rule(learned.seen, task.job))
        if learned.relation.links:
            of_task = _OfTask(dataset, task, learned, runs, there, latest.get(task.namespace))
            readers.append(of_task.has_place)
            for gap in of_task.gaps():
                by_cell.setdefault(gap.cell, gap)
            unjudged += of_task.unjudged
    if readers:
        unjudged += _dateless(one for one in writes.values() if one.task not in pairs)
    else:
        of_step = _OfStep(dataset, there)
        readers.append(lambda cell: of_step.axes.read(cell) is not None)
        by_cell = {gap.cell: gap for gap in of_step.gaps()}
        # The reasons of tasks without a rule say more than that the dataset has no times.
        known = {one.reason for one in unjudged}
        unjudged += [one for one in of_step.unjudged if one.reason not in known]
    if there.vague:
        unjudged.append(Unjudged.unknown_part(len(there.vague)))
    if unread := [cell for cell in sorted(there.ever) if not any(has(cell) for has in readers)]:
        unjudged.append(Unjudged.no_axis(unread))
    return Completeness(sorted(by_cell.values(), key=_place), unjudged)


def _place(gap: Gap) -> list[str]:
    """Give the key by which gaps are sorted, so that hour 10 comes after hour 9."""
    values = gap.partition.values()
    return [value.zfill(_DIGITS) if value.isdecimal() else value for value in values]


_DIGITS = 18


class _Partitions:
    """The partitions of a dataset that exist now, and all that were ever written."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self.folders = Folders(rows)
        self.ever = {row["cell"] for row in rows if row["cell"]}
        self.cells = {row["cell"] for row in rows if row["cell"] and row["is_there"]}
        last = {row["cell"]: row for row in rows if row["cell"]}
        replaced_at = _replaced_at(rows)
        self.settled = self.cells | {
            cell
            for cell, row in last.items()
            if row["is_removed"] or (replaced_at and row["valid_from"] < replaced_at)
        }
        """Partitions that exist, and those that a run removed and no run wrote later."""
        self.writes = [(row["run_id"], row["cell"]) for row in rows if row["is_written"]]
        """Run id and partition of each write, in the order of time."""
        whole = [row["valid_from"] for row in rows if row["extent"] == "all" and row["is_there"]]
        self.whole = max(whole, default=None)
        """When a run last wrote the whole dataset, and so all partitions that were due by then."""
        named = ("partition", "all")
        self.vague = {row["run_id"] for row in rows if row["extent"] not in named}
        """Ids of the runs whose written partitions are not known; due ones may be among them."""


def _replaced_at(rows: Sequence[Mapping[str, Any]]) -> datetime | None:
    """Give when a run last emptied a dataset and wrote partitions: it has what it should have."""
    emptied = {r["run_id"] for r in rows if r["extent"] == "all" and not r["is_written"]}
    at = [r["valid_from"] for r in rows if r["run_id"] in emptied and r["cell"]]
    return max(at, default=None)


def _pairs(
    writes: Mapping[str, Writes], runs: Iterable[Mapping[str, Any]]
) -> dict[Task, list[Pair]]:
    """Give the dates and the written partitions of each DAG run of each task.

    :param writes: the writes of each run, by run_id
    :param runs: rows of runs, which tell the DAG run; a run without one stands for itself
    """
    dag_runs = {row["run_id"]: row["dag_run_id"] for row in runs}
    observed: dict[tuple[Task, str, str], dict[str, None]] = defaultdict(dict)
    for run_id, write in writes.items():
        if write.cells and not write.dates.startswith(_DATELESS):
            key = (write.task, dag_runs.get(run_id) or run_id, write.dates)
            observed[key].update(dict.fromkeys(write.cells))
    pairs: dict[Task, list[Pair]] = defaultdict(list)
    for (task, dag_run, dates), cells in observed.items():
        pairs[task].append(Pair(dag_run, (dates,), tuple(cells)))
    return pairs


_DATELESS = "run="


def _dateless(writes: Iterable[Writes]) -> Iterator[Unjudged]:
    runs = Counter(one.task.job for one in writes if one.dates.startswith(_DATELESS))
    for job, count in sorted(runs.items()):
        yield Unjudged.no_dates(count, job)


class _Due(NamedTuple):
    """A date on which a task should have written.

    :param points: the dates of the DAG run, such as its logical date, each as a point on an axis
        (:class:`.Axis`)
    :param rows: the runs of the DAG's tasks on this date; () if no DAG run is known
    :param is_in_progress: whether a DAG run of this date may write more
    """

    points: Points
    rows: Sequence[dict[str, Any]]
    is_in_progress: bool


class _OfTask:
    """The partitions that a task should have written.

    :param learned: leads from the dates of a run of the task to the partitions that the run writes
    :param runs: rows of the runs of the task and of other tasks
    :param latest: the time until which all that has ended is known; None if there is none
    """

    def __init__(
        self,
        dataset: DatasetName,
        task: Task,
        learned: Learned,
        runs: Sequence[dict[str, Any]],
        there: _Partitions,
        latest: datetime | None,
    ) -> None:
        self._dataset = answers.Dataset(*dataset)
        self._task = task
        self._learned = learned
        self._relation = learned.relation
        self._there = there
        self._is_dated = bool(self._relation.dependent)
        leading = self._relation.dependent or self._relation.kept
        self._table = Table(self._relation.found, leading, there.ever, there.settled)
        own = {row["run_id"]: row for row in runs if self._is_own(row)}
        writes = [(own[run_id], cell) for run_id, cell in there.writes if run_id in own]
        self._written = self._table.of(cell for _, cell in writes)
        self._indexes = _indexes(writes, self._table)
        dags = {row["dag_id"] for row in own.values()}
        self._runs = [
            row for row in runs if row["namespace"] == task.namespace and row["dag_id"] in dags
        ]
        self._in_progress = InProgress(self._runs, self._is_own, latest)
        ends = (row["ended"] or row["started"] for row in runs)
        self._last_end = max((end for end in ends if end), default=datetime.max)  # noqa: DTZ901
        self.unjudged: list[Unjudged] = []
        """Is complete when :meth:`gaps` has ended."""

    def has_place(self, cell: str) -> bool:
        """Whether the axes of the task's partitions can read a partition that was ever written."""
        return self._table.other(cell) is not None

    def gaps(self) -> Iterator[Gap]:
        """Yield the gaps of the task, each partition once, and complete :attr:`unjudged`."""
        due_of: dict[Points, _Due] = {}
        for due in self._dues():
            bounds.check()
            if self._is_judged(due):
                for leading in self._due_on(due):
                    due_of.setdefault(leading, due)
        dates = sorted(due_of)
        later = 0
        for leading, other in self._table.missing(dates, self._expected(dates)):
            bounds.check()
            values = self._table.values(leading, other)
            if values and self._may_come(due_of[leading], leading, other):
                later += 1
            elif values:
                yield self._gap(due_of[leading], leading, other, values)
        if later:
            self.unjudged.append(Unjudged.in_progress(later, self._task.job))

    def _expected(self, dates: Sequence[Points]) -> list[set[Points]]:
        """Give the points on the other axes that are expected on each date.

        The values of a rule of kind ``constant`` are expected from the first date on which they
        were written; those of kind ``every`` must be frequent, too (:func:`expected_values`).
        """
        others = self._table.others
        if not others:
            return [{()}] * len(dates)
        if not self._is_dated:
            return [set()] * len(dates)
        rules = [self._relation.links[n].rule for n in others]
        written = [self._written.get(date, set()) for date in dates]
        if any(isinstance(rule, Every) for rule in rules):
            expected, rare = expected_values(written)
            if rare:
                labels = [label for n in others for label in self._relation.found.axes[n].labels]
                self.unjudged.append(Unjudged.rare(rare, labels, self._task.job))
            return expected
        constants = [set(rule.points) for rule in rules if isinstance(rule, Constant)]
        return [
            {one for one in values if all(map(set.__contains__, constants, one))}
            for values in expected_values(written, 0)[0]
        ]

    def _may_come(self, due: _Due, leading: Points, other: Points | None) -> bool:
        """Whether a partition that was never there may still come from a DAG run in progress."""
        if not due.is_in_progress or self._table.was_written(leading, other):
            return False
        index, last = self._last_try(due, other)
        # Of a mapped task, other map indexes may follow those that have ended.
        is_other = index < 0 and last and last["map_index"] is not None
        return last is None or bool(is_other and last["state"] == "COMPLETE")

    def _gap(self, due: _Due, leading: Points, other: Points | None, values: dict[str, str]) -> Gap:
        cell = str(Partition(tuple(values.items())))
        index, last = self._last_try(due, other)
        any_row = last or (due.rows[0] if due.rows else None) or {}
        was_written = self._table.was_written(leading, other)
        return Gap(
            self._dataset,
            self._there.folders.of(cell),
            cell,
            "dropped" if was_written else _reason(last),
            self._task.namespace,
            self._task.job,
            any_row.get("dag_id"),
            any_row.get("dag_run_id"),
            index,
            answers.at_utc_if_known(any_row.get("logical_date")),
            run_of(last) if last else None,
            self._learned.confidence,
        )

    def _last_try(self, due: _Due, other: Points | None) -> tuple[int, dict[str, Any] | None]:
        """Give the map index that should have written a value, and its last try on a date.

        If the map index is -1 because it is not known, the run is the last try of an index that did
        not succeed; if all succeeded, the last of all tries.
        """
        own = [row for row in due.rows if self._is_own(row)]
        index = -1 if other is None else self._indexes.get(other, -1)
        tries = {row["map_index"]: row for row in own}
        if index >= 0:
            return index, tries.get(index)
        unsuccessful = (row for row in tries.values() if row["state"] != "COMPLETE")
        return index, next(unsuccessful, own[-1] if own else None)

    def _is_own(self, row: Mapping[str, Any]) -> bool:
        return (row["namespace"], row["job"]) == self._task

    def _due_on(self, due: _Due) -> Iterator[Points]:
        """Yield the partitions that are due on a date, as points on the leading axes."""
        kept = self._relation.kept
        leading = self._relation.dependent or kept
        places = [kept.index(n) for n in leading]
        boxes = self._relation.boxes([due.points])
        return product_of([tuple(box[place] for place in places) for box in boxes])

    def _is_judged(self, due: _Due) -> bool:
        """Whether no run of a date wrote unknown partitions, and no later one the whole dataset."""
        own = [row for row in due.rows if self._is_own(row)]
        if not self._there.vague.isdisjoint(row["run_id"] for row in own):
            return False
        return self._there.whole is None or self._due_at(due, own) > self._there.whole

    def _due_at(self, due: _Due, own: Sequence[Mapping[str, Any]]) -> datetime:
        if own and own[-1]["started"]:
            started: datetime = own[-1]["started"]
            return started
        axis = self._relation.links[self._relation.dependent[0]].axis if self._is_dated else 0
        unit = self._relation.given.axes[axis].unit
        return start_of(unit, int(due.points[axis])) if unit in UNITS else datetime.max  # noqa: DTZ901

    def _dues(self) -> Iterator[_Due]:
        """Yield the dates of the task's DAG from the task's first run on, also those without a run.

        A date without a run is found by the regular step between the other dates. If the relation
        uses several dates of a run, they must have a constant distance for that; if it uses none,
        only the dates of runs are yielded.
        """
        given = self._relation.given
        read = [(given.read(dates_of(row)), row) for row in self._runs]
        rows = [(points, row) for points, row in read if points is not None]
        if dateless := sum(points is None and self._is_own(row) for points, row in read):
            self.unjudged.append(Unjudged.no_dates(dateless, self._task.job))
        used = sorted({self._relation.links[n].axis for n in self._relation.dependent})
        unit = self._unit_of(used)
        by_date: dict[tuple[int, ...], list[tuple[Points, dict[str, Any]]]] = defaultdict(list)
        own = set()
        for points, row in rows:
            date = tuple(first_in(given.axes[n].unit, int(points[n]), unit[n]) for n in used)
            by_date[date].append((points, row))
            if self._is_own(row):
                own.add(date)
        dues = {}
        for date, of_date in by_date.items():
            of_dag = [row for _, row in of_date]
            dues[date] = _Due(of_date[0][0], of_dag, self._in_progress.has(of_dag))
        if not used:
            yield from dues.values()
        elif own:
            yield from self._scheduled(dues, own, used, unit[used[0]])

    def _unit_of(self, used: Sequence[int]) -> dict[int, str]:
        """Give the unit of the dates of a schedule, for each axis of dates that the rules use.

        It is ``day`` if the rules need only the day of a time: the hours of a schedule in local
        time change with daylight saving time, its days do not. It is the unit of the axis if
        several axes are used, as all dates of a run must be kept then.
        """
        units = {n: self._relation.given.axes[n].unit for n in used}
        rules = [self._relation.links[n].rule for n in self._relation.dependent]
        spans = [rule for rule in rules if isinstance(rule, Span)]
        anchors = {bound.anchor for rule in spans for bound in (rule.first, rule.last)} - {""}
        days = set(UNITS[UNITS.index("day") :])
        if len(units) == 1 and len(spans) == len(rules) and anchors <= days:
            return {n: "day" if unit not in days else unit for n, unit in units.items()}
        return units

    def _scheduled(
        self,
        dues: Mapping[tuple[int, ...], _Due],
        own: set[tuple[int, ...]],
        used: Sequence[int],
        unit: str,
    ) -> Iterator[_Due]:
        """Yield dates of the DAG and the dates on the step between, from the first own date on.

        :param dues: dates of the DAG that have a run, by their numbers on the axes ``used``
        :param own: those of these dates on which the task has a run
        :param used: indexes of the axes of dates that the rules use; the first has the schedule
        :param unit: unit of the schedule
        """
        first = min(own)
        known: dict[int, list[_Due]] = defaultdict(list)
        for date, due in dues.items():
            if date >= first:
                known[date[0]].append(due)
        distances = _distances([due.points for due in dues.values()], used)
        line = timeline(unit, known)
        self.unjudged += [Unjudged.left_out(*one, unit, self._task.job) for one in line.left_out]
        if len(known) > _FEW_DATES and not (line.is_regular and distances):
            self.unjudged.append(Unjudged.no_step(len(known), self._task.job))
        dates = {date[0] for date in own}
        settled = self._settled(known)
        for span in line.spans:
            begin = min(dates.intersection(span), default=span[-1] + 1)
            for n in span[bisect_left(span, begin) :]:
                if n in known:
                    yield from known[n]
                elif distances and start_of(unit, n) <= self._last_end:
                    at = first_in(unit, n, self._relation.given.axes[used[0]].unit)
                    points = tuple(at + distance for distance in distances)
                    yield _Due(points, (), n > settled)

    def _settled(self, known: Mapping[int, Sequence[_Due]]) -> int:
        """Give the date from which on each date may yet get a run; the last date if none may.

        If several DAG runs are in progress, a later date can be known before an earlier one.
        """
        dates = sorted(known)
        recent = [n for n in dates if any(due.is_in_progress for due in known[n])]
        earlier = [n for n in dates if n not in set(recent)]
        return earlier[-1] if len(recent) > 1 and earlier else dates[-1]


class _OfStep:
    """The partitions between the first and the last that exist, on the step between these.

    There are none unless the dataset has exactly one axis (:class:`.Axis`) of times. The reason of
    a gap is ``dropped`` if a run once wrote the partition, else ``no_run``.
    """

    def __init__(self, dataset: DatasetName, there: _Partitions) -> None:
        self._dataset = answers.Dataset(*dataset)
        self._there = there
        self.axes = axes_of(sorted(there.ever))
        self.unjudged: list[Unjudged] = []
        """Is complete when :meth:`gaps` has ended."""

    def gaps(self) -> Iterator[Gap]:
        """Yield the gaps, and complete :attr:`unjudged`."""
        timed = [n for n, axis in enumerate(self.axes.axes) if axis.unit in UNITS]
        table = Table(self.axes, timed, self._there.ever, self._there.settled)
        numbers = [int(n) for (n,) in table.of(self._there.cells)] if len(timed) == 1 else []
        if not numbers:
            if self._there.cells:
                runs = {run_id for run_id, _ in self._there.writes}
                self.unjudged.append(Unjudged.no_rule(len(runs)))
            return
        unit = self.axes.axes[timed[0]].unit
        line = timeline(unit, numbers)
        self.unjudged += [Unjudged.left_out(*one, unit, "") for one in line.left_out]
        if len(numbers) > _FEW_DATES and not line.is_regular:
            self.unjudged.append(Unjudged.no_step(len(numbers), ""))
        dates = [(n,) for span in line.spans for n in span]
        expected, rare = expected_values([table.ever.get(date, set()) for date in dates])
        if not table.others:
            expected = [{()}] * len(dates)
        elif rare:
            labels = [label for n in table.others for label in self.axes.axes[n].labels]
            self.unjudged.append(Unjudged.rare(rare, labels, ""))
        for date, other in table.missing(dates, expected):
            bounds.check()
            cell = str(Partition(tuple(table.values(date, other).items())))
            reason = "dropped" if table.was_written(date, other) else "no_run"
            yield Gap(self._dataset, self._there.folders.of(cell), cell, reason)


def _indexes(writes: Iterable[tuple[Mapping[str, Any], str]], table: Table) -> dict[Points, int]:
    """Give the map index that last wrote each value, if in that DAG run only one index wrote it.

    :param writes: pairs of a run's row and the partition that it wrote, in the order of time
    :return: map indexes by the points of the partitions on the other axes of ``table``; -1 if the
        task was not mapped
    """
    last: dict[Points, tuple[Any, set[int]]] = {}
    for row, cell in writes:
        value = table.other(cell)
        if value is None:
            continue
        if value not in last or last[value][0] != row["dag_run_id"]:
            last[value] = (row["dag_run_id"], set())
        last[value][1].add(-1 if row["map_index"] is None else row["map_index"])
    return {value: min(indexes) for value, (_, indexes) in last.items() if len(indexes) == 1}


def _distances(dates: Sequence[Points], used: Sequence[int]) -> tuple[int, ...] | None:
    """Give the distance of each date of a DAG run from the date on the first of the axes ``used``.

    :param dates: the dates of each DAG run, as points
    :return: None if several axes are used, and the distances differ from run to run
    """
    each = Counter(tuple(int(at) - int(points[used[0]]) for at in points) for points in dates)
    distances, count = each.most_common(1)[0]
    return distances if len(used) == 1 or count >= FREQUENT * len(dates) else None


def _reason(run: Mapping[str, Any] | None) -> str:
    if run is None:
        return "no_run"
    known = {"COMPLETE": "not_written", "FAIL": "failed", "ABORT": "failed"}
    return known.get(run["state"], "running")


_FEW_DATES = 2  # so few dates cannot have a step yet
