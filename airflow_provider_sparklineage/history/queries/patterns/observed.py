"""Pairs of partitions that runs read and wrote, and the patterns learned from these pairs.

The patterns are in the form in which the command prints them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec.structs import replace

from airflow_provider_sparklineage.history.facts.cells import cell_of_text
from airflow_provider_sparklineage.history.queries import sql
from airflow_provider_sparklineage.history.queries.answers import Dataset, at_utc_if_known
from airflow_provider_sparklineage.history.queries.patterns.axes import axes_of
from airflow_provider_sparklineage.history.queries.patterns.learning import Learned, Pair, learn
from airflow_provider_sparklineage.history.queries.patterns.rules import (
    NONE,
    Constant,
    Months,
    Offsets,
    Rule,
    Span,
)
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.partitioning import escape

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from airflow_provider_sparklineage.history.queries.patterns.axes import Axis
    from airflow_provider_sparklineage.history.queries.patterns.rules import Relation
    from airflow_provider_sparklineage.history.queries.sql import Rows


class RuleOfAxis(msgspec.Struct, frozen=True, omit_defaults=True):
    """The rule of one or several dimensions.

    :param labels: the dimensions whose values follow
    :param of: the dimensions from whose values they follow
    :param kind: the kind of the rule, as in the pattern
    :param unit: ``day``, ``month``, …, ``number`` or ``text``
    :param first: of a span: number of units ``first_of`` from the written partition to its
        beginning; without a ``first_of`` it always begins at ``first``, numbered in ``unit``
    :param last: of a span: the same for its end
    :param first_of: the unit of ``first``
    :param last_of: the unit of ``last``
    :param offsets: of an irregular set: its offsets; of a shift by months: the number of months
    :param values: of a constant: its values
    """

    labels: tuple[str, ...]
    of: tuple[str, ...]
    kind: str
    unit: str
    first: int | None = None
    last: int | None = None
    first_of: str = ""
    last_of: str = ""
    offsets: tuple[int, ...] = ()
    values: tuple[str, ...] = ()


class Run(msgspec.Struct, frozen=True):
    """A run, and its state when it ended."""

    run_id: str
    job: str
    ended: datetime | None = None
    state: str = "COMPLETE"


def run_of(row: Mapping[str, Any]) -> Run:
    """Give the run of a row that has run_id, job, ended and state."""
    return Run(row["run_id"], row["job"], at_utc_if_known(row["ended"]), row["state"])


class Deviation(msgspec.Struct, frozen=True):
    """A run that does not follow the pattern.

    :param missing: partitions that the run should have read, up to 20
    :param unexpected: partitions that the run should not have read, up to 20
    """

    run: Run
    missing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()


class Pattern(msgspec.Struct, frozen=True):
    """The rule by which the partitions that a task reads follow from those that it writes.

    :param output: the dataset that the task writes
    :param input: the dataset that the task reads
    :param namespace: OpenLineage's namespace of the task's job
    :param job: the task, ``dag_id.task_id``
    :param kind: ``same``, ``offset``, ``window``, ``offsets``, ``period`` (the month of a day),
        ``parts`` (the days of a month), ``months``, ``span``, ``constant``, ``every``, ``whole`` or
        ``none``
    :param relation: the rule for people, ``dt = dt - 1 day``
    :param rules: the rule of each dimension that is read
    :param support: number of runs that follow the rule
    :param seen: number of runs whose written and read partitions are known
    :param unclear: number of runs whose read partitions are not known: conditions, unknown parts
    :param confidence: the least share of runs for which the rule holds, at 95 % (Wilson's
        interval): 0.2 after one run, 0.9 after 30
    :param exceptions: the runs that do not follow the rule
    """

    output: Dataset
    input: Dataset
    namespace: str
    job: str
    kind: str
    relation: str
    rules: tuple[RuleOfAxis, ...]
    support: int
    seen: int
    unclear: int
    confidence: float
    exceptions: tuple[Deviation, ...] = ()


DATES = ("data_interval_end", "data_interval_start", "logical_date")
"""The dates of a run, sorted by name: the dimensions in the text that :func:`dates_of` gives."""

_NOT_WRITING = "('drop', 'truncate', 'removed', 'alter', 'rename')"


# Few of the runs and accesses are of the jobs in question. To find these by the job, and then the
# rest by the run_id, takes a third of the time that it takes by the run_id alone.
def _writes_sql(since: datetime | None) -> str:
    return f"""
    WITH f AS ({sql.table_of(*sql.DATASET)}), written AS MATERIALIZED (
        SELECT a.* FROM accesses AS a JOIN f ON f.namespace = a.namespace AND f.name = a.name
        WHERE a.side = 'write' AND a.extent <> 'none' AND NOT coalesce(a.is_failed, FALSE)
            AND coalesce(a.mode, 'unknown') NOT IN {_NOT_WRITING}
            AND {sql.since("a.accessed_at", since)}
    ), writers AS (
        SELECT r.* FROM runs AS r SEMI JOIN written AS w ON w.job = r.job
        WHERE r.state = 'COMPLETE' AND {sql.since("r.ended", since)}
    )
    SELECT a.namespace AS of_namespace, a.name AS of_name, r.run_id, r.namespace, r.job, r.started,
        r.ended, r.data_interval_end, r.data_interval_start, r.logical_date, a.extent,
        list_sort(list(a.cell)) AS cells, a.first_partition, a.last_partition, a.partition_count
    FROM written AS a JOIN writers AS r ON a.run_id = r.run_id
    GROUP BY ALL ORDER BY r.ended, r.run_id, a.extent, a.first_partition
    """


def _reads_sql(since: datetime | None) -> str:
    return f"""
    WITH f AS ({sql.table_of(*sql.DATASET)}), writers AS (
        SELECT DISTINCT a.run_id, a.job FROM accesses AS a
        JOIN f ON f.namespace = a.namespace AND f.name = a.name
        WHERE a.side = 'write' AND a.extent <> 'none' AND {sql.since("a.accessed_at", since)}
    )
    SELECT a.run_id, a.namespace, a.name, a.extent, list_sort(list(a.cell)) AS cells,
        a.first_partition, a.last_partition, a.partition_count
    FROM accesses AS a SEMI JOIN writers AS w ON w.job = a.job AND w.run_id = a.run_id
    WHERE a.side = 'read' AND a.extent <> 'none' AND {sql.since("a.accessed_at", since)}
    GROUP BY ALL ORDER BY a.namespace, a.name, a.run_id, a.extent, a.first_partition
    """


_UNCLEAR = """
SELECT DISTINCT a.namespace, a.name
FROM accesses AS w JOIN runs AS r ON r.run_id = w.run_id JOIN accesses AS a ON a.run_id = w.run_id
WHERE w.side = 'write' AND w.namespace = $namespace AND w.name = $name AND w.extent <> 'none'
  AND r.state = 'COMPLETE' AND a.side = 'read' AND a.extent <> 'none'
ORDER BY a.namespace, a.name
"""


def _known_sql(since: datetime | None) -> str:
    return f"""
    WITH f AS ({sql.table_of(*sql.DATASET)})
    SELECT namespace, name, cell, min(since) AS since FROM (
        SELECT c.namespace, c.name, c.cell, c.valid_from AS since FROM changes AS c
        JOIN f ON f.namespace = c.namespace AND f.name = c.name
        WHERE c.mode NOT IN {sql.REMOVING} AND {sql.since("c.valid_from", since)}
        UNION ALL
        SELECT a.namespace, a.name, a.cell, a.accessed_at AS since FROM accesses AS a
        JOIN f ON f.namespace = a.namespace AND f.name = a.name
        WHERE a.side = 'read' AND {sql.since("a.accessed_at", since)}
    ) AS seen
    WHERE cell IS NOT NULL GROUP BY namespace, name, cell ORDER BY namespace, name, cell
    """


class Task(NamedTuple):
    """A task, by the names of the task's OpenLineage job."""

    namespace: str
    job: str

    def __str__(self) -> str:
        return f"{self.namespace}:{self.job}" if self.namespace else self.job


class Writes(NamedTuple):
    """The partitions of a dataset that a run wrote.

    :param started: start of the run; None if it is not known
    :param dates: the run's own dates, as :func:`dates_of` gives them
    :param cells: canonical texts of the partitions; None if they are not known, or if the run wrote
        the whole dataset
    :param is_whole: whether the run wrote the whole dataset
    """

    task: Task
    run: Run
    started: datetime | None
    dates: str
    cells: tuple[str, ...] | None
    is_whole: bool


class Source(NamedTuple):
    """A dataset that a task reads in order to write another dataset."""

    task: Task
    input: DatasetName


def patterns(history: Rows, dataset: DatasetName) -> list[Pattern]:
    """Learn the patterns of a dataset: a pattern for each input of each task that wrote it.

    Failed runs do not count.

    :param history: an opened store of the history
    """
    return [pattern for pattern, _ in learned_of(history, writes_of(history, [dataset]))[dataset]]


def without_pattern(
    history: Rows, dataset: DatasetName, learned: Iterable[Pattern]
) -> list[DatasetName]:
    """List the inputs of the tasks that write a dataset, except those for which there is a pattern.

    An input has no pattern if all of its reads are conditions or unknown parts of it.

    :param history: an opened store of the history
    :param learned: the patterns of the dataset
    """
    ruled = {DatasetName(one.input.namespace, one.input.name) for one in learned}
    rows = history.rows(_UNCLEAR, dataset._asdict())
    read = (DatasetName(row["namespace"], row["name"]) for row in rows)
    return [name for name in read if name not in ruled]


AllWrites = Mapping[DatasetName, Mapping[str, "Writes"]]
"""For each dataset, the writes of each run, by run_id, in the order of the runs' ends."""


def learned_of(
    history: Rows,
    writes: AllWrites,
    inputs: Collection[DatasetName] | None = None,
    since: datetime | None = None,
) -> dict[DatasetName, list[tuple[Pattern, Learned]]]:
    """Learn the patterns of datasets; give each with its relation, which a plan can apply.

    :param history: an opened store of the history
    :param writes: the writes to these datasets, as :func:`writes_of` gives them
    :param inputs: learn only how these datasets are read; None for all
    :param since: time from which on reads count; None for all
    """
    reads: dict[str, dict[DatasetName, list[dict[str, Any]]]] = defaultdict(dict)
    for row in history.rows(_reads_sql(since), sql.lists(sql.DATASET, writes)):
        name = DatasetName(row["namespace"], row["name"])
        if inputs is None or name in inputs:
            reads[row["run_id"]].setdefault(name, []).append(row)
    known = known_of(history, {name for of_run in reads.values() for name in of_run}, since)
    return {
        dataset: list(_patterns(dataset, of_dataset, reads, known))
        for dataset, of_dataset in writes.items()
    }


def _patterns(
    dataset: DatasetName,
    writes: Mapping[str, Writes],
    reads: Mapping[str, Mapping[DatasetName, Sequence[dict[str, Any]]]],
    known: Mapping[DatasetName, Mapping[str, datetime]],
) -> Iterator[tuple[Pattern, Learned]]:
    sources: dict[Source, dict[str, Sequence[dict[str, Any]]]] = defaultdict(dict)
    for run_id in sorted(writes.keys() & reads.keys()):
        for name, rows in reads[run_id].items():
            sources[Source(writes[run_id].task, name)][run_id] = rows
    for source, by_run in sorted(sources.items()):
        yield from _pattern(dataset, source, writes, by_run, known.get(source.input, {}))


def writes_of(
    history: Rows, datasets: Iterable[DatasetName], since: datetime | None = None
) -> AllWrites:
    """Give each successful run's writes to some datasets.

    :param history: an opened store of the history
    :param since: time from which on writes count; None for all
    """
    by_run: dict[DatasetName, dict[str, list[dict[str, Any]]]]
    by_run = {one: defaultdict(list) for one in datasets}
    for row in history.rows(_writes_sql(since), sql.lists(sql.DATASET, by_run)):
        by_run[DatasetName(row["of_namespace"], row["of_name"])][row["run_id"]].append(row)
    return {dataset: _writes_of_runs(of_runs) for dataset, of_runs in by_run.items()}


def _writes_of_runs(by_run: Mapping[str, Sequence[dict[str, Any]]]) -> dict[str, Writes]:
    cells = (cell for rows in by_run.values() for row in rows for cell in row["cells"])
    known = dict.fromkeys(cell for cell in cells if cell)
    return {run_id: _writes(rows, known) for run_id, rows in by_run.items()}


def known_of(
    history: Rows, datasets: Iterable[DatasetName], since: datetime | None = None
) -> dict[DatasetName, dict[str, datetime]]:
    """Give the partitions of datasets that runs wrote or read, with the time of the first access.

    :param history: an opened store of the history
    :param since: time from which on accesses count; None for all
    :return: for each dataset, the time by the canonical text of the partition
    """
    known: dict[DatasetName, dict[str, datetime]] = {one: {} for one in datasets}
    for row in history.rows(_known_sql(since), sql.lists(sql.DATASET, known)) if known else ():
        known[DatasetName(row["namespace"], row["name"])][row["cell"]] = row["since"]
    return known


def dates_of(row: Mapping[str, Any]) -> str:
    """Write a run's own dates in the form of a partition: ``logical_date=2024-10-15T00:00:00``.

    :param row: a row with the columns of :data:`DATES`
    :return: the dates of :data:`DATES` that the run has; ``run=any`` for a run without dates
    """
    return _dates_text(*(row[label] for label in DATES))


@lru_cache(maxsize=4_096)  # the map indexes of a DAG run have the same dates
def _dates_text(*dates: datetime | None) -> str:
    each = zip(DATES, dates, strict=True)
    values = [f"{label}={escape(at.isoformat(timespec='seconds'))}" for label, at in each if at]
    return "/".join(values) or "run=any"


def _writes(rows: Sequence[dict[str, Any]], known: Collection[str]) -> Writes:
    first = rows[0]
    is_whole = any(row["extent"] == "all" for row in rows)
    return Writes(
        Task(first["namespace"], first["job"]),
        Run(first["run_id"], first["job"], at_utc_if_known(first["ended"])),
        first["started"],
        dates_of(first),
        None if is_whole else _cells(rows, known),
        is_whole,
    )


def _pattern(
    dataset: DatasetName,
    source: Source,
    writes: Mapping[str, Writes],
    reads: Mapping[str, Sequence[dict[str, Any]]],
    known: Mapping[str, datetime],
) -> Iterable[tuple[Pattern, Learned]]:
    """Learn one pattern: from the written partitions, or, if none are known, from the runs' dates.

    There is no pattern if the read partitions of all runs are unknown.

    :param dataset: the dataset that was written
    :param source: the task that wrote it, and the dataset that this task read
    :param writes: the writes to ``dataset``, by run_id
    :param reads: rows of the reads of the source, by run_id
    :param known: partitions of the source by canonical text, with the time of the first access
    :return: one pattern with its relation, or none
    """
    pairs = []
    for run_id, rows in reads.items():
        write = writes[run_id]
        written = (write.dates,) if write.is_whole else write.cells
        is_whole = any(row["extent"] == "all" for row in rows)
        read = None if is_whole else _cells(rows, known)
        if written and (is_whole or read):
            pairs.append(Pair(run_id, written, read, write.started))
    if pairs:
        learned = learn(pairs, known)
        if learned.relation.kind == NONE:
            of_dates = [replace(p, given=(writes[p.run_id].dates,)) for p in pairs]
            learned = learn(of_dates, known)
        relation = learned.relation
        pattern = Pattern(
            Dataset(*dataset),
            Dataset(*source.input),
            source.task.namespace,
            source.task.job,
            relation.kind,
            relation.described(),
            rules_of(relation),
            learned.support,
            learned.seen,
            len(reads) - len(pairs),
            learned.confidence,
            tuple(
                Deviation(writes[run_id].run, missing, unexpected)
                for run_id, (missing, unexpected) in learned.exceptions.items()
            ),
        )
        yield pattern, learned


_PRINTED_VALUES = 20  # most values of a constant that are printed


def rules_of(relation: Relation) -> tuple[RuleOfAxis, ...]:
    """Give the rule for each axis of the partitions that are read.

    :return: () for the whole dataset, or if no rule is known
    """
    rules = []
    for axis, link in zip(relation.found.axes, relation.links, strict=False):
        says_of = link.rule.kind not in ("constant", "every")
        of = relation.given.axes[link.axis].labels if says_of else ()
        details = _details(axis, link.rule)
        rules.append(RuleOfAxis(axis.labels, of, link.rule.kind, axis.unit, **details))
    return tuple(rules)


def _details(axis: Axis, rule: Rule) -> dict[str, Any]:
    if isinstance(rule, Span):
        first, last = rule.first, rule.last
        return {
            "first": first.shift,
            "last": last.shift,
            "first_of": first.anchor,
            "last_of": last.anchor,
        }
    if isinstance(rule, Offsets):
        return {"offsets": rule.offsets}
    if isinstance(rule, Months):
        return {"offsets": (rule.months,)}
    if isinstance(rule, Constant):
        values = ("/".join(axis.write(point).values()) for point in rule.points[:_PRINTED_VALUES])
        return {"values": tuple(values)}
    return {}


def _cells(rows: Iterable[Mapping[str, Any]], known: Collection[str]) -> tuple[str, ...] | None:
    """Give the canonical texts of the partitions in some accesses; None if any cannot be listed.

    :param rows: the accesses
    :param known: canonical texts of partitions of the dataset, which tell the axis of a range
    """
    cells: list[str] = []
    for row in rows:
        of_row = row["cells"] if row["extent"] == "partition" else _of_range(row, known)
        if not of_row or None in of_row:
            return None
        cells += of_row
    return tuple(cells)


def _of_range(row: Mapping[str, Any], known: Collection[str]) -> tuple[str, ...] | None:
    """Give the canonical texts of the partitions in a range that has no holes and a single axis.

    :param row: the access
    :param known: canonical texts of partitions of the dataset, which tell its axes
    :return: None if the access is not a range, has no ends, has holes, or has more than one axis
    """
    if row["extent"] != "range" or not (row["first_partition"] and row["last_partition"]):
        return None
    texts = (row["first_partition"], row["last_partition"])
    ends = [end.cell for text in texts if (end := cell_of_text(text))]
    axes = axes_of(dict.fromkeys([*known, *ends]))
    points = [axes.read(end) for end in ends]
    if len(axes.axes) != 1 or len(ends) != len(texts) or None in points:
        return None
    first, last = (point[0] for point in points if point)
    if not isinstance(first, int) or not isinstance(last, int):
        return None
    if last - first + 1 != row["partition_count"]:
        return None
    return tuple(axes.write((point,)) for point in range(first, last + 1))
