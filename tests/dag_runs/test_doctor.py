"""The commands with what is in Airflow's database."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "dags_examples"

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.long,
    # Airflow's database connections outlive a test.
    pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning"),
]


def test_the_doctor_sees_connections_of_airflows_database_and_prints_only_its_document(airflow_db):
    from airflow.models.connection import Connection
    from airflow.utils.session import create_session

    with create_session() as session:
        session.add(Connection("stored", "sparklineage", host="127.0.0.1", port=9))
        session.add(Connection("stored_spark", "spark", host="local[3]"))
    airflow = Path(sys.executable).with_name("airflow")
    command = [airflow, "sparklineage", "doctor", "--json", "--conn-id", "stored"]
    done = subprocess.run(
        [*command, "--spark-conn-id", "stored_spark"], capture_output=True, text=True, check=False
    )
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert checks["connection"]["message"] == (
        "stored is of type sparklineage, looks at http://127.0.0.1:9."
    )
    assert checks["Spark connection"]["message"] == "stored_spark submits to local[3]."


def test_an_explanation_of_a_task_prints_only_its_document(airflow_db):
    airflow = Path(sys.executable).with_name("airflow")
    task = ["example_catch_wrong_partition", "carrier_delays", "--logical-date", "2013-01-08"]
    done = subprocess.run(
        [airflow, "sparklineage", "explain", *task, "--json"],
        env=os.environ | {"AIRFLOW__CORE__DAGS_FOLDER": str(EXAMPLES)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["subject"] == "example_catch_wrong_partition.carrier_delays"
