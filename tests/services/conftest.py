"""A worker without Spark, and the Spark behind the services."""

from __future__ import annotations

import json
import shutil
import tempfile
from contextlib import ExitStack
from importlib import import_module

import pytest

from tests.cluster.submitting import Submitter
from tests.services.local_spark import local_spark
from tests.spark import submissions


@pytest.fixture
def behind(spark, tmp_path):
    """Give the Spark to which a service passes on what it is given."""
    with local_spark(spark, tmp_path / "behind") as found:
        yield found


@pytest.fixture
def location(tmp_path, monkeypatch):
    """Let the capture location be a mount that workers and drivers have; give its folder."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION", f"file://{tmp_path}/mount")
    return tmp_path / "mount"


@pytest.fixture
def submit_by(location, behind, monkeypatch):
    """Run an application by a service: ``submit_by("livy")("staging_chain", lake)``."""
    with ExitStack() as entered:

        def by(service):
            module = import_module(f"tests.services.{service}")
            return entered.enter_context(module.running(behind, monkeypatch))

        yield by


@pytest.fixture
def submit_here(spark, tmp_path, monkeypatch):
    """Run an application by spark-submit on this worker."""
    (tmp_path / "worker").mkdir()
    for key, value in submissions.of_worker(spark, tmp_path / "worker").items():
        if key != "AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION":
            monkeypatch.setenv(key, value)
    connection = {"conn_type": "spark", "host": "local[2]"}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(connection))
    return Submitter({**submissions.UNSEEN, "spark.sql.shuffle.partitions": "1"})


@pytest.fixture
def lakes(orders_lake, tmp_path):
    """Give two copies of the recorded cases' lake, one for each of two ways."""
    return [str(shutil.copytree(orders_lake, tmp_path / n / "lake")) for n in ("theirs", "ours")]
