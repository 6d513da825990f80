"""Which tasks are adopted and why others are not, in sentences."""

from __future__ import annotations

from functools import partial

import pytest
from airflow.providers.amazon.aws.operators.emr import (
    EmrAddStepsOperator,
    EmrContainerOperator,
    EmrServerlessStartJobOperator,
)
from airflow.providers.amazon.aws.operators.glue import GlueJobOperator
from airflow.providers.apache.livy.operators.livy import LivyOperator
from airflow.providers.apache.spark.operators.spark_jdbc import SparkJDBCOperator
from airflow.providers.apache.spark.operators.spark_pipelines import SparkPipelinesOperator
from airflow.providers.apache.spark.operators.spark_pyspark import PySparkOperator
from airflow.providers.apache.spark.operators.spark_sql import SparkSqlOperator
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG, TaskGroup, task

from airflow_provider_sparklineage.model.task_rules import ADOPT_ALL, ADOPT_NONE, load_adoption
from airflow_provider_sparklineage.operators.adoption import adopting
from airflow_provider_sparklineage.operators.adoption.adopting import decide, names_of
from airflow_provider_sparklineage.operators.spark_submit import (
    SparkLineageMixin,
    SparkLineageSubmitOperator,
)
from tests.operators.adoption.conftest import Last

pytestmark = pytest.mark.airflow


class Shop(SparkSubmitOperator):
    def execute(self, context):
        return super().execute(context)


class Mixed(SparkLineageMixin, Shop):
    pass


class WithoutSuper(SparkSubmitOperator):
    def execute(self, context):
        self._get_hook().submit(context["job"])


class BehindIt(WithoutSuper):
    def execute(self, context):
        return super().execute(context)


class Deferrable(SparkSubmitOperator):
    def __init__(self, *, deferrable=False, **kwargs):
        super().__init__(**kwargs)
        self._waits = deferrable

    def execute(self, context):
        if self._waits:
            self.defer(trigger=None, method_name="execute")
        return super().execute(context)


class DeferrableByDefault(Deferrable):
    def __init__(self, *, deferrable=True, **kwargs):
        super().__init__(deferrable=deferrable, **kwargs)


class InheritsTheArgument(Deferrable):
    def __init__(self, *, table="", **kwargs):
        super().__init__(**kwargs)
        self.table = table


class AlwaysDefers(SparkSubmitOperator):
    def execute(self, context):
        super().execute(context)
        self.defer(trigger=None, method_name="execute")


class StartsInTheTriggerer(SparkSubmitOperator):
    start_from_trigger = True


class Plain:
    def table(self):
        return "orders"


class HasAMixinFirst(Plain, SparkSubmitOperator):
    """Airflow wraps the stock constructor once more for it."""


class HasReads(SparkSubmitOperator):
    def __init__(self, *, reads=(), **kwargs):
        super().__init__(**kwargs)
        self.reads = reads


class HasHooks(SparkSubmitOperator):
    def get_openlineage_facets_on_complete(self, task_instance):
        return task_instance


class PreparesTheHook(SparkSubmitOperator):
    def execute(self, context):
        self._hook = self._get_hook()
        self._hook._conf["spark.app.name"] = context["shop"]
        return super().execute(context)


class LooksAtTheHook(SparkSubmitOperator):
    def execute(self, context):
        super().execute(context)
        return self._hook._driver_id


class HasMethodsAsOthersHave(SparkSubmitOperator):
    """Names that anybody may give to what is for oneself: lineage has others."""

    _defaults = _running = _client = None

    def _prepare(self):
        self._sent = self._inputs = self._job = None

    def _run(self):
        self._trace = self._configured = self._state = self._started = None

    def _submit(self):
        self._result = self._wait = self._collect = self._check = self._setup = None


class Mix:
    strict = "very"


class HasMixBehind(SparkSubmitOperator, Mix):
    pass


class RefusesAttributes(SparkSubmitOperator):
    def __setattr__(self, name, value):
        if name not in ("task_id", "application"):
            msg = f"no {name}"
            raise AttributeError(msg)
        super().__setattr__(name, value)


class Asynchronous(SparkSubmitOperator):
    async def execute(self, context):
        return super().execute(context)


def function(spark):
    pass


async def asynchronous(spark):
    pass


class ShopLivy(LivyOperator):
    def execute(self, context):
        return super().execute(context)


class LivyInTheTriggerer(LivyOperator):
    start_from_trigger = True


class ShopPySpark(PySparkOperator):
    def execute_callable(self):
        return self.python_callable()


class PySparkWithoutSuper(PySparkOperator):
    def execute(self, context):
        return context and self.execute_callable()


JOB_RUN = {"execution_role_arn": "arn", "job_driver": {}}


def decided(make, rules=ADOPT_ALL):
    with DAG("shop", schedule=None, tags=["spark"]) as dag:
        make()
    [task] = dag.tasks
    return decide(task, rules)


def of(cls, **kwargs):
    return partial(cls, task_id="revenue", **kwargs)


def mapped(cls, **kwargs):
    return lambda: cls.partial(task_id="revenue", **kwargs).expand(application=["a.py", "b.py"])


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(of(SparkSubmitOperator), id="stock"),
        pytest.param(of(Shop), id="own execute"),
        pytest.param(of(HasAMixinFirst), id="a mixin first"),
        pytest.param(of(HasMethodsAsOthersHave), id="helpers of its own"),
        pytest.param(of(LooksAtTheHook), id="looks at the hook"),
        pytest.param(of(Deferrable), id="not deferrable, as it may be"),
        pytest.param(of(InheritsTheArgument), id="nor by an argument of a base"),
        pytest.param(of(DeferrableByDefault, deferrable=False), id="nor as it usually is"),
        pytest.param(mapped(Shop), id="mapped"),
        pytest.param(mapped(Deferrable), id="mapped, not deferrable"),
        pytest.param(of(SparkSqlOperator, sql="select 1"), id="spark-sql"),
        pytest.param(of(LivyOperator, file="a.py"), id="Livy"),
        pytest.param(of(LivyOperator, file="a.py", deferrable=True), id="Livy, deferrable"),
        pytest.param(of(ShopLivy, file="a.py", deferrable=True), id="a Livy of the user's own"),
        pytest.param(
            of(EmrServerlessStartJobOperator, deferrable=True, application_id="a", **JOB_RUN),
            id="EMR Serverless, deferrable",
        ),
        pytest.param(
            of(
                EmrContainerOperator, name="a", virtual_cluster_id="b", release_label="c", **JOB_RUN
            ),
            id="EMR on EKS",
        ),
        pytest.param(of(EmrAddStepsOperator, job_flow_id="j-1", deferrable=True), id="EMR steps"),
        pytest.param(of(GlueJobOperator, deferrable=True), id="Glue, deferrable"),
        pytest.param(of(SparkJDBCOperator), id="JDBC"),
        pytest.param(of(SparkPipelinesOperator, pipeline_spec="a.yml"), id="pipelines"),
        pytest.param(of(PySparkOperator, python_callable=function), id="PySpark"),
        pytest.param(of(ShopPySpark, python_callable=function), id="PySpark, called its own way"),
        pytest.param(lambda: task.pyspark(function)(), id="@task.pyspark"),
        pytest.param(lambda: task.pyspark(function).expand(spark=[None]), id="mapped function"),
    ],
)
def test_adopted(make):
    decision = decided(make)
    assert (decision.adopts, decision.reason) == (True, "adopted")


NO_SUPER = "its execute() does not call super().execute()"


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        pytest.param(
            of(BashOperator, bash_command="true"),
            "it is none of Airflow's Spark operators, nor made of one",
            id="bash",
        ),
        pytest.param(of(SparkLineageSubmitOperator), "it has lineage by itself", id="ours"),
        pytest.param(of(Mixed), "it has lineage by itself", id="mixin"),
        pytest.param(of(WithoutSuper), NO_SUPER, id="without super"),
        pytest.param(of(BehindIt), NO_SUPER, id="a base is without super"),
        pytest.param(mapped(WithoutSuper), NO_SUPER, id="mapped, without super"),
        pytest.param(of(Asynchronous), "its execute() is asynchronous", id="asynchronous"),
        pytest.param(
            of(PreparesTheHook),
            "its own code sets _hook, which lineage has made anew",
            id="prepares the hook",
        ),
        pytest.param(
            of(PySparkWithoutSuper, python_callable=function), NO_SUPER, id="PySpark without super"
        ),
        pytest.param(
            lambda: task.pyspark(asynchronous)(),
            "its function is asynchronous",
            id="asynchronous function",
        ),
        pytest.param(
            lambda: task.pyspark(asynchronous).expand(spark=[None]),
            "its function is asynchronous",
            id="mapped asynchronous function",
        ),
        pytest.param(
            of(LivyInTheTriggerer, file="a.py"),
            "it starts in the triggerer, where nothing can be added to its job",
            id="Livy in the triggerer",
        ),
        pytest.param(of(Deferrable, deferrable=True), "it is deferrable", id="deferrable"),
        pytest.param(of(InheritsTheArgument, deferrable=True), "it is deferrable", id="by a base"),
        pytest.param(of(DeferrableByDefault), "it is deferrable", id="deferrable by default"),
        pytest.param(of(AlwaysDefers), "it is deferrable", id="always deferrable"),
        pytest.param(of(StartsInTheTriggerer), "it is deferrable", id="starts in the triggerer"),
        pytest.param(mapped(Deferrable, deferrable=True), "it is deferrable", id="mapped, too"),
        pytest.param(
            lambda: Deferrable.partial(task_id="revenue").expand_kwargs(
                [{"deferrable": True}, {"deferrable": False}]
            ),
            "it is deferrable",
            id="mapped, some of them",
        ),
        pytest.param(
            of(HasReads), "it has something of its own called reads, as lineage has", id="reads"
        ),
        pytest.param(
            mapped(HasReads),
            "it has something of its own called reads, as lineage has",
            id="reads of mapped",
        ),
        pytest.param(
            of(HasHooks),
            "it has something of its own called get_openlineage_facets_on_complete, as lineage has",
            id="hooks of Airflow's provider",
        ),
        pytest.param(
            of(HasMixBehind), "it has something of its own called strict, as lineage has", id="mix"
        ),
        pytest.param(
            mapped(RefusesAttributes),
            "it has something of its own called __setattr__, as lineage has",
            id="attributes",
        ),
        pytest.param(
            of(Last),
            "its class cannot be extended (TypeError: there is none after me)",
            id="no subclasses",
        ),
    ],
)
def test_left_alone(make, reason):
    decision = decided(make)
    assert (decision.adopts, decision.reason) == (False, f"left alone: {reason}")


def test_an_attribute_that_the_dag_has_set_is_found():
    def make():
        SparkSubmitOperator(task_id="revenue").strict = True

    assert decided(make).reason.endswith("called strict, as lineage has")


@pytest.mark.parametrize(
    ("rules", "reason", "rule"),
    [
        (ADOPT_NONE, "left alone: adoption is off", None),
        (load_adoption("- dag_id: x\n- task_id: rev*\n"), "adopted (rule 2)", 1),
        (load_adoption("- dag_id: x\n"), "left alone: no rule is for it", None),
        (
            load_adoption("- dag_id: s*\n- {tags: s*, exclude: true}"),
            "left alone: rule 2 excludes it",
            1,
        ),
        (load_adoption("- dag_id: x\n  exclude: true\n"), "adopted", None),
    ],
)  # fmt: skip
def test_the_rule_that_decides_is_named(rules, reason, rule):
    decision = decided(of(SparkSubmitOperator), rules)
    assert (decision.reason, decision.rule) == (reason, rule)


@pytest.mark.parametrize("make", [of(Shop), mapped(Shop), of(SparkSubmitOperator)])
def test_the_decision_about_an_adopted_task_is_the_same(make):
    with DAG("shop", schedule=None) as dag:
        make()
    [task] = dag.tasks
    names = names_of(task)
    adopting.adopt(task)
    assert decide(task, ADOPT_ALL).reason == "adopted"
    assert decide(task, ADOPT_NONE).reason == "left alone: adoption is off"
    assert names_of(task) == names


def test_rules_know_a_task_by_its_dag_groups_tags_and_classes():
    with DAG("shop", schedule=None, tags=["spark", "daily"]) as dag, TaskGroup("week"):
        Shop(task_id="load")
    [task] = dag.tasks
    names = names_of(task)
    assert (names.dag_id, names.task_id, set(names.tags)) == (
        "shop",
        "week.load",
        {"spark", "daily"},
    )
    assert {f"{__name__}.Shop", "Shop", "SparkSubmitOperator"} < {*names.operators}
    assert names_of(BashOperator(task_id="x", bash_command="true")) is None


def test_a_decorated_function_is_known_by_what_airflows_pages_show():
    with DAG("shop", schedule=None) as dag:

        @task.pyspark
        def flights(spark):
            pass

        flights()
    assert "@task.pyspark" in names_of(dag.tasks[0]).operators
