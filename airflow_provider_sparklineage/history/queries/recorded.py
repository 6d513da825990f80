"""What the history has of some datasets: their writes, and the runs of the tasks that write them.

From it follows what is due and not there (:mod:`.gaps`).
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sparklineage.history.queries import sql
from airflow_provider_sparklineage.history.queries.patterns.observed import writes_of
from airflow_provider_sparklineage.model.datasets import DatasetName

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from airflow_provider_sparklineage.history.queries.patterns.observed import Writes
    from airflow_provider_sparklineage.history.queries.sql import Rows

_RUN = (
    "r.run_id, r.namespace, r.job, r.dag_id, r.dag_run_id, r.map_index, r.try_number, r.state, "
    "r.started, r.ended, r.data_interval_end, r.data_interval_start, r.logical_date"
)
_DATE = "r.namespace, r.dag_id, r.data_interval_end, r.data_interval_start, r.logical_date"
_FIRST = "(coalesce(r.try_number, 0), r.ended, r.run_id)"
_DAG = ("namespace", "dag_id")


def _writers_sql(since: datetime | None) -> str:
    """Give SQL for all runs of the tasks that write datasets, each run once for each of these."""
    return f"""
    WITH f AS ({sql.table_of(*sql.DATASET)}), written AS MATERIALIZED (
        SELECT DISTINCT a.namespace, a.name, a.run_id, a.job, a.dag_id FROM accesses AS a
        JOIN f ON f.namespace = a.namespace AND f.name = a.name
        WHERE a.side = 'write' AND {sql.since("a.accessed_at", since)}
    ), candidates AS MATERIALIZED (
        SELECT r.* FROM runs AS r SEMI JOIN written AS w ON w.job = r.job AND w.dag_id = r.dag_id
        WHERE {sql.since("r.ended", since)}
    ), writers AS (
        SELECT DISTINCT w.namespace AS of_namespace, w.name AS of_name, r.namespace, r.job, r.dag_id
        FROM candidates AS r JOIN written AS w ON w.run_id = r.run_id
    )
    SELECT w.of_namespace, w.of_name, {_RUN}
    FROM candidates AS r JOIN writers AS w ON w.namespace = r.namespace AND w.job = r.job
        AND w.dag_id = r.dag_id
    ORDER BY coalesce(r.try_number, 0), r.ended NULLS FIRST, r.run_id
    """


def _dates_sql(since: datetime | None) -> str:
    """Give SQL for the dates of DAGs: for each, the first run of any task."""
    return f"""
    WITH f AS ({sql.table_of(*_DAG)})
    SELECT {_DATE}, arg_min(r.run_id, {_FIRST}) AS run_id, arg_min(r.job, {_FIRST}) AS job,
        arg_min(r.dag_run_id, {_FIRST}) AS dag_run_id, arg_min(r.started, {_FIRST}) AS started,
        arg_min(r.ended, {_FIRST}) AS ended,
        coalesce(max(r.ended) FILTER (r.state <> 'COMPLETE') = max(r.ended), FALSE) AS is_stuck
    FROM runs AS r JOIN f ON f.namespace = r.namespace AND f.dag_id = r.dag_id
    WHERE {sql.since("r.ended", since)}
    GROUP BY {_DATE} ORDER BY ALL
    """


def _latest_sql(since: datetime | None) -> str:
    return f"""
    WITH f AS ({sql.table_of("namespace")})
    SELECT r.namespace, max(r.ended) AS ended
    FROM runs AS r JOIN f ON f.namespace = r.namespace
    WHERE {sql.since("r.ended", since)} GROUP BY r.namespace
    """


def _changes_sql(since: datetime | None) -> str:
    return f"""
    WITH f AS ({sql.table_of(*sql.DATASET)})
    SELECT c.namespace, c.name, c.run_id, c.cell, c.partition, c.extent, c.valid_from,
        c.mode = 'removed' AS is_removed, c.mode NOT IN {sql.REMOVING} AS is_written,
        c.valid_to IS NULL AND c.mode NOT IN {sql.REMOVING} AS is_there
    FROM changes AS c JOIN f ON f.namespace = c.namespace AND f.name = c.name
    WHERE c.extent <> 'none' AND {sql.since("c.valid_from", since)}
    ORDER BY c.valid_from, c.run_id, c.cell
    """


class OfDataset(NamedTuple):
    """What is recorded of a dataset.

    :param writes: the writes of each successful run, by run_id
    :param changes: its versions, as rows, in the order of time
    :param runs: all runs of the tasks that write it, as rows, tries in their order; then for each
        further date of their DAGs the first run of any task
    :param latest: the end of the latest run of each Airflow, by the namespace of its jobs
    """

    dataset: DatasetName
    writes: Mapping[str, Writes]
    changes: Sequence[dict[str, Any]]
    runs: Sequence[dict[str, Any]]
    latest: Mapping[str, datetime | None]


class Recorded:
    """The writes, changes and runs of some datasets, from which their gaps follow.

    There is one query of each kind for all of them, because of a large history each takes long.

    :param history: an opened store of the history
    :param since: time from which on runs count; None for all
    """

    def __init__(
        self, history: Rows, datasets: Sequence[DatasetName], since: datetime | None = None
    ) -> None:
        named = sql.lists(sql.DATASET, datasets)
        self.writes = writes_of(history, datasets, since)
        self._changes: dict[DatasetName, list[dict[str, Any]]] = defaultdict(list)
        for row in history.rows(_changes_sql(since), named):
            self._changes[DatasetName(row["namespace"], row["name"])].append(row)
        self._runs: dict[DatasetName, list[dict[str, Any]]] = defaultdict(list)
        for row in history.rows(_writers_sql(since), named):
            self._runs[DatasetName(row["of_namespace"], row["of_name"])].append(row)
        dags = _dags_of(row for of_dataset in self._runs.values() for row in of_dataset)
        self._dates: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        for row in history.rows(_dates_sql(since), sql.lists(_DAG, dags)) if dags else ():
            self._dates[row["namespace"], row["dag_id"]].append(row)
        airflows = sql.lists(("namespace",), {(namespace,) for namespace, _ in dags})
        rows = history.rows(_latest_sql(since), airflows) if dags else ()
        self._latest: dict[str, datetime | None] = {row["namespace"]: row["ended"] for row in rows}

    def of(self, dataset: DatasetName) -> OfDataset:
        """Give what is recorded of one of the datasets."""
        runs = self._runs[dataset]
        own = {(row["namespace"], row["job"]) for row in runs}
        dates = [
            row
            for dag in _dags_of(runs)
            for row in self._dates[dag]
            if (row["namespace"], row["job"]) not in own
        ]
        return OfDataset(
            dataset, self.writes[dataset], self._changes[dataset], runs + dates, self._latest
        )


def _dags_of(runs: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    return [*dict.fromkeys((row["namespace"], row["dag_id"]) for row in runs)]
