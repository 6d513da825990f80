"""What the tasks that write a dataset did otherwise from one run to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.plugins.history import runs

if TYPE_CHECKING:
    from airflow_provider_sparklineage.plugins.history.graph import Wanted
    from airflow_provider_sparklineage.plugins.history.opened import Asked
    from airflow_provider_sparklineage.plugins.history.visibility import Visibility

MOST = 1000
"""Changes in an answer; nobody reads more of them, and a count is given."""

_TASKS = """
SELECT DISTINCT r.dag_id, r.job FROM accesses AS a JOIN runs AS r ON r.run_id = a.run_id
WHERE a.namespace = $namespace AND a.name = $name AND a.side = 'write'
    AND r.state = 'COMPLETE' AND r.job IS NOT NULL
"""


def of(wanted: Wanted, history: Asked, visibility: Visibility) -> dict[str, Any]:
    """Give what differs between runs, the last ones first; what a change names, its run names.

    :return: ``changes``, each with its ``run``; how many ``more`` there are; ``tasks`` that were
        compared, and how many others write it that the user may not see: ``hidden``
    """
    named = {"namespace": wanted.dataset[0], "name": wanted.dataset[1]}
    writers = history.rows(_TASKS, named)
    tasks = sorted({task["job"] for task in writers if visibility.sees(task)})
    found = [change for task in tasks for change in history.drift(task)]
    known = runs.of({runs.id_of(one) for one in found}, history)
    seen = runs.seen(known, visibility)
    changes = [_shown(one, seen[run_id]) for one in found if (run_id := runs.id_of(one)) in seen]
    changes.sort(key=lambda one: one["run"]["ended"] or "", reverse=True)
    return {
        "tasks": tasks,
        "hidden": len({task["job"] for task in writers}) - len(tasks),
        "changes": changes[:MOST],
        "more": max(0, len(changes) - MOST),
    }


def _shown(change: dict[str, Any], run: dict[str, Any]) -> dict[str, Any]:
    return {
        "run": run,
        "kind": change["kind"],
        "dataset": change["dataset"],
        "column": change["column"],
        "message": change["message"],
    }
