"""Which datasets a user finds: those that a run accessed which the user may see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.history.queries.frontier import REPLACING

if TYPE_CHECKING:
    from airflow_provider_sparklineage.plugins.history.opened import Asked
    from airflow_provider_sparklineage.plugins.history.visibility import Visibility

MOST = 200
"""Datasets in one answer; the page asks again for what is typed."""

# Accesses of a run become one before they are joined: there may be ten million.
_ACCESSED = """
WITH a AS (
    SELECT namespace, name, run_id,
           max(CASE WHEN side = 'write' THEN accessed_at END) AS written
    FROM accesses GROUP BY namespace, name, run_id
)
SELECT a.namespace, a.name, r.dag_id, r.job, count(*) AS runs, max(a.written) AS written
FROM a JOIN runs AS r ON r.run_id = a.run_id
GROUP BY a.namespace, a.name, r.dag_id, r.job
"""
# Where partitions are only ever replaced, each that is there has one version.
_THERE = f"""
WITH there AS (
    SELECT namespace, name, cell, mode FROM changes WHERE valid_to IS NULL AND cell IS NOT NULL
), added AS (
    SELECT DISTINCT namespace, name FROM there WHERE mode NOT IN {REPLACING}
)
SELECT namespace, name, count(*) AS partitions
FROM there ANTI JOIN added USING (namespace, name) GROUP BY namespace, name
UNION ALL
SELECT namespace, name, count(DISTINCT cell) AS partitions
FROM there SEMI JOIN added USING (namespace, name) GROUP BY namespace, name
"""  # noqa: S608  (a constant of ours)


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
            and (one := self._entry(namespace, name, jobs, visibility))
        ]
        found.sort(key=lambda d: (d["last_written"] or "", d["namespace"], d["name"]), reverse=True)
        return {"datasets": found[:MOST], "count": len(found)}

    def _entry(
        self, namespace: str, name: str, jobs: list[dict[str, Any]], visibility: Visibility
    ) -> dict[str, Any] | None:
        seen = list(filter(visibility.sees, jobs))
        if not seen:
            return None
        written = [job["written"] for job in seen if job["written"]]
        partitions = self._partitions.get((namespace, name), 0)
        return {
            "namespace": namespace,
            "name": name,
            # Of those that hidden runs wrote not even the number is known.
            "partitions": partitions if len(seen) == len(jobs) else None,
            "runs": sum(job["runs"] for job in seen),
            "last_written": f"{max(written).isoformat()}Z" if written else None,
        }
