"""Distributions that Airflow finds in two places: its tasks stop loading plugins at the second."""

from __future__ import annotations

import inspect
import tomllib
from pathlib import Path

import pytest
from airflow import plugins_manager
from airflow._shared import module_loading
from airflow.sdk import listener as sdk_listener
from airflow.sdk import plugins_manager as sdk_plugins_manager
from airflow.sdk._shared import module_loading as sdk_module_loading

from airflow_provider_sparklineage.cli.doctor import airflow
from airflow_provider_sparklineage.hooks import sources
from airflow_provider_sparklineage.plugins.lineage_tab import SparkLineagePlugin

pytestmark = pytest.mark.airflow

OPENLINEAGE = "OpenLineageProviderPlugin"
PROJECT = tomllib.loads(Path(__file__).parents[2].joinpath("pyproject.toml").read_text())["project"]
OURS = PROJECT["entry-points"]["airflow.plugins"]["sparklineage"]
LOADERS = {"API server": plugins_manager, "task": sdk_plugins_manager}


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Put a distribution with a plugin on the path, before those that are there."""

    def forget():
        for loading in (module_loading, sdk_module_loading):
            loading._get_grouped_entry_points.cache_clear()

    def install(name, value, times):
        folders = [tmp_path / f"{name}{number}" for number in range(times)]
        for folder in folders:
            info = folder / f"{name}-0.1.0.dist-info"
            info.mkdir(parents=True)
            (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n")
            (info / "entry_points.txt").write_text(f"[airflow.plugins]\n{name} = {value}\n")
            monkeypatch.syspath_prepend(folder)
        forget()
        return [str(folder) for folder in reversed(folders)]

    yield install
    forget()


@pytest.fixture
def others_twice(install, tmp_path, monkeypatch):
    """Install another plugin twice; let Airflow's tasks load their plugins anew."""
    (tmp_path / "shop_plugin.py").write_text(
        "from airflow.plugins_manager import AirflowPlugin\n"
        "class Shop(AirflowPlugin):\n    name = 'shop'\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    places = install("shop", "shop_plugin:Shop", 2)
    get_plugins = sdk_plugins_manager._get_plugins.__wrapped__
    monkeypatch.setattr(sdk_plugins_manager, "_get_plugins", get_plugins)
    get_manager = sdk_listener.get_listener_manager.__wrapped__
    monkeypatch.setattr(sdk_listener, "get_listener_manager", get_manager)
    return places


def plugins_of(loader):
    return inspect.unwrap(loader._get_plugins)()[0]


@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("loader", LOADERS.values(), ids=LOADERS)
def test_a_second_installation_keeps_no_plugin_out(install, loader, times):
    install("sparklineage", OURS, times)
    plugins = plugins_of(loader)
    assert OPENLINEAGE in [plugin.name for plugin in plugins]
    ours = [plugin for plugin in plugins if isinstance(plugin, SparkLineagePlugin)]
    assert [len(plugin.react_apps) for plugin in ours[:1]] == [2]
    of_others = [(p.macros, p.react_apps, p.fastapi_apps, p.listeners) for p in ours[1:]]
    assert of_others == [([], [], [], [])] * (len(ours) - 1)
    assert ours[0].name == "sparklineage"
    assert len({p.name for p in ours}) == len(ours) >= times


def test_each_load_of_a_process_has_the_plugin(install):
    install("sparklineage", OURS, 2)
    for loader in [*LOADERS.values()] * 2:
        first = next(p for p in plugins_of(loader) if isinstance(p, SparkLineagePlugin))
        assert (first.name, len(first.macros)) == ("sparklineage", len(SparkLineagePlugin.macros))


def test_the_doctor_names_the_places(install):
    assert sources.plugins_found_twice() == {}
    places = install("sparklineage", OURS, 2)
    [check] = [c for c in airflow.check("sparklineage_default", "spark_default").checks
               if c.name == airflow.INSTALLATION]  # fmt: skip
    assert check.status == "warning"
    assert f"in {places[0]} and in {places[1]}" in check.message
    assert "egg-info" in check.fix


def test_what_keeps_the_listener_out_of_tasks_fails_the_doctor(others_twice):
    names = [plugin.name for plugin in plugins_of(sdk_plugins_manager)]
    assert OPENLINEAGE not in names  # this is how Airflow behaves
    checks = {c.name: c for c in airflow.check("sparklineage_default", "spark_default").checks}
    check = checks[airflow.PROVIDER]
    assert check.status == "failed"
    assert f"shop_plugin:Shop in {others_twice[0]} and in {others_twice[1]}" in check.message


@pytest.mark.parametrize("kept", [True, False])
def test_a_task_whose_event_nobody_would_send_says_so(
    others_twice, spark_submit, execute, caplog, monkeypatch, tmp_path, kept
):
    from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator

    url = f"file://{tmp_path}/archive" if kept else "off"
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__ARCHIVE_URL", url)
    task = SparkLineageSubmitOperator(task_id="revenue", application="job.py")
    execute(task)
    warnings = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    [warning] = [text for text in warnings if "shop_plugin:Shop" in text]
    assert ("is kept in the archive" in warning) is kept


def test_plugins_that_are_there_once_keep_nothing_out():
    assert sources.why_not_loaded() is None
