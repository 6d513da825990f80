"""Column lineage of plans against the listener's, for every recorded write that has both.

They are built of different plans of one query: ours of the analysed one, the listener's of the
optimised one. Where they differ, the table has the difference and why ours is right.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from airflow_provider_sparklineage.lineage.application.repairs import repaired
from airflow_provider_sparklineage.lineage.columns.plans.commands import planned_columns
from airflow_provider_sparklineage.lineage.columns.reported import (
    ReportedColumns,
    metadata_columns_removed,
)
from airflow_provider_sparklineage.lineage.ledger import Ledgers
from airflow_provider_sparklineage.lineage.observed.binding import identities
from airflow_provider_sparklineage.spark.capture.observations import (
    ObservationReport,
    read_observations,
)
from tests.conftest import OBSERVED, golden
from tests.lineage_text import short
from tests.unit.lineage.test_binding import collected

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from airflow_provider_sparklineage.lineage.columns.edges import ColumnLineage

REASONS = {
    "subquery": "the listener does not look into scalar subqueries",
    "joined subquery": "Spark joins it; but it chooses no rows of the query, and makes one column",
    "python": "to the listener the result of Python comes out of nowhere",
    "expanded": "the listener does not look beyond the operator that expands rows",
    "distinct union": "the listener loses what is grouped by above a union",
    "filter clause": "the listener does not look into FILTER clauses of aggregates",
    "struct": "Spark looks whether the struct is null before it makes a new one of its fields",
    "merge": "the listener knows columns of a MERGE or UPDATE, and says nothing of expressions",
    "kept": "rows are rewritten with the values that they had",
    "no columns": "the listener reports the write without columns",
    "pushed": "the filter was pushed down to the source, and is not in the optimised plan",
}
# (reason, case, output) -> what only one of the two has: - the listener's, + ours.
DIFFERENCES = {
    ("subquery", "sql_queries", "queries/scalar_subquery"): """
+ converted <- rates.rate AGGREGATION
""",
    ("subquery", "sql_queries", "queries/scalar_subquery_in_filter"): """
+ * <- rates.rate FILTER
""",
    ("joined subquery", "sql_queries", "queries/correlated_subquery"): """
- * <- customers.customer_id JOIN
- * <- orders.customer_id GROUP_BY
- * <- orders.customer_id JOIN
+ total <- customers.customer_id JOIN
+ total <- orders.customer_id JOIN
""",
    ("python", "frame_queries", "frames/python_column"): """
+ half <- orders.amount TRANSFORMATION
""",
    ("python", "frame_queries", "frames/python_filter"): """
+ * <- orders.amount FILTER
""",
    ("python", "lost_columns", "inside"): """
+ shifted <- orders.amount TRANSFORMATION
""",
    ("python", "lost_columns", "nested"): """
+ a b#1 <- orders.amount TRANSFORMATION
+ a b#1 <- orders.customer_id TRANSFORMATION
""",
    ("python", "lost_columns", "pandas"): """
+ both <- orders.amount TRANSFORMATION
+ both <- orders.customer_id TRANSFORMATION
""",
    ("python", "lost_columns", "pandas_groups"): """
+ * <- orders.order_id GROUP_BY
+ amount <- orders.amount TRANSFORMATION
+ amount <- orders.order_id TRANSFORMATION
+ order_id <- orders.amount TRANSFORMATION
+ order_id <- orders.order_id TRANSFORMATION
""",
    ("python", "lost_columns", "pandas_rows"): """
+ amount <- orders.amount TRANSFORMATION
+ amount <- orders.order_id TRANSFORMATION
+ order_id <- orders.amount TRANSFORMATION
+ order_id <- orders.order_id TRANSFORMATION
""",
    ("python", "lost_columns", "plain"): """
+ score <- orders.amount TRANSFORMATION
""",
    ("python", "lost_columns", "sql_scores"): """
+ score <- orders.amount TRANSFORMATION
""",
    ("python", "lost_columns", "summed"): """
+ total <- orders.amount AGGREGATION
""",
    ("python", "lost_columns", "united"): """
+ amount <- orders.amount TRANSFORMATION
""",
    ("python", "python_udf", "scored_orders"): """
+ score <- orders.amount TRANSFORMATION
+ shifted <- orders.amount TRANSFORMATION
""",
    ("python", "read_while_written", "ledger_path"): """
+ * <- orders.order_id FILTER
""",
    ("expanded", "frame_queries", "frames/cubed"): """
+ * <- orders.region GROUP_BY
+ region <- orders.region IDENTITY
""",
    ("expanded", "frame_queries", "frames/rolled_up"): """
+ * <- orders.dt GROUP_BY
+ * <- orders.region GROUP_BY
+ dt <- orders.dt IDENTITY
+ region <- orders.region IDENTITY
""",
    ("expanded", "lost_columns", "rollup"): """
+ * <- orders.region GROUP_BY
+ region <- orders.region IDENTITY
""",
    ("expanded", "sql_queries", "queries/cubed"): """
+ * <- orders.dt GROUP_BY
+ * <- orders.region GROUP_BY
+ dt <- orders.dt IDENTITY
+ region <- orders.region IDENTITY
""",
    ("expanded", "sql_queries", "queries/grouping_sets"): """
+ * <- orders.dt GROUP_BY
+ * <- orders.region GROUP_BY
+ dt <- orders.dt IDENTITY
+ region <- orders.region IDENTITY
""",
    ("expanded", "sql_queries", "queries/rolled_up"): """
+ * <- orders.dt GROUP_BY
+ * <- orders.region GROUP_BY
+ dt <- orders.dt IDENTITY
+ region <- orders.region IDENTITY
""",
    ("expanded", "sql_queries", "queries/unpivoted"): """
+ * <- customers.email FILTER
+ * <- customers.name FILTER
+ told <- customers.email IDENTITY
+ told <- customers.name IDENTITY
""",
    ("distinct union", "sql_queries", "queries/union_distinct"): """
+ * <- customers.customer_id GROUP_BY
+ * <- orders.customer_id GROUP_BY
""",
    ("filter clause", "sql_queries", "queries/filtered_aggregate"): """
+ eu_total <- orders.region CONDITIONAL
""",
    ("struct", "frame_queries", "frames/field_replaced"): """
- address <- profiles.address CONDITIONAL
""",
    ("merge", "delta_commands", "warehouse/merged"): """
+ * <- customers.customer_id JOIN
+ * <- warehouse/merged.customer_id JOIN
- customer_id <- warehouse/merged.customer_id IDENTITY
+ note <- customers.name TRANSFORMATION
+ note <- customers.segment CONDITIONAL
+ note <- warehouse/merged.note TRANSFORMATION
""",
    ("merge", "delta_tables", "delta/revenue"): """
+ * <- delta/revenue.dt JOIN
+ * <- delta/revenue.region JOIN
+ * <- orders.region JOIN
+ amount <- delta/revenue.amount TRANSFORMATION
+ amount <- orders.amount TRANSFORMATION
- dt <- delta/revenue.dt IDENTITY
- region <- delta/revenue.region IDENTITY
""",
    ("merge", "iceberg_commands", "iceberg/shop/copied"): """
+ * <- customers.customer_id JOIN
+ * <- customers.segment FILTER
+ * <- iceberg/shop/copied.customer_id JOIN
+ amount <- iceberg/shop/copied.amount TRANSFORMATION
+ amount <- iceberg/shop/copied.order_id TRANSFORMATION
""",
    ("merge", "iceberg_commands", "iceberg/shop/marked"): """
- customer_id <- iceberg/shop/marked.customer_id IDENTITY
+ note <- customers.name TRANSFORMATION
+ note <- customers.segment CONDITIONAL
- note <- iceberg/shop/marked.note IDENTITY
+ note <- iceberg/shop/marked.note TRANSFORMATION

- customer_id <- iceberg/shop/marked.customer_id IDENTITY
- note <- iceberg/shop/marked.note IDENTITY
+ note <- iceberg/shop/marked.note TRANSFORMATION
""",
    ("merge", "iceberg_merge", "iceberg/shop/revenue"): """
- amount <- iceberg/shop/revenue.amount IDENTITY
+ amount <- iceberg/shop/revenue.amount TRANSFORMATION
+ amount <- orders.amount IDENTITY
+ amount <- orders.amount TRANSFORMATION
- dt <- iceberg/shop/revenue.dt IDENTITY
- region <- iceberg/shop/revenue.region IDENTITY
+ region <- orders.region IDENTITY

- amount <- iceberg/shop/revenue.amount IDENTITY
+ amount <- iceberg/shop/revenue.amount TRANSFORMATION
+ amount <- iceberg/shop/revenue.dt CONDITIONAL
+ amount <- iceberg/shop/revenue.region CONDITIONAL
- dt <- iceberg/shop/revenue.dt IDENTITY
- region <- iceberg/shop/revenue.region IDENTITY
""",
    ("kept", "iceberg_commands", "iceberg/shop/copied"): """
- amount <- iceberg/shop/copied.amount IDENTITY
- customer_id <- iceberg/shop/copied.customer_id IDENTITY
- order_id <- iceberg/shop/copied.order_id IDENTITY
""",
    ("kept", "iceberg_commands", "iceberg/shop/marked"): """
- customer_id <- iceberg/shop/marked.customer_id IDENTITY
- note <- iceberg/shop/marked.note IDENTITY
""",
    ("no columns", "delta_commands", "warehouse/replaced"): """
+ * <- customers.customer_id JOIN
+ * <- orders.customer_id JOIN
+ name <- customers.name TRANSFORMATION
+ order_id <- orders.order_id IDENTITY
""",
    ("no columns", "iceberg_commands", "iceberg/shop/replaced"): """
+ * <- customers.customer_id JOIN
+ * <- orders.customer_id JOIN
+ name <- customers.name TRANSFORMATION
+ order_id <- orders.order_id IDENTITY
""",
    ("pushed", "iceberg_merge", "iceberg/shop/revenue"): """
+ * <- iceberg/shop/revenue.dt FILTER
""",
    ("pushed", "iceberg_merge", "revenue_report"): """
+ * <- iceberg/shop/revenue.dt FILTER
""",
}


Edge = tuple[str, str, str]


def observations(case: str, spark: str) -> Path:
    """Path of what was observed in a recorded case."""
    return golden(case, spark).parent / "observed" / f"{case}.ndjson"


def edges(lineage: ColumnLineage) -> set[Edge]:
    """Give (column or *, source, kind) of all edges."""
    return {
        (
            name,
            f"{short(column.dataset)}.{column.field}",
            f"{t.subtype}{'/masked' if t.masking else ''}",
        )
        for name, found in (*lineage.fields.items(), ("*", lineage.dataset))
        for column, transformations in found.items()
        for t in transformations
    }


def writes(recorded, spark: str, case: str) -> Iterator[tuple[str, set[Edge], set[Edge]]]:
    """Give of each recorded write with a plan: its output, the listener's edges, and ours."""
    application = repaired(recorded(case, spark).application)
    lines = observations(case, spark).read_bytes().splitlines(keepends=True)
    records = read_observations(lines, ObservationReport())
    ledgers = Ledgers(collected(records, identities(application.actions)))
    reported = ReportedColumns()
    for action in application.actions:
        reported.learn(action)
        for output in action.outputs:
            for plan in ledgers.of(output.name).plans(action):
                planned = planned_columns(plan)
                unknown = {*planned.incomplete, *([] if planned.is_whole else "*")}
                ours = edges(metadata_columns_removed(planned.lineage, lambda _: False))
                theirs = edges(reported.of_write(action, output, ()))
                # Spark filters nulls out of what it joins by.
                joined = {
                    source for column, source, kind in theirs if (column, kind) == ("*", "JOIN")
                }
                optimised = {("*", source, "FILTER") for source in joined} - ours
                yield (
                    short(output.name),
                    {edge for edge in theirs - optimised if edge[0] not in unknown},
                    {edge for edge in ours if edge[0] not in unknown},
                )


def differences(listener: set[Edge], ours: set[Edge]) -> str:
    """Write what only one of the two has."""
    found = [(*edge, "-") for edge in listener - ours] + [(*edge, "+") for edge in ours - listener]
    return "\n".join(f"{sign} {column} <- {of} {kind}" for column, of, kind, sign in sorted(found))


WITH_PLANS = [(s, c) for s, c in OBSERVED if b'"plan":[' in observations(c, s).read_bytes()]


@pytest.mark.parametrize(("spark", "case"), WITH_PLANS)
def test_the_plan_and_the_listener_agree(recorded, spark, case):
    expected = {
        (output, text.strip())
        for (_, of, output), texts in DIFFERENCES.items()
        if of == case
        for text in texts.strip().split("\n\n")
    }
    found = {
        (output, differences(listener, ours))
        for output, listener, ours in writes(recorded, spark, case)
        if listener != ours
    }
    assert found <= expected


def test_every_difference_has_its_reason_and_is_there():
    assert {reason for reason, _, _ in DIFFERENCES} == REASONS.keys()
    assert {case for _, case, _ in DIFFERENCES} <= {case for _, case in OBSERVED}


def test_most_writes_have_no_difference(recorded):
    numbers = Counter(
        listener == ours
        for spark, case in WITH_PLANS
        for _, listener, ours in writes(recorded, spark, case)
    )
    assert numbers[True] > 3 * numbers[False] > 0
