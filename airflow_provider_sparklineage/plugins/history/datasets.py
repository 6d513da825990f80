"""Which datasets a user finds: those that a run accessed which the user may see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_sparklineage.plugins.history.opened import Asked
    from airflow_provider_sparklineage.plugins.history.visibility import Visibility

MOST = 200
"""Datasets in one answer; the page asks again for what is typed."""

_ACCESSED = """
SELECT a.namespace, a.name, r.dag_id, r.job, count(DISTINCT a.run_id) AS runs,
       max(CASE WHEN a.side = 'write' THEN a.accessed_at END) AS written
FROM accesses AS a JOIN runs AS r ON r.run_id = a.run_id
GROUP BY a.namespace, a.name, r.dag_id, r.job
"""
_THERE = """
SELECT namespace, name, count(DISTINCT cell) AS partitions
FROM changes WHERE valid_to IS NULL GROUP BY namespace, name
"""


class Catalog:
    """All datasets of one state of the store, with the jobs that accessed each.

    It is made once for each build of the history: counting goes through every access.
    """

    def __init__(self, history: Asked) -> None:
        there = {(r["namespace"], r["name"]): r["partitions"] for r in history.rows(_THERE)}
        self._found: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for row in history.rows(_ACCESSED):
            self._found.setdefault((row["namespace"], row["name"]), []).append(row)
        self._partitions = there

    def is_visible(self, namespace: str, name: str, visibility: Visibility) -> bool:
        """Whether a user may see a dataset by name."""
        return any(map(visibility.sees, self._found.get((namespace, name), ())))

    def search(self, text: str, visibility: Visibility) -> dict[str, Any]:
        """Find datasets whose names have all words of a text, the last written ones first.

        :return: ``datasets``, at most :data:`MOST`, and ``count``, how many were found
        """
        words = text.casefold().split()
        found = [
            one
            for (namespace, name), jobs in self._found.items()
            if all(word in f"{namespace} {name}".casefold() for word in words)
            and (one := self._entry(namespace, name, list(filter(visibility.sees, jobs))))
        ]
        found.sort(key=lambda d: (d["last_written"] or "", d["namespace"], d["name"]), reverse=True)
        return {"datasets": found[:MOST], "count": len(found)}

    def _entry(
        self, namespace: str, name: str, jobs: list[dict[str, Any]]
    ) -> dict[str, Any] | None:
        if not jobs:
            return None
        written = [job["written"] for job in jobs if job["written"]]
        return {
            "namespace": namespace,
            "name": name,
            "partitions": self._partitions.get((namespace, name), 0),
            "runs": sum(job["runs"] for job in jobs),
            "last_written": f"{max(written).isoformat()}Z" if written else None,
        }
