"""What to run again, as far as a user may see, and which of it the user may clear."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.plugins.history import runs

if TYPE_CHECKING:
    from airflow_provider_sparklineage.plugins.history.graph import Wanted
    from airflow_provider_sparklineage.plugins.history.opened import Asked
    from airflow_provider_sparklineage.plugins.history.visibility import Visibility


def of(wanted: Wanted, history: Asked, visibility: Visibility) -> dict[str, Any]:
    """Give two plans: for what was made from a partition, and to make the partition fresh.

    :return: ``impact`` and ``refresh``, each with ``steps`` in the order in which data flows,
        those ``by_hand``, and how many steps are ``hidden``
    """
    plans = {
        "impact": history.impact(wanted.dataset, wanted.partition, wanted.column)["plan"],
        "refresh": history.refresh(wanted.dataset, wanted.partition),
    }
    entries = [one for plan in plans.values() for part in _PARTS for one in plan[part]]
    known = runs.of({one["run_id"] for one in entries}, history)
    return {name: _shown(plan, known, visibility) for name, plan in plans.items()}


_PARTS = ("steps", "by_hand")


def _shown(
    plan: dict[str, Any], known: dict[str, dict[str, Any]], visibility: Visibility
) -> dict[str, Any]:
    seen = runs.seen(known, visibility)
    parts = {
        part: [_step(one, seen, visibility) for one in plan[part] if one["run_id"] in seen]
        for part in _PARTS
    }
    count = sum(len(plan[part]) for part in _PARTS)
    return {**parts, "hidden": count - sum(map(len, parts.values()))}


def _step(
    step: dict[str, Any], seen: dict[str, dict[str, Any]], visibility: Visibility
) -> dict[str, Any]:
    run = seen[step["run_id"]]
    return {
        "run": run,
        "wave": step.get("wave", 0),
        # Texts name datasets and partitions; who wrote them may be hidden.
        "reasons": [reason["text"] for reason in step["reasons"]],
        "may_clear": visibility.clears(run),
    }
