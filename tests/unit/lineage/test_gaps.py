"""Why columns have no sources: reported where something points at a reason, and not made up."""

from __future__ import annotations

import json
from datetime import timedelta

import msgspec
import pytest
from msgspec.structs import replace

from airflow_provider_sparklineage.lineage.application.repairs import repaired
from airflow_provider_sparklineage.lineage.merge import Outcome, merge
from airflow_provider_sparklineage.lineage.observed.accesses import Observations, PythonFunction
from airflow_provider_sparklineage.model.predicates import _projections_of, changed, without_columns
from airflow_provider_sparklineage.spark.capture.observations import ObservationRecord, UdfRecord
from tests.allowances import lasting
from tests.unit.lineage.test_binding import collected


def messages(lineage, code):
    return {d.column: d.message for d in lineage.degradations if d.code == code}


def test_the_value_of_a_static_partition_is_known_from_the_statement(recorded):
    lineage = recorded("partitioned_writes").lineage
    found = {
        d.dataset.name: d.message
        for d in lineage.degradations
        if d.code == "column_without_sources"
    }
    assert found == {
        "/lake/sales_static": "/lake/sales_static: no sources of column dt are known; it is the "
        "value of a static partition.",
        "/lake/sales_option": "/lake/sales_option: no sources of column dt are known; the reason "
        "is not known (literals, count(*) and results of Python UDFs have none).",
    }


def test_rdd_code_is_known_from_the_kind_of_job(recorded):
    found = {d.dataset.name: d.message for d in recorded("rdd_jobs").lineage.degradations}
    start = "The listener reported no column lineage for"
    assert found == {
        "/lake/order_lines": f"{start} /lake/order_lines: it was written by RDD code, in which "
        "there are no columns.",
        # a frame made of an RDD is written by a SQL execution, as any other
        "/lake/order_frame": f"{start} /lake/order_frame.",
    }


def udf_lineage(recorded, *functions):
    application = repaired(recorded("python_udf").application)
    return merge(application, Outcome.COMPLETE, observations=Observations(functions=functions))


@pytest.fixture
def during(recorded):
    """Make a Python function that ran during the recorded write, or some time after it."""
    [action] = repaired(recorded("python_udf").application).actions

    def make(text, late=timedelta()):
        return PythonFunction(action.started + late, action.started + late, text)

    return make


def test_python_functions_that_were_observed_are_named(recorded, during):
    lineage = udf_lineage(recorded, during("score(amount)"))
    assert messages(lineage, "column_without_sources")["score"].endswith(
        "it is not known to be made of columns, and Python ran then: score(amount)."
    )
    incomplete = messages(lineage, "column_incomplete")["shifted"]
    assert "through a Python UDF (score(amount)), whose" in incomplete


def test_functions_of_other_queries_are_not_named(recorded, during):
    lineage = udf_lineage(recorded, during("other(x)", late=timedelta(hours=1)))
    assert "other" not in str(messages(lineage, "column_without_sources"))
    assert "other" not in str(messages(lineage, "column_incomplete"))


def test_where_no_python_ran_none_is_suspected(recorded):
    lineage = udf_lineage(recorded)
    assert "rows of RDD code" in messages(lineage, "column_without_sources")["score"]


def test_the_observers_records_name_function_and_arguments():
    udfs = [UdfRecord("pythonUDF0", "score", ["amount", "rate"]), UdfRecord("pythonUDF1")]
    record = ObservationRecord(started=1000, ended=2000, python_udfs=udfs)
    found = collected([record], {}).functions
    assert [f.text for f in found] == ["score(amount, rate)", "a Python function()"]
    assert found[0].ended - found[0].started == timedelta(seconds=1)


# --- projections ----------------------------------------------------------------------------------

LITERAL, COUNT = "a literal", "a count of rows"


@pytest.mark.parametrize(
    ("statement", "columns", "expected"),
    [
        ("CREATE TABLE t AS SELECT a, 1 AS b FROM s", "ab", {"b": LITERAL}),
        ("CREATE TABLE t AS SELECT a, count(*) AS b FROM s GROUP BY a", "ab", {"b": COUNT}),
        ("INSERT INTO t SELECT a, DATE '2024-05-06' FROM s", "xy", {"y": LITERAL}),
        ("INSERT INTO t SELECT a, -1, NULL, true FROM s", "wxyz", dict.fromkeys("xyz", LITERAL)),
        ("INSERT INTO t SELECT count(1), count(a), sum(1) FROM s", "xyz", {"x": COUNT}),
        ("INSERT OVERWRITE t PARTITION (d='1') SELECT 'a', b FROM s", "xyd", {"x": LITERAL}),
        pytest.param("INSERT INTO t (y, x) SELECT 1, a FROM s", "xy", {}, id="by name"),
        pytest.param("INSERT INTO t BY NAME SELECT 1 AS y, a AS x FROM s", "xy", {}, id="BY NAME"),
        pytest.param("INSERT INTO t SELECT *, 1 FROM s", "xy", {}, id="star"),
        pytest.param("INSERT INTO t SELECT 1 FROM s UNION SELECT a FROM s", "x", {}, id="union"),
        pytest.param("INSERT INTO t SELECT 1, a FROM s", "xyz", {}, id="other number"),
        pytest.param("INSERT INTO t VALUES (1, 2)", "xy", {}, id="values"),
        pytest.param("DELETE FROM t WHERE a = 1", "x", {}, id="no select"),
        pytest.param("INSERT INTO t SELEKT ((", "x", {}, id="no SQL"),
        pytest.param("", "x", {}, id="nothing"),
    ],
)
def test_what_a_statement_makes_of_no_column(statement, columns, expected):
    assert without_columns(statement, list(columns)) == expected


def test_the_statements_of_a_loop_are_read_once():
    _projections_of.cache_clear()
    without = {
        tuple(without_columns(f"INSERT INTO t SELECT `a{n % 2}`, '{n}', \"{n}\" FROM s", "abc"))
        for n in range(100)
    }
    assert without == {("b", "c")}
    assert _projections_of.cache_info().misses == 2


def test_an_apostrophe_in_a_comment_is_no_quote():
    statement = "INSERT INTO t SELECT a, -- it's\n 'x' AS d /* isn't */ FROM s"
    assert without_columns(statement, ["a", "d"]) == {"d": "a literal"}


def test_a_statement_is_not_read_once_time_is_up(recorded):
    application = recorded("sql_queries").application
    full = merge(application, Outcome.COMPLETE)
    named = messages(full, "column_without_sources")
    assert any("is a literal" in message for message in named.values())
    hasty = [
        merge(application, Outcome.COMPLETE, allowance=lasting(looks)) for looks in range(0, 160, 4)
    ]
    of_each = [messages(lineage, "column_without_sources") for lineage in hasty]
    without_reasons = [
        found
        for found in of_each
        if found.keys() == named.keys() and not any("literal." in m for m in found.values())
    ]
    assert without_reasons


def test_a_literal_is_known_from_the_statement(recorded):
    application = repaired(recorded("python_udf").application)
    [action] = application.actions
    statement = "INSERT INTO t SELECT order_id, 1.5, f(amount) + customer_id FROM orders"
    with_statement = replace(application, actions=(replace(action, sql=statement),))
    lineage = merge(with_statement, Outcome.COMPLETE)
    assert messages(lineage, "column_without_sources")["score"].endswith("; it is a literal.")


def test_a_rollup_is_known_from_the_statement(recorded):
    application = repaired(recorded("python_udf").application)
    [action] = application.actions
    statement = "INSERT INTO t SELECT order_id, score, s FROM o GROUP BY ROLLUP (order_id, score)"
    with_statement = replace(application, actions=(replace(action, sql=statement),))
    lineage = merge(with_statement, Outcome.COMPLETE)
    message = messages(lineage, "column_without_sources")["score"]
    assert "it is a column of a rollup or cube" in message


def lineageless(recorded, **changes):
    application = repaired(recorded("python_udf").application)
    [action] = application.actions
    [output] = action.outputs
    facets = {k: v for k, v in output.facets.items() if k != "columnLineage"}
    facets |= changes.pop("facets", {})
    without = replace(action, outputs=(replace(output, facets=facets),), **changes)
    lineage = merge(replace(application, actions=(without,)), Outcome.COMPLETE)
    return messages(lineage, "column_lineage_missing")[None]


def schema(count):
    fields = [{"name": f"c{n}", "type": "long"} for n in range(count)]
    return {"schema": msgspec.Raw(json.dumps({"fields": fields}).encode())}


def test_outputs_without_column_lineage_are_reported_with_what_points_at_a_reason(recorded):
    start = "The listener reported no column lineage for /lake/scored_orders"
    assert lineageless(recorded) == f"{start}."
    assert lineageless(recorded, facets=schema(1000)) == f"{start}."
    assert lineageless(recorded, facets=schema(1001)) == (
        f"{start}: of outputs with more than 1000 columns it says none."
    )
    assert lineageless(recorded, facets=schema(0)) == (
        f"{start}: it does not know the columns of the output."
    )
    assert lineageless(recorded, inputs=()) == (
        f"{start}: it knows of no dataset that was read for it."
    )


def test_what_the_listener_does_not_look_into_is_reported(recorded):
    lineage = recorded("sql_queries").lineage
    found = {
        (d.dataset.name.rpartition("/")[2], d.column)
        for d in lineage.degradations
        if d.code == "subquery_unseen"
    }
    assert found == {("scalar_subquery", "converted"), ("scalar_subquery_in_filter", None)}
    assert "FILTER clause" in messages(lineage, "column_incomplete")["eu_total"]


@pytest.mark.parametrize("case", ["iceberg_merge", "delta_tables"])
def test_columns_that_merge_and_update_set_are_reported_as_incomplete(recorded, case):
    found = messages(recorded(case).lineage, "column_incomplete")
    assert found.keys() == {"amount"}
    assert "is changed by a MERGE or UPDATE" in found["amount"]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("UPDATE t SET A = 1, b.c = 2", {"a", "c"}),
        ("MERGE INTO t USING s ON t.k = s.k WHEN MATCHED THEN UPDATE SET t.v = s.v", {"v"}),
        ("MERGE INTO t USING s ON t.k = s.k WHEN NOT MATCHED THEN INSERT *", set()),
        ("SELECT 1", set()),
        ("UPDATE t SET (", set()),
        ("", set()),
    ],
)
def test_the_columns_that_a_statement_sets_are_read(statement, expected):
    assert changed(statement) == expected
