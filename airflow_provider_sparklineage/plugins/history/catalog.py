"""All datasets and columns of a history, and the search for them.

A user sees the datasets that visible jobs accessed. A dataset is named by the shortest end of its
name that no other dataset has which the user sees.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_sparklineage.history.bounds import within
from airflow_provider_sparklineage.history.queries import sql
from airflow_provider_sparklineage.history.queries.column_graph import (
    LATEST_RUNS,
    MATCHING,
    MAX_MATCHING,
)
from airflow_provider_sparklineage.model.datasets import DatasetName, short_names
from airflow_provider_sparklineage.plugins.history.opened import AnswerCache, cache_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_sparklineage.plugins.history.opened import OpenedHistory
    from airflow_provider_sparklineage.plugins.history.permissions import Visibility

MAX_COLUMNS = 50
"""The most columns that a search finds."""
MAX_DATASETS = 200
"""The most datasets in one answer; the page asks again when the user types a text to find."""

_ACCESSED_BY_JOBS = """
SELECT namespace, name, dag_id, job, max(CASE WHEN side = 'write' THEN accessed_at END) AS written
FROM accesses GROUP BY namespace, name, dag_id, job
"""
# Two ways of counting, for speed: in a dataset whose partitions are only ever replaced, each has
# one version, so rows are counted; in a dataset with appended data, distinct cells.
_PARTITION_COUNTS = f"""
WITH there AS (
    SELECT namespace, name, cell, mode FROM changes WHERE valid_to IS NULL AND cell IS NOT NULL
), added AS (
    SELECT DISTINCT namespace, name FROM there WHERE mode NOT IN {sql.REPLACING}
)
SELECT namespace, name, count(*) AS partitions
FROM there ANTI JOIN added USING (namespace, name) GROUP BY namespace, name
UNION ALL
SELECT namespace, name, count(DISTINCT cell) AS partitions
FROM there SEMI JOIN added USING (namespace, name) GROUP BY namespace, name
"""  # noqa: S608  (a constant of ours)


class Catalog:
    """All datasets of one state of the store, with the jobs that accessed each.

    The catalog is made once for each build of the history, because counting reads every access.
    """

    def __init__(self, history: OpenedHistory) -> None:
        self._partitions = {
            (r["namespace"], r["name"]): r["partitions"] for r in history.rows(_PARTITION_COUNTS)
        }
        self._jobs: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for row in history.rows(_ACCESSED_BY_JOBS):
            self._jobs.setdefault((row["namespace"], row["name"]), []).append(row)
        self._all_jobs = {
            (one["dag_id"], one["job"]) for jobs in self._jobs.values() for one in jobs
        }
        self._names = AnswerCache(_MOST_NAMES)

    def is_visible(self, namespace: str, name: str, visibility: Visibility) -> bool:
        """Whether a user may see a dataset: at least one job that accessed it has to be visible."""
        return any(map(visibility.sees, self._jobs.get((namespace, name), ())))

    def names(self, visibility: Visibility) -> dict[DatasetName, str]:
        """Give the datasets that a user may see, each with the shortest end that names it alone.

        Only datasets that the user may see make an end longer: it would show that there are others.
        """
        seen = frozenset(
            (dag_id, job)
            for dag_id, job in self._all_jobs
            if visibility.sees({"dag_id": dag_id, "job": job})
        )

        def shorten() -> dict[DatasetName, str]:
            return short_names(
                DatasetName(*one)
                for one, of_dataset in self._jobs.items()
                if any((job["dag_id"], job["job"]) in seen for job in of_dataset)
            )

        names: dict[DatasetName, str] = self._names.answer(seen, shorten)
        return names

    def is_whole(self, dataset: DatasetName, visibility: Visibility) -> bool:
        """Whether a user may see all jobs that accessed a dataset."""
        return all(map(visibility.sees, self._jobs.get(dataset, ())))

    def dag_of(self, dataset: DatasetName, job: str | None) -> str | None:
        """Give the DAG of a job that accessed a dataset; None for a job of another producer."""
        return next(
            (one["dag_id"] for one in self._jobs.get(dataset, ()) if one["job"] == job), None
        )

    def partitioned(self) -> list[DatasetName]:
        """List the datasets that have partitions, the last written first."""
        found = [dataset for dataset, count in self._partitions.items() if count]
        written = {
            dataset: max((job["written"] for job in jobs if job["written"]), default=None)
            for dataset, jobs in self._jobs.items()
        }
        found.sort(key=lambda one: (str(written.get(one) or ""), one), reverse=True)
        return [DatasetName(*one) for one in found]

    def search(
        self,
        text: str,
        visibility: Visibility,
        sort: Sorting = "trouble",
        troubles: Mapping[DatasetName, Mapping[str, int]] | None = None,
    ) -> dict[str, Any]:
        """Find datasets whose names have all words of a text.

        :param sort: ``trouble`` for those with most kinds and numbers of troubles first, then as
            ``written``: the last written first; ``name`` for the order of their short names
        :param troubles: the number of partitions by the letter of their state, as far as known
        :return: ``datasets``, at most :data:`MAX_DATASETS`, and ``count``, the number of all found.
            Each dataset has ``namespace``, ``name``, ``short`` (see :meth:`names`), ``troubles``,
            the number of ``partitions`` (None if a job that accessed the dataset is hidden), and
            ``last_written``, a time in ISO 8601 (None if no visible run wrote the dataset)
        """
        words = text.casefold().split()
        troubles = troubles or {}
        names = self.names(visibility)
        datasets = [
            self._entry(dataset, visibility)
            | {"short": short, "troubles": dict(troubles.get(dataset, {}))}
            for dataset, short in names.items()
            if all(word in f"{dataset.namespace} {dataset.name}".casefold() for word in words)
        ]
        datasets.sort(key=lambda d: (d["namespace"], d["name"]))
        if sort == "name":
            datasets.sort(key=lambda d: d["short"].casefold())
        else:
            datasets.sort(key=lambda d: d["last_written"] or "", reverse=True)
        if sort == "trouble":
            datasets.sort(key=lambda d: _severity(d["troubles"]), reverse=True)
        return {"datasets": datasets[:MAX_DATASETS], "count": len(datasets)}

    def _entry(self, dataset: DatasetName, visibility: Visibility) -> dict[str, Any]:
        jobs = self._jobs[dataset]
        seen = list(filter(visibility.sees, jobs))
        written = [job["written"] for job in seen if job["written"]]
        partitions = self._partitions.get(dataset, 0)
        return {
            **dataset._asdict(),
            # The number is hidden if a job is hidden, whose runs may have written some partitions.
            "partitions": partitions if len(seen) == len(jobs) else None,
            "last_written": f"{max(written).isoformat()}Z" if written else None,
        }


_MOST_NAMES = 10
"""The most groups of users, each of which sees the same, whose names of datasets are kept."""

Sorting = Literal["trouble", "name", "written"]
"""An order of the list of datasets."""


def _severity(troubles: Mapping[str, int]) -> tuple[int, ...]:
    """Give a key that sorts datasets by their troubles, in the order of the states' letters."""
    return tuple(troubles.get(letter, 0) for letter in "smxn")


def catalog_of(history: OpenedHistory) -> Catalog:
    """Give the catalog of the opened state of the store; it is made once for all requests."""
    with within(history.bound):
        catalog: Catalog = cache_of(history).answer("catalog", lambda: Catalog(history))
    return catalog


def named(dataset: Mapping[str, Any] | None, names: Mapping[DatasetName, str]) -> Any:
    """Add its ``short`` name to a dataset, which has a ``namespace`` and a ``name``; keep None.

    :param names: as :meth:`Catalog.names` gives them
    """
    if dataset is None:
        return None
    key = DatasetName(dataset["namespace"], dataset["name"])
    return {**key._asdict(), "short": names.get(key, key.name)}


def search_columns(text: str, history: OpenedHistory, visibility: Visibility) -> dict[str, Any]:
    """Find columns by words: the last has to be in the column's name, the others there or before.

    The columns are those that the latest run of each job named. Those of datasets that jobs
    accessed which the user may not see are left out: such a job may be the only one that names the
    column.

    :return: ``columns``, at most :data:`MAX_COLUMNS`, each with ``namespace``, ``name``, ``short``
        and ``column``; ``count``, the number of all that were found; and ``is_cut``, whether there
        are more that were not looked for, because a short text is in too many names
    """
    words = text.casefold().replace(".", " ").split()
    if not words:
        return {"columns": [], "count": 0, "is_cut": False}
    catalog = catalog_of(history)
    names = catalog.names(visibility)
    latest = cache_of(history).answer("latest runs", lambda: history.rows(LATEST_RUNS))
    runs = [(run["run_id"], run["ended"]) for run in latest if visibility.sees(run)]
    asked = {**sql.lists(sql.RUN, runs), "first": words[0], "last": words[-1]}
    rows = history.rows(MATCHING, asked)
    found = [
        {**named(dataset._asdict(), names), "column": row["col"]}
        for row in rows
        if (dataset := DatasetName(row["namespace"], row["name"])) in names
        and all(word in f"{'/'.join(dataset)}.{row['col']}".casefold() for word in words)
        and catalog.is_whole(dataset, visibility)
    ]
    is_cut = len(rows) == MAX_MATCHING or any(row["is_cut"] for row in rows)
    return {"columns": found[:MAX_COLUMNS], "count": len(found), "is_cut": is_cut}
