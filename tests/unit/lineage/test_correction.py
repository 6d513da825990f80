"""What the listener reports of columns, corrected by Spark's plan."""

from __future__ import annotations

import pytest

from airflow_provider_sparklineage.lineage.columns.edges import (
    DIRECT,
    INDIRECT,
    Column,
    ColumnLineage,
    Transformation,
)
from airflow_provider_sparklineage.lineage.columns.plans.commands import PlannedColumns
from airflow_provider_sparklineage.lineage.columns.reported import corrected, described
from airflow_provider_sparklineage.model.datasets import DatasetName

ORDERS = DatasetName("file", "/lake/orders")
AMOUNT, REGION, DT = (Column(ORDERS, name) for name in ("amount", "region", "dt"))


def made(subtype="TRANSFORMATION", text="", kind=DIRECT, masking=False):
    return Transformation(kind, subtype, text, masking)


def indirect(subtype, text=""):
    return made(subtype, text, INDIRECT)


REPORTED = ColumnLineage(
    {"total": {AMOUNT: (made("AGGREGATION", "sum(o.amount) AS total"),)}},
    {REGION: (indirect("GROUP_BY", "GROUP BY region"),)},
)


def plan(fields, rows=None, **changes):
    return PlannedColumns(ColumnLineage(fields, rows or {}), **changes)


def test_the_plan_adds_what_the_listener_lacks():
    found = corrected(
        REPORTED,
        [plan({"total": {AMOUNT: (made("AGGREGATION"),), DT: (indirect("CONDITIONAL"),)}})],
    )
    assert set(found.fields["total"]) == {AMOUNT, DT}


def test_the_plan_drops_what_the_listener_has_wrong():
    wrong = ColumnLineage({"total": {DT: (made(),)}}, {DT: (indirect("FILTER"),)})
    found = corrected(wrong, [plan({"total": {AMOUNT: (made(),)}}, {REGION: (indirect("JOIN"),)})])
    assert found.fields == {"total": {AMOUNT: (made(),)}}
    assert found.dataset == {REGION: (indirect("JOIN"),)}


def test_a_column_that_the_plan_knows_to_be_made_of_no_column_has_no_sources():
    found = corrected(REPORTED, [plan({}, made_of={"total": frozenset({"literal"})})])
    assert found.fields == {}


def test_the_same_transformation_keeps_the_listeners_descriptions():
    reported = ColumnLineage(
        {"total": {AMOUNT: (made("AGGREGATION", "one"), made("AGGREGATION", "two"), made())}},
        {REGION: (indirect("GROUP_BY", "GROUP BY region"),)},
    )
    found = corrected(
        reported,
        [
            plan(
                {"total": {AMOUNT: (made("AGGREGATION", "sum(amount)"),)}},
                {REGION: (indirect("GROUP_BY"),)},
            )
        ],
    )
    assert found.fields["total"][AMOUNT] == (made("AGGREGATION", "one"), made("AGGREGATION", "two"))
    assert found.dataset == REPORTED.dataset


def test_the_plan_describes_what_the_listener_does_not():
    bare = ColumnLineage({"total": {AMOUNT: (made(),)}}, {REGION: (indirect("FILTER"),)})
    fields, rows = (
        {"total": {AMOUNT: (made(text="(a + 1)"),)}},
        {REGION: (indirect("FILTER", "r"),)},
    )
    found = corrected(bare, [plan(fields, rows, incomplete=frozenset({"total"}), is_whole=False)])
    assert found == ColumnLineage(fields, rows)


def test_the_name_of_a_function_stands_for_its_number():
    reported = ColumnLineage({"score": {AMOUNT: (made(text="(pythonUDF0 + amount) AS score"),)}})
    ours = {"score": {AMOUNT: (made(text="(score(amount) + amount)"),)}}
    assert corrected(reported, [plan(ours)]).fields == ours


def test_of_a_column_that_is_not_all_known_both_are_reported():
    ours = plan({"total": {DT: (made(),)}}, incomplete=frozenset({"total"}))
    assert corrected(REPORTED, [ours]).fields == {
        "total": {**REPORTED.fields["total"], DT: (made(),)}
    }


def test_of_rows_that_are_not_all_known_both_are_reported():
    ours = plan(
        {"total": {AMOUNT: (made("AGGREGATION"),)}}, {DT: (indirect("FILTER"),)}, is_whole=False
    )
    found = corrected(REPORTED, [ours])
    assert found.dataset == {**REPORTED.dataset, DT: (indirect("FILTER"),)}
    assert found.fields == REPORTED.fields


def test_a_column_that_the_plan_does_not_name_stays():
    found = corrected(REPORTED, [plan({"other": {DT: (made(),)}})])
    assert found.fields == {**REPORTED.fields, "other": {DT: (made(),)}}


def test_what_the_optimiser_knows_of_columns_that_choose_rows_stays():
    optimised = {
        REGION: (indirect("JOIN", "INNER JOIN"), indirect("FILTER", "WHERE region IS NOT NULL")),
        DT: (indirect("FILTER"),),
    }
    found = corrected(ColumnLineage({}, optimised), [plan({}, {REGION: (indirect("JOIN"),)})])
    assert found.dataset == {REGION: optimised[REGION]}


@pytest.mark.parametrize(
    "incomplete", [frozenset(), frozenset({"total"})], ids=["known", "not all"]
)
def test_plans_of_nested_commands_are_united(incomplete):
    ours = [
        plan({"total": {DT: (made(),)}}),
        plan({"total": {AMOUNT: (made("AGGREGATION"),)}}, incomplete=incomplete),
    ]
    assert set(corrected(REPORTED, ours).fields["total"]) == {DT, AMOUNT}


def test_a_write_that_the_listener_reports_without_columns_has_those_of_the_plan():
    ours = plan(
        {"total": {AMOUNT: (made("AGGREGATION", "sum(amount)"),)}}, {DT: (indirect("FILTER"),)}
    )
    assert corrected(ColumnLineage(), [ours]) == ours.lineage


# --- plans of which only the descriptions count ---------------------------------------------------


def test_a_column_with_the_same_sources_in_both_has_the_transformations_of_the_plan():
    bare = ColumnLineage({"dt": {DT: (made(),)}}, {REGION: (indirect("FILTER"), indirect("SORT"))})
    rows = {REGION: (indirect("FILTER", "(region = 'eu')"),)}
    assert described(bare, plan({"dt": {DT: (made("IDENTITY"),)}}, rows)) == ColumnLineage(
        {"dt": {DT: (made("IDENTITY"),)}}, {REGION: (*rows[REGION], indirect("SORT"))}
    )


@pytest.mark.parametrize(
    ("ours", "incomplete"),
    [
        pytest.param({DT: (made("IDENTITY"),), AMOUNT: (made(text="(amount + 1)"),)}, (), id="not"),
        pytest.param({AMOUNT: (made(text="(amount + 1)"),)}, ("dt",), id="not known to be"),
    ],
)
def test_a_column_with_other_sources_in_both_is_as_the_listener_reports_it(ours, incomplete):
    bare = ColumnLineage({"dt": {AMOUNT: (made(),)}, "other": {DT: (made(),)}})
    found = described(bare, plan({"dt": ours}, incomplete=frozenset(incomplete)))
    assert found.fields == {"dt": {AMOUNT: (made(text="(amount + 1)"),)}, "other": {DT: (made(),)}}


def test_what_the_listener_has_described_itself_stays():
    assert described(REPORTED, plan({"total": {AMOUNT: (made(text="x"),)}})) is REPORTED
