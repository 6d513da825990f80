"""What a schedule waits for, against what its runs read.

A DAG that is scheduled on partitioned assets (Airflow 3.3 and later) declares by partition mappers
from which upstream partitions each run follows. A run may read others: then it starts too early,
or too late, and nobody notices. All runs of a partition that ended well are compared:

==================  ============================================================================
``reads_more``      tasks of the run read partitions that the schedule does not wait for
``reads_less``      the schedule waits for partitions that no task of the run reads
``not_read``        it waits for an asset, and no task with lineage reads the asset's dataset
``not_waited_for``  runs read partitions of a dataset that the schedule does not wait for, and that
                    no task of the DAG writes
==================  ============================================================================

A schedule with ``MinimumCount`` waits for some of the upstream partitions only, so a run may lack
the others. A mapper that is no ``RollupMapper`` starts a run at the first of its upstream
partitions, so that none of the others has to be there; only ``reads_more`` is possible for these.

The schedule is that of now, so that a new mapper can be tried on the runs of the past.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from enum import StrEnum
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

from airflow_provider_sparklineage.history.queries import sql
from airflow_provider_sparklineage.history.queries.answers import Dataset
from airflow_provider_sparklineage.history.queries.due import FREQUENT
from airflow_provider_sparklineage.model.allowance import garbage_collector_paused
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.partitioning import Partition, hive_fit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from airflow_provider_sparklineage.history.queries.sql import Rows


def _latest() -> str:
    """Give SQL for the latest tries of all task instances of the runs with a partition key.

    A DAG run counts if it has a partition key, the last try of each of its tasks ended well, and
    the run is not in progress (:func:`_ended_well`).
    """
    return f"""
WITH f AS ({sql.table_of("dag_id")}), ranked AS (
    SELECT r.run_id, r.namespace, r.dag_id, r.task_id, r.dag_run_id, r.partition_key, r.state,
        r.started, r.ended,
        row_number() OVER (
            PARTITION BY r.namespace, r.dag_id, r.dag_run_id, r.task_id, r.map_index
            ORDER BY coalesce(r.try_number, 0) DESC, r.ended DESC NULLS FIRST
        ) AS place
    FROM runs AS r SEMI JOIN f ON f.dag_id = r.dag_id WHERE r.partition_key IS NOT NULL
), latest AS (
    SELECT *, bool_and(state = 'COMPLETE')
        OVER (PARTITION BY namespace, dag_id, dag_run_id) AS is_complete
    FROM ranked WHERE place = 1
)
    """


_RUNS = f"""
{_latest()}
SELECT namespace, dag_id, dag_run_id, partition_key, is_complete, min(started) AS started,
    max(ended) AS ended, list_sort(list(DISTINCT task_id)) AS tasks
FROM latest GROUP BY ALL ORDER BY ended, dag_run_id
"""
_NOW = "SELECT max(ended) AS now FROM runs"
"""The end of the last run of all: the history may be behind the clock."""
_ACCESSES = f"""
{_latest()}
SELECT l.namespace AS of_namespace, l.dag_id, l.dag_run_id, a.side, a.namespace, a.name,
    bool_and(
        a.extent IN ('partition', 'none') AND coalesce(a.evidence, '') NOT IN {sql.UNCERTAIN}
    ) AS is_known,
    list_sort(list(DISTINCT CASE WHEN a.extent = 'partition' THEN a.partition END)) AS partitions
FROM latest AS l JOIN accesses AS a ON a.run_id = l.run_id
WHERE l.is_complete AND NOT coalesce(a.is_failed, FALSE) AND NOT a.is_expected
GROUP BY ALL
"""


class Differences(NamedTuple):
    """How the partitions that a run read differ from those that its schedule waits for.

    :param number: how many partitions the schedule waits for
    :param unexpected: read, and not waited for
    :param missing: waited for, and not read
    """

    number: int = 0
    unexpected: frozenset[Partition] = frozenset()
    missing: frozenset[Partition] = frozenset()


class Waited(NamedTuple):
    """An asset that a schedule waits for.

    :param asset: name of the asset
    :param dataset: the asset's dataset; None if it is not known
    :param mapper: the partition mapper, for people
    :param differences: compares the upstream partitions of a run's key with the partitions that the
        run read, as texts, sorted. It gives None if they cannot be compared, and a sentence if the
        mapper takes no such key
    """

    asset: str
    dataset: DatasetName | None
    mapper: str = ""
    differences: Callable[[str, tuple[str, ...]], Differences | str | None] = lambda *_: (
        Differences()
    )


class Mismatch(StrEnum):
    """How a schedule and the reads of its runs differ."""

    READS_MORE = "reads_more"
    READS_LESS = "reads_less"
    NOT_READ = "not_read"
    NOT_WAITED_FOR = "not_waited_for"


class ScheduleMismatch(Struct, frozen=True):
    """A difference between a DAG's schedule and the reads of its runs.

    :param asset: the asset; empty if the schedule does not wait for the dataset
    :param mapper: the asset's partition mapper, e.g. ``RollupMapper(StartOfWeekMapper, …)``
    :param dataset: the asset's dataset, or the one that is read; null if it is not known
    :param text: the difference as a sentence
    :param runs: number of runs that have it
    :param judged: number of runs that could be compared
    :param partition_key: of the latest run that has it
    :param dag_run_id: of the same run
    :param partitions: the partitions in which the schedule and this run differ
    """

    dag_id: str
    kind: str
    asset: str
    mapper: str
    dataset: Dataset | None
    text: str
    runs: int
    judged: int
    partition_key: str
    dag_run_id: str
    partitions: tuple[str, ...] = ()


class ScheduleAnswer(NamedTuple):
    """The differences, and what could not be compared.

    :param unjudged: sentences
    :param runs: number of DAG runs that were compared
    """

    mismatches: list[ScheduleMismatch]
    unjudged: list[str]
    runs: int


class _DagRun(NamedTuple):
    """A DAG run with a partition key, all of whose tasks ended well."""

    dag_id: str
    dag_run_id: str
    key: str
    reads: Mapping[DatasetName, _Read]
    writes: frozenset[DatasetName]


class _Read(NamedTuple):
    """The partitions of a dataset that the tasks of a DAG run read.

    :param partitions: as texts, sorted
    :param is_known: whether these are all that they read
    """

    partitions: tuple[str, ...]
    is_known: bool


@garbage_collector_paused()  # the rows of a year of many DAGs are objects that all stay
def against_runs(history: Rows, schedules: Mapping[str, Sequence[Waited]]) -> ScheduleAnswer:
    """Compare what the schedules of DAGs wait for with what their runs read.

    :param history: an opened store of the history
    :param schedules: the assets that the schedule of each DAG waits for, by the DAG's id
    """
    mismatches: list[ScheduleMismatch] = []
    unjudged: list[str] = []
    runs = _runs(history, schedules)
    for dag_id, of_dag in runs.items():
        comparison = _OfDag(dag_id, of_dag, schedules[dag_id])
        mismatches += comparison.mismatches()
        unjudged += comparison.unjudged
    return ScheduleAnswer(mismatches, unjudged, sum(map(len, runs.values())))


def _runs(history: Rows, dag_ids: Iterable[str]) -> dict[str, list[_DagRun]]:
    """Give the runs of DAGs that count, by DAG, in the order of their ends."""
    asked = sql.lists(("dag_id",), [(dag_id,) for dag_id in dag_ids])
    reads: dict[tuple[str, ...], dict[DatasetName, _Read]] = defaultdict(dict)
    writes: dict[tuple[str, ...], set[DatasetName]] = defaultdict(set)
    for row in history.rows(_ACCESSES, asked):
        run = row["of_namespace"], row["dag_id"], row["dag_run_id"]
        dataset = DatasetName(row["namespace"], row["name"])
        if row["side"] == "read":
            partitions = tuple(one for one in row["partitions"] or () if one is not None)
            reads[run][dataset] = _Read(partitions, row["is_known"])
        else:
            writes[run].add(dataset)
    rows: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in history.rows(_RUNS, asked):
        rows[row["namespace"], row["dag_id"]].append(row)
    [row_of_now] = history.rows(_NOW, {})
    found: dict[str, list[_DagRun]] = defaultdict(list)
    for (namespace, dag_id), of_dag in rows.items():
        for row in _ended_well(of_dag, row_of_now["now"]):
            run = namespace, dag_id, row["dag_run_id"]
            found[dag_id].append(
                _DagRun(*run[1:], row["partition_key"], reads[run], frozenset(writes[run]))
            )
    return found


def _ended_well(rows: Sequence[dict[str, Any]], now: datetime) -> list[dict[str, Any]]:
    """Give the DAG runs of one DAG that ended well.

    No event tells that a DAG run has ended. One may be in progress if it has no run of a task that
    half of the DAG runs have, and if it began not longer ago than nine of ten DAG runs took.
    """
    counts = Counter(task for row in rows for task in row["tasks"])
    usual = {task for task, count in counts.items() if 2 * count >= len(rows)}
    ended = [row for row in rows if row["is_complete"]]
    taken = sorted(row["ended"] - row["started"] for row in ended)
    since = now - taken[ceil(len(taken) * FREQUENT) - 1] if taken else now
    return [row for row in ended if usual <= {*row["tasks"]} or row["started"] < since]


class _Differing(NamedTuple):
    """A run that differs from its schedule.

    :param partitions: the partitions in which they differ
    :param number: how many partitions the schedule waits for
    """

    run: _DagRun
    partitions: frozenset[Partition] = frozenset()
    number: int = 0


class _OfDag:
    """Compares the schedule of one DAG with its runs.

    :ivar unjudged: sentences about what could not be compared
    """

    def __init__(self, dag_id: str, runs: Sequence[_DagRun], waited: Sequence[Waited]) -> None:
        self._dag_id = dag_id
        self._runs = runs
        self._waited = waited
        self.unjudged: list[str] = []

    def mismatches(self) -> Iterator[ScheduleMismatch]:
        """Yield the differences, those of each asset together."""
        for one in self._waited:
            if one.dataset is None:
                self.unjudged.append(
                    f"{self._dag_id}: No dataset is known for the asset {one.asset}; a "
                    "partitioning rule with the key 'asset' can name it."
                )
            else:
                yield from self._of_asset(one, one.dataset)
        yield from self._not_waited_for()

    def _of_asset(self, one: Waited, dataset: DatasetName) -> Iterator[ScheduleMismatch]:
        """Yield the differences of one asset."""
        reading = [(run, run.reads[dataset]) for run in self._runs if dataset in run.reads]
        if not reading:
            text = f"The schedule waits for {one.asset}, and no task with lineage reads it."
            every = list(map(_Differing, self._runs))
            yield self._mismatch(Mismatch.NOT_READ, one, text, every, len(every))
            return
        more: list[_Differing] = []
        less: list[_Differing] = []
        problems: list[str] = []
        unknown = 0
        for run, read in reading:
            found = one.differences(run.key, read.partitions) if read.is_known else None
            if found is None:
                unknown += 1
            elif isinstance(found, str):
                problems.append(found)
            else:
                number, unexpected, missing = found
                more += [_Differing(run, unexpected, number)] if unexpected else []
                less += [_Differing(run, missing, number)] if missing else []
        self.unjudged += [f"{self._dag_id}: {problem}" for problem in dict.fromkeys(problems)]
        if unknown:
            self.unjudged.append(
                f"{self._dag_id}: In {unknown} of {len(reading)} runs it is not known which "
                f"partitions of {one.asset} were read, or they cannot be compared with partition "
                "keys."
            )
        judged = len(reading) - unknown - len(problems)
        for kind, differing, how in (
            (Mismatch.READS_MORE, more, "waited for"),
            (Mismatch.READS_LESS, less, "read"),
        ):
            if differing:
                text = _text(one.asset, dataset, differing[-1], how)
                yield self._mismatch(kind, one, text, differing, judged)

    def _not_waited_for(self) -> Iterator[ScheduleMismatch]:
        """Yield the datasets that runs read by partition, and that the schedule does not name."""
        named = {one.dataset for one in self._waited}
        if None in named:
            return  # a dataset that is read may be that of an asset
        named |= {name for run in self._runs for name in run.writes}
        found: dict[DatasetName, list[_Differing]] = defaultdict(list)
        for run in self._runs:
            for dataset, read in run.reads.items():
                if dataset not in named and any(read.partitions):
                    partitions = frozenset(map(partition_of, read.partitions))
                    found[dataset].append(_Differing(run, partitions))
        for dataset, differing in sorted(found.items()):
            text = f"The runs read {dataset}, and the schedule does not wait for it."
            unnamed = Waited("", dataset)
            yield self._mismatch(Mismatch.NOT_WAITED_FOR, unnamed, text, differing, len(self._runs))

    def _mismatch(
        self, kind: Mismatch, one: Waited, text: str, differing: Sequence[_Differing], judged: int
    ) -> ScheduleMismatch:
        """Make the mismatch that some runs have.

        :param differing: the runs that have it, the latest at the end
        :param judged: number of runs that could have it
        """
        run, partitions, _ = differing[-1]
        return ScheduleMismatch(
            self._dag_id,
            str(kind),
            one.asset,
            one.mapper,
            one.dataset and Dataset(*one.dataset),
            text,
            len(differing),
            judged,
            run.key,
            run.dag_run_id,
            tuple(map(str, sorted(partitions))),
        )


def partition_of(text: str) -> Partition:
    """Read a partition as the history has it, e.g. ``dt=2024-10-15/region=eu``."""
    fit = hive_fit(text)
    return fit.partition if fit else Partition()


def _text(asset: str, dataset: DatasetName, differing: _Differing, how: str) -> str:
    """Describe a difference by the latest run that has it.

    :param how: what is the matter with the partitions in which they differ
    """
    read = len(differing.run.reads[dataset].partitions)
    number = len(differing.partitions)
    return (
        f"The schedule waits for {differing.number} partition{'' if differing.number == 1 else 's'}"
        f" of {asset}, and the run reads {read}: {number} {'is' if number == 1 else 'are'} not "
        f"{how}."
    )
