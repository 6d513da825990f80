"""Events to read facts of: whole ones, with what a test is about in the place of what is usual."""

from __future__ import annotations

import json
from typing import Any

from airflow_provider_sparklineage.history.facts import Line, facts_of
from airflow_provider_sparklineage.model.producer import producer

RUN_ID = "01890a5d-ac96-774b-bcce-b302099a8057"
OF_DBT = "https://github.com/OpenLineage/OpenLineage/tree/1.53.0/integration/dbt"
OF_SPARK = "https://github.com/OpenLineage/OpenLineage/tree/1.53.0/integration/spark"


def event(**changes: Any) -> dict[str, Any]:
    """Give an event of another producer; keys are the event's, ``run_facets`` the run's facets."""
    facets = changes.pop("run_facets", {})
    return {
        "eventType": "COMPLETE",
        "eventTime": "2024-10-15T03:00:00Z",
        "producer": OF_DBT,
        "run": {"runId": RUN_ID, "facets": facets},
        "job": {"namespace": "tests", "name": "shop.report"},
        "inputs": [],
        "outputs": [],
        **changes,
    }


def ours(*, reads: Any = (), writes: Any = (), check: Any = None, **changes: Any) -> dict[str, Any]:
    """Give an event of this package.

    :param reads: inputs with their entries of the capture facet; ``writes`` of outputs
    :param check: the partition check, if there is one
    """
    seen = [
        {"dataset": {"namespace": d["namespace"], "name": d["name"]}, "side": side, **entry}
        for side, datasets in (("write", writes), ("read", reads))
        for d, entry in datasets
    ]
    facets = {"sparkLineage_capture": {"degradations": [], "datasets": seen}}
    if check is not None:
        facets["sparkLineage_partitionCheck"] = check
    return event(
        producer=producer(),
        run_facets=facets,
        inputs=[d for d, _ in reads],
        outputs=[d for d, _ in writes],
        **changes,
    )


def dataset(name: str = "/lake/orders", **changes: Any) -> dict[str, Any]:
    """Give a dataset."""
    return {"namespace": "file", "name": name, "facets": {}, **changes}


def part(*partitions: dict[str, Any], key: str = "inputCondition") -> dict[str, Any]:
    """Give facets of a side that name partitions."""
    named = [{"dimensions": one} for one in partitions]
    return {"subset": {key: {"type": "partition", "partitions": named}}}


def facts(document: Any, source: str = "events.ndjson") -> dict[str, Any]:
    """Give the facts of an event that has some, decoded."""
    found = facts_of(json.dumps(document).encode(), source)
    assert isinstance(found, Line), found
    return json.loads(found.text)
