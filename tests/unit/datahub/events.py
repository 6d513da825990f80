"""Events for the conversion, with as little in them as a test is about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.datahub.configuration import (
    DEFAULT_CONVERSION,
    Conversion,
    FieldPaths,
)
from airflow_provider_sparklineage.datahub.schema import Schema, naming_of_platform
from airflow_provider_sparklineage.datahub.subject import Subject
from airflow_provider_sparklineage.event.model import NestedField, fitted

if TYPE_CHECKING:
    from collections.abc import Iterable

Json = dict[str, Any]
LAKE = "s3://lake"


def subject(how: Conversion = DEFAULT_CONVERSION, **of_event: Any) -> Subject:
    """Make the subject of :func:`event`."""
    return Subject(event(**of_event), how)


def event(
    inputs: tuple[Json, ...] = (),
    outputs: tuple[Json, ...] = (),
    state: str = "COMPLETE",
    job: str = "shop.revenue",
    after: tuple[str, ...] = (),
    **job_facets: Any,
) -> Json:
    """Make an event of a task.

    :param after: the tasks before it in its DAG
    """
    return {
        "eventTime": "2026-01-01T00:00:00+00:00",
        "eventType": state,
        "producer": "urn:tests",
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": "00000000-0000-7000-8000-000000000000", "facets": _airflow(after)},
        "job": {"namespace": "airflow", "name": job, "facets": job_facets},
        "inputs": list(inputs),
        "outputs": list(outputs),
    }


def _airflow(after: tuple[str, ...]) -> Json:
    return {"airflow": {"task": {"upstream_task_ids": str(list(after))}}} if after else {}


def dataset(name: str, **facets: Any) -> Json:
    """Make a dataset of the lake."""
    return {"namespace": LAKE, "name": name, "facets": facets}


def source(name: str, field: str, *transformations: str, masking: bool = False) -> Json:
    """Make an ``InputField``; a transformation is ``DIRECT:IDENTITY``."""
    every = [dict(zip(("type", "subtype"), t.split(":"), strict=False)) for t in transformations]
    every = [one | {"masking": masking} for one in every]
    return {"namespace": LAKE, "name": name, "field": field, "transformations": every}


def column_lineage(*conditions: Json, **fields: list[Json]) -> Json:
    """Make a ``columnLineage``."""
    made = {name: {"inputFields": sources} for name, sources in fields.items()}
    return {"fields": made, "dataset": list(conditions)}


def schema(*fields: str) -> Json:
    """Make a ``schema`` of texts."""
    return {"fields": [{"name": name, "type": "string"} for name in fields]}


def schema_of(fields: Iterable[Json], platform: str, version: FieldPaths = FieldPaths.V2) -> Schema:
    """Make the schema of a platform's dataset of the fields of a schema facet."""
    read = fitted(list(fields), list[NestedField])
    return Schema(read, naming_of_platform(platform, version))
