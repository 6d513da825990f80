"""A declarative pipeline, run by the operator with the real spark-pipelines of Spark 4.2."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

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

@pipelines.materialized_view(partition_cols=["dt"])
def cleaned():
    orders = SparkSession.active().read.table("orders").where("dt = '2024-05-06'")
    return orders.select("order_id", (functions.col("amount") * 2).alias("twice"), "dt")
"""
SQL = """
CREATE MATERIALIZED VIEW totals PARTITIONED BY (dt) AS
SELECT dt, sum(twice) AS total FROM cleaned GROUP BY dt;
"""


@pytest.fixture
def work(tmp_path, monkeypatch):
    """Have a table of two days, a pipeline over it, and a worker whose Spark can run it."""
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
    defaults = {
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.warehouse.dir": f"{tmp_path}/warehouse",
        "spark.hadoop.javax.jdo.option.ConnectionURL": (
            f"jdbc:derby:;databaseName={tmp_path}/metastore;create=true"
        ),
        "spark.sql.shuffle.partitions": "1",
        "spark.ui.enabled": "false",
    }
    lines = [f"{key} {value}" for key, value in defaults.items()]
    (tmp_path / "conf" / "spark-defaults.conf").write_text("\n".join(lines))
    (tmp_path / "transformations").mkdir()
    (tmp_path / "transformations" / "cleaned.py").write_text(PYTHON)
    (tmp_path / "transformations" / "totals.sql").write_text(SQL)
    (tmp_path / "spark-pipeline.yml").write_text(SPEC.format(work=tmp_path))
    statements = (
        "CREATE TABLE orders (order_id BIGINT, amount DOUBLE, dt STRING) USING parquet "
        "PARTITIONED BY (dt);"
        "INSERT INTO orders VALUES (1, 2.0, '2024-05-05'), (2, 3.0, '2024-05-06')"
    )
    command = [str(BIN / "spark-sql"), "--master", "local[1]", "-e", statements]
    subprocess.run(command, check=True, capture_output=True, cwd=tmp_path)
    return tmp_path
