"""Find the runs and partitions that a user may see.

A user may see a run if the user may read the XComs of its DAG, as in the tab. A run of another
producer belongs to no DAG: who may read the XComs of all DAGs may see it, or everybody if
``[sparklineage] history_other_producers`` is ``everybody``. A user may see a
partition if a visible run names it, because the name itself can be a secret of a hidden run. A run
that reads all of a dataset names no partition.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sparklineage.history.facts.cells import cell_of_text
from airflow_provider_sparklineage.model.exceptions import HistoryError
from airflow_provider_sparklineage.plugins.history.opened import cell_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from airflow_provider_sparklineage.model.datasets import DatasetName
    from airflow_provider_sparklineage.plugins.history.opened import OpenedHistory


class Visibility:
    """The permissions of one user to see and clear, for one request.

    :param may_read: tells whether the user may read the XComs of the DAG with a given ``dag_id``;
        lineage is the content of an XCom
    :param may_clear: tells whether the user may clear task instances of the DAG
    :param known: gives the ids of all DAGs that Airflow knows
    :param sees_other_producers: tells whether the user may see runs that belong to no DAG
    :param namespace: OpenLineage's namespace of this Airflow's jobs; empty if all jobs are its own
    """

    def __init__(
        self,
        may_read: Callable[[str], bool],
        may_clear: Callable[[str], bool],
        known: Callable[[], frozenset[str]],
        sees_other_producers: Callable[[], bool],
        namespace: str = "",
    ) -> None:
        # Each DAG is asked for once, because an auth manager may ask a server.
        self._may_read, self._may_clear = cache(may_read), cache(may_clear)
        self._known, self._namespace = cache(known), namespace
        self._sees_other_producers = cache(sees_other_producers)

    def sees(self, run: Mapping[str, Any]) -> bool:
        """Whether the user may see a run, decided by its ``dag_id`` and ``job``.

        A run of another producer has no DAG, but its job may be named after a DAG, as the Spark job
        of a task is. Then the run is as visible as that DAG. If Airflow does not know such a DAG,
        the run is visible as those of other producers are: the DAG may have been deleted.
        """
        if dag_id := run.get("dag_id"):
            return self._may_read(str(dag_id))
        parts = str(run.get("job") or "").split(".")
        names = {".".join(parts[:n]) for n in range(1, len(parts) + 1)}
        if dag_ids := names & self._known():
            return all(map(self._may_read, dag_ids))
        return self._sees_other_producers()

    def clears(self, run: Mapping[str, Any]) -> bool:
        """Whether the user may clear a visible run's task instance; False for a run without DAG."""
        dag_id = run.get("dag_id")
        return bool(dag_id) and self._may_clear(str(dag_id))

    def is_of_another_airflow(self, namespace: str | None) -> bool:
        """Whether a job's namespace is not that of this Airflow, which cannot clear its tasks.

        :param namespace: empty or None if it is not known, as that of tasks that have not run
        """
        return bool(namespace and self._namespace) and namespace != self._namespace


_RUNS = """
SELECT run_id, namespace, job, dag_id, task_id, dag_run_id, map_index, logical_date, ended, state,
    check_status
FROM runs WHERE list_contains($ids, run_id)
"""


def runs_by_id(ids: Collection[str], history: OpenedHistory) -> dict[str, dict[str, Any]]:
    """Look up runs by their ids; unknown and empty ids are left out.

    :return: the columns of each run in JSON's types, by id of the run
    """
    wanted = sorted({*ids} - {""})
    rows = history.rows(_RUNS, {"ids": wanted}) if wanted else []
    return {row["run_id"]: plain(row) for row in rows}


def plain(run: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the columns of a run to JSON's types."""
    return {key: _plain(value) for key, value in run.items()}


def visible_runs(
    known: dict[str, dict[str, Any]], visibility: Visibility
) -> dict[str, dict[str, Any]]:
    """Select the runs that a user may see.

    :param known: runs by id, as :func:`runs_by_id` gives them
    """
    return {run_id: run for run_id, run in known.items() if visibility.sees(run)}


def run_id_of(entry: Mapping[str, Any]) -> str:
    """Give the id of the run in an entry of an answer; empty if there is no run."""
    run = entry.get("run")
    return str((run.get("run_id") if isinstance(run, dict) else run) or "")


def epoch_seconds(at: datetime | None) -> int | None:
    """Convert a time of the tables, UTC without a zone, to seconds since the epoch; keep None."""
    return None if at is None else int(at.replace(tzinfo=UTC).timestamp())


def _plain(value: Any) -> Any:
    return f"{value.isoformat()}Z" if isinstance(value, datetime) else value


_JOBS_OF_DATASET = """
SELECT DISTINCT dag_id, job FROM accesses WHERE namespace = $namespace AND name = $name
"""
_NAMED_BY_JOBS = """
WITH seen AS (SELECT unnest($dag_ids) AS dag_id, unnest($jobs) AS job)
SELECT DISTINCT a.cell FROM accesses AS a
SEMI JOIN seen AS s ON s.dag_id IS NOT DISTINCT FROM a.dag_id AND s.job IS NOT DISTINCT FROM a.job
WHERE a.namespace = $namespace AND a.name = $name
"""
_NAMED_BY_RUNS = """
WITH wanted AS (SELECT unnest($ids) AS run_id)
SELECT DISTINCT namespace, name, cell FROM accesses AS a SEMI JOIN wanted USING (run_id)
WHERE cell IS NOT NULL
"""


class NamedPartitions(NamedTuple):
    """The partitions of one dataset that a user may see.

    :param cells: the canonical texts of these partitions, among which None stands for all of the
        dataset. It is None instead of a set if the user may see all jobs that accessed the dataset,
        because then the user may see all partitions
    """

    cells: frozenset[str | None] | None

    def has(self, cell: str | None) -> bool:
        """Whether the user may see a partition.

        :param cell: canonical text of the partition; None for all of the dataset
        """
        return self.cells is None or cell in self.cells

    def is_in(self, coarse: str) -> bool:
        """Whether the user may see a partition or one inside it.

        :param coarse: canonical text of the partition: ``dt=…`` contains ``dt=…/region=eu``
        """
        values = set(coarse.split("/"))
        return self.has(coarse) or any(values <= set(c.split("/")) for c in self.cells or () if c)


def named_partitions(
    dataset: DatasetName, history: OpenedHistory, visibility: Visibility
) -> NamedPartitions:
    """Find the partitions of a dataset that a user may see."""
    named = dataset._asdict()
    jobs = history.rows(_JOBS_OF_DATASET, named)
    seen = [job for job in jobs if visibility.sees(job)]
    if len(seen) == len(jobs):
        return NamedPartitions(None)
    lists = {"dag_ids": [job["dag_id"] for job in seen], "jobs": [job["job"] for job in seen]}
    rows = history.rows(_NAMED_BY_JOBS, {**named, **lists})
    return NamedPartitions(frozenset(row["cell"] for row in rows))


_NAMING_COLUMN = """
SELECT DISTINCT r.dag_id, r.job FROM columns AS c
JOIN runs AS r ON r.ended = c.ended AND r.run_id = c.run_id
WHERE (c.out_namespace = $namespace AND c.out_name = $name AND c.out_column = $column)
    OR (c.in_namespace = $namespace AND c.in_name = $name AND c.in_column = $column)
"""


def checked(
    dataset: DatasetName,
    partition: str | None,
    column: str | None,
    history: OpenedHistory,
    visibility: Visibility,
) -> NamedPartitions:
    """Give a dataset's :func:`named_partitions`; raise if the user may not see what is asked for.

    :param partition: text of the partition; the user has to be allowed to see this partition, or
        one inside it. None for all of the dataset
    :param column: name of the column, which a visible run has to name; None for all columns
    :raise HistoryError: if the user may not see the partition or the column; the message is the
        same as for one that does not exist
    """
    visible = named_partitions(dataset, history, visibility)
    if visible.cells is None:
        return visible
    cell = cell_of_text(partition or "")
    is_named = not partition or bool(cell and visible.is_in(cell.cell))
    if column:
        jobs = history.rows(_NAMING_COLUMN, {**dataset._asdict(), "column": column})
        is_named = is_named and any(map(visibility.sees, jobs))
    if not is_named:
        problem = "There is no such partition or column."
        raise HistoryError(problem)
    return visible


def naming(
    known: Collection[str], seen: Collection[str], history: OpenedHistory
) -> Callable[[Mapping[str, Any], Mapping[str, str] | None], bool]:
    """Give the function that tells whether a user may see the name of a partition.

    It takes a dataset (``namespace`` and ``name``), and the values of the partition by dimension;
    None is for all of the dataset, which is never hidden. The user may see the name of a partition
    if all runs of the answer are visible, or if a visible run names the partition.

    :param known: ids of all runs of an answer
    :param seen: ids of those runs that the user may see
    """
    if len(seen) == len(known):
        return lambda dataset, partition: True  # noqa: ARG005
    rows = history.rows(_NAMED_BY_RUNS, {"ids": sorted(seen)}) if seen else []
    named = {(row["namespace"], row["name"], row["cell"]) for row in rows}

    def is_named(dataset: Mapping[str, Any], partition: Mapping[str, str] | None) -> bool:
        cell = cell_of(partition)
        return cell is None or (dataset["namespace"], dataset["name"], cell) in named

    return is_named
