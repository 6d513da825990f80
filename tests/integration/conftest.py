"""What a real Marquez is tried with: the DAG runs of ``tests/dag_runs``."""

from __future__ import annotations

import os

import pytest

from tests.dag_runs.conftest import airflow_db, events_of, run_dag, stacks, task_runs
from tests.operators.conftest import spark_submit

__all__ = ["airflow_db", "events_of", "run_dag", "spark_submit", "stacks", "task_runs"]

MARQUEZ_URL = os.environ.get("SPARKLINEAGE_TEST_MARQUEZ_URL", "")
"""URL of its API, e.g. ``http://127.0.0.1:5000``."""

needs_marquez = pytest.mark.skipif(
    not MARQUEZ_URL, reason="SPARKLINEAGE_TEST_MARQUEZ_URL names no Marquez"
)
