"""DAGs whose tasks pass through the policy, as when Airflow parses their file."""

from __future__ import annotations

import pytest
from airflow.sdk import DAG

from airflow_provider_sparklineage.operators.adoption import policy


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
