"""Plans of writes: bound to datasets, read for their columns, and what is reported of them."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest
from msgspec.structs import replace

from airflow_provider_sparklineage.lineage.application.repairs import repaired
from airflow_provider_sparklineage.lineage.columns.edges import Column
from airflow_provider_sparklineage.lineage.ledger import Ledgers
from airflow_provider_sparklineage.lineage.merge import Outcome, merge
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.spark.capture.observations import (
    ObservationRecord,
    ObservationReport,
    read_observations,
)
from tests.unit.lineage.plans.test_walk import alias, attribute, node
from tests.unit.lineage.test_binding import collected

ORDERS = DatasetName("file", "/lake/orders")
COLUMNS = ("order_id", "score", "shifted")
"""Of the recorded application's one write."""


def text(value):
    return node("Literal", value=value, dataType="string")


def number(value):
    return node("Literal", value=value, dataType="long")


def relation():
    names = ("order_id", "customer_id", "amount", "region")
    return node("LogicalRelation", output=[[attribute(at, name)] for at, name in enumerate(names)])


ORDER_ID, AMOUNT = attribute(0, "order_id"), attribute(2, "amount")
SCORE = node("PythonUDF", 1, name="score")


def query(score, *below, shifted=(AMOUNT,)):
    """Write the id of an order and two columns."""
    columns = [[ORDER_ID], alias(10, "score", *score), alias(11, "shifted", *shifted)]
    return [node("Project", 1, projectList=columns), *below, relation()]


def record(action, plan, target="file:/lake/scored_orders", at="file:/lake/orders", **changes):
    """Make the record that the observer writes of the recorded application's one write."""
    started = int(action.started.timestamp() * 1000) + 1
    command = {
        "node": "InsertIntoHadoopFsRelationCommand",
        "target": {"path": target},
        "columns": COLUMNS,
        "plan": plan,
        "relations": [{"path": at, "ids": [0, 1, 2, 3]}],
    }
    found = {
        "kind": "query",
        "started": started,
        "ended": started + 1,
        "command": command,
    } | changes
    # As it is read from the file: a plan is not decoded with its record.
    return msgspec.json.decode(msgspec.json.encode(found), type=ObservationRecord)


def merged(recorded, plan, sql="", **changes):
    application = repaired(recorded("python_udf").application)
    [action] = application.actions
    action = replace(action, sql=sql)
    names = {d.name: set() for d in (*action.inputs, *action.outputs)}
    observations = collected([record(action, plan, **changes)], names)
    with_sql = replace(application, actions=(action,))
    return merge(with_sql, Outcome.COMPLETE, observations=observations)


def columns(lineage):
    [output] = lineage.outputs
    return output.columns.fields


def messages(lineage):
    """Give what is reported of columns: (code, column) -> message."""
    return {
        (d.code.value, d.column): d.message.removeprefix("/lake/scored_orders: ")
        for d in lineage.degradations
        if d.code.startswith("column") or "subquery" in d.code
    }


def test_the_plan_gives_the_columns_that_the_listener_loses(recorded):
    lineage = merged(recorded, query([SCORE, AMOUNT]))
    [(source, [transformation])] = columns(lineage)["score"].items()
    assert source == Column(ORDERS, "amount")
    assert transformation.description == "score(amount)"
    assert messages(lineage) == {}


@pytest.mark.parametrize(
    ("score", "reason"),
    [
        ([text("x")], "a literal"),
        ([node("Count", 1), number("1")], "a count of rows"),
        ([node("Rand", 1), number("1")], "a function of no column, such as rand() or row_number()"),
        ([node("PythonUDF", name="score")], "the result of Python that was given no column"),
    ],
    ids=["literal", "count", "function", "Python"],
)
def test_a_column_without_sources_has_the_reason_of_the_plan(recorded, score, reason):
    found = messages(merged(recorded, query(score)))
    assert found == {
        (
            "column_without_sources",
            "score",
        ): f"no sources of column score are known; it is {reason}."
    }


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        (
            "spark_grouping_id",
            number("0"),
            "the number of a grouping set, as grouping_id() gives it",
        ),
        ("kind", text("amount"), "the name of a column that was unpivoted"),
    ],
)
def test_no_python_is_named_where_there_is_none(recorded, name, value, reason):
    output = [[ORDER_ID], [AMOUNT], [attribute(20, name)]]
    expand = node("Expand", 1, projections=[[[ORDER_ID], [AMOUNT], [value]]], output=output)
    found = messages(merged(recorded, query([attribute(20, name)], expand)))
    assert found["column_without_sources", "score"].endswith(f"it is {reason}.")


def test_the_path_of_a_file_is_no_column(recorded):
    metadata = attribute(3, "_metadata")
    leaf = relation()
    leaf["output"][3] = [metadata]
    plan = [*query([node("GetStructField", 1, name="file_path"), metadata])[:-1], leaf]
    found = messages(merged(recorded, plan))
    assert found["column_without_sources", "score"].endswith("such as the path of a file.")


def test_a_column_that_cannot_be_followed_is_reported(recorded):
    plan = query([attribute(99, "new")], shifted=[node("Add", 2), AMOUNT, attribute(99, "new")])
    lineage = merged(recorded, plan)
    assert messages(lineage) == {
        ("column_without_sources", "score"): "no sources of column score are known; it is the "
        "result of an operator of Spark's plan that could not be followed.",
        ("column_incomplete", "shifted"): "column shifted goes through a Python UDF, whose "
        "arguments are not among its sources.",
    }


def test_columns_of_functions_of_rows_are_reported_as_a_guess(recorded):
    output = [[attribute(number, name)] for number, name in enumerate(COLUMNS, start=30)]
    lineage = merged(recorded, [node("MapInPandas", 1, output=output), relation()])
    [message] = messages(lineage).values()
    assert message == (
        "order_id, score, shifted were made of full rows by mapInPandas. Nobody can see into such "
        "a function, so every column that it was given is named as a source of each: some may be "
        "none."
    )
    assert len(columns(lineage)["score"]) == 4


STATEMENT = "MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN UPDATE SET t.score = s.score"


def test_what_a_merge_sets_is_not_incomplete_where_its_plan_is_known(recorded):
    assert messages(merged(recorded, query([AMOUNT]), sql=STATEMENT)) == {}


def test_columns_that_a_write_leaves_as_they_are_have_no_gap(recorded):
    expressions = [[ORDER_ID], [node("Add", 2), AMOUNT, AMOUNT], [AMOUNT]]
    target = [relation()]
    target[0]["output"] = [[attribute(at, name)] for at, name in enumerate(COLUMNS)]
    update = node("UpdateCommand", target=target, updateExpressions=expressions)
    assert messages(merged(recorded, [update])) == {}


def test_older_values_of_the_output_are_a_reason(recorded):
    lineage = merged(recorded, query([AMOUNT]), at="file:/lake/scored_orders")
    assert messages(lineage)["column_lineage_missing", None].endswith(
        "it is made of a value that the output itself had before."
    )


def test_rows_that_are_deleted_are_no_gap_of_columns(recorded):
    target = [relation()]
    target[0]["output"] = [[attribute(at, name)] for at, name in enumerate(COLUMNS)]
    lineage = merged(recorded, [node("DeleteCommand", target=target, condition=[ORDER_ID])])
    assert messages(lineage) == {}


def test_a_plan_that_cannot_be_read_leaves_what_the_listener_reports(recorded):
    lineage = merged(recorded, [node("Project", 1)])
    assert columns(lineage).keys() == {"order_id", "shifted"}
    assert "cannot be read" in messages(lineage)["column_incomplete", None]


@pytest.mark.parametrize(
    "changes",
    [{"target": "file:/another"}, {"failed": True}, {"started": 1, "ended": 2}],
    ids=["another target", "failed", "another time"],
)
def test_a_plan_of_another_write_changes_nothing(recorded, changes):
    assert "score" not in columns(merged(recorded, query([SCORE, AMOUNT]), **changes))


def test_a_relation_that_is_no_dataset_leaves_its_columns_as_reported(recorded):
    lineage = merged(recorded, query([SCORE, AMOUNT]), at="file:/unknown")
    assert columns(lineage).keys() == {"order_id", "shifted"}
    assert messages(lineage)["column_without_sources", "score"].endswith(
        "it is a value of a relation that is no dataset known to be read."
    )
    assert ("column_incomplete", "order_id") not in messages(lineage)


def test_the_plan_of_the_next_write_is_not_one_of_this_one(recorded):
    [action] = repaired(recorded("python_udf").application).actions
    names = {d.name: set() for d in (*action.inputs, *action.outputs)}
    end = int(action.ended.timestamp() * 1000)
    next_one = {"started": end + 5, "ended": end + 300}
    records = [record(action, query([AMOUNT])), record(action, query([text("x")]), **next_one)]
    ledgers = Ledgers(collected(records, names))
    [output] = action.outputs
    [plan] = ledgers.of(output.name).plans(action)
    assert plan.plan == msgspec.json.encode(query([AMOUNT]))
    alone = Ledgers(collected(records[1:], names))
    assert len(alone.of(output.name).plans(action)) == 1  # clocks differ by a few milliseconds


def test_the_plan_of_the_write_before_is_not_one_of_a_write_without_a_plan(recorded):
    application = repaired(recorded("python_udf").application)
    [action] = application.actions
    after = action.ended - action.started
    later = replace(
        action,
        run_id="later",
        started=action.ended + timedelta(milliseconds=5),
        ended=action.ended + after,
        outputs=tuple(replace(one, name=action.outputs[0].name) for one in action.outputs),
    )
    end = int(action.ended.timestamp() * 1000)
    literals = [alias(number, name, text("x")) for number, name in enumerate(COLUMNS, 10)]
    plan = [node("Project", 1, projectList=literals), relation()]
    of_first = record(action, plan, started=end - 9, ended=end - 1)
    names = {d.name: set() for d in (*action.inputs, *action.outputs)}
    both = replace(application, actions=(action, later))
    lineage = merge(both, Outcome.COMPLETE, observations=collected([of_first], names))
    assert Column(ORDERS, "order_id") in columns(lineage)["order_id"]


def test_an_action_whose_events_come_late_has_the_plan_that_ended_then(recorded):
    [action] = repaired(recorded("python_udf").application).actions
    names = {d.name: set() for d in (*action.inputs, *action.outputs)}
    end = int(action.ended.timestamp() * 1000)
    late = replace(action, started=action.ended)
    before = record(action, query([AMOUNT]), started=end - 900, ended=end - 1)
    after = record(action, query([text("x")]), started=end + 9, ended=end + 300)
    [plan] = Ledgers(collected([before, after], names)).of(action.outputs[0].name).plans(late)
    assert plan.plan == msgspec.json.encode(query([AMOUNT]))


def test_a_plan_that_was_not_taken_is_reported(recorded):
    [action] = recorded("python_udf").application.actions
    found = record(action, [])
    found = msgspec.structs.replace(
        found, command=msgspec.structs.replace(found.command, cut="a plan of 2000 kB")
    )
    report = ObservationReport()
    list(read_observations([msgspec.json.encode(found) + b"\n"], report))
    assert report.stopped.first == ["a plan of 2000 kB"]


def test_functions_are_named_with_what_they_were_given(recorded):
    [action] = repaired(recorded("python_udf").application).actions
    udfs = [
        {"result": "pythonUDF0", "function": "score", "columns": ["amount", "region"]},
        {"result": "pythonUDF1"},
    ]
    observations = collected([record(action, [], python_udfs=udfs)], {})
    assert [function.text for function in observations.functions] == [
        "score(amount, region)",
        "a Python function()",
    ]
