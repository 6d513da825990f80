"""Adopted classes: what their tasks do and are called, and what becomes of them."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref

import pytest
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG
from airflow.sdk.bases.operator import BaseOperatorMeta

from airflow_provider_sparklineage.operators.adoption import adopting, kinds
from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator
from tests.operators.adoption.conftest import Last
from tests.spark_submit_double import argument, injected

pytestmark = pytest.mark.airflow


class Shop(SparkSubmitOperator):
    """A team's own operator, which prepares the job and goes on to the stock one."""

    template_fields = (*SparkSubmitOperator.template_fields, "table")

    def __init__(self, *, table, **kwargs):
        super().__init__(application="job.py", **kwargs)
        self.table = table
        self.prepared = False

    def execute(self, context):
        self.prepared = True
        self.application_args = [self.table]
        return super().execute(context)


def adopted(task):
    adopting.adopt(task)
    return task


def shop(**kwargs):
    return Shop(task_id="revenue", table="orders", **kwargs)


def stock(**kwargs):
    return SparkSubmitOperator(task_id="revenue", application="job.py", **kwargs)


def unmapped(task, **kwargs):
    return task.unmap(kwargs)


@pytest.mark.parametrize("make", [stock, shop])
def test_an_adopted_task_has_lineage_and_the_names_that_it_had(make):
    task, before = adopted(make()), make()
    assert isinstance(task, SparkLineageSubmitOperator)
    assert isinstance(task, type(before))
    assert (task.task_type, task.operator_name) == (before.task_type, before.operator_name)
    assert (type(task).__module__, type(task).__qualname__) == (
        type(before).__module__,
        type(before).__qualname__,
    )
    assert vars(task).keys() == vars(before).keys()
    assert adopting.original(type(task)) is type(before)
    assert task.is_adopted


def test_one_class_is_made_of_each_class():
    assert type(adopted(shop())) is type(adopted(shop()))
    assert type(adopted(stock())) is not type(adopted(shop()))


@pytest.mark.parametrize("make", [stock, shop])
def test_the_job_of_an_adopted_task_has_the_listener(spark_submit, execute, make):
    task = adopted(make(conf={"spark.app.name": "shop"}))
    execute(task)
    given = spark_submit.given
    assert injected(given)
    assert given.conf["spark.app.name"] == "shop"
    assert argument(given, "--jars") == str(spark_submit.jar)
    assert task.conf == {"spark.app.name": "shop"}
    assert task.get_openlineage_facets_on_complete(None).run_facets["sparkLineage_capture"]


def test_an_own_execute_runs_first(spark_submit, execute):
    execute(adopted(shop()))
    assert spark_submit.given.argv[-2:] == ["job.py", "orders"]


@pytest.mark.parametrize(
    "partial",
    [
        pytest.param(
            lambda: Shop.partial(task_id="revenue").expand(table=["a", "b"]), id="own operator"
        ),
        pytest.param(
            lambda: SparkSubmitOperator.partial(task_id="revenue", application="job.py").expand(
                application_args=[["a"], ["b"]]
            ),
            id="stock operator",
        ),
    ],
)
def test_tasks_of_an_adopted_mapped_task_have_lineage(spark_submit, execute, context, partial):
    mapped = adopted(partial())
    assert mapped.operator_extra_links == mapped.operator_class.operator_extra_links != ()
    [name] = mapped.expand_input.value
    task = unmapped(mapped, **{name: mapped.expand_input.value[name][1]})
    assert task.is_adopted
    execute(task)
    assert spark_submit.given.argv[-2:] == ["job.py", "b"]
    assert injected(spark_submit.given)


def test_nothing_of_ours_is_among_the_arguments_of_a_mapped_task():
    made = Shop.partial(task_id="revenue").expand(table=["a"])
    before = {**made.partial_kwargs}
    assert adopted(made).partial_kwargs == before


def test_an_own_constructor_gets_what_the_dag_gives_and_nothing_else():
    given = []

    class Noting(SparkSubmitOperator):
        def __init__(self, *, table, **kwargs):
            given.append({*kwargs})
            super().__init__(**kwargs)
            self.table = table

    def made():
        return Noting.partial(task_id="revenue", application="job.py").expand(table=["a"])

    unmapped(made(), table="a")
    unmapped(adopted(made()), table="a")
    assert given[0] == given[1]


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy])
def test_a_copy_of_an_adopted_task_has_lineage_too(how):
    assert type(how(adopted(shop()))) is type(adopted(shop()))
    mapped = adopted(Shop.partial(task_id="revenue").expand(table=["a"]))
    assert how(mapped).operator_class is type(adopted(shop()))


@pytest.mark.parametrize("protocol", [2, pickle.DEFAULT_PROTOCOL, pickle.HIGHEST_PROTOCOL])
def test_a_dag_with_adopted_tasks_is_pickled_as_if_they_were_not(protocol):
    """As a virtualenv task does that is given its DAG; nobody adopts where it is unpickled."""
    with DAG("shop", schedule=None) as dag:
        Shop(task_id="own", table="orders")
        SparkSubmitOperator(task_id="stock", application="job.py")
        Shop.partial(task_id="mapped").expand(table=["a"])
    for task in dag.tasks:
        adopting.adopt(task)
    text = pickle.dumps(dag, protocol)
    tasks = pickle.loads(text).task_dict
    assert type(tasks["own"]) is tasks["mapped"].operator_class is Shop
    assert type(tasks["stock"]) is SparkSubmitOperator
    assert tasks["own"].table == "orders"
    assert type(dag.task_dict["own"]) is not Shop
    assert b"is_adopted" not in text


def test_a_class_with_slots_of_its_own_is_adopted():
    class Slots(SparkSubmitOperator):
        __slots__ = ("table",)

    task = Slots(task_id="revenue", application="job.py")
    task.table = "orders"
    assert adopted(task).table == "orders"


def test_a_class_that_cannot_be_extended_is_refused_and_its_task_stays():
    task = Last(task_id="revenue", application="job.py")
    with pytest.raises(TypeError, match="none after me"):
        adopting.adopt(task)
    assert type(task) is Last


def test_what_runs_no_spark_cannot_be_adopted():
    with pytest.raises(TypeError, match="runs no Spark"):
        adopting.adopt(BashOperator(task_id="revenue", bash_command="true"))


def test_classes_that_are_equal_for_their_metaclass_are_not_mistaken_for_each_other():
    class ByName(BaseOperatorMeta):
        def __eq__(self, other):
            return self.__name__ == other.__name__

        def __hash__(self):
            return hash(self.__name__)

    def make(base):
        return ByName("Same", (base,), {})

    tasks = [make(base)(task_id="revenue", application="job.py") for base in (Shop.__base__, Spare)]
    assert [adopted(task).execute_name() for task in tasks[1:]] == ["spare"]
    assert not hasattr(adopted(tasks[0]), "execute_name")
    other = make(BashOperator)(task_id="bash", bash_command="true")
    assert kinds.kind_of(other)[1] is None


class Spare(SparkSubmitOperator):
    def execute_name(self):
        return "spare"


def test_classes_go_with_their_dag_file():
    class Once(SparkSubmitOperator):
        pass

    task = adopted(Once(task_id="revenue", application="job.py"))
    gone = weakref.ref(Once), weakref.ref(type(task))
    del task, Once
    gc.collect()  # of the adopted class, and then of the one that it was made of
    gc.collect()
    assert [ref() for ref in gone] == [None, None]


def test_a_class_is_found_by_its_path_without_importing_anything():
    class Like:
        __module__ = "airflow.providers.apache.spark.operators.spark_submit"
        __qualname__ = "SparkSubmitOperator"

    [submit] = [k for k in kinds.KINDS if k.stock.endswith(".SparkSubmitOperator")]
    assert kinds.kind_of(Like())[1] is submit
    assert kinds.kind_of(object())[1] is None
