"""Events on partitions, and what GMS stores of proposals with a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.model.producer import producer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_sparklineage.datahub.proposals import Proposal

RUN = "01890000-0000-7000-8000-000000000001"
TIME = "2026-01-02T03:04:05.678+00:00"
ORDERS = {"namespace": "s3://lake", "name": "orders"}


def partitions(*days: str) -> dict[str, Any]:
    """Make a condition of the days that are named."""
    named = [{"dimensions": {"dt": day}, "identifier": f"dt={day}"} for day in days]
    return {"type": "partition", "partitions": named}


def output(condition: Any = None, /, rows: int | None = None, **facets: Any) -> dict[str, Any]:
    """Make an output with the subset and the statistics that are given."""
    side: dict[str, Any] = {} if condition is None else {"subset": {"outputCondition": condition}}
    if rows is not None:
        side["outputStatistics"] = {"rowCount": rows}
    return {**ORDERS, "facets": facets, "outputFacets": side}


def event(
    *outputs: dict[str, Any],
    inputs: Iterable[dict[str, Any]] = (),
    state: str = "COMPLETE",
    run: dict[str, Any] | None = None,
    job: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Make an event.

    :param run: facets of the run
    :param job: facets of the job
    """
    return {
        "eventType": state,
        "eventTime": TIME,
        "producer": producer(),
        "run": {"runId": RUN, "facets": run or {}},
        "job": {"namespace": "airflow", "name": "shop.revenue", "facets": job or {}},
        "inputs": list(inputs),
        "outputs": list(outputs),
    }


def captured(side: str = "write", **entry: Any) -> dict[str, Any]:
    """Make the run facet that says who saw orders; an entry without a witness makes it empty."""
    listed = [{"dataset": ORDERS, "side": side, **entry}] if entry else []
    return {"sparkLineage_capture": {"datasets": listed, "degradations": []}}


def checked_write(**entry: Any) -> dict[str, Any]:
    """Make the run facet that says what was expected of orders."""
    written = {"dataset": ORDERS, "summary": "orders dt=2026-01-01", **entry}
    return {"sparkLineage_partitionCheck": {"reads": [], "writes": [written]}}


def stored_below(one: Proposal) -> tuple[Any, ...]:
    """Give what GMS makes a document's id of: TimeseriesAspectTransformer.getDocId."""
    aspect: Any = one.aspect
    spec = aspect.get("partitionSpec", {})
    assert not {"partition", "timePartition"} <= spec.keys(), "GMS refuses both"
    granularity, message = aspect.get("eventGranularity"), aspect.get("messageId")
    return (aspect["timestampMillis"], granularity, one.urn, message, spec.get("partition"))
