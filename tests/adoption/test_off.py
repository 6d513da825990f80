"""With adoption off, everything is as if the package were not installed, byte for byte."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.adoption.adopting import DAGS, SubmitDouble
from tests.adoption.comparing import TIMEOUT_S, without_run

pytestmark = pytest.mark.long

HERE = Path(__file__).parent
# The others are the same but for how their tasks are made, which is serialised.
RUN = ("default_args", "mapped", "subclass", "trigger_rule", "plugin", "own_policy")


@pytest.fixture(scope="module")
def airflows(airflow_home, tmp_path_factory):
    """Run the same DAGs in two Airflows; gives what each of them has made."""
    double = SubmitDouble(tmp_path_factory.mktemp("double"))

    def made(name, **more):
        home = airflow_home(name)
        config = home.folder / "config"
        config.mkdir()
        (config / "airflow_local_settings.py").write_text((HERE / "user_policy.py").read_text())
        environment = home.environment | {
            "AIRFLOW__CORE__DAGS_FOLDER": str(HERE / "dags"),
            "AIRFLOW__CORE__PLUGINS_FOLDER": str(HERE / "plugins"),
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[1]"}),
            "PATH": os.pathsep.join([double.path, os.environ["PATH"]]),
            "SPARK_HOME": str(double.home),
            **more,
        }
        result = home.folder / "dags.json"
        command = [sys.executable, HERE / "run_dags.py", HERE / "dags", result, *RUN]
        done = subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        texts = {str(home.folder): "/home"}
        return {
            "DAGs": result.read_text(),
            # In an order of their own: tasks that are expanded run in any, and events come from
            # several processes.
            "submissions": sorted(without_run(double.notes_taken(), texts).splitlines()),
            "events": sorted(without_run(home.events, texts).splitlines()),
        }

    return made("stock", WITHOUT_US="yes"), made("off", AIRFLOW__SPARKLINEAGE__ADOPT="off")


@pytest.mark.parametrize("what", ["DAGs", "submissions", "events"])
def test_off_is_as_without_the_package(airflows, what):
    stock, off = airflows
    assert off[what] == stock[what]


def test_what_is_compared_is_there(airflows):
    stock, _ = airflows
    assert json.loads(stock["DAGs"]).keys() >= set(DAGS)
    jobs = {json.loads(event)["job"]["name"] for event in stock["events"]}
    assert jobs >= {"default_args.revenue", "mapped.load", "own_policy.revenue"}
    assert [line for line in stock["submissions"] if "spark.shop.table=orders" in line]
