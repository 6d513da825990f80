"""Stock operators that are adopted, under one `airflow standalone` for all tests that need one."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from airflow_provider_sparklineage.spark.submit import listener_selection
from tests.adoption import provider_examples
from tests.adoption.adopting import DAGS, Adopting
from tests.adoption.comparing import Home

LOCAL = json.dumps({"conn_type": "spark", "host": "local[1]"})


def pytest_collection_modifyitems(items):
    """Mark what is in this folder, and nothing else."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.airflow)


@pytest.fixture(scope="session")
def listener():
    """Have the listener's jar; gives its path."""
    return listener_selection.fetch_for(listener_selection.spark_of("spark-submit"), "spark-submit")


@pytest.fixture(scope="package")
def fetched(tmp_path_factory):
    """Fetch the Spark provider's own examples; gives their folder, and them or why they are not."""
    folder = tmp_path_factory.mktemp("examples")
    try:
        return folder, provider_examples.fetch(folder), ""
    except provider_examples.NotFetchedError as error:
        return folder, [], str(error)


@pytest.fixture(scope="package")
def started(fetched, listener, tmp_path_factory):
    """Start `airflow standalone`, and end it."""
    home = tmp_path_factory.mktemp("adoption")
    folder, examples, _ = fetched
    orders = home / "lake" / "orders" / "dt=2024-05-06"
    orders.mkdir(parents=True)
    (orders / "orders.json").write_text('{"customer": "eva", "price": 3.5}\n')
    environment = {f"AIRFLOW_CONN_{name.upper()}": LOCAL for name in provider_examples.CONNECTIONS}
    environment |= {
        # Tasks that are drivers are heard by the listener itself.
        "AIRFLOW__SPARKLINEAGE__LISTENER_JAR": str(listener),
        "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]),
        "SHOP_LAKE": str(orders.parents[1]),
        **{name: os.environ[name] for name in ("SPARK_LOCAL_IP", "SPARK_SUBMIT_OPTS")},
    }
    airflow = Adopting(home, examples, **environment)
    try:
        yield airflow
    finally:
        airflow.end()


@pytest.fixture(scope="package")
def airflow(fetched, started):
    """Wait for it, and let all DAGs begin."""
    started.begin()
    _, examples, _ = fetched
    for dag_id in (*DAGS, *(provider_examples.DAGS if examples else ())):
        started.trigger(dag_id)
    return started


@pytest.fixture(scope="session")
def airflow_home(tmp_path_factory):
    """Make homes of Airflow by their names, with databases that are copies of one."""
    folder = tmp_path_factory.mktemp("homes")
    first = Home(folder / "first", None)
    return lambda name: Home(folder / name, first.database)
