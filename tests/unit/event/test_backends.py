"""Backends: names that Marquez can store, repairs on the way there, and where its pages are."""

from __future__ import annotations

import json
import math
from unittest import mock
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sparklineage.event.backends import BACKENDS, backend_of, marquez
from airflow_provider_sparklineage.event.backends.marquez import MAX_OUTPUT_BYTES
from airflow_provider_sparklineage.event.document import empty, replaced
from airflow_provider_sparklineage.event.model import CAPTURE_KEY
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.producer import producer
from airflow_provider_sparklineage.model.terms import Outcome
from airflow_provider_sparklineage.settings.option_kinds import BackendName

MARQUEZ, GENERIC = BACKENDS["marquez"], BACKENDS["generic"]

NAMES = st.builds(DatasetName, st.text(max_size=30), st.text(max_size=300))


def facet(**fields):
    return {"_producer": "p", "_schemaURL": "u", **fields}


def source(namespace="file"):
    return facet(name=namespace, uri=namespace)


OF_THE_NAMESPACE = source() | {
    "_producer": producer(),
    "_schemaURL": "https://openlineage.io/spec/facets/1-0-1/DatasourceDatasetFacet.json",
}


def dataset(namespace="file", name="/o", facets=None, **sides):
    return {"namespace": namespace, "name": name, "facets": facets or {}, **sides}


def output(facets=None, name="/lake/out", **sides):
    return dataset("file", name, {"dataSource": source(), **(facets or {})}, **sides)


def columns(fields, dataset=()):
    return facet(fields=fields, dataset=list(dataset))


def input_field(namespace, name, field):
    return {"namespace": namespace, "name": name, "field": field, "transformations": []}


def field(*sources, type_="DIRECT:IDENTITY"):
    return {
        "inputFields": [input_field(*s) for s in sources],
        "transformationDescription": "",
        "transformationType": type_,
    }


def event(inputs=(), outputs=(), run_facets=None, job_facets=None):
    capture = facet(degradations=[])
    return replaced(
        empty(None, Outcome.COMPLETE),
        inputs=list(inputs),
        outputs=list(outputs),
        run_facets={CAPTURE_KEY: capture, **(run_facets or {})},
        job_facets=job_facets or {},
    )


def messages(event):
    return [d["message"] for d in event["run"]["facets"][CAPTURE_KEY]["degradations"]]


def repaired(**parts):
    after = MARQUEZ.repaired(event(**parts))
    return after, messages(after)


# --- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "held"),
    [
        (("file", "/lake/orders"), ("file", "/lake/orders")),
        (("s3://lake", "a b/ü/dt=2024-05-06"), ("s3://lake", "a b/ü/dt=2024-05-06")),
        (("sqlserver://h;db=x", "dbo.t"), ("sqlserver://h;db=x", "dbo.t")),
        pytest.param(
            ("kafka://a:1,b:2", "topic"), ("kafka://a:1_b:2", "topic"), id="several hosts"
        ),
        pytest.param(("s3://bücket~1", "t"), ("s3://b_cket_1", "t"), id="not ASCII"),
        pytest.param(("file", "a\x00b\ud800"), ("file", "ab"), id="what PostgreSQL cannot hold"),
        pytest.param(("", "t"), None, id="no namespace"),
        pytest.param(("file", " "), None, id="blank name"),
        pytest.param(("file", "\x00"), None, id="nothing but NUL"),
    ],
)
def test_marquez_stores_a_dataset_under_the_name(given, held):
    assert MARQUEZ.identity(DatasetName(*given)) == (held and DatasetName(*held))


def test_long_names_are_shortened_and_stay_apart():
    one, two = (MARQUEZ.identity(DatasetName("file", "/x" * 200 + end)) for end in "ab")
    assert len(one.name) == len(two.name) == 255
    assert one != two
    assert one.name.startswith("/x/x/x")


@given(NAMES)
def test_a_name_that_marquez_can_store_stays(name):
    held = MARQUEZ.identity(name)
    assert held is None or MARQUEZ.identity(held) == held


@given(NAMES)
def test_any_other_backend_gets_names_as_they_are(name):
    assert GENERIC.identity(name) == name


def test_the_configuration_names_exactly_these():
    assert [*BACKENDS] == [*BackendName]
    assert all(name == backend.name and backend.title for name, backend in BACKENDS.items())


def test_a_backend_that_is_not_known_is_any():
    assert backend_of("of the next version") is GENERIC


# --- repairs --------------------------------------------------------------------------------------


def test_what_marquez_takes_is_not_changed():
    schema = facet(fields=[{"name": "a", "type": "int"}])
    links = facet(identifiers=[{"namespace": "hive://h:9083", "name": "db.t", "type": "TABLE"}])
    given = event(
        [dataset("file", "/in", {"dataSource": source(), "schema": schema})],
        [
            output(
                {
                    "schema": schema,
                    "symlinks": links,
                    "columnLineage": columns({"a": field(("file", "/in", "a"))}),
                }
            )
        ],
        {"r": facet()},
    )
    assert MARQUEZ.repaired(given) is given


def test_every_dataset_gets_a_source():
    fixed, notes = repaired(inputs=[dataset("s3://lake", "in")], outputs=[dataset()])
    found = [d["facets"]["dataSource"] for d in (*fixed["inputs"], *fixed["outputs"])]
    assert [(f["name"], f["uri"]) for f in found] == [("s3://lake", "s3://lake"), ("file", "file")]
    assert all(f["_producer"] and f["_schemaURL"] for f in found)
    assert notes == []


@pytest.mark.parametrize(
    ("key", "before", "after", "note"),
    [
        pytest.param(
            "schema",
            facet(fields=[{"name": "a"}, {"type": "int"}, {"name": "x" * 256}]),
            facet(fields=[{"name": "a"}]),
            "2 columns of the schema of /lake/out were left out",
            id="columns without a name, and with too long a one",
        ),
        pytest.param(
            "schema",
            facet(fields={"a": "int"}),
            None,
            "The facet schema of /lake/out, which is not complete, was left out",
            id="a schema that is none",
        ),
        pytest.param(
            "symlinks",
            facet(
                identifiers=[
                    {"namespace": "kafka://a,b", "name": "t", "type": "TABLE"},
                    {"namespace": "", "name": "t", "type": "TABLE"},
                    {"namespace": "hive://h", "name": " ", "type": "TABLE"},
                    {"namespace": "hive://h", "name": "t", "type": "TABLE"},
                ]
            ),
            facet(identifiers=[{"namespace": "hive://h", "name": "t", "type": "TABLE"}]),
            "3 symlinks of /lake/out were left out",
            id="symlinks that would break the server",
        ),
        pytest.param(
            "schema",
            facet(fields=[{"name": "a", "type": ["int"]}, {"name": "b", "type": "ü" * 600}]),
            facet(fields=[{"name": "a"}, {"name": "b", "type": "ü" * 498 + "…"}]),
            "Types or descriptions of 2 columns of /lake/out were cut",
            id="types that are none, and that an index has no room for",
        ),
        pytest.param(
            "dataSource",
            facet(name=" ", uri="jdbc:x"),
            OF_THE_NAMESPACE,
            "The facet dataSource of /lake/out, which is not complete, was left out",
            id="a source that would break the list of sources",
        ),
        pytest.param(
            "dataSource",
            facet(name="x", uri="jdbc:sqlserver://h\\i"),
            OF_THE_NAMESPACE,
            "The facet dataSource of /lake/out, which is not complete, was left out",
            id="a source whose URI is none",
        ),
        pytest.param(
            "lifecycleStateChange",
            facet(lifecycleStateChange="x" * 64),
            None,
            "The facet lifecycleStateChange of /lake/out, which is not complete, was left out",
            id="a lifecycle state that is too long",
        ),
        pytest.param(
            "description",
            facet(),
            None,
            "The facet description of /lake/out, which is not complete, was left out",
            id="a facet of a name that Marquez has for a text",
        ),
        pytest.param(
            "documentation",
            facet(),
            None,
            "The facet documentation of /lake/out, which is not complete, was left out",
            id="documentation of nothing",
        ),
        pytest.param(
            "anything",
            facet(text="a\x00b", number=math.nan, deep=[{"k\x00": math.inf}]),
            facet(text="ab", deep=[]),
            "Characters of the facet anything of /lake/out were left out",
            id="NUL and NaN in a facet of anybody",
        ),
        pytest.param(
            "f" * 256,
            facet(),
            None,
            f"The facet {'f' * 40}… of /lake/out was left out",
            id="a facet of too long a name",
        ),
    ],
)
def test_a_facet_is_repaired_and_the_repair_is_reported(key, before, after, note):
    fixed, notes = repaired(outputs=[output({key: before})])
    assert fixed["outputs"][0]["facets"].get(key) == after
    assert notes == [f"{note}, because Marquez cannot take it."]


def test_what_is_only_without_its_origin_gets_one():
    fixed, notes = repaired(outputs=[output({"schema": {"fields": []}})])
    made = fixed["outputs"][0]["facets"]["schema"]
    assert made["_producer"].startswith("urn:airflow-provider-sparklineage:")
    assert made["_schemaURL"].startswith("https://openlineage.io/")
    assert notes == []


def test_what_names_its_origin_by_no_uri_is_given_one():
    fixed, notes = repaired(outputs=[output({"schema": facet(fields=[]) | {"_producer": "a b"}})])
    assert fixed["outputs"][0]["facets"]["schema"]["_producer"].startswith("urn:airflow-provider-")
    assert notes == []


def test_the_source_of_a_namespace_that_is_no_uri_has_one():
    fixed, _ = repaired(outputs=[dataset("1:2"), dataset("file")])
    assert [d["facets"]["dataSource"]["uri"] for d in fixed["outputs"]] == ["urn:1%3A2", "file"]


def test_facets_of_sides_run_and_job_are_cleaned():
    dirty = facet(text="\x00")
    fixed, notes = repaired(
        outputs=[output(outputFacets={"s": dirty})],
        run_facets={"r": dirty},
        job_facets={"j": dirty},
    )
    assert "\\u0000" not in json.dumps(fixed)
    assert len(notes) == 3


def test_column_lineage_that_points_nowhere_is_left_out():
    every = columns(
        {
            "a": field(
                ("file", "/in", "a"), ("", "/in", "b"), ("file", "", "c"), ("file", "/in", "")
            ),
            "b": field(("file", "/in", "b"), type_="T" * 300),
            "x" * 300: field(("file", "/in", "x")),
        },
        dataset=[input_field("file", "/in", "x" * 256)],
    )
    fixed, notes = repaired(outputs=[output({"columnLineage": every})])
    left = fixed["outputs"][0]["facets"]["columnLineage"]
    counts = {name: len(f["inputFields"]) for name, f in left["fields"].items()}
    assert counts == {"a": 1, "b": 1}
    assert left["fields"]["b"]["transformationType"] == "T" * 255
    assert left["dataset"] == []
    of = "the column lineage of /lake/out"
    assert sorted(notes) == [
        f"1 columns of {of} were left out, because Marquez cannot take it.",
        f"4 sources of {of} were left out, because Marquez cannot take it.",
    ]


def test_an_output_whose_page_would_not_open_goes_without_detail():
    wide = columns({f"c{i}": field(("file", "/in", "d" * 200)) for i in range(3000)})
    fixed, notes = repaired(outputs=[output({"columnLineage": wide}), output(name="/small")])
    size = len(json.dumps(fixed["outputs"][0]))
    assert size <= MAX_OUTPUT_BYTES
    assert fixed["outputs"][1]["name"] == "/small"
    assert len(notes) == 1
    assert notes[0].startswith("Detail of /lake/out was left out")


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
KEYS = st.sampled_from(["schema", "symlinks", "documentation", "dataSource", "mine"])


@given(
    st.dictionaries(KEYS, st.dictionaries(st.sampled_from(["fields", "identifiers", "x"]), JSON))
)
def test_repairing_ends_with_what_needs_none(facets):
    once = MARQUEZ.repaired(event(outputs=[dataset(facets=facets)]))
    assert MARQUEZ.repaired(once) is once
    text = json.dumps(once["outputs"][0]["facets"], allow_nan=False)
    assert "\\u0000" not in text


HOLDABLE_OR_NOT = JSON | st.text("a\0\ud800é", max_size=3).map(lambda text: [text])


@given(st.dictionaries(st.just("mine"), HOLDABLE_OR_NOT))
def test_a_facet_is_walked_through_only_if_something_in_it_would_change(facets):
    before = event(outputs=[dataset(facets=facets)])
    with mock.patch.object(marquez, "_is_holdable", return_value=False):
        expected = MARQUEZ.repaired(before)
    assert MARQUEZ.repaired(before) == expected


# --- pages ----------------------------------------------------------------------------------------

WEB = "http://marquez:3000/"


@pytest.mark.parametrize(
    ("namespace", "name", "path"),
    [
        ("prod", "shop.revenue", "/lineage/job/prod/shop.revenue"),
        ("team a/prod", "shop.ümsatz", "/lineage/job/team_a%2Fprod/shop.%C3%BCmsatz"),
        ("prod", "shop.a b#c", "/lineage/job/prod/shop.a%20b%23c"),
    ],
)
def test_the_page_of_a_job(namespace, name, path):
    url = urlsplit(MARQUEZ.job_page(WEB, namespace, name))
    assert f"{url.scheme}://{url.netloc}{url.path}" == f"http://marquez:3000{path}"
    held = unquote(path.split("/")[3])
    assert parse_qs(url.query) == {"tableLevelNode": [f"job:{held}:{name}"]}


@pytest.mark.parametrize(
    ("namespace", "name"),
    [
        ("s3://lake-bucket", "demo/orders_raw"),
        ("file", "/lake/revenue"),
        ("file", "/lake/with space/ünïcode/a&b?c"),
        ("hdfs://namenode:8020", "/data/x"),
        ("hive://metastore:9083", "shop.orders"),
        ("postgres://db:5432", "shop.public.orders"),
        ("sqlserver://h;databaseName=x", "dbo.t"),
    ],
)
def test_pages_of_datasets_and_columns(namespace, name):
    dataset = DatasetName(namespace, name)
    page = urlsplit(MARQUEZ.dataset_page(WEB, dataset))
    assert list(map(unquote, page.path.split("/")[1:])) == ["lineage", "dataset", namespace, name]
    assert parse_qs(page.query) == {"tableLevelNode": [f"dataset:{namespace}:{name}"]}
    page = urlsplit(MARQUEZ.columns_page(WEB, dataset))
    assert list(map(unquote, page.path.split("/")[1:])) == [
        "datasets",
        "column-level",
        namespace,
        name,
    ]
    assert page.query == ""
    one = urlsplit(MARQUEZ.columns_page(WEB, dataset, "a b"))
    node = f"datasetField:{namespace}:{name}:a b"
    assert parse_qs(one.query) == {"column": [node], "columnName": ["a b"], "depth": ["2"]}


@pytest.mark.parametrize(
    ("namespace", "name", "dataset_opens"),
    [
        pytest.param("s3://lake", "2024/orders", False, id="a digit after a namespace's colon"),
        pytest.param("file", "/lake/100%", False, id="a URL that is decoded twice"),
        pytest.param("arn:aws:glue:eu:1", "table/db/t", False, id="colons in the namespace"),
        pytest.param("airflow:prod", "t", False, id="a colon that is no scheme's"),
        pytest.param("file", "/a\nb", False, id="a line break"),
        pytest.param("file", "/a:b", True, id="a colon in a path: columns only"),
        pytest.param("file", "/a#b", True, id="a # in a path: columns only"),
    ],
)
def test_there_is_no_link_to_a_page_that_does_not_open(namespace, name, dataset_opens):
    dataset = DatasetName(namespace, name)
    assert (MARQUEZ.dataset_page(WEB, dataset) is not None) is dataset_opens
    assert MARQUEZ.columns_page(WEB, dataset) is None


@pytest.mark.parametrize("column", ["a#b", "50%"])
def test_columns_that_can_be_in_no_url_are_not_linked(column):
    assert MARQUEZ.columns_page(WEB, DatasetName("file", "/o"), column) is None
    assert MARQUEZ.columns_page(WEB, DatasetName("file", "/o")) is not None


def test_nothing_is_known_of_other_backends_pages():
    dataset = DatasetName("file", "/o")
    assert GENERIC.job_page(WEB, "n", "j") is None
    assert GENERIC.dataset_page(WEB, dataset) is None
    assert GENERIC.columns_page(WEB, dataset) is None
