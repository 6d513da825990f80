"""The merged RunEvent as plain JSON, which all that handles the event takes and gives.

A document is made of dicts, lists, texts, numbers and booleans. It has no nulls: what is not known
is absent. ``run.facets``, ``job.facets``, ``inputs`` and ``outputs`` are always there; the header
(:class:`Header`) is not yet, where the document is only for Airflow's hooks on START.

Nobody changes a document, or anything in it: a step gives a new one, which shares with the one that
it was given all that stays as it is, and it gives that one back where nothing changes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sparklineage.event.producer import producer
from airflow_provider_sparklineage.model.datasets import DatasetName

if TYPE_CHECKING:
    from airflow_provider_sparklineage.model.terms import Outcome

Event = dict[str, Any]
Facets = dict[str, Any]
Step = Callable[[Event], Event]
"""What is done with an event after it was made; see :mod:`.pipeline`."""

COLUMNS_KEY = "columnLineage"
DOCUMENTATION_KEY = "documentation"
LINEAGE_KEY = "lineage"

_SCHEMA = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"


class Written:
    """An event with its JSON, which is made once for all who keep it."""

    def __init__(self, event: Event) -> None:
        self.event = event

    @cached_property
    def text(self) -> bytes:
        """The event as Airflow writes it into its database."""
        return json.dumps(self.event).encode()


class Header(NamedTuple):
    """Whose event it is.

    :param run_id: a UUID
    :param event_time: in ISO 8601, with a time zone
    """

    run_id: str
    job_namespace: str
    job_name: str
    event_time: str


def empty(header: Header | None, outcome: Outcome) -> Event:
    """Make an event that has no datasets and no facets (yet).

    :param header: None for Airflow's hooks, which fill it in themselves
    """
    event: Event = {
        "run": {"facets": {}},
        "job": {"facets": {}},
        "inputs": [],
        "outputs": [],
    }
    if header is None:
        return event
    return {
        "eventTime": header.event_time,
        "producer": producer(),
        "schemaURL": _SCHEMA,
        "run": {"runId": header.run_id, "facets": {}},
        "job": {"namespace": header.job_namespace, "name": header.job_name, "facets": {}},
        "eventType": str(outcome),
        "inputs": [],
        "outputs": [],
    }


def name_of(dataset: dict[str, Any]) -> DatasetName:
    """Name a dataset of the event, or whatever else has a ``namespace`` and a ``name``."""
    return DatasetName(dataset["namespace"], dataset["name"])


def replaced(
    event: Event,
    *,
    inputs: list[Any] | None = None,
    outputs: list[Any] | None = None,
    run_facets: Facets | None = None,
    job_facets: Facets | None = None,
) -> Event:
    """Give an event with other datasets or facets; None leaves what it has.

    :return: the same object, if it has the very same ones already
    """
    changes: Event = {}
    for side, datasets in (("inputs", inputs), ("outputs", outputs)):
        if datasets is not None and not _are_same(datasets, event[side]):
            changes[side] = datasets
    for of, facets in (("run", run_facets), ("job", job_facets)):
        if facets is not None and not same(facets, event[of]["facets"]):
            changes[of] = {**event[of], "facets": facets}
    return {**event, **changes} if changes else event


def same(first: dict[str, Any], second: dict[str, Any]) -> bool:
    """Whether two have the same keys, and the very same values."""
    return len(first) == len(second) and all(
        key in second and second[key] is value for key, value in first.items()
    )


def _are_same(first: list[Any], second: list[Any]) -> bool:
    return len(first) == len(second) and all(a is b for a, b in zip(first, second, strict=True))
