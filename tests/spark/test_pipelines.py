"""A declarative pipeline, run by the operator with the real spark-pipelines of Spark 4.2."""

from __future__ import annotations

import os
from pathlib import Path

import duckdb
import pytest

from airflow_provider_sparklineage.operators.spark_pipelines import SparkLineagePipelinesOperator
from tests import record_events, spark_submit_double
from tests.spark import submissions

pytestmark = [pytest.mark.spark, pytest.mark.airflow, pytest.mark.long]

BIN = Path(__file__).parents[2] / ".venvs" / "spark-pipelines" / "bin"

SPEC = """
name: shop
storage: file://{work}/storage
libraries: [{{glob: {{include: transformations/**}}}}]
"""
PYTHON = """
from pyspark import pipelines
from pyspark.sql import SparkSession, functions

@pipelines.materialized_view(partition_cols=["day"])
def cleaned():
    orders = SparkSession.active().read.parquet("{work}/orders").where("day = 6")
    return orders.select("id", (functions.col("amount") * 2).alias("twice"), "day")
"""
SQL = """
CREATE MATERIALIZED VIEW totals PARTITIONED BY (day) AS
SELECT sum(twice) AS total, day FROM cleaned GROUP BY day;
"""
ROWS = "SELECT * FROM (VALUES (1, 2.0::DOUBLE, 5), (2, 3.0::DOUBLE, 6)) AS t(id, amount, day)"


@pytest.fixture
def work(tmp_path, monkeypatch):
    """Have files of two days, a pipeline over them, and a worker whose Spark can run it."""
    if not (BIN / "spark-pipelines").exists():
        pytest.skip("spark-pipelines needs Spark 4.2 with pandas: .ci/spark-venv pipelines")
    spark = record_events.Spark.of(BIN / "spark-submit")
    environment = submissions.of_worker(spark, tmp_path) | {
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "PYSPARK_PYTHON": str(BIN / "python"),
        "SPARK_HOME": str(spark.distribution.home),
    }
    for key, value in environment.items():
        monkeypatch.setenv(key, value)
    duckdb.sql(f"COPY ({ROWS}) TO '{tmp_path}/orders' (FORMAT parquet, PARTITION_BY (day))")
    transformations = tmp_path / "transformations"
    transformations.mkdir()
    (transformations / "cleaned.py").write_text(PYTHON.format(work=tmp_path))
    (transformations / "totals.sql").write_text(SQL)
    (tmp_path / "spark-pipeline.yml").write_text(SPEC.format(work=tmp_path))
    return tmp_path


def test_a_pipeline_on_the_worker_has_its_lineage(work):
    task = SparkLineagePipelinesOperator(
        task_id="totals",
        pipeline_spec=str(work / "spark-pipeline.yml"),
        conf={"spark.sql.warehouse.dir": f"{work}/warehouse", "spark.ui.enabled": "false"},
    )
    spark_submit_double.execute(task, spark_submit_double.task_context())
    lineage = task.get_openlineage_facets_on_complete(None)
    facet = lineage.run_facets["sparkLineage_capture"]
    messages = {d["code"]: d["message"] for d in facet.degradations}
    assert "pipeline" in messages["observer_unavailable"]
    read_back = f"{work}/warehouse/cleaned"  # without the observer, nobody knows that it is
    assert [one.name for one in lineage.inputs] == [f"{work}/orders", read_back]
    outputs = {Path(one.name).name: one.facets for one in lineage.outputs}
    assert outputs.keys() == {"cleaned", "totals"}
    sources = outputs["totals"]["columnLineage"].fields["total"]["inputFields"]
    assert {(one["name"], one["field"]) for one in sources} == {
        (f"{work}/orders", "amount"),
        (read_back, "twice"),
    }
