"""Paths of columns through merged events."""

from __future__ import annotations

import json

import jsonschema
import pytest

from airflow_provider_sparklineage.cli import columns
from airflow_provider_sparklineage.cli.columns import Direction, full_name
from airflow_provider_sparklineage.model.exceptions import UnusableInputError
from tests.conftest import golden

STAGING = str(golden("staging_chain"))


def source(column, kind="DIRECT/IDENTITY", **more):
    dataset, _, field = column.rpartition(":")
    type_, _, subtype = kind.partition("/")
    transformation = {"type": type_, "subtype": subtype} | more
    return {
        "namespace": "s3://lake",
        "name": dataset,
        "field": field,
        "transformations": [transformation],
    }


def event(job, output, fields, dataset=(), schema=()):
    facets = {
        "columnLineage": {
            "fields": {name: {"inputFields": sources} for name, sources in fields.items()},
            "dataset": list(dataset),
        },
        "schema": {"fields": [{"name": name} for name in schema]},
    }
    return {
        "job": {"namespace": "airflow", "name": job},
        "run": {"facets": {"sparkLineage_capture": {"degradations": []}}},
        "inputs": [{"namespace": "s3://lake", "name": "orders", "facets": {}}],
        "outputs": [{"namespace": "s3://lake", "name": output, "facets": facets}],
    }


REVENUE = event(
    "load",
    "shop/revenue",
    {
        "amount": [
            source("orders:price", "DIRECT/TRANSFORMATION", masking=True),
            source("rates:rate", "DIRECT/TRANSFORMATION"),
        ]
    },
    dataset=[source("orders:dt", "INDIRECT/FILTER")],
    schema=["amount", "note"],
)
REPORT = event("report", "report", {"total": [source("shop/revenue:amount", "DIRECT/AGGREGATION")]})


def walked(events, column, direction=Direction.UPSTREAM):
    graph = columns.graph(events)
    start = graph.find(column)
    end = "source" if direction is Direction.UPSTREAM else "target"
    return [
        (hop.depth, getattr(hop.edge, end).field, hop.edge.job.name, hop.repeated)
        for hop in graph.hops(start, direction)
    ]


def test_a_path_goes_from_task_to_task_through_datasets_of_equal_name():
    assert walked([REPORT, REVENUE], "report:total") == [
        (1, "amount", "report", False),
        (2, "price", "load", False),
        (2, "rate", "load", False),
        (2, "dt", "load", False),
    ]


def test_downstream_is_the_same_the_other_way():
    assert walked([REPORT, REVENUE], "orders:price", Direction.DOWNSTREAM) == [
        (1, "amount", "load", False),
        (2, "total", "report", False),
    ]


def test_what_influences_a_dataset_influences_all_of_its_columns():
    downstream = walked([REVENUE], "orders:dt", Direction.DOWNSTREAM)
    assert downstream == [(1, "amount", "load", False), (1, "note", "load", False)]
    assert walked([REVENUE], "revenue:note") == [(1, "dt", "load", False)]


def test_of_an_event_without_transformations_none_are_made_up():
    bare = json.loads(json.dumps(REVENUE))
    lineage = bare["outputs"][0]["facets"]["columnLineage"]
    del lineage["dataset"][0]["transformations"]
    del lineage["fields"]["amount"]["inputFields"][0]["transformations"]
    graph = columns.graph([bare])
    hops = graph.hops(graph.find("revenue:amount"), Direction.UPSTREAM)
    assert {hop.edge.source.field: hop.edge.transformations[0][:2] for hop in hops} == {
        "rate": ("DIRECT", "TRANSFORMATION"),
        "price": (None, None),
        "dt": ("INDIRECT", None),
    }


def test_the_order_of_events_does_not_matter():
    assert walked([REVENUE, REPORT], "report:total") == walked([REPORT, REVENUE], "report:total")


def test_cycles_end():
    forth = event("forth", "b", {"x": [source("a:x")]})
    back = event("back", "a", {"x": [source("b:x")]})
    itself = event("itself", "c", {"x": [source("c:x")]})
    assert walked([forth, back], "a:x") == [(1, "x", "back", False), (2, "x", "forth", True)]
    assert walked([itself], "c:x") == [(1, "x", "itself", True)]


def test_a_column_that_two_paths_lead_to_is_listed_once():
    left = event("left", "l", {"x": [source("base:x")]})
    right = event("right", "r", {"x": [source("base:x")]})
    base = event("base", "base", {"x": [source("raw:x")]})
    both = event("both", "top", {"x": [source("l:x"), source("r:x")]})
    assert walked([left, right, base, both], "top:x") == [
        (1, "x", "both", False),
        (2, "x", "left", False),
        (3, "x", "base", False),
        (1, "x", "both", False),
        (2, "x", "right", True),
    ]


def test_a_long_chain_is_no_recursion():
    chain = [event(f"t{n}", f"d{n + 1}", {"x": [source(f"d{n}:x")]}) for n in range(1500)]
    assert walked(chain, "d1500:x")[-1] == (1500, "x", "t0", False)


# --- naming a column ------------------------------------------------------------------------------

OTHER = event("other", "old/revenue", {"amount": [source("orders:price")]})


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("s3://lake/shop/revenue:amount", "s3://lake/shop/revenue:amount"),
        ("shop/revenue:amount", "s3://lake/shop/revenue:amount"),
        ("revenue:note", "s3://lake/shop/revenue:note"),
    ],
)
def test_a_column_is_named_in_full_or_by_the_end_of_its_name(text, found):
    assert full_name(columns.graph([REVENUE]).find(text)) == found


def test_a_full_name_is_not_ambiguous_because_others_end_alike():
    longer = event("t", "a/orders", {"price": [source("orders:price")]})
    for dataset in (*longer["outputs"], *longer["inputs"]):
        dataset["namespace"] = "file"
    short = json.loads(json.dumps(longer).replace("a/orders", "/orders"))
    long = json.loads(json.dumps(longer).replace("a/orders", "/a/orders"))
    assert full_name(columns.graph([short, long]).find("/orders:price")) == "/orders:price"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "revenue:amount",
            "any of these columns: s3://lake/old/revenue:amount, s3://lake/shop/revenue:amount",
            id="ambiguous",
        ),
        pytest.param(
            "shop/revenue:total",
            "There are s3://lake/shop/revenue:amount, s3://lake/shop/revenue:note",
            id="no such column",
        ),
        pytest.param("nothing:total", "columns of s3://lake/old/revenue, s3", id="no such dataset"),
        pytest.param("enue:amount", "columns of s3://lake/old/revenue, s3", id="half a name"),
        pytest.param("amount", "Give it as DATASET:COLUMN", id="no dataset"),
    ],
)
def test_what_is_not_one_column_is_reported_with_the_columns_that_there_are(text, message):
    with pytest.raises(UnusableInputError, match=message):
        columns.graph([REVENUE, OTHER]).find(text)


def test_of_many_candidates_ten_are_listed():
    many = event("t", "wide", {}, schema=[f"c{n:02}" for n in range(12)])
    with pytest.raises(UnusableInputError, match=r"wide:c09 and 2 more\.$"):
        columns.graph([many]).find("wide:x")


def test_a_facet_that_is_none_names_its_dataset():
    broken = event("load", "t", {"a": [{"namespace": 1}]})
    with pytest.raises(UnusableInputError, match="column lineage of s3://lake/t in load"):
        columns.graph([broken])


# --- the command ----------------------------------------------------------------------------------


@pytest.fixture
def tasks(tmp_path):
    file = tmp_path / "tasks.ndjson"
    file.write_text("\n".join(map(json.dumps, [REVENUE, REPORT])))
    return str(file)


def test_the_command_prints_types_at_every_hop(run, tasks):
    done = run("columns", tasks, "--column", "report:total")
    assert done.code == 0
    assert done.out.splitlines() == [
        "s3://lake/report:total",
        "  ← s3://lake/shop/revenue:amount  DIRECT/AGGREGATION  report",
        "    ← s3://lake/orders:price  DIRECT/TRANSFORMATION masked  load",
        "    ← s3://lake/rates:rate  DIRECT/TRANSFORMATION  load",
        "    ← s3://lake/orders:dt  INDIRECT/FILTER of all columns  load",
    ]


def test_the_command_goes_downstream(run, tasks):
    out = run("columns", tasks, "--column", "orders:price", "--downstream").out
    assert "  → s3://lake/shop/revenue:amount" in out
    assert "    → s3://lake/report:total" in out


def test_a_column_without_sources_is_reported(run, tasks):
    assert "No sources of it are known." in run("columns", tasks, "--column", "rates:rate").out
    out = run("columns", tasks, "--column", "report:total", "--downstream").out
    assert "Nothing is known to use it." in out


@pytest.mark.parametrize("direction", ["upstream", "downstream"])
def test_the_command_prints_json_of_its_schema(run, tasks, direction):
    argv = ("columns", tasks, "--column", "revenue:amount", f"--{direction}", "--json")
    document = json.loads(run(*argv).out)
    jsonschema.validate(document, json.loads(run("schema", "columnPaths").out))
    assert document["direction"] == direction
    assert len(document["hops"]) == {"upstream": 3, "downstream": 1}[direction]


def test_spark_events_are_merged_first(run):
    out = run("columns", STAGING, "--column", "revenue:revenue").out
    assert "← /lake/orders:amount  DIRECT/AGGREGATION" in out


def test_bundles_and_merged_events_are_taken_together(run, tmp_path):
    from airflow_provider_sparklineage.spark.capture import bundle as capture
    from airflow_provider_sparklineage.spark.capture.bundle import Manifest

    text = golden("staging_chain").read_text()
    run_id = json.loads(text.splitlines()[0])["run"]["runId"]
    bundle = capture.create(tmp_path / "captures", Manifest(application_run_id=run_id))
    bundle.events_path.write_text(text)
    after = event("after", "after", {"x": [source("/lake/revenue:revenue")]})
    after["outputs"][0]["facets"]["columnLineage"]["fields"]["x"]["inputFields"][0]["namespace"] = (
        "file"
    )
    file = tmp_path / "after.ndjson"
    file.write_text(json.dumps(after))
    out = run("columns", str(bundle.path), str(file), "--column", "after:x").out
    assert "  ← /lake/revenue:revenue" in out
    assert "    ← /lake/orders:amount" in out


def test_a_wrong_column_is_exit_code_2(run, tasks):
    done = run("columns", tasks, "--column", "revenue:x")
    assert (done.code, done.out) == (2, "")
    assert "There are s3://lake/shop/revenue:amount" in done.err


def test_one_direction_at_a_time(run, tasks):
    done = run("columns", tasks, "--column", "report:total", "--upstream", "--downstream")
    assert (done.code, done.err) == (
        2,
        "sparklineage: Give --upstream or --downstream, not both.\n",
    )
