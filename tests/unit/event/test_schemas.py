"""The shipped JSON Schemas agree with the code."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import msgspec
import pytest

import airflow_provider_sparklineage
from airflow_provider_sparklineage.event.pipeline import event_of
from airflow_provider_sparklineage.lineage.merge import Outcome, TaskLineage
from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode
from airflow_provider_sparklineage.spark.capture.bundle import Manifest
from airflow_provider_sparklineage.spark.capture.lines import ReadReport
from tests.conftest import HEADER
from tests.openlineage_spec import validate_event

SCHEMAS = Path(airflow_provider_sparklineage.__file__).parent / "event" / "schemas"


def schema(name):
    return json.loads((SCHEMAS / f"{name}.json").read_text())


def test_the_capture_facet_knows_every_degradation():
    item = schema("SparkLineageCaptureRunFacet")["properties"]["degradations"]["items"]
    assert sorted(item["properties"]["code"]["enum"]) == sorted(DegradationCode)


def dedented(value):
    """Give a document with its texts as Python 3.13 has docstrings; older ones keep indents."""
    if isinstance(value, dict):
        return {key: dedented(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [dedented(inner) for inner in value]
    return inspect.cleandoc(value) if isinstance(value, str) else value


def test_the_manifests_schema_is_that_of_its_class():
    shipped = schema("manifest")
    assert shipped.pop("$schema").startswith("https://json-schema.org/")
    assert shipped.pop("$id") == "urn:airflow-provider-sparklineage:manifest:1-0-0"
    made = json.loads(json.dumps(msgspec.json.schema(Manifest)))
    assert dedented(shipped) == dedented(made)


@pytest.mark.parametrize("count", [0, 1, 100, 101, 5000])
def test_degradations_are_capped_and_then_counted(count):
    degradations = [
        Degradation(DegradationCode.COLUMN_WITHOUT_SOURCES, f"no {i}") for i in range(count)
    ]
    lineage = TaskLineage(Outcome.COMPLETE, degradations=tuple(degradations))
    event = event_of(lineage, ReadReport(), header=HEADER)
    capture = event["run"]["facets"]["sparkLineage_capture"]
    assert len(capture["degradations"]) == min(count, 100)
    expected = {"column_without_sources": count} if count > 100 else None
    assert capture.get("degradationCounts") == expected
    validate_event(event)
