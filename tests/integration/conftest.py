"""What a real Marquez is tried with: the DAG runs of ``tests/dag_runs``."""

from tests.dag_runs.conftest import airflow_db, events_of, run_dag, task_runs
from tests.operators.conftest import spark_submit

__all__ = ["airflow_db", "events_of", "run_dag", "spark_submit", "task_runs"]
