"""Each rule of which write a read resolves to, on events that every Spark recorded."""

from __future__ import annotations

import json

import pytest

from tests.conftest import OBSERVED, RECORDED
from tests.lineage_text import lines_of, short


def of_all(case):
    return pytest.mark.parametrize("spark", [of for of, name in RECORDED if name == case])


def observed(case):
    return pytest.mark.parametrize("spark", [of for of, name in OBSERVED if name == case])


def inputs(lineage):
    return {short(d.name) for d in lineage.inputs}


def outputs(lineage):
    return {short(d.name): d for d in lineage.outputs}


def sources(lineage, output, column):
    edges = outputs(lineage)[output].columns.fields[column]
    return {f"{short(source.dataset)}.{source.field}" for source in edges}


def assumed(lineage):
    return {
        short(d.dataset) for d in lineage.degradations if str(d.code) == "internal_read_assumed"
    }


@of_all("staging_chain")
def test_a_read_resolves_to_the_writer_that_had_finished(recorded, spark):
    case = recorded("staging_chain", spark)
    writer, reader = (a for a in case.application.actions if a.outputs)
    assert writer.ended <= reader.started
    assert "staging/enriched_orders" not in inputs(case.lineage)
    assert sources(case.lineage, "revenue", "revenue") == {"orders.amount", "rates.rate"}


@of_all("read_while_written")
def test_what_is_still_being_written_is_not_what_is_read(recorded, spark):
    case = recorded("read_while_written", spark)
    ledger = "/lake/ledger_path"
    [writer] = (a for a in case.application.actions if ledger in {d.name.name for d in a.outputs})
    meanwhile, afterwards = (
        a for a in case.application.actions if "reports" in "".join(d.name.name for d in a.outputs)
    )
    assert writer.started < meanwhile.started < meanwhile.ended < writer.ended
    assert writer.ended < afterwards.started
    assert sources(case.lineage, "reports/meanwhile", "total") == {"ledger_path.amount"}
    both = {"ledger_path.amount", "orders.amount"}
    assert sources(case.lineage, "reports/afterwards", "total") == both


@of_all("two_sessions_threads")
def test_actions_that_run_at_the_same_time_are_not_chained(recorded, spark):
    lineage = recorded("two_sessions_threads", spark).lineage
    assert sources(lineage, "order_copy", "order_id") == {"orders.order_id"}
    assert sources(lineage, "customer_copy", "customer_id") == {"customers.customer_id"}


@of_all("rewritten_staging")
@pytest.mark.parametrize("kind", ["labels", "sourced", "tables"])
def test_an_overwrite_replaces(recorded, spark, kind):
    lineage = recorded("rewritten_staging", spark).lineage
    assert sources(lineage, f"reports/{kind}_of_orders", "label") == {"orders.region"}
    assert sources(lineage, f"reports/{kind}_of_customers", "label") == {"customers.segment"}


@of_all("rewritten_staging")
def test_a_size_that_is_found_later_settles_what_an_overwrite_was(recorded, spark):
    # A column that is a literal leaves it open, so without the sizes both writes would be left.
    case = recorded("rewritten_staging", spark)
    writes = [
        a for a in case.application.actions if any(d.name.name[-7:] == "sourced" for d in a.outputs)
    ]
    assert len(writes) == 2
    assert sources(case.lineage, "staging/sourced", "label") == {"customers.segment"}


@of_all("append_then_read")
def test_an_append_accumulates_and_the_dataset_stays_an_input(recorded, spark):
    lineage = recorded("append_then_read", spark).lineage
    assert {"ledger_path", "ledger_table"} <= inputs(lineage)
    assert assumed(lineage) == set()
    assert sources(lineage, "reports/path", "total") == {"ledger_path.amount", "orders.amount"}


@of_all("partitioned_writes")
@pytest.mark.parametrize("write", ["append", "static", "option", "session"])
def test_a_partial_overwrite_accumulates(recorded, spark, write):
    lineage = recorded("partitioned_writes", spark).lineage
    assert f"sales_{write}" in inputs(lineage)
    both = {f"sales_{write}.amount", "orders.amount"}
    assert sources(lineage, f"copies/{write}", "amount") == both


@of_all("partitioned_writes")
def test_the_proof_of_a_full_overwrite_makes_a_read_internal(recorded, spark):
    lineage = recorded("partitioned_writes", spark).lineage
    assert "sales_full" not in inputs(lineage)
    assert assumed(lineage) == {"sales_full"}
    assert sources(lineage, "copies/full", "amount") == {"orders.amount"}


@observed("partitioned_writes")
def test_observed_partitions_decide_exactly(recorded, spark):
    lineage = recorded("partitioned_writes", spark).observed
    assert assumed(lineage) == set()  # it was seen
    read = {line for line in lines_of(lineage) if line.startswith("reads sales_")}
    # What this application wrote for the 6th is not among what it read from outside.
    older = "dt=2024-05-03 dt=2024-05-04"
    assert read == {
        f"reads sales_{kind} {older}" for kind in ("append", "static", "option", "session")
    }


@of_all("glob_reads")
def test_overwritten_locations_are_internal_and_others_are_not(recorded, spark):
    lineage = recorded("glob_reads", spark).lineage
    assert "staging/days" not in inputs(lineage)
    assert sources(lineage, "reports/two_days", "amount") == {"orders.amount"}
    assert "sales_append" in inputs(lineage)
    assert sources(lineage, "reports/mixed", "amount") == {"orders.amount", "sales_append.amount"}


@of_all("self_overwrite")
def test_a_cycle_of_datasets_ends(recorded, spark):
    lineage = recorded("self_overwrite", spark).lineage
    assert sources(lineage, "customers", "name") == {"customers.name"}


@of_all("awkward_names")
def test_columns_are_found_in_any_case(recorded, spark):
    lineage = recorded("awkward_names", spark).lineage
    assert sources(lineage, "out/a name", "shout") == {"customers.name"}


@of_all("jdbc_urls")
def test_a_table_of_a_database_is_one_by_any_of_its_urls(recorded, spark):
    lineage = recorded("jdbc_urls", spark).lineage
    assert inputs(lineage) == {"customers"}
    for name in ("plain", "moded", "signed"):
        assert sources(lineage, f"people/{name}", "NAME") == {"customers.name"}


@of_all("iceberg_merge")
def test_an_input_has_its_earliest_version_and_an_output_its_latest(recorded, spark):
    def version(facet):
        return json.loads(bytes(facet))["datasetVersion"]

    events = recorded("iceberg_merge", spark).path.read_text().splitlines()
    decoded = [json.loads(line) for line in events]
    for action in recorded("iceberg_merge", spark).application.actions:
        own = [e for e in decoded if e["run"]["runId"] == action.run_id]
        for side, datasets in (("inputs", action.inputs), ("outputs", action.outputs)):
            for dataset in datasets:
                versions = [
                    d["facets"]["version"]["datasetVersion"]
                    for e in sorted(own, key=lambda e: (e["eventTime"], e["eventType"] != "START"))
                    for d in e[side]
                    if d["name"] == dataset.name.name and "version" in d.get("facets", {})
                ]
                if versions:
                    expected = versions[0 if side == "inputs" else -1]
                    assert version(dataset.facets["version"]) == expected
