"""Drift: differences between a task's run and the task's run before it.

==========================  ========================================================================
``input_appeared``, …       the run reads (writes) a dataset that the run before did not read
                            (write), or the reverse
``column_appeared``, …      an output column has sources and had none before, or the reverse
``sources_changed``         an output column is made from other columns
``transformation_changed``  it is made from the same columns, by another kind of transformation
``partition_count``         the number of partitions differs from the median of the 5 to 30 runs
                            before by more than 1, more than a tenth of the median, and more than
                            3 times the median absolute deviation (MAD); except where the number
                            follows a rule by which it changes, such as all days of a month until
                            today
``pattern_broken``          the run read other partitions than the pattern of most runs says
==========================  ========================================================================

Only successful runs count. Each run is compared with the run before it; a run of a mapped task
instance is compared with the run before it that has the same map index. Tasks of two Airflows that
have the same name are two tasks, as the namespaces of their jobs tell.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict, deque
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import structs

from airflow_provider_sparklineage.history.queries import sql
from airflow_provider_sparklineage.history.queries.answers import Dataset, Unjudged
from airflow_provider_sparklineage.history.queries.datasets import names_in
from airflow_provider_sparklineage.history.queries.patterns.learning import Pair, learn
from airflow_provider_sparklineage.history.queries.patterns.observed import (
    Pattern,
    Run,
    Task,
    patterns,
    run_of,
    without_pattern,
    writes_of,
)
from airflow_provider_sparklineage.history.queries.patterns.rules import NONE
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.exceptions import UnknownNameError
from airflow_provider_sparklineage.model.texts import did_you_mean, some

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from airflow_provider_sparklineage.history.queries.sql import Rows

RUNS = 400
"""Number of last runs that are compared."""
_COUNTS = (5, 30)  # fewest and most runs for a usual range
_LEAST, _SHARE = 1, 0.1  # a difference of 1, or of a tenth of the median, is not drift
_GROWING = ("parts", "span")  # kinds of rules whose number of partitions changes, as of a month
_SHOWN = 5  # most names in a message

_TASK = """
SELECT run_id, job, ended, state, coalesce(map_index, -1) AS map_index FROM runs
WHERE job = $job AND coalesce(namespace, '') = $namespace AND state = 'COMPLETE'
ORDER BY ended DESC, run_id DESC LIMIT $runs
"""
_TASKS = """
SELECT DISTINCT coalesce(namespace, '') AS namespace, job FROM runs
WHERE state = 'COMPLETE' AND job IS NOT NULL ORDER BY job, namespace
"""
_ACCESSES = """
SELECT run_id, side, namespace, name,
       count(*) FILTER (WHERE extent = 'partition')
         + coalesce(sum(partition_count) FILTER (WHERE extent = 'range'), 0) AS partitions,
       count(*) FILTER (WHERE extent NOT IN ('partition', 'range', 'none')) AS others
FROM accesses
WHERE job = $job AND NOT coalesce(is_failed, FALSE) AND coalesce(mode, '') <> 'removed'
GROUP BY run_id, side, namespace, name ORDER BY side, namespace, name
"""
_COLUMNS = f"""
WITH f AS ({sql.table_of(*sql.RUN)})
SELECT DISTINCT c.run_id, out_namespace, out_name, out_column, in_namespace, in_name, in_column,
       type, subtype, masking
FROM columns AS c JOIN f ON f.ended = c.ended AND f.run_id = c.run_id
"""


class Drift(msgspec.Struct, frozen=True):
    """A difference between two runs of a task.

    :param kind: ``input_appeared``, ``sources_changed``, ``partition_count``, …
    :param run: the run that differs
    :param before: the run that it is compared with; null for ranges and patterns
    :param message: the difference, for people
    :param was: the sources before, or the usual counts; for a broken pattern the missing partitions
    :param now: the sources or the count of this run; for a broken pattern the unexpected partitions
    :param change: the difference, for people who have the names of the dataset and the column
    :param namespace: OpenLineage's namespace of the task's job, which tells two Airflows apart
    """

    kind: str
    dataset: Dataset | None
    column: str | None
    run: Run
    before: Run | None
    message: str
    was: tuple[str, ...] = ()
    now: tuple[str, ...] = ()
    change: str = ""
    namespace: str = ""


class _RunFacts(NamedTuple):
    """The facts of a run that are compared with those of other runs.

    :param accessed: number of partitions, by side (``read`` or ``write``) and dataset; None if the
        number is not known
    :param columns: for each output column, its sources, each with the kinds of its transformations;
        column None has the conditions on all columns, such as filters
    """

    run: Run
    accessed: dict[tuple[str, DatasetName], int | None]
    columns: dict[tuple[DatasetName, str | None], dict[str, frozenset[str]]]


class Comparison(NamedTuple):
    """The differences between the runs of a task, and a list of what could not be judged.

    :param tasks: number of the tasks that were compared: of one name, in different namespaces
    """

    changes: list[Drift]
    unjudged: list[Unjudged]
    tasks: int


def drift(history: Rows, task: str, runs: int = RUNS) -> list[Drift]:
    """List the differences between the runs of a task: the changes of :func:`compare`."""
    return compare(history, task, runs).changes


def compare(history: Rows, task: str, runs: int = RUNS) -> Comparison:
    """List the differences between the runs of a task, in the order of the runs.

    :param history: an opened store of the history
    :param task: name of the task's job, ``dag_id.task_id``; or ``task_id``, if only one job's name
        ends with it; or one of them after the job's namespace and a colon. Tasks of several
        namespaces with this name are compared separately
    :param runs: number of last runs of each task that are compared
    :raise UnknownNameError: if no such task has a successful run; the error names tasks that have
        one
    """
    tasks = _named(history, task)
    names = names_in(history)
    changes: list[Drift] = []
    unjudged: list[Unjudged] = []
    for one in tasks:
        rows = history.rows(_TASK, {**one._asdict(), "runs": runs})
        label = str(one) if len(tasks) > 1 else one.job
        of_task = _OfTask(history, one, rows[::-1], label, names)
        changes += of_task.changes()
        unjudged += of_task.unjudged()
    return Comparison(sorted(changes, key=_order), unjudged, len(tasks))


def _order(change: Drift) -> tuple[Any, ...]:
    run = change.run
    return run.ended is None, run.ended, run.run_id, change.kind, str(change.dataset)


def _named(history: Rows, text: str) -> list[Task]:
    """Give the tasks that a text names: one, or several of one name in different namespaces.

    :param history: an opened store of the history
    :raise UnknownNameError: if there is no such task, or there are several of different names
    """
    tasks = [Task(row["namespace"], row["job"]) for row in history.rows(_TASKS)]
    if exact := [one for one in tasks if text in (one.job, str(one))]:
        return exact
    ends = [one for one in tasks if _ends(one, text)]
    if len({one.job for one in ends}) == 1:
        return ends
    if ends:
        msg = f"{text!r} is not one task: {some(sorted({one.job for one in ends}), 20)}."
        raise UnknownNameError(msg, "Write one of them.")
    problem = f"No successful run of {text!r} is in the history."
    jobs = [*dict.fromkeys(one.job for one in tasks)]
    by_end = {job.rpartition(".")[2]: job for job in jobs} | {job: job for job in jobs}
    if near := did_you_mean(text, by_end, by_end.__getitem__):
        raise UnknownNameError(problem, near)
    raise UnknownNameError(problem, f"It has runs of: {some(jobs, 20)}." if jobs else "")


def _ends(task: Task, text: str) -> bool:
    within = text.removeprefix(f"{task.namespace}:") if task.namespace else text
    return task.job.endswith(f".{within}")


class _OfTask:
    """The runs of a task that are compared, oldest first, by the map index of each.

    :param label: the name of the task in sentences
    :param names: the names of the store's datasets in sentences
    """

    def __init__(
        self,
        history: Rows,
        task: Task,
        rows: Sequence[Mapping[str, Any]],
        label: str,
        names: Mapping[DatasetName, str],
    ) -> None:
        self._history, self._task, self._label, self._names = history, task, label, names
        self._sources: dict[str, str] = {}
        self._facts = self._facts_of(rows)
        self._by_index: dict[int, list[_RunFacts]] = defaultdict(list)
        for row in rows:
            self._by_index[row["map_index"]].append(self._facts[row["run_id"]])
        accessed = {key for one in self._facts.values() for key in one.accessed}
        self._read = {name for side, name in accessed if side == "read"}
        self._learned = {
            output: [one for one in patterns(history, output) if _is_of(one, task)]
            for output in sorted(name for side, name in accessed if side == "write")
        }

    def changes(self) -> Iterator[Drift]:
        growing = _growing(self._history, self._task, self._learned)
        for runs in self._by_index.values():
            yield from map(self._named, _datasets(runs))
            yield from map(self._named, _columns(runs, self._sources))
            yield from map(self._named, _counts(runs, growing))
        yield from map(self._named, _patterns(self._learned, self._facts))

    def _named(self, one: Drift) -> Drift:
        """Add to a difference its message, and the namespace of the task."""
        dataset = one.dataset and DatasetName(one.dataset.namespace, one.dataset.name)
        name = self._names.get(dataset, str(dataset)) if dataset else ""
        if one.kind in _OF_COLUMNS:
            message = f"{name}.{one.column}:" if one.column else f"Conditions of {name}:"
        else:
            message = f"{name}:" if one.kind == "partition_count" else name
        namespace = self._task.namespace
        return structs.replace(one, message=f"{message} {one.change}", namespace=namespace)

    def _facts_of(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, _RunFacts]:
        facts = {row["run_id"]: _RunFacts(run_of(row), {}, {}) for row in rows}
        for row in self._history.rows(_ACCESSES, {"job": self._task.job}):
            if of_run := facts.get(row["run_id"]):
                count = None if row["others"] else int(row["partitions"])
                of_run.accessed[row["side"], DatasetName(row["namespace"], row["name"])] = count
        ended = sql.lists(sql.RUN, ((row["run_id"], row["ended"]) for row in rows))
        for row in self._history.rows(_COLUMNS, ended):
            column = DatasetName(row["out_namespace"], row["out_name"]), row["out_column"]
            dataset = DatasetName(row["in_namespace"], row["in_name"])
            source = f"{dataset}.{row['in_column']}"
            self._sources[source] = f"{self._names.get(dataset, dataset)}.{row['in_column']}"
            edges = facts[row["run_id"]].columns.setdefault(column, {})
            how = f"{row['type']} {row['subtype']}{' masked' if row['masking'] else ''}"
            edges[source] = edges.get(source, frozenset()) | {how}
        return facts

    def unjudged(self) -> Iterator[Unjudged]:
        counts = {
            row["is_complete"]: row["runs"]
            for row in self._history.rows(_RUN_COUNTS, self._task._asdict())
        }
        if (earlier := counts.get(True, 0) - len(self._facts)) > 0:
            yield Unjudged.of_runs("left_out", _EARLIER, [self._label] * earlier)
        if unsuccessful := counts.get(False, 0):
            yield Unjudged.of_runs("unended", _UNSUCCESSFUL, [self._label] * unsuccessful)
        if alone := sum(len(runs) == 1 for runs in self._by_index.values()):
            yield Unjudged.of_runs("few_runs", _ALONE, [self._label] * alone)
        if without := [self._label for one in self._facts.values() if not one.columns]:
            yield Unjudged.of_runs("no_columns", _WITHOUT_COLUMNS, without)
        counted: Counter[DatasetName] = Counter()
        for runs in self._by_index.values():
            of_index = Counter(
                name for run in runs for (_, name), count in run.accessed.items() if count
            )
            counted |= of_index
        if few := [name for name, times in counted.items() if times <= _COUNTS[0]]:
            yield Unjudged.of_datasets("few_runs", _FEW_COUNTS, few, self._names)
        unruled = {
            DatasetName(one.input.namespace, one.input.name)
            for of_output in self._learned.values()
            for one in of_output
            if one.kind == NONE
        }
        for output, learned in self._learned.items():
            unruled |= {*without_pattern(self._history, output, learned)}
        if unruled := unruled & self._read:
            yield Unjudged.of_datasets("no_rule", _UNRULED, unruled, self._names)


_RUN_COUNTS = """
SELECT state = 'COMPLETE' AS is_complete, count(*) AS runs FROM runs
WHERE job = $job AND coalesce(namespace, '') = $namespace GROUP BY ALL
"""
_EARLIER = "{them} that ended before the others {are} not compared"
_UNSUCCESSFUL = "{them} failed or {have} not ended, and {are} not compared"
_ALONE = "{them} {have} no other run to be compared with"
_WITHOUT_COLUMNS = "{them} {have} no column lineage, so that columns are not compared there"
_FEW_COUNTS = "The usual number of partitions of {them} is not known yet"
_UNRULED = "The partitions that are read of {them} follow no rule that is known"


def _datasets(runs: Sequence[_RunFacts]) -> Iterator[Drift]:
    for before, after in itertools.pairwise(runs):
        for side, name in sorted(before.accessed.keys() ^ after.accessed.keys()):
            how = "appeared" if (side, name) in after.accessed else "went"
            kind = f"{'input' if side == 'read' else 'output'}_{how}"
            verb = "read" if side == "read" else "written"
            change = f"is {verb} now." if how == "appeared" else f"is no longer {verb}."
            yield Drift(kind, Dataset(*name), None, after.run, before.run, "", change=change)


def _columns(runs: Sequence[_RunFacts], sources: Mapping[str, str]) -> Iterator[Drift]:
    """Compare the column lineage of each run with that of the run before; skip runs without any.

    If only one of two runs wrote a dataset, its columns are left out: the dataset itself is the
    difference.

    :param sources: the names of the sources of columns in sentences
    """
    known = [one for one in runs if one.columns]
    for before, after in itertools.pairwise(known):
        columns = before.columns.keys() | after.columns.keys()
        written = before.accessed.keys() ^ after.accessed.keys()
        for name, column in sorted(columns, key=lambda one: (one[0], one[1] or "")):
            if ("write", name) in written:
                continue
            was = before.columns.get((name, column), {})
            now = after.columns.get((name, column), {})
            if was == now:
                continue
            old, new = sorted(was), sorted(now)
            if not was or not now:
                kind = "column_went" if was else "column_appeared"
            elif old != new:
                kind = "sources_changed"
            else:
                kind = "transformation_changed"
                old, new = _transformations(was), _transformations(now)
            for_people = [_renamed(edges, sources) for edges in (was, now)]
            if kind == "transformation_changed":
                change = _column_change(kind, *map(_transformations, for_people))
            else:
                change = _column_change(kind, *map(sorted, for_people))
            texts = ("", tuple(old), tuple(new), change)
            yield Drift(kind, Dataset(*name), column, after.run, before.run, *texts)


def _renamed(
    edges: Mapping[str, frozenset[str]], sources: Mapping[str, str]
) -> dict[str, frozenset[str]]:
    return {sources[source]: how for source, how in edges.items()}


_OF_COLUMNS = ("column_went", "column_appeared", "transformation_changed", "sources_changed")


def _column_change(kind: str, was: Sequence[str], now: Sequence[str]) -> str:
    """Describe the change of a column, without its name.

    :param kind: kind of the change, as in :class:`Drift`
    :param was: the sources before
    :param now: the sources now
    """
    if kind == "column_went":
        return f"no sources any more; it had {some(was, _SHOWN)}."
    if kind == "column_appeared":
        return f"has sources now: {some(now, _SHOWN)}."
    if kind == "transformation_changed":
        return f"{some([one for one in now if one not in was], _SHOWN)}."
    changes = (("without", set(was) - set(now)), ("with", set(now) - set(was)))
    text = " and ".join(f"{how} {some(sorted(c), _SHOWN)}" for how, c in changes if c)
    return f"now {text}."


def _transformations(edges: Mapping[str, frozenset[str]]) -> list[str]:
    return [f"{source}: {', '.join(sorted(how))}" for source, how in sorted(edges.items())]


def _is_of(one: Pattern | Task, task: Task) -> bool:
    return (one.namespace or "", one.job) == task


def _growing(
    history: Rows, task: Task, learned: Mapping[DatasetName, Iterable[Pattern]]
) -> dict[tuple[str, DatasetName], set[str]]:
    """Find the datasets whose number of partitions changes from run to run by a rule.

    :param learned: the patterns of the task, by output
    :return: for each side and dataset, the runs that do not follow the rule
    """
    growing: dict[tuple[str, DatasetName], set[str]] = {}
    writes = writes_of(history, learned)
    for output, of_output in learned.items():
        pairs = [
            Pair(run_id, (write.dates,), write.cells)
            for run_id, write in writes[output].items()
            if _is_of(write.task, task) and write.cells
        ]
        written = learn(pairs) if pairs else None
        is_growing = written is not None and written.relation.kind in _GROWING
        if written is not None and is_growing:
            growing["write", output] = set(written.exceptions)
        for one in of_output:
            if is_growing or one.kind in _GROWING:
                name = DatasetName(one.input.namespace, one.input.name)
                growing["read", name] = {each.run.run_id for each in one.exceptions}
    return growing


def _counts(
    runs: Sequence[_RunFacts], growing: Mapping[tuple[str, DatasetName], Collection[str]]
) -> Iterator[Drift]:
    last: dict[tuple[str, DatasetName], deque[int]] = defaultdict(lambda: deque(maxlen=_COUNTS[1]))
    for one in runs:
        for (side, name), count in one.accessed.items():
            if count is None:
                continue
            counts = last[side, name]
            broken = growing.get((side, name))
            is_ruled = broken is not None and one.run.run_id not in broken
            is_judged = len(counts) >= _COUNTS[0] and not is_ruled
            if is_judged and (usual := _unusual(count, counts)):
                verb = "read" if side == "read" else "written"
                change = f"{count} partitions {verb}; {' to '.join(usual)} are usual."
                texts = ("", usual, (str(count),), change)
                yield Drift("partition_count", Dataset(*name), None, one.run, None, *texts)
            counts.append(count)


def _unusual(count: int, counts: Collection[int]) -> tuple[str, ...]:
    """Compare a run's number of partitions with those of the runs before.

    :param count: the number of this run
    :param counts: the numbers of the runs before
    :return: the two ends of the usual range, as texts, if ``count`` is outside of it; else ()
    """
    middle = median(counts)
    # If all runs had the same count, the MAD is 0, and any other count would be outside the range.
    spread = max(3 * median(abs(one - middle) for one in counts), _LEAST, _SHARE * middle)
    if abs(count - middle) <= spread:
        return ()
    return f"{max(0, middle - spread):g}", f"{middle + spread:g}"


def _patterns(
    learned: Mapping[DatasetName, Iterable[Pattern]], facts: Mapping[str, _RunFacts]
) -> Iterator[Drift]:
    for pattern in (one for of_output in learned.values() for one in of_output):
        for one in pattern.exceptions:
            if one.run.run_id in facts:
                change = f"was not read as usual: {pattern.relation}."
                texts = ("", one.missing, one.unexpected, change)
                yield Drift("pattern_broken", pattern.input, None, one.run, None, *texts)
