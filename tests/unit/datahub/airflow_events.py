"""Events that Airflow's provider has sent of real DAG runs, and what they become in DataHub.

They are in ``tests/golden/airflow/dag_runs.ndjson`` (Airflow 3.3.2, its OpenLineage provider
2.20.3), recorded and compared by ``tests/dag_runs/test_recorded_runs.py``, where the DAGs are.
"""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.datahub.configuration import DEFAULT_CONVERSION
from airflow_provider_sparklineage.datahub.conversion import proposals
from tests.conftest import GOLDEN
from tests.unit.datahub.sdk import checked

if TYPE_CHECKING:
    from airflow_provider_sparklineage.datahub.configuration import Conversion
    from airflow_provider_sparklineage.datahub.proposals import Proposal

DAG = "team.daily_revenue"
FLAKY = f"{DAG}.load.flaky"
"""A task in a group, whose first try fails."""


@cache
def recorded() -> tuple[dict[str, Any], ...]:
    lines = (GOLDEN / "airflow" / "dag_runs.ndjson").read_text().splitlines()
    return tuple(map(json.loads, lines))


def event_of(job: str, state: str, *, attempt: int = 1) -> dict[str, Any]:
    """Give a copy of a recorded event, of a task's first try if no other is asked for."""
    for event in recorded():
        instance = event["run"]["facets"].get("airflow", {}).get("taskInstance", {})
        found = event["job"]["name"], event["eventType"], instance.get("try_number", attempt)
        if found == (job, state, attempt):
            copy: dict[str, Any] = json.loads(json.dumps(event))
            return copy
    raise LookupError(job, state)


def with_run_facet(event: dict[str, Any], **facets: Any) -> dict[str, Any]:
    return {**event, "run": {**event["run"], "facets": {**event["run"]["facets"], **facets}}}


def with_job_facet(event: dict[str, Any], **facets: Any) -> dict[str, Any]:
    return {**event, "job": {**event["job"], "facets": {**event["job"]["facets"], **facets}}}


def converted(event: Any, how: Conversion = DEFAULT_CONVERSION) -> list[Proposal]:
    return checked(proposals(event, how))


def aspect(event: Any, name: str, entity: str = "", how: Conversion = DEFAULT_CONVERSION) -> Any:
    """Give an aspect of what an event becomes; None if it has none of that name."""
    for one in converted(event, how):
        if one.aspect_name == name and one.urn.startswith(f"urn:li:{entity}"):
            return one.aspect
    return None


def added(operations: list[dict[str, Any]]) -> dict[str, Any]:
    """Give what a patch adds, by path."""
    return {operation["path"]: operation["value"] for operation in operations}
