"""Which executors are local, and the archive that follows from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_sparklineage.hooks import sources

pytestmark = pytest.mark.airflow


@pytest.fixture
def configured(monkeypatch):
    return lambda value: monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", value)


@pytest.mark.parametrize(
    ("value", "remote"),
    [
        ("LocalExecutor", ()),
        ("airflow.executors.local_executor.LocalExecutor", ()),
        ("here:LocalExecutor", ()),
        ("LocalExecutor;shop=LocalExecutor", ()),
        ("CeleryExecutor", ("CeleryExecutor",)),
        ("LocalExecutor, CeleryExecutor", ("CeleryExecutor",)),
        ("LocalExecutor;shop=far:my.cloud.FarExecutor,LocalExecutor", ("FarExecutor",)),
        ("KubernetesExecutor,CeleryExecutor", ("KubernetesExecutor", "CeleryExecutor")),
        ("MyLocalExecutor", ("MyLocalExecutor",)),
    ],
)
def test_one_executor_that_is_not_local_is_enough_for_no_archive(configured, value, remote, home):
    configured(value)
    assert sources.remote_executors() == remote
    url = sources.default_archive().values.get("archive_url")
    assert url == (None if remote else f"file://{home}/sparklineage/archive")


@pytest.mark.parametrize(
    "variable", ["AIRFLOW_IS_K8S_EXECUTOR_POD", "AIRFLOW_IS_EXECUTOR_CONTAINER"]
)
def test_a_pod_of_a_remote_executor_says_itself_that_it_is_local(configured, monkeypatch, variable):
    configured("LocalExecutor")
    monkeypatch.setenv(variable, "True")
    assert sources.remote_executors()
    assert sources.default_archive().values == {}


def test_a_home_with_two_slashes_is_that_folder(monkeypatch):
    monkeypatch.setenv("AIRFLOW_HOME", "//opt/airflow")
    url = "file:///opt/airflow/sparklineage/archive"
    assert sources.default_archive().values == {"archive_url": url}


def test_without_a_home_it_is_airflows_own_default(monkeypatch):
    monkeypatch.delenv("AIRFLOW_HOME")
    home = Path("~/airflow").expanduser()
    url = f"file://{home}/sparklineage/archive"
    assert sources.default_archive().values == {"archive_url": url}
