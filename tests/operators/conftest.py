"""An operator run as Airflow's task runner would, with a spark-submit that is a script of ours."""

from __future__ import annotations

import tempfile

import pytest

from airflow_provider_sparklineage.event.archive import Archive
from tests import spark_submit_double


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """Give a test an AIRFLOW_HOME of its own for what tries keep there; Airflow itself has its."""
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "airflow"))
    return tmp_path / "airflow"


@pytest.fixture
def archive(home):
    """Give the archive that events are kept in where nobody has configured one."""
    return Archive(f"file://{home}/sparklineage/archive", is_default=True)


@pytest.fixture
def spark_submit(tmp_path, monkeypatch):
    fake = spark_submit_double.FakeSparkSubmit(tmp_path)
    fake.install(monkeypatch)
    return fake


@pytest.fixture
def lake(spark_submit, monkeypatch, tmp_path):
    """Let the capture location be a URL, of the same name here and in Spark; give its folder."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # where the worker's own bundles are
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION", f"file://{tmp_path}/lake")
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__COLLECT_TIMEOUT", "3")
    return tmp_path / "lake"


@pytest.fixture
def captures(tmp_path):
    """Bundles that are left below the capture location."""
    return lambda: sorted((tmp_path / "captures").glob("*/manifest.json"))


@pytest.fixture
def context():
    """Template context of a task instance, as far as the operator and the macros look into it."""
    return spark_submit_double.task_context()


@pytest.fixture
def execute(context):
    """Execute an operator as the task runner does."""

    def run(operator, context=context):
        return spark_submit_double.execute(operator, context)

    return run
