"""Columns that only the observer saw: bound, recovered, composed and explained."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from airflow_provider_sparklineage.lineage.application.binding import bind
from airflow_provider_sparklineage.lineage.application.repairs import repaired
from airflow_provider_sparklineage.lineage.application.untraced_columns import (
    PythonCall,
    UntracedColumn,
    UntracedColumns,
)
from airflow_provider_sparklineage.lineage.columns import (
    DIRECT,
    INDIRECT,
    Column,
    ColumnLineage,
    Transformation,
    is_incomplete,
    recovered,
)
from airflow_provider_sparklineage.lineage.merge import Outcome, merge
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.spark.capture.observations import (
    ObservationRecord,
    ObservationReport,
    read_observations,
)

ORDERS = DatasetName("file", "/lake/orders")
AMOUNT, CUSTOMER = Column(ORDERS, "amount"), Column(ORDERS, "customer_id")
CALLS = {"pythonUDF0": PythonCall("score(amount)", frozenset({"amount"}))}
SHIFTED = "(pythonUDF0 + customer_id) AS shifted"


def untraced(*sources, complete=True, calls=CALLS, **without):
    column = UntracedColumn(frozenset((c.dataset, c.field) for c in sources), complete)
    return UntracedColumns({"shifted": column}, without, calls)


def shifted(lineage):
    return dict(lineage.fields["shifted"])


def from_listener(kind=DIRECT, subtype="TRANSFORMATION", text=SHIFTED):
    return ColumnLineage({"shifted": {CUSTOMER: (Transformation(kind, subtype, text),)}})


def made(text, subtype="TRANSFORMATION"):
    return Transformation(DIRECT, subtype, text)


# --- recovered ------------------------------------------------------------------------------------


def test_arguments_are_added_and_the_call_is_in_the_description():
    text = "(score(amount) + customer_id) AS shifted"
    assert shifted(recovered(from_listener(), [untraced(AMOUNT)])) == {
        AMOUNT: (made(text),),
        CUSTOMER: (made(text),),
    }


def test_a_column_that_the_listener_does_not_have_gets_the_call_for_a_description():
    assert shifted(recovered(ColumnLineage(), [untraced(AMOUNT)])) == {
        AMOUNT: (made("score(amount)"),)
    }


def test_of_several_calls_of_one_number_none_is_named():
    found = shifted(recovered(from_listener(), [untraced(AMOUNT, calls={})]))
    assert found[AMOUNT] == (made("(a Python function + customer_id) AS shifted"),)


@pytest.mark.parametrize("reported", [from_listener(), ColumnLineage()], ids=["some", "none"])
def test_a_column_stays_incomplete_where_some_argument_could_not_be_followed(reported):
    found = recovered(reported, [untraced(AMOUNT, complete=False)])
    assert AMOUNT in shifted(found)
    assert is_incomplete(shifted(found))


def test_what_the_listener_reports_of_a_source_stays():
    aggregated = from_listener(subtype="AGGREGATION", text="sum(pythonUDF0)")
    assert shifted(recovered(aggregated, [untraced(CUSTOMER)])) == {
        CUSTOMER: (made("sum(score(amount))", "AGGREGATION"),)
    }


def test_a_source_that_was_only_copied_or_only_a_condition_is_now_a_value_as_well():
    copied = from_listener(subtype="IDENTITY", text="customer_id")
    assert len(shifted(recovered(copied, [untraced(CUSTOMER)]))[CUSTOMER]) == 2
    condition = from_listener(INDIRECT, "CONDITIONAL", "")
    subtypes = [t.type for t in shifted(recovered(condition, [untraced(CUSTOMER)]))[CUSTOMER]]
    assert subtypes == [INDIRECT, DIRECT]


def test_nothing_is_changed_of_other_columns_or_without_observations():
    other = ColumnLineage({"other": {CUSTOMER: (made("pythonUDF0"),)}}, {AMOUNT: ()})
    assert recovered(other, []) == other
    found = recovered(other, [untraced(AMOUNT)])
    assert found.fields["other"] == other.fields["other"]
    assert found.dataset == other.dataset


def test_a_column_of_which_nothing_is_known_gets_no_empty_entry():
    assert recovered(ColumnLineage(), [untraced(complete=False)]).fields == {}


# --- bound ----------------------------------------------------------------------------------------


def record(action, **changes):
    """Make the record that the observer writes of the recorded application's one write."""
    milliseconds = int(action.started.timestamp() * 1000)
    found = {
        "target": {"path": "file:/lake/scored_orders", "table": None},
        "relations": [{"path": "file:/lake/orders", "table": None}],
        "columns": [
            {"column": "score", "complete": True, "sources": [[0, "amount"]]},
            {"column": "shifted", "complete": True, "sources": [[0, "amount"]]},
        ],
        "without_sources": {},
    } | changes
    return msgspec.convert(
        {
            "kind": "query",
            "started": milliseconds + 1,
            "ended": milliseconds + 2,
            "python_udfs": [{"result": "pythonUDF0", "function": "score", "columns": ["amount"]}],
            "lost_columns": found,
        },
        ObservationRecord,
    )


def merged(recorded, **changes):
    application = repaired(recorded("python_udf").application)
    [action] = application.actions
    names = {d.name: set() for d in (*action.inputs, *action.outputs)}
    observations = bind([record(action, **changes)], names)
    lineage = merge(replace(application), Outcome.COMPLETE, observations=observations)
    [output] = lineage.outputs
    gaps = {d.column: d.message for d in lineage.degradations if d.code.startswith("column")}
    return output.columns.fields, gaps


def test_the_recorded_functions_columns_have_their_sources_and_no_gap(recorded):
    fields, gaps = merged(recorded)
    assert fields["score"] == {AMOUNT: (made("score(amount)"),)}
    assert set(fields["shifted"]) == {AMOUNT, CUSTOMER}
    assert gaps == {}


def test_a_relation_that_is_no_dataset_leaves_the_column_incomplete(recorded):
    fields, gaps = merged(recorded, relations=[{"path": "file:/unknown"}])
    assert "score" not in fields
    assert set(gaps) == {"score", "shifted"}
    assert "score(amount)" in gaps["shifted"]


@pytest.mark.parametrize(
    ("target", "relations"),
    [
        ({"path": "file:/another"}, [{"path": "file:/lake/orders"}]),
        ({"path": "", "table": None}, []),
    ],
)
def test_what_belongs_to_no_output_changes_nothing(recorded, target, relations):
    fields, gaps = merged(recorded, target=target, relations=relations)
    assert "score" not in fields
    assert set(gaps) == {"score", "shifted"}


def test_an_index_without_a_relation_is_a_source_that_is_not_known(recorded):
    columns = [{"column": "score", "complete": True, "sources": [[7, "a"], [-1, "b"]]}]
    fields, gaps = merged(recorded, columns=columns)
    assert "score" not in fields
    assert "score" in gaps


@pytest.mark.parametrize(
    ("reasons", "text"),
    [
        (["literal"], "it is a literal."),
        (["count"], "it is a count of rows."),
        (["function"], "it is a function of no column, such as rand() or row_number()."),
        (["rdd"], "it is rows of an RDD or of createDataFrame."),
        (["literal", "rdd"], "it is a literal and rows of an RDD or of createDataFrame."),
        (["a reason of a later observer"], "the result of Python that ran then: score(amount)."),
    ],
)
def test_a_column_of_no_column_is_reported_with_what_it_is_made_of(recorded, reasons, text):
    _, gaps = merged(recorded, columns=[], without_sources={"score": reasons})
    assert gaps["score"].endswith(text)


def test_python_that_was_given_no_column_is_reported(recorded):
    columns = [{"column": "score", "complete": True, "sources": []}]
    _, gaps = merged(recorded, columns=columns)
    assert gaps["score"].endswith("it is the result of Python that was given no column.")


def test_what_the_observer_did_not_follow_to_its_end_is_reported(recorded):
    [action] = recorded("python_udf").application.actions
    line = msgspec.json.encode(record(action, cut="a plan of more than 2000 nodes")) + b"\n"
    report = ObservationReport()
    list(read_observations([line], report))
    assert report.stopped.first == ["a plan of more than 2000 nodes"]
