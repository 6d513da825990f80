"""Task-level lineage of applications that were recorded from real Spark, against the truth of each.

The truth of a case is in the docstring of its application (``tests/applications``).
"""

from __future__ import annotations

import json
import random
from datetime import timedelta

import msgspec
import pytest
from msgspec.structs import replace

from airflow_provider_sparklineage.event.pipeline import merged_event
from airflow_provider_sparklineage.lineage.application.accumulation import ActionState, accumulate
from airflow_provider_sparklineage.lineage.application.repairs import repaired
from airflow_provider_sparklineage.lineage.bundle import task_lineage
from airflow_provider_sparklineage.lineage.merge import Outcome, merge
from airflow_provider_sparklineage.model.datasets import is_database
from airflow_provider_sparklineage.spark.capture.event_files import open_bundle
from tests.conftest import GOLDEN, golden
from tests.openlineage_spec import validate_event

CASES = sorted(
    (p.parent.name.removeprefix("spark-"), p.stem) for p in GOLDEN.glob("spark-*/*.ndjson")
)
# The listener says no columns of RDDs.
WITHOUT_COLUMNS = {"rdd_jobs", "writes_nothing"}


def short(name: str) -> str:
    return name.removeprefix("/lake/")


def sides(lineage):
    inputs = {
        short(d.name.name): sorted(short(x).partition("/")[2] for x in d.locations or ())
        for d in lineage.inputs
    }
    return inputs, [short(d.name.name) for d in lineage.outputs]


def sources(lineage, output, column):
    """Give the sources of a column, as ``dataset.column: subtypes``."""
    dataset = next(d for d in lineage.outputs if short(d.name.name) == output)
    return {
        f"{short(c.dataset.name)}.{c.field}": "+".join(sorted(str(t.subtype) for t in ts))
        for c, ts in dataset.columns.fields.get(column, {}).items()
    }


def dependencies(lineage, output):
    """Give what influences all columns of an output."""
    dataset = next(d for d in lineage.outputs if short(d.name.name) == output)
    return {
        f"{short(c.dataset.name)}.{c.field}": "+".join(sorted(str(t.subtype) for t in ts))
        for c, ts in dataset.columns.dataset.items()
    }


def codes(lineage):
    return sorted({str(d.code) for d in lineage.degradations})


# --- every case -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("spark", "case"), CASES)
def test_the_merged_event_is_valid_openlineage(recorded, spark, case):
    validate_event(recorded(case, spark).event)


@pytest.mark.parametrize(("spark", "case"), CASES)
def test_the_order_and_repetition_of_events_change_nothing(recorded, spark, case, tmp_path):
    text = golden(case, spark).read_text()
    again = [line for line in text.splitlines() if line.endswith("}")] * 2
    random.Random(case).shuffle(again)
    shuffled = tmp_path / "shuffled.ndjson"
    # What a killed driver had begun to write is begun again.
    shuffled.write_text("\n".join(again) + "\n" + ("" if text.endswith("\n") else '{"run'))
    with open_bundle([str(shuffled)]) as bundle:
        found = comparable(merged_event(bundle, task_lineage(bundle)))
    assert found == comparable(recorded(case, spark).event)


def comparable(document):
    """Leave out how much was read."""
    facets = document["run"]["facets"]
    capture = facets["sparkLineage_capture"].items()
    counted = {k: v for k, v in capture if k not in ("events", "bytes")}
    run = document["run"] | {"facets": facets | {"sparkLineage_capture": counted}}
    return json.dumps(document | {"run": run}, sort_keys=True)


@pytest.mark.parametrize(("spark", "case"), CASES)
def test_no_metadata_column_is_left(recorded, spark, case):
    used = {
        column.field
        for output in recorded(case, spark).lineage.outputs
        if output.columns
        for edges in (*output.columns.fields.values(), output.columns.dataset)
        for column in edges
    }
    assert used or case in WITHOUT_COLUMNS
    assert not used & {"_file", "_pos", "_spec_id"}


def test_there_are_metadata_columns_to_leave_out():
    sparks = {
        spark for spark, case in CASES if '"field":"_file"' in golden(case, spark).read_text()
    }
    assert "4.0" in sparks


# --- one case each --------------------------------------------------------------------------------


def test_staging_is_an_intermediate_and_columns_go_through_it(recorded):
    lineage = recorded("staging_chain").lineage
    assert sides(lineage) == (
        {"customers": [], "orders": ["dt=2024-05-06"], "rates": ["month=2024-05"]},
        ["revenue", "staging/enriched_orders"],
    )
    assert sources(lineage, "revenue", "revenue") == {
        "orders.amount": "AGGREGATION",
        "rates.rate": "AGGREGATION",
    }
    assert sources(lineage, "revenue", "segment") == {"customers.segment": "IDENTITY"}
    assert dependencies(lineage, "revenue") == {
        "customers.customer_id": "FILTER+JOIN",
        "customers.segment": "GROUP_BY",
        "orders.amount": "FILTER",
        "orders.customer_id": "FILTER+JOIN",
        "rates.currency": "FILTER",
    }
    assert codes(lineage) == ["internal_read_assumed"]


def test_no_partial_overwrite_is_taken_for_a_full_one(recorded):
    lineage = recorded("partitioned_writes").lineage
    inputs, outputs = sides(lineage)
    partial = {"sales_append", "sales_static", "sales_option", "sales_session"}
    assert partial < inputs.keys()
    assert partial < set(outputs)
    assumed = {d.dataset.name for d in lineage.degradations if d.code == "internal_read_assumed"}
    assert assumed == {"/lake/sales_full"}


def test_a_dataset_that_stays_an_input_is_composed_through_all_the_same(recorded):
    lineage = recorded("partitioned_writes").lineage
    assert sources(lineage, "copies/append", "amount") == {
        "sales_append.amount": "IDENTITY",
        "orders.amount": "IDENTITY",
    }


def test_empty_to_null_of_a_partition_column_is_identity(recorded):
    lineage = recorded("partitioned_writes").lineage
    assert "empty2null" in golden("partitioned_writes").read_text()
    assert sources(lineage, "sales_full", "region") == {"orders.region": "IDENTITY"}


def test_nested_executions_are_one_write(recorded):
    recorded_case = recorded("catalog_tables")
    lineage = recorded_case.lineage
    region_totals = next(d for d in lineage.outputs if d.name.name.endswith("region_totals"))
    statistics = json.loads(bytes(region_totals.side_facets["outputStatistics"]))
    # create 2 rows, overwrite 2 rows, append 1 row: each reported by two executions, counted once
    assert statistics["rowCount"] == 5
    links = json.loads(bytes(region_totals.facets["symlinks"]))["identifiers"]
    assert [link["name"] for link in links] == ["default.region_totals"]
    assert len(repaired(recorded_case.application).actions) == 4


def test_creating_a_table_over_existing_data_is_no_overwrite(recorded):
    inputs, _ = sides(recorded("append_then_read").lineage)
    assert {"ledger_path", "ledger_table"} <= inputs.keys()


def test_schema_inference_is_no_read(recorded):
    recorded_case = recorded("schema_inference")
    assert '"RDD_JOB"' in recorded_case.path.read_text()
    assert sides(recorded_case.lineage) == ({"orders": []}, ["day_orders"])


def test_rdd_jobs_that_write_are_actions_and_name_their_partitions(recorded):
    lineage = recorded("rdd_jobs").lineage
    assert sides(lineage) == (
        {"orders": ["dt=2024-05-06", "dt=2024-05-07"]},
        ["order_frame", "order_lines"],
    )
    assert codes(lineage) == ["column_lineage_missing"]


def test_a_python_udf_leaves_a_gap_that_is_reported(recorded):
    lineage = recorded("python_udf").lineage
    reported = {(str(d.code), d.column) for d in lineage.degradations}
    assert any(code == "column_without_sources" for code, _ in reported)
    assert any(code == "column_incomplete" for code, _ in reported)


def test_what_a_failed_action_wrote_is_no_output_of_a_task_that_succeeded(recorded):
    lineage = recorded("caught_failure").lineage
    assert sides(lineage)[1] == ["lenient_orders"]
    [failed] = [d for d in lineage.degradations if d.code == "action_failed"]
    assert failed.dataset.name == "/lake/strict_orders"


def test_on_failure_the_outputs_of_failed_actions_are_bare_names(recorded):
    lineage = merge(recorded("failing_action").application, Outcome.FAIL)
    outputs = {short(d.name.name): d for d in lineage.outputs}
    assert outputs.keys() == {"good_orders", "checked_orders"}
    assert outputs["checked_orders"].facets == {}
    assert outputs["good_orders"].columns


def test_fail_is_sticky_though_the_listener_reports_complete_afterwards(recorded):
    application = recorded("failing_action").application
    assert [a.state for a in application.actions] == [ActionState.COMPLETE, ActionState.FAILED]
    assert application.actions[1].error == (
        "org.apache.spark.SparkRuntimeException [USER_RAISED_EXCEPTION]"
    )


def test_a_killed_driver_keeps_what_was_finished(recorded):
    lineage = recorded("killed_driver").lineage
    assert lineage.outcome is Outcome.FAIL
    assert {"application_unfinished", "action_unfinished"} <= set(codes(lineage))
    good = next(d for d in lineage.outputs if short(d.name.name) == "good_orders")
    assert good.columns


def test_events_without_the_applications_start_are_not_all_that_there_were(tmp_path):
    """Their file was removed while the job ran, and the listener made another."""
    events = golden("staging_chain").read_text().splitlines(keepends=True)
    rest = tmp_path / "events.ndjson"
    rest.write_text("".join(events[len(events) // 2 :]))
    with open_bundle([str(rest)]) as bundle:
        lineage = task_lineage(bundle)
    assert "capture_unavailable" in codes(lineage)


def test_the_second_application_of_a_driver_that_reports_no_end_is_unfinished(recorded):
    events = [
        msgspec.structs.replace(event, event_time=event.event_time + timedelta(hours=hours))
        for hours in (0, 1)
        for event in recorded("staging_chain").bundle().events()
    ]
    run_id = recorded("staging_chain").application.run_id
    assert accumulate(events, run_id).finished
    assert not accumulate(events[:-1], run_id).finished
    assert accumulate([*events, *events], run_id) == replace(
        accumulate(events, run_id), events=2 * len(events)
    )


def test_the_application_is_known_by_the_events_of_its_actions(recorded):
    """Its own START is sent before YARN has given a driver in the cluster its id."""
    events = list(recorded("staging_chain").bundle().events())
    run_id = recorded("staging_chain").application.run_id
    without = [
        msgspec.structs.replace(event, run=msgspec.structs.replace(event.run, facets=None))
        if event.run.run_id == run_id
        else event
        for event in events
    ]
    of_actions = accumulate(without, run_id)
    assert of_actions.application_id == accumulate(events, run_id).application_id != ""


def test_a_job_that_writes_nothing_has_inputs_only(recorded):
    lineage = recorded("writes_nothing").lineage
    assert lineage.outputs == ()
    assert lineage.inputs
    assert codes(lineage) == ["nothing_written"]


def test_a_dataset_that_is_read_and_replaced_is_input_and_output(recorded):
    lineage = recorded("self_overwrite").lineage
    assert sides(lineage) == ({"customers": []}, ["customers", "staging/customers"])
    assert sources(lineage, "customers", "name") == {"customers.name": "IDENTITY"}


def test_as_many_bytes_read_as_written_prove_that_nothing_older_was_there(recorded):
    # The listener reports nothing of a write that found no folder; the sizes do.
    assert sides(recorded("create_then_read").lineage)[0] == {"orders": ["dt=2024-05-06"]}
    assert "sales_full" not in sides(recorded("partitioned_writes").lineage)[0]


def test_branches_meet_again(recorded):
    lineage = recorded("union_diamond").lineage
    inputs, outputs = sides(lineage)
    assert not any(name.startswith("staging") for name in inputs)
    assert sum(name.startswith("staging") for name in outputs) == 2


def test_actions_that_run_at_the_same_time_are_kept_apart(recorded):
    lineage = recorded("two_sessions_threads").lineage
    assert {s for o in lineage.outputs for e in o.columns.fields.values() for s in e}
    for output, source in (("order_copy", "orders"), ("customer_copy", "customers")):
        dataset = next(d for d in lineage.outputs if short(d.name.name) == output)
        used = {short(c.dataset.name) for e in dataset.columns.fields.values() for c in e}
        assert used == {source}


def test_statistics_are_those_of_the_action_itself(recorded):
    # The COMPLETE event of the smaller copy has the bytes of the one that was written next to it.
    lineage = recorded("two_sessions_threads").lineage
    sizes = {
        short(d.name.name): json.loads(bytes(d.side_facets["outputStatistics"]))["size"]
        for d in lineage.outputs
    }
    assert sizes.keys() == {"order_copy", "customer_copy"}
    assert all(sizes.values())
    assert len(set(sizes.values())) == len(sizes)


def test_a_delta_extension_is_reported_to_hide_writes(recorded):
    assert "delta_hides_writes" in codes(recorded("delta_tables").lineage)
    assert "delta_hides_writes" not in codes(recorded("delta_tables").observed)
    assert "delta_hides_writes" not in codes(recorded("iceberg_merge").lineage)


def test_iceberg_tables_made_here_are_intermediates(recorded):
    lineage = recorded("iceberg_merge").lineage
    assert sides(lineage)[0] == {"orders": ["dt=2024-05-05", "dt=2024-05-06"]}
    # MERGE and UPDATE read the table that they write: its own columns are no sources of it
    assert sources(lineage, "iceberg/shop/revenue", "dt") == {}
    assert sources(lineage, "revenue_report", "region") == {"orders.region": "IDENTITY"}
    revenue = next(d for d in lineage.outputs if d.name.name.endswith("shop/revenue"))
    assert "icebergCommitReport" not in revenue.side_facets


def test_an_input_keeps_its_earliest_version_and_an_output_its_latest(recorded):
    application = recorded("iceberg_merge").application
    merges = [a for a in application.actions if "replace_data" in a.job_name]
    assert merges
    for action in merges:
        [read] = [d for d in action.inputs if d.name.name.endswith("shop/revenue")]
        [written] = action.outputs
        assert bytes(read.facets["version"]) != bytes(written.facets["version"])


def test_delta_appends_do_not_pass_for_creations(recorded):
    inputs, _ = sides(recorded("delta_tables").lineage)
    assert "delta/revenue" in inputs


def test_events_of_another_application_are_counted_and_left(recorded):
    application = recorded("staging_chain").application
    with open_bundle([str(golden("staging_chain"))]) as bundle:
        other = accumulate(bundle.events(), "00000000-0000-0000-0000-000000000000")
    assert (other.actions, other.events) == ((), 0)
    assert other.foreign_events == application.events


@pytest.mark.parametrize("case", ["jdbc_tables", "jdbc_urls"])
def test_a_table_of_a_database_is_written_without_partitions(recorded, case):
    written = [d for d in recorded(case).lineage.outputs if is_database(d.name)]
    assert {str(dataset.accessed) for dataset in written} == {"all"}
