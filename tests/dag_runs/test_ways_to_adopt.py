"""DAGs of stock operators, run as scripts: what adoption does to them, and what it does not."""

from __future__ import annotations

import json
import re
from difflib import unified_diff

import pytest

from tests.dag_runs.own_process import OwnAirflow

pytestmark = pytest.mark.airflow

DAG_FILE = """
import json, sys
import pendulum
from airflow import settings
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk import DAG

calls = {}

class ShopOperator(SparkSubmitOperator):
    def execute(self, context):
        self.conf = {**self.conf, "spark.shop.team": "sales"}
        return super().execute(context)

def shop(name, submit):
    with DAG(name, schedule=None, start_date=pendulum.datetime(2024, 1, 1)) as dag:
        given = {"application": "job.py", "conf": {"spark.shop.day": "{{ ds_nodash }}"}}
        revenue = submit(
            task_id="revenue", application_args=["--to", "/lake/revenue/dt={{ ds }}"], **given)
        # One instance: the START of another would have what the first has read.
        mapped = submit.partial(task_id="mapped", **given).expand(
            application_args=[["/lake/orders/dt={{ ds }}"]])
        revenue >> mapped
    return dag

def main(*dags):
    for dag in dags:
        day = pendulum.datetime(2024, 5, 6)
        run = dag.test(logical_date=day, run_after=day)
        assert run.state == "success", run
    modules = [name for name in sys.modules if "sparklineage" in name]
    print(json.dumps({"modules": modules, "calls": calls}))
"""
STOCK = """
dag = shop("shop", SparkSubmitOperator)
with dag:
    other = PythonOperator(task_id="other", python_callable=lambda: 1)
    own = ShopOperator(task_id="own", application="job.py", conf={}, env_vars={"DAY": "{{ ds }}"})
    dag.task_dict["mapped"] >> other >> own
if __name__ == "__main__":
    main(dag)
"""
EACH_WAY = """
from airflow_provider_sparklineage.operators.lineage_mixin import LineageMixin
from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator

listener = shop("shop_listener", SparkSubmitOperator)
policy = shop("shop_policy", SparkSubmitOperator)
ours = shop("shop_ours", SparkLineageSubmitOperator)

def counted(name):
    real = getattr(LineageMixin, name)
    def call(self, *args, **kwargs):
        calls.setdefault(f"{self.dag_id} {name}", []).append(self.task_id)
        return real(self, *args, **kwargs)
    setattr(LineageMixin, name, call)

if __name__ == "__main__":
    counted("follow_rendering")
    counted("_prepare_lineage")
    for task in policy.tasks:
        settings.task_policy(task)
    main(listener, policy, ours)
"""


@pytest.fixture
def own_airflow(tmp_path):
    return OwnAirflow(tmp_path / "own_airflow")


@pytest.fixture
def commands(spark_submit, tmp_path):
    """Give the arguments and the task's variables of each spark-submit since it was last asked."""
    path = tmp_path / "commands.ndjson"
    code = (
        "own = {k: v for k, v in os.environ.items() if k == 'DAY' or k.startswith('SPARK')}\n"
        f"open({str(path)!r}, 'a').write(json.dumps([sys.argv[1:], own, files]) + chr(10))"
    )
    spark_submit.does("staging_chain", code=code)

    def commands():
        lines = path.read_text().splitlines()
        path.unlink()
        return [json.loads(line) for line in lines]

    return commands


def plain(events, dag="shop"):
    """Give events without what differs from one run to the next: times, and ids made of them."""
    text = json.dumps(events, indent=1, sort_keys=True).replace(dag, "shop")
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)", "TIME", text)
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "MINUTE", text)
    ids = {}
    return re.sub(
        r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
        lambda found: ids.setdefault(found[0], f"ID{len(ids)}"),
        text,
    ).splitlines()


@pytest.mark.long
def test_with_adoption_off_stock_operators_run_as_without_the_package(own_airflow, commands):
    file = own_airflow.dags / "shop.py"
    file.write_text(DAG_FILE + STOCK)
    without = own_airflow.run(file, installed=False)
    commands_without = commands()
    off = own_airflow.run(file)
    assert commands() == commands_without
    assert len(commands_without) == 3
    for task in ("revenue", "mapped", "own", "other"):
        events = without.events(f"shop.{task}")
        assert len(events) == 2
        assert plain(off.events(f"shop.{task}")) == plain(events)
    assert without.result()["modules"] == []
    not_needed = {
        "operators.adoption.listener",
        "operators.adoption.adopting",
        "operators.spark_submit",
    }
    modules = {name.partition(".")[2] for name in off.result()["modules"]}
    assert "plugins.lineage_tab" in modules
    assert not modules & not_needed


def test_each_way_to_adopt_gives_the_events_of_our_operator_and_only_one_acts(
    own_airflow, commands
):
    file = own_airflow.dags / "shop.py"
    file.write_text(DAG_FILE + EACH_WAY)
    run = own_airflow.run(file, environment={"AIRFLOW__SPARKLINEAGE__ADOPT": "all"})
    tasks = ["revenue", "mapped"]
    assert run.result()["calls"] == {
        "shop_listener follow_rendering": tasks,
        **{
            f"{dag} _prepare_lineage": tasks
            for dag in ("shop_listener", "shop_policy", "shop_ours")
        },
    }
    for task in ("revenue", "mapped"):
        ours, *of_stock = (
            _without_operator(plain(run.events(f"{dag}.{task}"), dag))
            for dag in ("shop_ours", "shop_policy", "shop_listener")
        )
        assert any("columnLineage" in line for line in ours)
        for lines in of_stock:
            assert [*unified_diff(ours, lines, n=0)] == []


def _without_operator(lines):
    """Leave out the operator's class, as Airflow's facets have it, which stays the stock one."""
    return [line for line in lines if not re.match(r' *"operator(_|Class)', line)]
