"""The job facet ``lineage``: which inputs feed which output."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from airflow_provider_sparklineage.event.column_lineage import lineage_facet
from airflow_provider_sparklineage.event.pipeline import merged_event
from airflow_provider_sparklineage.lineage.bundle import task_lineage
from airflow_provider_sparklineage.lineage.dataset import LineageDataset
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.spark.capture.event_files import open_bundle
from tests.conftest import GOLDEN, golden
from tests.openlineage_spec import validate_event

CASES = sorted(path.stem for path in (GOLDEN / "spark-4.0").glob("*.ndjson"))


def event(case, *, lineage_facet=True, **manifest):
    with open_bundle([str(golden(case))]) as opened:
        changes = {"lineage_facet": lineage_facet, **manifest}
        bundle = replace(opened, manifest=msgspec.structs.replace(opened.manifest, **changes))
        return merged_event(bundle, task_lineage(bundle))


def entries(case, **manifest):
    facets = event(case, **manifest)["job"]["facets"]
    return {e["name"].removeprefix("/lake/"): e for e in facets["lineage"]["entries"]}


def fed_by(entry):
    """Name the datasets that feed an output; those with a field show how, not whether."""
    return {i["name"].removeprefix("/lake/") for i in entry["inputs"] if "field" not in i}


@pytest.mark.parametrize("case", CASES)
def test_the_facet_is_valid_and_names_no_dataset_that_is_missing_from_the_event(case):
    document = event(case)
    validate_event(document)
    named = {d["name"] for side in ("inputs", "outputs") for d in document[side]}
    for entry in document["job"].get("facets", {}).get("lineage", {}).get("entries", ()):
        assert {i["name"] for i in entry["inputs"]} <= named
        columns = [i for f in entry.get("fields", {}).values() for i in f["inputs"]]
        assert {i["name"] for i in columns} <= {i["name"] for i in entry["inputs"]}


def test_it_is_only_there_where_asked_for():
    assert "lineage" not in event("staging_chain", lineage_facet=False)["job"].get("facets", {})


def test_two_copies_in_one_task_have_nothing_to_do_with_each_other():
    found = entries("two_sessions_threads")
    assert fed_by(found["order_copy"]) == {"orders"}
    assert fed_by(found["customer_copy"]) == {"customers"}


def test_what_comes_through_an_intermediate_comes_from_its_sources():
    found = entries("staging_chain")
    assert fed_by(found["revenue"]) == {"orders", "rates", "customers"}
    assert fed_by(found["staging/enriched_orders"]) == {"orders", "rates", "customers"}
    assert set(entries("staging_chain", intermediate_datasets="drop")) == {"revenue"}


def test_without_column_lineage_the_datasets_are_known_all_the_same():
    found = entries("rdd_jobs")
    assert "fields" not in found["order_lines"]
    assert fed_by(found["order_lines"]) == {"orders"}


def test_columns_are_the_same_as_in_column_lineage():
    document = event("staging_chain")
    output = next(o for o in document["outputs"] if o["name"] == "/lake/revenue")
    columns = output["facets"]["columnLineage"]
    entry = entries("staging_chain")["revenue"]

    def without_types(inputs):
        return [{k: v for k, v in i.items() if k != "type"} for i in inputs]

    assert without_types(i for i in entry["inputs"] if "field" in i) == columns["dataset"]
    assert {n: without_types(f["inputs"]) for n, f in entry["fields"].items()} == {
        n: f["inputFields"] for n, f in columns["fields"].items()
    }


def test_an_output_of_nothing_has_an_empty_entry_and_one_of_unknown_origin_has_none():
    made_up = LineageDataset(DatasetName("file", "/a"), sources=frozenset())
    declared = LineageDataset(DatasetName("file", "/b"))
    [entry] = lineage_facet([made_up, declared])["entries"]
    assert (entry["name"], entry["inputs"]) == ("/a", [])
    assert lineage_facet([declared]) is None
