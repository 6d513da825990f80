"""Job, datasets and columns get texts for people, where they have none of their own.

Marquez keeps one text of each: that of the last event which names it. An event without one takes it
away, be it a START, a failure, or of a task that only reads. So every dataset of an event has its
text, and one that this run has not accessed (yet) that of the last run which did: it is then still
true. What a task before this one wrote keeps the writer's texts, next to the reader's. Airflow puts
the user's text of a job in the place of what is here, which
:mod:`airflow_provider_sparklineage.operators.documentation` joins with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.event.descriptions import (
    MAX_OF_DATASET,
    Described,
    Descriptions,
)
from airflow_provider_sparklineage.event.document import DOCUMENTATION_KEY, name_of, replaced
from airflow_provider_sparklineage.event.producer import facet
from airflow_provider_sparklineage.expectations import Side
from airflow_provider_sparklineage.model.texts import truncated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_sparklineage.event.document import Event
    from airflow_provider_sparklineage.model.datasets import DatasetName

_FACETS = "https://openlineage.io/spec/facets/1-1-0"
_SCHEMA = f"{_FACETS}/DocumentationDatasetFacet.json#/$defs/DocumentationDatasetFacet"
_JOB_SCHEMA = f"{_FACETS}/DocumentationJobFacet.json#/$defs/DocumentationJobFacet"


def described(event: Event, last: Event | None = None, upstream: Sequence[Event] = ()) -> Event:
    """Describe the datasets of an event, and its run at the end of a try.

    :param last: the event of the task's last successful run
    :param upstream: those of the tasks before it, the nearest first
    """
    own = Descriptions(event)
    texts = (Descriptions(last).of_datasets() if last else {}) | own.of_datasets()
    for name, written in _written(upstream).items():
        read = texts.get((Side.READ, name))
        text = f"{read.text}. {written.text}" if read else written.text
        texts[Side.READ, name] = Described(truncated(text, MAX_OF_DATASET), written.columns)
    job = event["job"]["facets"]
    if "eventTime" in event:
        job = {DOCUMENTATION_KEY: facet(_JOB_SCHEMA, description=own.of_run()), **job}
    inputs, outputs = (
        [_with_texts(d, texts.get((side, name_of(d)))) for d in event[key]]
        for side, key in ((Side.READ, "inputs"), (Side.WRITE, "outputs"))
    )
    return replaced(event, inputs=inputs, outputs=outputs, job_facets=job)


def _written(upstream: Sequence[Event]) -> dict[DatasetName, Described]:
    found: dict[DatasetName, Described] = {}
    for event in reversed(upstream):
        every = Descriptions(event).of_datasets().items()
        found |= {name: texts for (side, name), texts in every if side is Side.WRITE}
    return found


def _with_texts(dataset: dict[str, Any], texts: Described | None) -> dict[str, Any]:
    if texts is None:
        return dataset
    facets = {DOCUMENTATION_KEY: facet(_SCHEMA, description=texts.text), **dataset["facets"]}
    fields = (facets.get("schema") or {}).get("fields")
    if fields and texts.columns:
        fields = [_with_text(field, texts.columns) for field in fields]
        facets["schema"] = {**facets["schema"], "fields": fields}
    return {**dataset, "facets": facets}


def _with_text(field: dict[str, Any], texts: dict[str, str]) -> dict[str, Any]:
    text = texts.get(field["name"])
    return field if text is None or field.get("description") else {**field, "description": text}
