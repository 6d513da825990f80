"""The commands with what is in Airflow's database."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.airflow,
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
