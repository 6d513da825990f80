"""A task that the listener adopts when it is about to run: as if it had been adopted before."""

from __future__ import annotations

import copy
import logging
import subprocess
import sys
from types import SimpleNamespace

import pendulum
import pytest
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.common.compat.sdk import conf as airflow_conf
from airflow.providers.common.compat.sdk import hookimpl
from airflow.sdk import DAG
from airflow.sdk._shared.listeners.listener import ListenerManager
from airflow.sdk._shared.listeners.spec import taskinstance
from airflow.sdk.bases.operator import BaseOperator
from airflow.sdk.execution_time.context import MacrosAccessor

from airflow_provider_sparklineage.operators.adoption import adopting, listener, policy
from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator
from airflow_provider_sparklineage.plugins import lineage_tab

pytestmark = pytest.mark.airflow

DAY = "2024-05-06"


class MergingOperator(SparkSubmitOperator):
    """Makes what it gives to Spark of what it is given."""

    def __init__(self, *, conf=None, day="{{ ds }}", **kwargs):
        conf = {**(conf or {}), "spark.shop.day": day}
        super().__init__(conf=conf, application_args=["--day", day], **kwargs)


@pytest.fixture(autouse=True)
def adopt_all(adopt):
    adopt("all")


class TaskInstance(SimpleNamespace):
    def get_template_context(self):
        return self.context


def rendered(task, index=-1):
    """Render as the task runner does, before it tells listeners; give the task instance."""
    context = {
        "ds": DAY,
        "ds_nodash": DAY.replace("-", ""),
        "logical_date": pendulum.parse(DAY),
        "run_id": "scheduled",
        "params": {},
        "macros": MacrosAccessor(),
        "dag": task.dag,
        "dag_run": SimpleNamespace(conf={}),
    }
    ti = TaskInstance(
        task_id=task.task_id, map_index=index, is_mapped=lambda: index >= 0, context=context
    )
    context |= {"ti": ti, "task": task.prepare_for_execution()}
    ti.task = context["task"]
    context["task"].render_template_fields(context, task.dag.get_template_env())
    ti.task = context["task"]
    return ti


def running(task, index=-1):
    """Render a task, and say that it is about to run."""
    ti = rendered(task, index)
    listener.on_task_instance_running(task_instance=ti)
    return ti.task


def plain(cls, **kwargs):
    return cls(task_id="revenue", application="job.py", **kwargs)


def with_macros(cls):
    return plain(
        cls,
        application_args=["--day", "{{ day_of(ds) }}", "/lake/dt={{ ds }}", 7],
        conf={"spark.shop.day": "{{ ds_nodash }}", "spark.shop.name": "x"},
        env_vars={"DAY": "{{ macros.ds_add(ds, -1) }}"},
    )


def changed_later(cls):
    task = plain(cls, application_args=["{{ run_id }}"], conf={})
    task.application_args = ["{{ ds }}"]
    task.conf["spark.shop.day"] = "{{ ds }}"
    return task


def mapped(cls):
    partial = cls.partial(task_id="revenue", application="a", conf={"spark.shop.day": "{{ ds }}"})
    return partial.expand(application_args=[["x"], ["/dt={{ ds }}", "{{ ds_nodash }}"]])


def mapped_by_keywords(cls):
    partial = cls.partial(task_id="revenue", application="a")
    return partial.expand_kwargs([{}, {"application_args": ["/dt={{ ds }}"], "env_vars": {}}])


def native(cls):
    return plain(cls, application_args="{{ ['--day', ds] }}", conf={"d": "{{ ds_nodash }}"})


@pytest.mark.parametrize(
    ("make", "more"),
    [
        pytest.param(plain, {}, id="no templates"),
        pytest.param(with_macros, {"user_defined_macros": {"day_of": str}}, id="macros"),
        pytest.param(plain, {"default_args": {"conf": {"d": "{{ ds }}"}}}, id="default_args"),
        pytest.param(changed_later, {}, id="changed after the constructor"),
        pytest.param(mapped, {}, id="expand"),
        pytest.param(mapped_by_keywords, {}, id="expand_kwargs"),
        pytest.param(native, {"render_template_as_native_obj": True}, id="native"),
    ],
)
def test_a_task_that_is_adopted_late_has_the_traces_of_one_with_our_operator(make, more):
    of_each = []
    for cls in (SparkSubmitOperator, SparkLineageSubmitOperator):
        with DAG("shop", schedule=None, **more):
            task = make(cls)
        of_each.append(running(task, 1 if task.is_mapped else -1))
    late, ours = of_each
    assert late.is_adopted
    assert late.lineage_try.rendered.texts == ours.lineage_try.rendered.texts
    assert late.lineage_try.rendered.problems == ours.lineage_try.rendered.problems == ()


def test_what_the_constructor_of_a_plain_task_makes_is_traced():
    with DAG("shop", schedule=None):
        task = running(plain(MergingOperator, conf={"a": "{{ run_id }}"}))
    spans = {t.field: [s.expression for s in t.spans] for t in task.lineage_try.rendered.texts}
    assert spans == {
        "application_args[0]": [],
        "application_args[1]": ["ds"],
        "conf[a]": ["run_id"],
        "conf[spark.shop.day]": ["ds"],
    }


def test_what_the_constructor_of_a_mapped_task_makes_of_an_argument_is_reported_as_unknown():
    with DAG("shop", schedule=None):
        partial = MergingOperator.partial(task_id="revenue", conf={"a": "{{ ds }}"})
        task = running(partial.expand(application=["job.py"]), 0)
    assert task.conf == {"a": DAY, "spark.shop.day": DAY}
    spans = {t.field: (t.template, t.value, t.spans) for t in task.lineage_try.rendered.texts}
    assert spans["conf[a]"] == spans["conf[spark.shop.day]"] == (DAY, DAY, ())
    assert spans["application_args[1]"][2]  # which the class gives to nobody else
    [problem] = task.lineage_try.rendered.problems
    assert "makes conf of other arguments" in problem


def test_values_of_an_upstream_task_are_no_templates(monkeypatch):
    with DAG("shop", schedule=None):
        task = SparkSubmitOperator.partial(task_id="revenue").expand(application_args=[["x"]])
    values = ["{{ ds }}"]
    monkeypatch.setattr(
        type(task),
        "_expand_mapped_kwargs",
        lambda *_: ({"application_args": values}, {id(values), id(values[0])}),
    )
    late = running(task, 0)
    assert late.application_args == ["{{ ds }}"]
    [text] = late.lineage_try.rendered.texts
    assert (text.template, text.variables) == ("{{ ds }}", ())
    assert late.lineage_try.rendered.problems == ()


def test_a_task_that_the_policy_has_adopted_is_left_alone(mocker):
    adopt = mocker.spy(adopting, "adopt")
    follow = mocker.spy(SparkLineageSubmitOperator, "follow_rendering")
    with DAG("shop", schedule=None):
        task = plain(SparkSubmitOperator)
    policy.task_policy(task)
    ti = rendered(task)
    before = vars(ti.task).copy()
    listener.on_task_instance_running(task_instance=ti)
    assert adopt.call_count == 1
    assert follow.call_count == 0
    assert vars(ti.task) == before


def test_a_task_is_adopted_once_however_many_managers_tell(mocker):
    adopt = mocker.spy(adopting, "adopt")
    with DAG("shop", schedule=None):
        ti = rendered(plain(SparkSubmitOperator))
    listener.on_task_instance_running(task_instance=ti)
    listener.on_task_instance_running(task_instance=ti)
    assert adopt.call_count == 1


def test_a_task_that_a_policy_of_the_user_has_put_there_is_adopted():
    with DAG("shop", schedule=None) as dag:
        task = plain(SparkSubmitOperator, application_args=["{{ ds }}"])
    dag.task_dict["revenue"] = other = copy.copy(task)
    policy.task_policy(task)
    late = running(other)
    assert late.is_adopted
    assert late.lineage_try.rendered.texts[0].spans


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("off", id="off"),
        pytest.param("[{dag_id: shop, exclude: true}]", id="excluded"),
        pytest.param("/no/such/file.yaml", id="no rules"),
        pytest.param("[{nothing", id="wrong rules"),
    ],
)
def test_a_task_that_is_not_to_be_adopted_stays_what_it_is(adopt, value):
    adopt(value)
    with DAG("shop", schedule=None):
        ti = rendered(plain(SparkSubmitOperator))
    before = vars(ti.task).copy()
    listener.on_task_instance_running(task_instance=ti)
    assert type(ti.task) is SparkSubmitOperator
    assert vars(ti.task) == before


def test_our_own_operator_stays_what_it_is():
    with DAG("shop", schedule=None):
        ti = rendered(plain(SparkLineageSubmitOperator))
    before = ti.task.lineage_try
    listener.on_task_instance_running(task_instance=ti)
    assert type(ti.task) is SparkLineageSubmitOperator
    assert ti.task.lineage_try is before


def test_nothing_is_asked_of_a_task_that_runs_no_spark(mocker):
    rules = mocker.spy(policy, "configured")
    task = BaseOperator(task_id="other")
    listener.on_task_instance_running(task_instance=SimpleNamespace(task=task))
    assert rules.call_count == 0


def test_a_task_runs_as_it_is_where_adopting_it_fails(mocker, caplog):
    mocker.patch.object(adopting, "adopt", side_effect=TypeError("no"))
    with DAG("shop", schedule=None):
        ti = rendered(plain(SparkSubmitOperator))
    with caplog.at_level(logging.WARNING):
        listener.on_task_instance_running(task_instance=ti)
    assert type(ti.task) is SparkSubmitOperator
    assert "'revenue' runs without lineage (TypeError: no)." in caplog.text


def test_switched_off_lineage_costs_an_adopted_task_nothing(monkeypatch):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__DISABLED", "True")
    with DAG("shop", schedule=None):
        task = running(plain(SparkSubmitOperator, application_args=["{{ ds }}"]))
    assert task.lineage_try.prepared is None
    assert task.lineage_try.rendered.texts is None


# --- the plugin -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "count"),
    [
        pytest.param("off", 0, id="off"),
        pytest.param(" OFF ", 0, id="off, written otherwise"),
        pytest.param("", 0, id="empty"),
        pytest.param("all", 1, id="all"),
        pytest.param("/no/such/file.yaml", 1, id="rules, which are read later"),
    ],
)
def test_airflow_has_the_listener_only_where_tasks_are_adopted(adopt, value, count):
    adopt(value)
    assert lineage_tab.adopting() == [listener][:count]


def test_the_listener_comes_before_those_that_ask_the_task_for_lineage():
    """And Airflow takes it once, from whichever of its managers, as often as it loads plugins."""
    asked = []

    class Other:
        @hookimpl
        def on_task_instance_running(self, task_instance):
            asked.append(type(task_instance.task).__mro__)

    manager = ListenerManager()
    manager.add_hookspecs(taskinstance)
    for each in (listener, listener, Other()):
        manager.add_listener(each)
    with DAG("shop", schedule=None):
        ti = rendered(plain(SparkSubmitOperator))
    manager.hook.on_task_instance_running(previous_state="queued", task_instance=ti)
    [classes_then] = asked
    assert SparkLineageSubmitOperator in classes_then


def test_the_plugin_of_an_airflow_that_adopts_imports_little():
    code = (
        "import sys; from airflow_provider_sparklineage.plugins import lineage_tab\n"
        "print('LOADED', *(m.partition('.')[2] for m in sys.modules if 'sparklineage.' in m))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    [loaded] = [line.split() for line in done.stdout.splitlines() if line.startswith("LOADED")]
    assert "operators.adoption.listener" in loaded
    of_operators = {name for name in loaded if name.startswith(("operators.", "model.task_rules"))}
    assert of_operators == {
        "operators.adoption",
        "operators.adoption.kinds",
        "operators.adoption.listener",
        "operators.adoption.policy",
    }
    assert not {"templates", "lineage", "event"} & {*loaded}


def test_an_option_that_cannot_be_read_adopts_nothing_and_the_plugin_loads(monkeypatch):
    monkeypatch.delenv("AIRFLOW__SPARKLINEAGE__ADOPT")
    airflow_conf.read_string("[sparklineage]\nadopt = %(nothing)s\n")
    try:
        assert lineage_tab.adopting() == []
    finally:
        airflow_conf.remove_option("sparklineage", "adopt")


def test_what_is_declared_is_rendered_and_traced_as_well(monkeypatch):
    monkeypatch.setenv(
        "AIRFLOW__SPARKLINEAGE__DECLARATIONS",
        "- {dag_id: shop, writes: '/lake/dt={{ ds }}', on_partition_mismatch: fail}",
    )
    with DAG("shop", schedule=None):
        task = running(plain(SparkSubmitOperator))
    assert (task.writes, task.on_partition_mismatch) == ([f"/lake/dt={DAY}"], "fail")
    (traced,) = [
        text for text in task.lineage_try.rendered.texts if text.field.startswith("writes")
    ]
    assert (traced.template, traced.value) == ("/lake/dt={{ ds }}", f"/lake/dt={DAY}")
