"""Column lineage and schemas agree: DataHub draws an edge only from a field to a field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_sparklineage.datahub.configuration import (
    Conversion,
    FieldPaths,
    read_namespaces,
)
from airflow_provider_sparklineage.datahub.conversion import proposals
from airflow_provider_sparklineage.datahub.naming import schema_field_urn
from airflow_provider_sparklineage.event.make import made
from airflow_provider_sparklineage.model.representation import DEFAULT_REPRESENTATION
from airflow_provider_sparklineage.spark.capture.lines import ReadReport
from tests.conftest import HEADER, OF_ONE_SPARK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_sparklineage.datahub.proposals import Proposal

PLATFORMS = ("file", "glue", "iceberg")


def mapped(platform: str, version: FieldPaths) -> Conversion:
    """Take the recorded lake for another platform's, whose columns are called otherwise."""
    namespaces = read_namespaces({"file": {"platform": platform}})
    return Conversion(field_paths=version, namespaces=namespaces)


def fields_named(value: Any) -> Iterator[str]:
    """Find the URNs of fields, in keys of a patch too."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from fields_named(one)
    elif isinstance(value, str):
        parts = value.replace("~1", "/").split("urn:li:schemaField:")[1:]
        yield from (f"urn:li:schemaField:{_balanced(part)}" for part in parts)


def _balanced(text: str) -> str:
    level = 0
    for at, char in enumerate(text):
        level += {"(": 1, ")": -1}.get(char, 0)
        if not level:
            return text[: at + 1]
    return text


def test_urns_of_fields_are_found_in_the_keys_of_a_patch():
    urn = schema_field_urn("urn:li:dataset:(urn:li:dataPlatform:s3,a/b,PROD)", "sum(x)")
    key = urn.replace("/", "~1")

    assert list(fields_named([{"path": f"/fineGrainedLineages/x/{key}/NONE/{key}"}])) == [urn, urn]


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize(("spark", "case"), OF_ONE_SPARK)
def test_both_ends_of_each_edge_are_fields_that_the_schema_has(recorded, spark, case, platform):
    event = made(recorded(case, spark).lineage, ReadReport(), DEFAULT_REPRESENTATION, HEADER)

    for version in FieldPaths:
        given = list(proposals(event, mapped(platform, version)))
        schemas = [_fields(one) for one in given if one.aspect_name == "schemaMetadata"]
        named = {urn for one in given for urn in fields_named(one.aspect)}
        assert named <= set().union(*schemas)
        assert bool(named) == any(map(_has_sources, event["outputs"]))


def _has_sources(output: dict[str, Any]) -> bool:
    columns = output["facets"].get("columnLineage", {})
    return any(one["inputFields"] for one in columns.get("fields", {}).values())


def _fields(one: Proposal) -> set[str]:
    assert isinstance(one.aspect, dict)
    return {schema_field_urn(one.urn, field["fieldPath"]) for field in one.aspect["fields"]}
