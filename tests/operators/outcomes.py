"""What an operator that has run gives Airflow, and the end of a task that was deferred."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk.bases.operator import ExecutorSafeguard

from tests.spark_submit_double import task_context

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow.providers.openlineage.extractors import OperatorLineage

READ = ["/lake/customers", "/lake/orders", "/lake/rates"]
"""The names of the inputs of the recorded application ``staging_chain``."""


def facets(task: Any, end: str = "complete") -> OperatorLineage:
    """Give the lineage of a task that has ended."""
    return getattr(task, f"get_openlineage_facets_on_{end}")(None)


def names(datasets: Iterable[Any]) -> list[str]:
    """Give the names of datasets."""
    return [one.name for one in datasets]


def degradations(task: Any, end: str = "complete") -> dict[str, str]:
    """Give the messages of what is missing, by their codes."""
    found = facets(task, end).run_facets["sparkLineage_capture"].degradations
    return {d["code"]: d["message"] for d in found}


def resumed(task: Any, method: str, kwargs: dict[str, Any], context: Any = None) -> Any:
    """Resume a task as another process does."""
    token = ExecutorSafeguard.tracker.set(task)
    try:
        return task.resume_execution(method, kwargs, context or task_context())
    finally:
        ExecutorSafeguard.tracker.reset(token)
