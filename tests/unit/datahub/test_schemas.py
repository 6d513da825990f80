"""``SchemaMetadata`` of what an event has, judged by DataHub's SDK."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sparklineage.datahub.configuration import Conversion, FieldPaths
from airflow_provider_sparklineage.datahub.datasets import schemas
from airflow_provider_sparklineage.datahub.schema import (
    MAX_DEPTH,
    MAX_FIELDS,
    Schema,
)
from airflow_provider_sparklineage.datahub.subject import Subject
from airflow_provider_sparklineage.model.datasets import DatasetName
from tests.unit.datahub.events import schema_of
from tests.unit.datahub.sdk import checked, require_sdk

GOLDEN = Path(__file__).parents[2] / "golden"
ORDERS = DatasetName("s3://lake", "orders")
REPORT = DatasetName("s3://lake", "report")
V1, V2 = Conversion(field_paths=FieldPaths.V1), Conversion(field_paths=FieldPaths.V2)

# As the listener writes them: tests/golden/spark-4.2, frame_queries.
ADDRESS = {
    "name": "address",
    "type": "struct",
    "fields": [
        {"name": "street", "type": "string"},
        {
            "name": "geo",
            "type": "struct",
            "fields": [{"name": "lat", "type": "double"}, {"name": "lon", "type": "double"}],
        },
    ],
}
TAGS = {"name": "tags", "type": "array", "fields": [{"name": "_element", "type": "string"}]}
ATTRIBUTES = {
    "name": "attributes",
    "type": "map",
    "fields": [{"name": "key", "type": "string"}, {"name": "value", "type": "string"}],
}
PROFILES = [{"name": "customer_id", "type": "long"}, ADDRESS, TAGS, ATTRIBUTES]


def dataset(name: DatasetName, fields: Any, **facets: Any) -> dict[str, Any]:
    return {**name._asdict(), "facets": {"schema": {"fields": fields}, **facets}}


def event(
    inputs: Any = (), outputs: Any = (), state: str = "COMPLETE", **run_facets: Any
) -> dict[str, Any]:
    return {
        "eventTime": "2024-05-06T07:08:09Z",
        "eventType": state,
        "run": {"runId": "01890f2e-7b5e-7c5d-8000-000000000001", "facets": run_facets},
        "job": {"namespace": "default", "name": "sales.report", "facets": {}},
        "inputs": list(inputs),
        "outputs": list(outputs),
    }


def subject(*outputs: Any, how: Conversion = V2, **facets: Any) -> Subject:
    return Subject(event(outputs=outputs, **facets), how)


def fields_of(fields: list[Any], how: Conversion = V2, **facets: Any) -> list[dict[str, Any]]:
    """Give the fields of the schema of a dataset that was written."""
    (proposal,) = checked(schemas(subject(dataset(REPORT, fields, **facets), how=how)))
    assert isinstance(proposal.aspect, dict)
    return proposal.aspect["fields"]


def paths_of(fields: list[Any], how: Conversion = V2) -> list[str]:
    return [field["fieldPath"] for field in fields_of(fields, how)]


# --- what a schema has ----------------------------------------------------------------------------


def test_a_column_has_its_name_its_type_as_spark_has_it_and_its_class_in_datahub():
    assert fields_of([{"name": "amount", "type": "decimal(10,2)", "description": "in EUR"}]) == [
        {
            "fieldPath": "amount",
            "nullable": True,
            "type": {"type": {"com.linkedin.schema.NumberType": {}}},
            "nativeDataType": "decimal(10,2)",
            "description": "in EUR",
        }
    ]


@pytest.mark.parametrize(
    ("native", "named"),
    [
        ("string", "String"),
        ("varchar(20)", "String"),
        ("long", "Number"),
        ("double precision", "Number"),
        ("INT64", "Number"),
        ("decimal(38,18)", "Number"),
        ("boolean", "Boolean"),
        ("binary", "Bytes"),
        ("date", "Date"),
        ("timestamp", "Time"),
        ("timestamp_ntz", "Time"),
        ("timestamp(6) with time zone", "Time"),
        ("timestamp without time zone", "Time"),
        ("integer[]", "Array"),
        ("array", "Array"),
        ("struct", "Record"),
        ("variant", "Record"),
        ("void", "Null"),
        ("geography", "Null"),
        (None, "Null"),
        ({"type": "udt"}, "Null"),
    ],
)
def test_a_type_of_spark_or_of_a_database_is_one_of_datahubs(native, named):
    (field,) = fields_of([{"name": "c", "type": native}])

    assert list(field["type"]["type"]) == [f"com.linkedin.schema.{named}Type"]
    assert field["nativeDataType"] == (native if isinstance(native, str) else "unknown")


def test_nested_columns_have_paths_of_version_2():
    assert paths_of(PROFILES) == [
        "customer_id",
        "[version=2.0].[type=struct].[type=struct].address",
        "[version=2.0].[type=struct].[type=struct].address.[type=string].street",
        "[version=2.0].[type=struct].[type=struct].address.[type=struct].geo",
        "[version=2.0].[type=struct].[type=struct].address.[type=struct].geo.[type=double].lat",
        "[version=2.0].[type=struct].[type=struct].address.[type=struct].geo.[type=double].lon",
        "[version=2.0].[type=struct].[type=array].[type=string].tags",
        "[version=2.0].[type=struct].[type=map].[type=string].attributes",
    ]


def test_nested_columns_have_names_with_points_in_version_1():
    assert paths_of(PROFILES, V1) == [
        "customer_id",
        "address",
        "address.street",
        "address.geo",
        "address.geo.lat",
        "address.geo.lon",
        "tags",
        "attributes",
    ]


def test_a_nested_column_shows_its_type_as_spark_writes_it():
    address, *_, tags, attributes = fields_of(PROFILES)[1:]

    assert address["nativeDataType"] == "struct<street:string,geo:struct<lat:double,lon:double>>"
    assert tags["type"] == {"type": {"com.linkedin.schema.ArrayType": {"nestedType": ["string"]}}}
    assert attributes["type"]["type"]["com.linkedin.schema.MapType"] == {
        "keyType": "string",
        "valueType": "string",
    }


@pytest.mark.parametrize(
    "written",
    [
        "struct<a:bigint,b:array<struct<`c d`:decimal(10,2)>>>",
        "STRUCT<a BIGINT NOT NULL COMMENT 'x, y', b ARRAY<STRUCT<`c d`: DECIMAL(10, 2)>>>",
        "row(a bigint, b array(row(`c d` decimal(10,2))))",
    ],
)
def test_a_nested_type_may_be_written_as_text(written):
    assert paths_of([{"name": "s", "type": written}], V1) == ["s", "s.a", "s.b", "s.b.c d"]


def test_columns_of_a_repeated_record_are_those_of_its_elements():
    field = {"name": "hits", "type": "array", "fields": [{"name": "page", "type": "string"}]}

    assert paths_of([field], V1) == ["hits", "hits.page"]


def test_columns_that_the_dataset_is_partitioned_by_are_its_partitioning_keys():
    fields = [{"name": name, "type": "string"} for name in ("id", "dt", "ts")]
    dimensions = [
        {"fields": ["dt"], "transform": "identity"},
        {"fields": ["ts"], "transform": "days"},
    ]

    made = fields_of(fields, sparkLineage_partitions={"dimensions": dimensions})

    assert [field.get("isPartitioningKey") for field in made] == [None, True, True]


def test_the_partitioning_of_what_was_read_is_in_the_facet_of_the_run():
    check = {"reads": [{"dataset": ORDERS._asdict(), "dimensions": [{"fields": ["dt"]}]}]}
    read = dataset(ORDERS, [{"name": "dt", "type": "date"}])

    (proposal,) = checked(
        schemas(Subject(event(inputs=[read], sparkLineage_partitionCheck=check), V2))
    )

    assert proposal.aspect["fields"][0]["isPartitioningKey"] is True


# --- whose schema replaces DataHub's --------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "changes"),
    [("COMPLETE", ["UPSERT", "CREATE"]), ("FAIL", ["CREATE", "CREATE"]), ("START", [])],
)
def test_only_who_has_written_a_dataset_replaces_the_schema_that_datahub_has(state, changes):
    columns = [{"name": "id", "type": "long"}]
    given = event([dataset(ORDERS, columns)], [dataset(REPORT, columns)], state)

    made = checked(schemas(Subject(given, V2)))

    assert [one.change_type for one in made] == changes


def test_a_dataset_that_was_read_and_written_has_the_schema_that_was_written():
    read = dataset(REPORT, [{"name": "id", "type": "integer"}])
    written = dataset(REPORT, [{"name": "id", "type": "long"}])

    (proposal,) = checked(schemas(Subject(event([read, read], [written]), V2)))

    assert proposal.change_type == "UPSERT"
    assert proposal.aspect["fields"][0]["nativeDataType"] == "long"


def test_the_same_schema_at_another_time_is_the_same_aspect():
    again = event(outputs=[dataset(REPORT, PROFILES)]) | {"eventTime": "2025-01-01T00:00:00Z"}

    assert list(schemas(Subject(again, V2))) == list(schemas(subject(dataset(REPORT, PROFILES))))


# --- paths for lineage ----------------------------------------------------------------------------

NESTED = "[version=2.0].[type=struct]"


@pytest.mark.parametrize(
    ("column", "path"),
    [
        ("customer_id", "customer_id"),
        ("CUSTOMER_ID", "customer_id"),
        ("address", f"{NESTED}.[type=struct].address"),
        ("address.street", f"{NESTED}.[type=struct].address.[type=string].street"),
        ("address.geo.lat", f"{NESTED}.[type=struct].address.[type=struct].geo.[type=double].lat"),
        ("tags._element", f"{NESTED}.[type=array].[type=string].tags"),
        ("attributes.colour", f"{NESTED}.[type=map].[type=string].attributes"),
        ("address.planet", f"{NESTED}.[type=struct].address"),
        ("customer_id.x", "customer_id.x"),
        ("not in the schema", "not in the schema"),
    ],
)
def test_a_column_of_lineage_is_the_field_that_the_schema_has(column, path):
    assert subject(dataset(REPORT, PROFILES)).path(REPORT, column) == path


def test_a_column_with_a_point_in_its_name_is_not_a_field_of_another():
    columns = [
        {"name": "a", "type": "struct<b:int>"},
        {"name": "a.b", "type": "string"},
    ]

    assert subject(dataset(REPORT, columns)).path(REPORT, "a.b") == "a.b"


@pytest.mark.parametrize("column", ["items.sku", "items._element.sku", "items.element.sku"])
def test_a_field_of_the_structs_of_an_array_is_found_with_and_without_its_element(column):
    columns = [{"name": "items", "type": "array<struct<sku:string>>"}]

    path = subject(dataset(REPORT, columns)).path(REPORT, column)

    assert path == f"{NESTED}.[type=array].[type=struct].items.[type=string].sku"


def test_a_column_is_found_in_another_case_only_if_there_is_one_that_it_can_be():
    columns = [{"name": name, "type": "long"} for name in ("Id", "id", "Amount")]
    of = subject(dataset(REPORT, columns))

    found = [of.path(REPORT, column) for column in ("Id", "id", "ID", "AMOUNT")]

    assert found == ["Id", "id", "ID", "Amount"]


def test_a_column_of_a_dataset_without_schema_is_called_by_its_name():
    assert subject().path(DatasetName("s3://lake", "unknown"), "amount") == "amount"


# Control characters are encoded here, and not by the SDK.
@given(st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1))
def test_the_urn_of_a_field_is_the_sdks(column):
    require_sdk()
    from datahub.emitter.mce_builder import make_schema_field_urn

    of = subject(dataset(REPORT, [{"name": column, "type": "long"}]))
    (proposal,) = schemas(of)

    assert of.field(REPORT, column) == make_schema_field_urn(
        proposal.urn, proposal.aspect["fields"][0]["fieldPath"]
    )


# --- bad input, and much of it --------------------------------------------------------------------


def columns(fields: list[Any], how: FieldPaths = FieldPaths.V2) -> Schema:
    return schema_of(fields, "s3", how)


def test_of_two_fields_with_one_path_the_first_is_kept_and_the_other_declared():
    given_ = [{"name": "a", "type": "long"}, {"name": "a", "type": "string"}]

    (proposal,) = checked(schemas(subject(dataset(REPORT, given_))))

    assert [field["nativeDataType"] for field in proposal.aspect["fields"]] == ["long"]
    assert "1 more fields" in json.dumps(proposal.aspect["platformSchema"])


def test_columns_without_a_name_are_left_out_and_declared():
    made = columns([{"type": "long"}, {"name": "", "type": "long"}, {"name": 7}, {"name": "a"}])

    assert [field["fieldPath"] for field in made.fields] == ["a"]
    assert made.left_out == 3


def nested_facet(depth: int) -> dict[str, Any]:
    field: dict[str, Any] = {"name": "leaf", "type": "string"}
    for _ in range(depth):
        field = {"name": "level", "type": "struct", "fields": [field]}
    return field


@pytest.mark.parametrize(
    "field",
    [
        nested_facet(200),
        {"name": "level", "type": "struct<level:" * 200 + "int" + ">" * 200},
        {"name": "level", "type": "array<" * 200 + "int" + ">" * 200},
        {"name": "level", "type": "map<string," * 200 + "int" + ">" * 200},
    ],
    ids=["facet", "structs", "arrays", "maps"],
)
def test_a_type_of_200_levels_is_cut_and_says_so(field):
    made = fields_of([field])

    assert len(made) <= MAX_DEPTH + 1
    assert f"more than {MAX_DEPTH} levels" in made[-1]["description"]
    assert max(len(one["nativeDataType"]) for one in made) <= 1000


def test_ten_thousand_columns_are_all_there():
    made = columns([{"name": f"c{number}", "type": "long"} for number in range(10_000)])

    assert len(made.fields) == 10_000
    assert made.left_out == 0


def test_more_columns_than_the_limit_are_counted():
    made = columns([{"name": f"c{number}"} for number in range(MAX_FIELDS + 3)])

    assert len(made.fields) == MAX_FIELDS
    assert made.left_out == 3


def test_a_name_that_is_too_long_ends_in_a_checksum_in_the_schema_and_in_lineage():
    names = ["x" * 5000 + end for end in "ab"]
    of = subject(dataset(REPORT, [{"name": name, "type": "long"} for name in names]))
    (proposal,) = checked(schemas(of))

    made = [field["fieldPath"] for field in proposal.aspect["fields"]]

    assert [len(path) for path in made] == [500, 500]
    assert made == [of.path(REPORT, name) for name in names]
    assert made[0] != made[1]


FACET_KEYS = st.sampled_from(["name", "type", "fields", "description"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FACET_KEYS, inner, max_size=4),
    max_leaves=12,
)
TYPE_TEXTS = st.text("struct<>array,map:`()[] union", max_size=40)


@given(JSON, JSON)
def test_a_malformed_facet_is_no_error(facet, entry):
    given_ = dataset(REPORT, facet, sparkLineage_partitions=facet)
    check = {"reads": entry, "writes": [{"dataset": entry, "dimensions": entry}]}

    checked(schemas(subject(given_, sparkLineage_partitionCheck=check)))


@given(TYPE_TEXTS, st.sampled_from(list(FieldPaths)))
def test_a_malformed_type_is_no_error(written, version):
    fields = [{"name": "c", "type": written}]

    assert fields_of(fields, Conversion(field_paths=version))[0]["fieldPath"]


# --- as recorded ----------------------------------------------------------------------------------

RECORDED = sorted(GOLDEN.glob("spark-*/*.ndjson"))


def recorded(path: Path) -> list[dict[str, Any]]:
    # A driver that was killed has left half a line.
    lines = [line for line in path.read_text().splitlines() if line.endswith("}")]
    return [one for one in map(json.loads, lines) if one.get("eventType") == "COMPLETE"]


@pytest.mark.parametrize("name", ["frame_queries", "sql_queries", "awkward_names", "iceberg_merge"])
def test_the_schemas_of_recorded_applications_are_valid(name):
    documents = [one for path in RECORDED if path.stem == name for one in recorded(path)]

    assert documents
    for version in (V1, V2):
        made = [one for document in documents for one in schemas(Subject(document, version))]
        assert checked(made)
