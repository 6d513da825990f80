"""What a schedule waits for, against what its runs read.

A DAG that is scheduled on partitioned assets (Airflow 3.3 and later) declares by partition mappers
from which upstream partitions each run follows. A run may read others: then it starts too early,
or too late, and nobody notices. All runs of a partition that ended well are compared:

==================  ============================================================================
``reads_more``      tasks of the run read partitions that the schedule does not wait for
``reads_less``      the schedule waits for partitions that no task of the run reads
``not_read``        it waits for an asset, and no run reads the asset's dataset
``not_waited_for``  runs read partitions of a dataset that the schedule does not wait for, and that
                    no task of the DAG writes
==================  ============================================================================

A schedule with ``MinimumCount`` waits for some of the upstream partitions only, so a run may lack
the others. A mapper that is no ``RollupMapper`` starts a run at the first of its upstream
partitions, so that none of the others has to be there; only ``reads_more`` is possible for these.

The schedule is that of now, so that a new mapper can be tried on the runs of the past.
"""

from __future__ import annotations

from collections import defaultdict
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from airflow_provider_sparklineage.history.queries import sql
from airflow_provider_sparklineage.history.queries.answers import Dataset
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.partitioning import Partition, split_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from airflow_provider_sparklineage.history.queries.sql import Rows

# A DAG run counts if it has a partition key, and the last try of each of its tasks ended well.
_LATEST = f"""
WITH f AS ({sql.table_of("dag_id")}), ranked AS (
    SELECT r.run_id, r.namespace, r.dag_id, r.dag_run_id, r.partition_key, r.state, r.ended,
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
{_LATEST}
SELECT namespace, dag_id, dag_run_id, partition_key, max(ended) AS ended, min(run_id) AS run_id
FROM latest WHERE is_complete GROUP BY ALL ORDER BY ended, dag_run_id
"""
_ACCESSES = f"""
{_LATEST}
SELECT l.namespace AS of_namespace, l.dag_id, l.dag_run_id, a.side, a.namespace, a.name,
    bool_and(a.extent IN ('partition', 'none')) AS is_known,
    list_sort(list(DISTINCT a.partition) FILTER (a.extent = 'partition')) AS partitions
FROM latest AS l JOIN accesses AS a ON a.run_id = l.run_id
WHERE l.is_complete AND NOT coalesce(a.is_failed, FALSE) AND NOT a.is_expected
    AND coalesce(a.evidence, '') NOT IN {sql.UNCERTAIN}
GROUP BY ALL
"""


class Differences(NamedTuple):
    """How the partitions that a run read differ from those that its schedule waits for.

    :param unexpected: read, and not waited for
    :param missing: waited for, and not read
    """

    unexpected: frozenset[Partition] = frozenset()
    missing: frozenset[Partition] = frozenset()


class Waited(NamedTuple):
    """What a schedule waits for before one run: partitions of one asset.

    :param asset: name of the asset
    :param dataset: the asset's dataset; None if it is not known
    :param mapper: the partition mapper, for people
    :param differences: compares the upstream partitions with those that a run read; it gives None
        if the two cannot be compared
    :param number: how many upstream partitions there are
    :param problem: why the upstream partitions are not known; empty if they are
    """

    asset: str
    dataset: DatasetName | None
    mapper: str = ""
    differences: Callable[[frozenset[Partition]], Differences | None] = lambda _: Differences()
    number: int = 0
    problem: str = ""


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

    :param is_known: whether these are all that they read
    """

    partitions: frozenset[Partition]
    is_known: bool


def against_runs(
    history: Rows, dag_ids: Iterable[str], waited: Callable[[str, str], Sequence[Waited]]
) -> ScheduleAnswer:
    """Compare what the schedules of DAGs wait for with what their runs read.

    :param history: an opened store of the history
    :param waited: a function that says what a DAG's schedule waits for: of the DAG's id and the
        partition key of a run
    """
    mismatches: list[ScheduleMismatch] = []
    unjudged: list[str] = []
    runs = _runs(history, dag_ids)
    for dag_id, of_dag in runs.items():
        comparison = _OfDag(dag_id, of_dag, waited)
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
            partitions = frozenset(map(_partition, row["partitions"] or ()))
            reads[run][dataset] = _Read(partitions, row["is_known"])
        else:
            writes[run].add(dataset)
    found: dict[str, list[_DagRun]] = defaultdict(list)
    for row in history.rows(_RUNS, asked):
        run = row["namespace"], row["dag_id"], row["dag_run_id"]
        found[row["dag_id"]].append(
            _DagRun(*run[1:], row["partition_key"], reads[run], frozenset(writes[run]))
        )
    return found


class _Differing(NamedTuple):
    """A run that differs from its schedule, in the partitions of one dataset."""

    run: _DagRun
    partitions: frozenset[Partition] = frozenset()


class _OfDag:
    """Compares the schedule of one DAG with its runs.

    :ivar unjudged: sentences about what could not be compared
    """

    def __init__(
        self, dag_id: str, runs: Sequence[_DagRun], waited: Callable[[str, str], Sequence[Waited]]
    ) -> None:
        self._dag_id = dag_id
        self._runs = [(run, waited(dag_id, run.key)) for run in runs]
        self.unjudged: list[str] = []

    def mismatches(self) -> Iterator[ScheduleMismatch]:
        """Yield the differences, those of each asset together."""
        by_asset: dict[str, list[tuple[_DagRun, Waited]]] = defaultdict(list)
        for run, waited in self._runs:
            for one in waited:
                by_asset[one.asset].append((run, one))
        for asset, of_asset in by_asset.items():
            yield from self._of_asset(asset, of_asset)
        yield from self._not_waited_for()

    def _of_asset(
        self, asset: str, runs: Sequence[tuple[_DagRun, Waited]]
    ) -> Iterator[ScheduleMismatch]:
        """Yield the differences of one asset.

        :param runs: the runs, each with what the schedule waits for before it
        """
        for problem in dict.fromkeys(one.problem for _, one in runs if one.problem):
            self.unjudged.append(f"{self._dag_id}: {problem}")
        known = [(run, one) for run, one in runs if one.dataset and not one.problem]
        if not known:
            if not any(one.problem for _, one in runs):
                self.unjudged.append(
                    f"{self._dag_id}: No dataset is known for the asset {asset}; a partitioning "
                    "rule with the key 'asset' can name it."
                )
            return
        reading = [(run, one) for run, one in known if one.dataset in run.reads]
        if not reading:
            text = f"The schedule waits for {asset}, and no run reads it."
            yield self._mismatch(
                Mismatch.NOT_READ, known[-1][1], text, [_Differing(known[-1][0])], len(known)
            )
            return
        more: list[_Differing] = []
        less: list[_Differing] = []
        judged = 0
        for run, one in reading:
            read = run.reads.get(one.dataset) if one.dataset else None
            found = one.differences(read.partitions) if read and read.is_known else None
            if found is None:
                continue
            judged += 1
            more += [_Differing(run, found.unexpected)] if found.unexpected else []
            less += [_Differing(run, found.missing)] if found.missing else []
        if judged < len(reading):
            self.unjudged.append(
                f"{self._dag_id}: In {len(reading) - judged} of {len(reading)} runs it is not "
                f"known which partitions of {asset} were read, or they cannot be compared with "
                "partition keys."
            )
        one = reading[-1][1]
        if more:
            yield self._mismatch(
                Mismatch.READS_MORE, one, _text(one, more[-1], "waited for"), more, judged
            )
        if less:
            yield self._mismatch(
                Mismatch.READS_LESS, one, _text(one, less[-1], "read"), less, judged
            )

    def _not_waited_for(self) -> Iterator[ScheduleMismatch]:
        """Yield the datasets that runs read by partition, and that the schedule does not name."""
        own = {name for run, _ in self._runs for name in run.writes}
        named = {one.dataset for _, waited in self._runs for one in waited}
        if None in named:
            return  # a dataset that is read may be that of an asset
        found: dict[DatasetName, list[_Differing]] = defaultdict(list)
        for run, _ in self._runs:
            for dataset, read in run.reads.items():
                if dataset not in named | own and any(p.values for p in read.partitions):
                    found[dataset].append(_Differing(run, read.partitions))
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
        run, partitions = differing[-1]
        return ScheduleMismatch(
            self._dag_id,
            str(kind),
            one.asset,
            one.mapper,
            one.dataset and Dataset(*one.dataset),
            text,
            judged if kind is Mismatch.NOT_READ else len(differing),
            judged,
            run.key,
            run.dag_run_id,
            tuple(map(str, sorted(partitions))),
        )


def _partition(text: str) -> Partition:
    """Read a partition as the history has it, e.g. ``dt=2024-10-15/region=eu``."""
    folders = map(split_folder, filter(None, text.split("/")))
    return Partition(tuple(folder for folder in folders if folder))


def _text(one: Waited, differing: _Differing, how: str) -> str:
    """Describe a difference by the latest run that has it.

    :param how: what is the matter with the partitions in which they differ
    """
    read = len(differing.run.reads[one.dataset].partitions) if one.dataset else 0
    plural = "" if one.number == 1 else "s"
    number = len(differing.partitions)
    return (
        f"The schedule waits for {one.number} partition{plural} of {one.asset}, and the run reads "
        f"{read}: {number} {'is' if number == 1 else 'are'} not {how}."
    )
