"""DataHub's RFC of 2020 on field level lineage (#1841): what its examples have, ours have too.

``docs/datahub.md`` has the table. What was proposed there was built in another form: the
functions here take ours back to it, and nothing of the examples may be lost.
"""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_sparklineage.datahub.configuration import Conversion, FieldPaths
from airflow_provider_sparklineage.datahub.conversion import proposals
from tests.unit.datahub.events import schema_of
from tests.unit.datahub.sdk import checked, require_sdk

DOCS = Path(__file__).parents[3] / "docs" / "datahub.md"
FUNCTIONS = "com.linkedin.finegrainedmetadata.transformation"


# --- from ours to the RFC's form ------------------------------------------------------------------


def rfc_path(path: str, *, is_nullable: bool = False) -> str:
    """Give a field path as the RFC writes it: ``/foo2/bar1``; a member of a union by its type.

    :param is_nullable: whether it is one of a union with null
    """
    steps = re.findall(r"\[type=([^\]]*)\]|\[version=2\.0\]|([^.\[\]]+)", path)
    names = [name for _, name in steps if name]
    types = [kind for kind, _ in steps if kind]
    is_member = is_nullable or any(before == "union" for before, _ in pairwise(types))
    return "/" + "/".join([*names, *([types[-1]] if is_member else [])])


def rfc_field(urn: str) -> str:
    """Give the URN of a field as the RFC writes it."""
    dataset, _, path = urn.removeprefix("urn:li:schemaField:(").removesuffix(")").rpartition(",")
    return f"urn:li:datasetField:({dataset},{rfc_path(path)})"


def rfc_lineage(patches: list[Any]) -> dict[str, Any]:
    """Give the lineage of a dataset as the RFC's aspect."""
    found: dict[tuple[str, str], list[str]] = {}
    for operation in patches:
        _, _, kind, downstream, _, upstream = operation["path"].split("/")
        key = (downstream.replace("~1", "/"), kind)
        found.setdefault(key, []).append(upstream.replace("~1", "/"))
    return {
        "fieldMappings": [
            {
                "created": None,
                "transformationFunction": {"string": rfc_function(kind)},
                "sourceFields": [{"string": rfc_field(urn)} for urn in upstreams],
                "destinationField": rfc_field(downstream),
            }
            for (downstream, kind), upstreams in found.items()
        ]
    }


def rfc_function(operation: str) -> str:
    return f"{FUNCTIONS}.{'Identity' if operation == 'DIRECT:IDENTITY' else 'BlackBox'}"


# --- the example of an aspect ---------------------------------------------------------------------

KAFKA = "urn:li:dataset:(urn:li:dataPlatform:kafka,demo.orders,PROD)"
HDFS = "urn:li:dataset:(urn:li:dataPlatform:hdfs,/demo/fact_orders,PROD)"
OURS = "urn:li:dataset:(urn:li:dataPlatform:hdfs,namenode:8020/demo/fact_orders,PROD)"
"""That of a file system has its address in it here, and the RFC says nothing of names."""


def example(name: str) -> dict[str, Any]:
    return {
        "created": None,
        "transformationFunction": {"string": f"{FUNCTIONS}.Identity"},
        "sourceFields": [{"string": f"urn:li:datasetField:({KAFKA},/header/{name})"}],
        "destinationField": f"urn:li:datasetField:({HDFS},/{name})",
    }


def read_from_kafka(name: str, subtype: str) -> dict[str, Any]:
    return {
        "namespace": "kafka://broker:9092",
        "name": "demo.orders",
        "field": name,
        "transformations": [{"type": "DIRECT", "subtype": subtype}],
    }


def event(subtype: str = "IDENTITY", *names: str) -> dict[str, Any]:
    """Make an event of the task that the RFC's example is about."""
    header = [{"name": name, "type": "string"} for name in ("customerId", "timeStamp")]
    orders = [{"name": "restaurant", "type": "string"}, {"name": "header", "fields": header}]
    fields = {
        name: {
            "inputFields": [read_from_kafka(f"header.{one}", subtype) for one in (names or (name,))]
        }
        for name in ("customerId", "timeStamp")
    }
    return {
        "eventTime": "2020-08-28T00:00:00Z",
        "eventType": "COMPLETE",
        "run": {"runId": "01890f2e-7b5e-7c5d-8000-000000000001", "facets": {}},
        "job": {"namespace": "default", "name": "demo.fact_orders", "facets": {}},
        "inputs": [
            {
                "namespace": "kafka://broker:9092",
                "name": "demo.orders",
                "facets": {"schema": {"fields": orders}},
            }
        ],
        "outputs": [
            {
                "namespace": "hdfs://namenode:8020",
                "name": "/demo/fact_orders",
                "facets": {"schema": {"fields": header}, "columnLineage": {"fields": fields}},
            }
        ],
    }


def lineage_of(document: dict[str, Any], version: FieldPaths) -> dict[str, Any]:
    made = checked(proposals(document, Conversion(field_paths=version)))
    (patch,) = [
        one.aspect
        for one in made
        if one.aspect_name == "upstreamLineage" and isinstance(one.aspect, list)
    ]
    return json.loads(json.dumps(rfc_lineage(patch)).replace(OURS, HDFS))


@pytest.mark.parametrize("version", FieldPaths)
def test_the_example_of_field_mappings_is_in_our_lineage(version):
    assert lineage_of(event(), version) == {
        "fieldMappings": [example("customerId"), example("timeStamp")]
    }


def test_what_is_no_copy_is_a_black_box_to_the_rfc_and_has_its_kind_here():
    mappings = lineage_of(event("TRANSFORMATION"), FieldPaths.V2)["fieldMappings"]

    assert {one["transformationFunction"]["string"] for one in mappings} == {
        f"{FUNCTIONS}.BlackBox"
    }


def test_a_field_of_several_sources_is_one_mapping():
    first, _ = lineage_of(event("IDENTITY", "customerId", "timeStamp"), FieldPaths.V2)[
        "fieldMappings"
    ]

    assert first["sourceFields"] == [
        {"string": f"urn:li:datasetField:({KAFKA},/header/{name})"}
        for name in ("customerId", "timeStamp")
    ]


# --- the example of a schema normaliser -----------------------------------------------------------

RECORD = {
    "type": "record",
    "name": "Record1",
    "fields": [
        {"name": "foo1", "type": "int"},
        {
            "name": "foo2",
            "type": {
                "type": "record",
                "name": "Record2",
                "fields": [
                    {"name": "bar1", "type": "string"},
                    {"name": "bar2", "type": ["null", "int"]},
                ],
            },
        },
    ],
}
"""The RFC's: of Avro."""

STRUCT = "[version=2.0].[type=struct]"
NORMALISED = [
    # A column's type in Spark, and its last field: version 1, version 2, the RFC's.
    ("foo1", "integer", "foo1", "foo1", "/foo1"),
    (
        "foo2",
        "struct<bar1:string>",
        "foo2.bar1",
        f"{STRUCT}.[type=struct].foo2.[type=string].bar1",
        "/foo2/bar1",
    ),
    (
        "foo2",
        "struct<bar1:string,bar2:int>",
        "foo2.bar2",
        f"{STRUCT}.[type=struct].foo2.[type=int].bar2",
        "/foo2/bar2",
    ),
    ("u", "uniontype<string,int>", "u", f"{STRUCT}.[type=union].[type=int].u", "/u/int"),
    (
        "arr",
        "array<struct<bar2:int>>",
        "arr.bar2",
        f"{STRUCT}.[type=array].[type=struct].arr.[type=int].bar2",
        "/arr/bar2",
    ),
    ("m", "map<string,int>", "m", f"{STRUCT}.[type=map].[type=int].m", "/m"),
]


@pytest.mark.parametrize(("name", "spark", "v1", "v2", "rfc"), NORMALISED)
def test_the_normaliser_of_schemas_on_types_of_spark(name, spark, v1, v2, rfc):
    for version, wanted in ((FieldPaths.V1, v1), (FieldPaths.V2, v2)):
        made = schema_of([{"name": name, "type": spark}], "s3", version).fields
        assert made[-1]["fieldPath"] == wanted
    assert rfc_path(v2) == rfc


def test_the_record_of_the_rfc_has_the_same_fields_in_spark_and_in_datahubs_own_normaliser():
    require_sdk()
    from datahub.ingestion.extractor.schema_util import avro_schema_to_mce_fields

    # As Spark reads that record; a union with null is a column that may be null.
    columns = [
        {"name": "foo1", "type": "integer"},
        {"name": "foo2", "type": "struct<bar1:string,bar2:int>"},
    ]
    avro = avro_schema_to_mce_fields(json.dumps(RECORD))
    ours = schema_of(columns, "iceberg").fields

    assert [re.sub(r"Record\d", "struct", one.fieldPath) for one in avro] == [
        one["fieldPath"] for one in ours
    ]
    # The RFC names the leaves.
    leaves = [one for one in avro if not one.fieldPath.endswith("foo2")]
    assert [rfc_path(one.fieldPath, is_nullable=one.nullable) for one in leaves] == [
        "/foo1",
        "/foo2/bar1",
        "/foo2/bar2/int",
    ]


# --- the table ------------------------------------------------------------------------------------


def test_the_table_names_tests_that_there_are():
    named = set(re.findall(r"`(test_\w+)`", DOCS.read_text(encoding="utf-8")))
    sources = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))

    assert named
    assert {name for name in named if f"def {name}(" not in sources} == set()
