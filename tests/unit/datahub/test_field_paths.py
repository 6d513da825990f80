"""Paths of fields: those that DataHub's own connectors make for the same table."""

from __future__ import annotations

import json
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sparklineage.datahub.configuration import FieldPaths
from tests.unit.datahub.events import schema_of
from tests.unit.datahub.sdk import require_sdk

if TYPE_CHECKING:
    from collections.abc import Iterator

V1, V2 = FieldPaths.V1, FieldPaths.V2


def paths(platform: str, version: FieldPaths, *fields: dict[str, Any]) -> list[str]:
    """Give the paths of columns, as a schema facet has them."""
    return [one["fieldPath"] for one in schema_of(fields, platform, version).fields]


# --- DataHub's connectors as oracles --------------------------------------------------------------


def hive_fields(name: str, hive_type: str) -> list[Any]:
    """Give what the SDK makes of a column of Hive, as its sources of Glue and the metastore do."""
    require_sdk()
    from datahub.utilities.hive_schema_to_avro import get_schema_fields_for_hive_column

    with avro_warnings_ignored():
        return get_schema_fields_for_hive_column(name, hive_type, default_nullable=True)


@contextmanager
def avro_warnings_ignored() -> Iterator[None]:
    """Let the SDK write logical types that Avro's package warns of: a timestamp as an int."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


PRIMITIVES = (
    "string",
    "int",
    "bigint",
    "smallint",
    "tinyint",
    "double",
    "float",
    "boolean",
    "binary",
    "date",
    "timestamp",
    "decimal(10,2)",
    "varchar(20)",
    "char(3)",
    "interval day to second",
)
NAMES = st.text("abcxyz_0189", min_size=1, max_size=4)


def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.tuples(st.just("array"), inner),
        st.tuples(st.just("map"), st.sampled_from(PRIMITIVES), inner),
        st.tuples(st.just("struct"), st.dictionaries(NAMES, inner, min_size=1, max_size=4)),
    )


TYPES = st.recursive(st.sampled_from(PRIMITIVES), nested, max_leaves=8)


def as_text(of: Any) -> str:
    match of:
        case "array", element:
            return f"array<{as_text(element)}>"
        case "map", key, value:
            return f"map<{key},{as_text(value)}>"
        case "struct", fields:
            return f"struct<{','.join(f'{name}:{as_text(one)}' for name, one in fields.items())}>"
        case primitive:
            return str(primitive)


def as_facet(name: str, of: Any) -> dict[str, Any]:
    """Give a field as the OpenLineage listener writes it (tests/golden, frame_queries)."""
    match of:
        case "array", element:
            fields = [as_facet("_element", element)]
        case "map", key, value:
            fields = [as_facet("key", key), as_facet("value", value)]
        case "struct", inner:
            fields = [as_facet(name, one) for name, one in inner.items()]
        case primitive:
            return {"name": name, "type": primitive}
    return {"name": name, "type": of[0], "fields": fields}


@given(NAMES, TYPES)
def test_a_column_of_glue_and_hive_has_the_paths_and_types_of_their_connectors(name, of):
    wanted = hive_fields(name, as_text(of))

    for field in ({"name": name, "type": as_text(of)}, as_facet(name, of)):
        made = schema_of([field], "glue").fields
        assert [one["fieldPath"] for one in made] == [one.fieldPath for one in wanted]
        assert [one["nativeDataType"] for one in made] == [one.nativeDataType for one in wanted]


@given(NAMES, TYPES)
def test_the_nested_columns_of_files_are_called_as_those_of_hive_and_the_others_by_their_name(
    name, of
):
    wanted = [one.fieldPath for one in hive_fields(name, as_text(of))]

    made = paths("s3", V2, {"name": name, "type": as_text(of)})

    assert made == ([name] if isinstance(of, str) else wanted)


@given(NAMES, TYPES)
def test_a_path_of_version_1_is_that_of_version_2_without_its_types(name, of):
    require_sdk()
    from datahub.utilities.urns.field_paths import (
        get_simple_field_path_from_v2_field_path as simple,
    )

    field = {"name": name, "type": as_text(of)}

    assert paths("glue", V1, field) == [simple(path) for path in paths("glue", V2, field)]


@pytest.mark.parametrize(
    "spark_type",
    [
        "string",
        "long",
        "integer",
        "short",
        "byte",
        "timestamp_ntz",
        {"type": "array", "elementType": "long"},
        {
            "type": "struct",
            "fields": [{"name": "a", "type": "byte"}, {"name": "b", "type": "date"}],
        },
    ],
    ids=str,
)
def test_a_column_of_delta_has_the_paths_of_its_connector(spark_type):
    require_sdk()
    from datahub.utilities.delta import delta_type_to_hive_type

    hive_type = delta_type_to_hive_type(spark_type)

    assert paths("delta-lake", V2, {"name": "c", "type": hive_type}) == [
        one.fieldPath for one in hive_fields("c", hive_type)
    ]


ICEBERG = [
    # Spark's type, and what ToAvroSchemaIcebergVisitor of the SDK's source makes of Iceberg's.
    ("integer", {"type": "int"}),
    ("long", {"type": "long"}),
    ("double", {"type": "double"}),
    ("date", {"type": "int", "logicalType": "date"}),
    ("timestamp", {"type": "long", "logicalType": "timestamp-micros"}),
    ("timestamp_ntz", {"type": "long", "logicalType": "timestamp-micros"}),
    ("binary", {"type": "bytes"}),
    (
        "decimal(9,2)",
        {"type": "fixed", "name": "f", "size": 1, "logicalType": "decimal", "precision": 9},
    ),
    ("array<string>", {"type": "array", "items": {"type": "string"}}),
    (
        "struct<a:long>",
        {
            "type": "record",
            "name": "__struct_1",
            "fields": [{"name": "a", "type": {"type": "long"}}],
        },
    ),
]


@pytest.mark.parametrize(("spark_type", "avro"), ICEBERG, ids=[one for one, _ in ICEBERG])
def test_a_column_of_iceberg_has_the_paths_of_its_connector(spark_type, avro):
    require_sdk()
    from datahub.ingestion.extractor.schema_util import avro_schema_to_mce_fields

    table = {"type": "record", "name": "__struct_0", "fields": [{"name": "c", "type": avro}]}

    with avro_warnings_ignored():
        wanted = avro_schema_to_mce_fields(json.dumps(table))

    assert paths("iceberg", V2, {"name": "c", "type": spark_type}) == [
        one.fieldPath for one in wanted
    ]


def test_a_union_of_hive_has_a_path_for_itself_and_one_for_each_member():
    hive_type = "uniontype<int,struct<a:date>,string,struct<b:int>>"

    assert paths("glue", V2, {"name": "u", "type": hive_type}) == [
        one.fieldPath for one in hive_fields("u", hive_type)
    ]


# --- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("platform", "path"),
    [
        ("glue", "[version=2.0].[type=long].orderid"),
        ("hive", "[version=2.0].[type=long].orderid"),
        ("delta-lake", "[version=2.0].[type=long].orderId"),
        ("iceberg", "[version=2.0].[type=struct].[type=long].orderId"),
        ("snowflake", "orderid"),
        ("postgres", "orderId"),
        ("s3", "orderId"),
        ("unheard of", "orderId"),
    ],
)
def test_a_column_is_called_as_the_connector_of_its_platform_calls_it(platform, path):
    assert paths(platform, V2, {"name": "orderId", "type": "long"}) == [path]


def test_columns_that_differ_in_case_only_stay_two():
    fields = [{"name": "Id", "type": "long"}, {"name": "id", "type": "long"}]

    assert paths("glue", V1, *fields) == ["Id", "id"]
    assert paths("s3", V1, *fields) == ["Id", "id"]
