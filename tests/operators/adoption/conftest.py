"""DAGs whose tasks pass through the policy, as when Airflow parses their file."""

from __future__ import annotations

import pytest
from airflow import settings
from airflow.dag_processing.dagbag import DagBag
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG
from airflow.sdk.bases.operator import BaseOperatorMeta

from airflow_provider_sparklineage.operators.adoption import policy


class _OfOneParent(BaseOperatorMeta):
    def mro(self):
        if len(self.__bases__) > 1:
            msg = "there is none after me"
            raise TypeError(msg)
        return super().mro()


class Last(SparkSubmitOperator, metaclass=_OfOneParent):
    """An operator whose class no other class can extend together with a second one."""


@pytest.fixture
def adopt(monkeypatch):
    """Set what is adopted."""

    def configure(value: str) -> None:
        monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__ADOPT", value)

    return configure


@pytest.fixture
def parsed(adopt):
    """Make a DAG of tasks as Airflow does of a file; give its tasks by their ids."""

    def parse(make, value="all", **dag):
        adopt(value)
        with DAG("shop", schedule=None, **dag) as made:
            make()
        for task in made.tasks:
            policy.task_policy(task)
        return made.task_dict

    return parse


@pytest.fixture
def policies():
    """Airflow's manager of policies, with ours, as by its entry point."""
    manager = settings.get_policy_plugin_manager()
    kept = manager.unregister(name="sparklineage") if manager.has_plugin("sparklineage") else None
    manager.register(policy, name="sparklineage")
    yield manager
    if manager.has_plugin("sparklineage"):
        manager.unregister(name="sparklineage")
    if kept is not None:
        manager.register(kept, name="sparklineage")


@pytest.fixture
def parse(policies, adopt, tmp_path):
    """Let Airflow parse a DAG file; give its DAG. Without a value there is no policy of ours."""
    folder = tmp_path / "dags"
    folder.mkdir()

    def parse(text, value=None):
        (folder / "shop.py").write_text(text)
        adopt(value or "all")
        if value is None and policies.has_plugin("sparklineage"):
            policies.unregister(name="sparklineage")
        elif value is not None and not policies.has_plugin("sparklineage"):
            policies.register(policy, name="sparklineage")
        bag = DagBag(str(folder), bundle_path=folder, bundle_name="shop")
        assert bag.import_errors == {}
        [dag] = bag.dags.values()
        return dag

    return parse
