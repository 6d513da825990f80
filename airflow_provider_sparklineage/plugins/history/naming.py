"""Which partitions a user may see by name: those that a run names which the user may see.

A partition's name may say what only a hidden run knows. Whoever reads all of a dataset names none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sparklineage.history.facts.cells import cell_of_text
from airflow_provider_sparklineage.model.exceptions import HistoryError
from airflow_provider_sparklineage.plugins.history.texts import cell_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from airflow_provider_sparklineage.plugins.history.opened import Asked
    from airflow_provider_sparklineage.plugins.history.visibility import Visibility

_JOBS = """
SELECT DISTINCT r.dag_id, r.job FROM accesses AS a JOIN runs AS r ON r.run_id = a.run_id
WHERE a.namespace = $namespace AND a.name = $name
"""
_OF_JOBS = """
WITH seen AS (SELECT unnest($dag_ids) AS dag_id, unnest($jobs) AS job)
SELECT DISTINCT a.cell FROM accesses AS a JOIN runs AS r ON r.run_id = a.run_id
SEMI JOIN seen AS s ON s.dag_id IS NOT DISTINCT FROM r.dag_id AND s.job IS NOT DISTINCT FROM r.job
WHERE a.namespace = $namespace AND a.name = $name
"""
_OF_RUNS = """
WITH wanted AS (SELECT unnest($ids) AS run_id)
SELECT DISTINCT namespace, name, cell FROM accesses AS a SEMI JOIN wanted USING (run_id)
WHERE cell IS NOT NULL
"""


class Named(NamedTuple):
    """Partitions of one dataset that a user may see, by their cells.

    :param is_all: whether the user may see all runs that accessed the dataset
    """

    is_all: bool
    cells: frozenset[str | None] = frozenset()

    def has(self, cell: str | None) -> bool:
        """Whether one of them may be named; all of the dataset is None."""
        return self.is_all or cell in self.cells

    def is_in(self, coarse: str) -> bool:
        """Whether it is one of them, or has some, as a day has all regions of that day."""
        values = set(coarse.split("/"))
        return coarse in self.cells or any(values <= set(c.split("/")) for c in self.cells if c)


def of(dataset: tuple[str, str], history: Asked, visibility: Visibility) -> Named:
    """Find the partitions of a dataset that a user may see."""
    named = {"namespace": dataset[0], "name": dataset[1]}
    jobs = history.rows(_JOBS, named)
    seen = [job for job in jobs if visibility.sees(job)]
    if len(seen) == len(jobs):
        return Named(is_all=True)
    lists = {"dag_ids": [job["dag_id"] for job in seen], "jobs": [job["job"] for job in seen]}
    rows = history.rows(_OF_JOBS, {**named, **lists})
    return Named(is_all=False, cells=frozenset(row["cell"] for row in rows))


def checked(
    dataset: tuple[str, str], partition: str | None, history: Asked, visibility: Visibility
) -> Named:
    """Give :func:`of` a dataset of which a partition was asked for.

    :raise HistoryError: if the user may not see that one; as if there were none
    """
    found = of(dataset, history, visibility)
    asked = cell_of_text(partition or "")
    if partition and not found.is_all and not (asked and found.is_in(asked.cell or "")):
        problem = "There is no such partition."
        raise HistoryError(problem)
    return found


def by_runs(ids: Collection[str], history: Asked) -> frozenset[tuple[str, str, str]]:
    """Give the partitions that some runs name: namespace, name and cell of each."""
    rows = history.rows(_OF_RUNS, {"ids": sorted(ids)}) if ids else []
    return frozenset((row["namespace"], row["name"], row["cell"]) for row in rows)


def is_in(
    named: frozenset[tuple[str, str, str]],
    dataset: Mapping[str, Any],
    partition: Mapping[str, str] | None,
) -> bool:
    """Whether a partition is among those of :func:`by_runs`; all of a dataset has no name."""
    cell = cell_of(partition)
    return cell is None or (dataset["namespace"], dataset["name"], cell) in named
