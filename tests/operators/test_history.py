"""Where Airflow's configuration has the history."""

from __future__ import annotations

import pytest

from airflow_provider_sparklineage.hooks import sources
from airflow_provider_sparklineage.model.exceptions import SettingsError


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path):
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path))
    for name in ("ARCHIVE_URL", "HISTORY_URL"):
        monkeypatch.delenv(f"AIRFLOW__SPARKLINEAGE__{name}", raising=False)
    return tmp_path


def test_the_store_is_next_to_the_archive_that_is_used_if_none_is_configured(home):
    assert sources.history_url() == f"file://{home}/sparklineage/history"


def test_the_store_is_next_to_the_configured_archive(monkeypatch):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__ARCHIVE_URL", "s3://aws_default@lineage/tasks/")
    assert sources.history_url() == "s3://aws_default@lineage/history"


def test_a_configured_store_wins(monkeypatch):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__HISTORY_URL", "file:///mnt/history/")
    assert sources.history_url() == "file:///mnt/history"


@pytest.mark.parametrize(
    ("archive", "problem"),
    [
        ("none", "No store of the history is configured, and no archive"),
        ("s3://lineage", "The archive s3://lineage has no folder around it"),
    ],
)
def test_where_nothing_is_known_the_option_is_named(monkeypatch, archive, problem):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__ARCHIVE_URL", archive)
    with pytest.raises(SettingsError, match=r"\[sparklineage\] history_url") as error:
        sources.history_url()
    assert problem in str(error.value)


def test_a_path_is_no_url_of_a_store(monkeypatch):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__HISTORY_URL", "/mnt/history")
    with pytest.raises(SettingsError, match=r"It must be a URL such as s3://bucket/history"):
        sources.history_url()
