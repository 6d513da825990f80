"""DAGs as users write them, none of which knows of lineage: each of their tasks has it.

All of them run under one `airflow standalone`, together with the Spark provider's own examples.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import NamedTuple

import pytest

from tests.adoption.adopting import ALL, ALL_BUT_SWITCHED, DAGS, STOCK_CLASS, WEB_URL

pytestmark = pytest.mark.long

READ = ["/lake/customers", "/lake/orders", "/lake/rates"]
WRITTEN = ["/lake/revenue", "/lake/staging/enriched_orders"]
LINKS = {"Lineage job", "Output columns"}
STOCK = STOCK_CLASS.rpartition(".")[2]


class Shape(NamedTuple):
    """A task, and how it ends."""

    dag_id: str
    task_id: str
    map_index: int = -1
    ends: tuple[str, ...] = ("COMPLETE",)
    state: str = "success"
    operator: str = STOCK


SHAPES = {
    "a factory": Shape("factory", "load_orders"),
    "a factory, in a loop": Shape("factory", "load_customers"),
    "default_args": Shape("default_args", "revenue"),
    "partial and expand": Shape("mapped", "load", 0),
    "partial and expand, another": Shape("mapped", "load", 1),
    "nested task groups": Shape("groups", "bronze.orders.load"),
    "an expanded task group": Shape("groups", "silver.merge", 0),
    "dynamic DAGs": Shape("dynamic_eu", "sales"),
    "dynamic DAGs, another": Shape("dynamic_us", "sales"),
    "a subclass with its own execute": Shape("subclass", "load", operator="ShopSubmitOperator"),
    "a subclass in a plugin": Shape("plugin", "revenue", operator="ShopPluginOperator"),
    "a failing task": Shape("trigger_rule", "load", ends=("FAIL",), state="failed"),
    "trigger_rule": Shape("trigger_rule", "repair"),
    "retries": Shape("retries", "revenue", ends=("FAIL", "COMPLETE")),
    "execution_timeout": Shape("execution_timeout", "revenue", ends=("FAIL",), state="failed"),
    "a pool": Shape("pool", "revenue"),
    "asset outlets": Shape("assets", "revenue"),
    "a policy of the user's own": Shape("own_policy", "revenue"),
    "declarations": Shape("declared", "revenue"),
}

each_shape = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)


def names(datasets):
    return sorted(dataset["name"] for dataset in datasets)


def capture(event):
    """Give the facet that says what was captured; None of a task without lineage."""
    return event["run"]["facets"].get("sparkLineage_capture")


def class_of(event):
    """Give the class that Airflow's own facet names."""
    return event["run"]["facets"]["airflow"]["task"]["operator_class_path"]


@each_shape
def test_a_task_ends_as_ever_and_each_of_its_tries_has_lineage(airflow, shape):
    assert airflow.states(shape.dag_id)[shape.task_id, shape.map_index] == shape.state
    siblings = [s for s in SHAPES.values() if s[:2] == shape[:2]]
    ends = airflow.ends(shape.dag_id, shape.task_id, len(shape.ends) * len(siblings))
    assert [event["eventType"] for event in ends] == [*shape.ends] * len(siblings)
    for event in ends:
        assert capture(event)["degradations"] == []
        assert (names(event["inputs"]), names(event["outputs"])) == (READ, WRITTEN)


@each_shape
def test_pages_and_events_name_the_class_that_the_dag_has(airflow, shape):
    airflow.states(shape.dag_id)
    instance = airflow.instance(shape.dag_id, shape.task_id, shape.map_index)
    assert (instance["operator"], instance["operator_name"]) == (shape.operator, shape.operator)
    task = airflow.asked(f"dags/{shape.dag_id}/tasks/{shape.task_id}")["class_ref"]
    event = airflow.ends(shape.dag_id, shape.task_id)[-1]
    assert f"{task['module_path']}.{task['class_name']}" == class_of(event)
    assert task["class_name"] == shape.operator
    if shape.operator == STOCK:
        assert class_of(event) == STOCK_CLASS


@each_shape
def test_xcom_tab_and_links_are_those_of_the_operator(airflow, shape):
    airflow.states(shape.dag_id)
    of_shape = (shape.dag_id, shape.task_id, shape.map_index)
    event = airflow.xcom(*of_shape[:2], "sparklineage", shape.map_index)
    assert (names(event["inputs"]), names(event["outputs"])) == (READ, WRITTEN)
    assert airflow.tab(*of_shape)["tries"] == [*range(1, len(shape.ends) + 1)]
    links = airflow.links(*of_shape)
    assert links.keys() == LINKS
    assert all(url.startswith(WEB_URL) for url in links.values())


@pytest.mark.parametrize("dag_id", sorted({*DAGS} - {"switched"}))
def test_a_dag_that_is_adopted_has_one_version(airflow, dag_id):
    airflow.states(dag_id)
    assert airflow.versions(dag_id) == 1


# --- what users set, which has to have its effect as ever -----------------------------------------


def test_an_own_execute_prepares_what_is_submitted_and_gives_its_result(airflow):
    airflow.states("subclass")
    [given] = airflow.spark_submit.notes("subclass")
    assert given["argv"][-3:] == ["subclass.py", "--table", "orders/dt=2024-05-06"]
    assert given["conf"]["spark.shop.table"] == "orders/dt=2024-05-06"
    assert airflow.xcom("subclass", "load", "return_value") == "orders/dt=2024-05-06"


def test_an_own_execute_that_does_not_call_super_is_left_alone(airflow):
    assert airflow.states("subclass")["elsewhere", -1] == "success"
    [event] = airflow.ends("subclass", "elsewhere")
    assert capture(event) is None
    assert airflow.links("subclass", "elsewhere") == {}
    assert airflow.xcom("subclass", "elsewhere", "return_value") == "submitted elsewhere"


def test_each_task_that_is_expanded_has_its_own_arguments(airflow):
    airflow.states("mapped")
    given = [note["argv"][-2:] for note in airflow.spark_submit.notes("mapped")]
    assert sorted(given) == [["customers", "2024-05-06"], ["orders", "2024-05-06"]]


def test_partitions_are_expected_by_the_templates_that_the_dag_has(airflow):
    airflow.states("default_args")
    [event] = airflow.ends("default_args", "revenue")
    revenue = written_to(event, "/lake/revenue")
    assert revenue["status"] == "matched"
    [origin] = revenue["from"]
    assert origin["template"] == "/lake/revenue/dt={{ ds }}"


def test_partitions_are_expected_by_the_declarations(airflow):
    airflow.states("declared")
    [event] = airflow.ends("declared", "revenue")
    revenue = written_to(event, "/lake/revenue")
    assert (revenue["status"], revenue["expected"]["summary"]) == ("matched", "dt=2024-05-06")


def written_to(event, name):
    checked = event["run"]["facets"]["sparkLineage_partitionCheck"]["writes"]
    return next(entry for entry in checked if entry["dataset"]["name"] == name)


def test_a_task_is_tried_again(airflow):
    airflow.states("retries")
    assert airflow.instance("retries", "revenue")["try_number"] == 2


def test_a_task_takes_its_places_in_its_pool(airflow):
    airflow.states("pool")
    task = airflow.instance("pool", "revenue")
    assert (task["pool"], task["pool_slots"], task["priority_weight"]) == ("cluster", 2, 5)


def test_an_asset_is_updated_and_what_waits_for_it_runs(airflow):
    airflow.states("assets")
    [event] = airflow.asked("assets/events?source_dag_id=assets")["asset_events"]
    assert (event["uri"], event["source_task_id"]) == ("file:///lake/revenue", "revenue")
    [report] = airflow.ends("assets_consumer", "report")
    assert names(report["inputs"]) == READ


def test_a_policy_of_the_users_own_changes_what_it_did(airflow):
    airflow.states("own_policy")
    assert airflow.asked("dags/own_policy/tasks/revenue")["owner"] == "finance"
    [given] = airflow.spark_submit.notes("own_policy")
    assert given["conf"]["spark.shop.bill"] == "finance"


def test_no_dag_is_refused_but_by_the_users_own_policy(airflow):
    [refused] = airflow.asked("importErrors")["import_errors"]
    assert refused["filename"] == "own_policy_refuses.py"
    assert "Somebody has to own it." in refused["stack_trace"]


# --- a task that is the driver itself -------------------------------------------------------------


def test_a_function_that_is_the_driver_has_lineage(airflow):
    assert airflow.states("pyspark_task") == {("customers", -1): "success"}
    [event] = airflow.ends("pyspark_task", "customers")
    lake = airflow.folder / "lake"
    assert names(event["inputs"]) == [f"{lake}/orders"]
    assert names(event["outputs"]) == [f"{lake}/customers"]
    assert capture(event)["degradations"] == []
    assert written_to(event, f"{lake}/customers")["status"] == "matched"
    assert airflow.instance("pyspark_task", "customers")["operator_name"] == "@task.pyspark"
    assert airflow.xcom("pyspark_task", "customers", "return_value") == 1


# --- turned on and off ----------------------------------------------------------------------------


def test_adoption_turned_on_and_off_makes_at_most_one_version_each(airflow):
    steps = [("run", None, False), ("on", ALL, True), ("off", ALL_BUT_SWITCHED, False)]
    for number, (run_id, rules, is_adopted) in enumerate(steps, 1):
        if rules:
            airflow.adopts(rules)
            airflow.reparse("switched")
            airflow.trigger("switched", run_id)
        assert set(airflow.states("switched", run_id).values()) == {"success"}
        assert airflow.versions("switched") <= number
        for task_id in ("revenue", "load"):
            assert bool(capture(airflow.ends("switched", task_id, number)[-1])) == is_adopted


# --- the Spark provider's own examples ------------------------------------------------------------


@pytest.fixture
def examples(fetched, airflow):
    _, found, reason = fetched
    if not found:
        pytest.skip(f"The provider's source distribution cannot be downloaded: {reason}")
    assert [file.name for file in found] == ["example_pyspark.py", "example_spark_dag.py"]
    return airflow


def test_the_example_of_operators_is_adopted_but_for_those_that_submit_by_other_means(examples):
    states = examples.states("example_spark_operator")
    assert set(states.values()) == {"success"}
    ends = {task: examples.ends("example_spark_operator", task)[0] for task, _ in states}
    adopted = {task for task, event in ends.items() if capture(event)}
    of_jdbc = {"jdbc_to_spark_job", "spark_to_jdbc_job"}
    assert adopted == {"submit_job", "spark_pyspark_job", *of_jdbc}
    assert ends.keys() - adopted == {"spark_sql_job"}
    assert names(ends["submit_job"]["outputs"]) == WRITTEN
    assert class_of(ends["submit_job"]) == STOCK_CLASS
    assert examples.versions("example_spark_operator") == 1


def test_the_example_of_pyspark_is_adopted(examples):
    # It makes a data frame of pandas, which these tests have no other use for.
    can_succeed = find_spec("pandas") and find_spec("pyarrow")
    state, kind = ("success", "COMPLETE") if can_succeed else ("failed", "FAIL")
    assert examples.states("example_pyspark")["spark_task", -1] == state
    [event] = examples.ends("example_pyspark", "spark_task")
    assert event["eventType"] == kind
    assert capture(event)["sparkVersion"]
    assert examples.versions("example_pyspark") == 1
