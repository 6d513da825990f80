"""What to run again, as far as a user may see, and which of it the user may clear."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.plugins.history import naming, runs

if TYPE_CHECKING:
    from airflow_provider_sparklineage.plugins.history.graph import Wanted
    from airflow_provider_sparklineage.plugins.history.opened import Asked
    from airflow_provider_sparklineage.plugins.history.visibility import Visibility


_PARTS = ("steps", "by_hand")


def of(wanted: Wanted, history: Asked, visibility: Visibility) -> dict[str, Any]:
    """Give two plans: for what was made from a partition, and to make the partition fresh.

    :return: ``impact`` and ``refresh``, each with ``steps`` in the order in which data flows,
        those ``by_hand``, and how many steps are ``hidden``
    """
    naming.checked(wanted.dataset, wanted.partition, history, visibility)
    plans = {
        "impact": history.plan(wanted.dataset, wanted.partition, wanted.column),
        "refresh": history.refresh(wanted.dataset, wanted.partition),
    }
    entries = [one for plan in plans.values() for part in _PARTS for one in plan[part]]
    ids = {one["run_id"] for one in entries}
    causes = {runs.id_of(reason.get("cause") or {}) for e in entries for reason in e["reasons"]}
    known = runs.of((ids | causes) - {""}, history)
    seen = runs.seen(known, visibility)
    named = None if seen.keys() == known.keys() else naming.by_runs(seen, history)
    return {name: _shown(plan, seen, named, visibility) for name, plan in plans.items()}


Named = frozenset[tuple[str, str, str]] | None


def _shown(
    plan: dict[str, Any], seen: dict[str, dict[str, Any]], named: Named, visibility: Visibility
) -> dict[str, Any]:
    parts = {
        part: [_step(one, seen, named, visibility) for one in plan[part] if one["run_id"] in seen]
        for part in _PARTS
    }
    count = sum(len(plan[part]) for part in _PARTS)
    return {**parts, "hidden": count - sum(map(len, parts.values()))}


def _step(
    step: dict[str, Any], seen: dict[str, dict[str, Any]], named: Named, visibility: Visibility
) -> dict[str, Any]:
    run = seen[step["run_id"]]
    return {
        "run": run,
        "wave": step.get("wave", 0),
        "reasons": [*dict.fromkeys(_reason(one, named) for one in step["reasons"])],
        "may_clear": visibility.clears(run),
    }


def _reason(reason: dict[str, Any], named: Named) -> str:
    """Give the text of a reason, without the partition if only runs name it that are hidden."""
    if named is None or naming.is_in(named, reason["dataset"], reason["partition"]):
        return str(reason["text"])
    return f"read {reason['dataset']['name']}"
