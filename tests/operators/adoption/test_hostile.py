"""Operators that nobody expected: each runs as without adoption, adopted or left alone."""

from __future__ import annotations

import copy
import dataclasses
from types import SimpleNamespace
from typing import Generic, TypeVar

import pytest
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG
from airflow.sdk.bases.operator import BaseOperatorMeta

from airflow_provider_sparklineage.model import task_rules
from airflow_provider_sparklineage.operators.adoption import adopting, policy
from tests.spark_submit_double import injected

pytestmark = pytest.mark.airflow

T = TypeVar("T")


class OddProperty(SparkSubmitOperator):
    """Adds to its properties whenever it is asked for them."""

    @property
    def conf(self):
        return {**self.__dict__.get("given", {}), "spark.own": "1"}

    @conf.setter
    def conf(self, value):
        self.__dict__["given"] = value or {}


class Refusing(SparkSubmitOperator):
    """Knows what attributes it has."""

    def __setattr__(self, name, value):
        if name not in {"_lock_for_execution", *vars(self)} and hasattr(self, "is_made"):
            raise AttributeError(name)
        super().__setattr__(name, value)

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.is_made = True


class Incomparable(SparkSubmitOperator):
    """Is neither compared nor shown nor hashed."""

    def __eq__(self, _):
        raise ValueError

    __hash__ = None
    __bool__ = __repr__ = __eq__


@dataclasses.dataclass
class Data(SparkSubmitOperator):
    """Has fields."""

    day: str = "x"

    def __init__(self, day="x", **kwargs):
        super().__init__(**kwargs)
        self.day = day


class ForAType(SparkSubmitOperator, Generic[T]):
    """Is for a type."""


class AnyName(SparkSubmitOperator):
    """Has no end of reasons for what it has not."""

    def __getattr__(self, name):
        raise AttributeError(name)


class Registered(SparkSubmitOperator):
    """Takes each name once."""

    names: set[str] = set()  # noqa: RUF012

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if cls.__name__ in cls.names:
            raise ValueError(cls.__name__)
        cls.names.add(cls.__name__)


class Child(Registered):
    """Is there already."""


class ForTeams(SparkSubmitOperator):
    """Wants to know whose its subclasses are."""

    def __init_subclass__(cls, *, team, **kwargs):
        super().__init_subclass__(**kwargs)


class OneParent(BaseOperatorMeta):
    def __new__(cls, name, bases, namespace):
        if len(bases) > 1:
            raise TypeError
        return super().__new__(cls, name, bases, namespace)


class OfOneParent(SparkSubmitOperator, metaclass=OneParent):
    """Has a metaclass of its own."""


class OwnRendering(SparkSubmitOperator):
    """Renders nothing."""

    def _do_render_template_fields(self, *_, **__):
        self.application_args = ["own"]


class OwnFields(SparkSubmitOperator):
    """Finds out what its templates are."""

    @property
    def template_fields(self):
        return ("application_args",)


class ByACopy(SparkSubmitOperator):
    """Submits by another than itself."""

    def execute(self, context):
        other = copy.copy(self)
        other.conf = {"spark.copied": "1"}
        return super(ByACopy, other).execute(context)


class Twice(SparkSubmitOperator):
    """Submits two jobs."""

    def execute(self, context):
        super().execute(context)
        return super().execute(context)


class Wrapped(SparkSubmitOperator):
    """Puts something around its own execute()."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        execute = self.execute
        self.execute = lambda context: execute(context)


class Itself(SparkSubmitOperator):
    """Is nobody else."""

    def execute(self, context):
        if type(self) is not Itself:
            raise TypeError
        return super().execute(context)


class OddName(SparkSubmitOperator):
    """Cannot give the name that pages show."""

    class Raising:
        def __get__(self, *_):
            raise RuntimeError

    custom_operator_name = Raising()


HOSTILE = [
    *(OddProperty, Refusing, Incomparable, Data, ForAType[int], AnyName, Child, ForTeams),
    *(OfOneParent, OwnRendering, OwnFields, ByACopy, Twice, Wrapped, OddName, Itself),
]
NAMES = [getattr(cls, "__name__", "ForAType") for cls in HOSTILE]


@pytest.fixture
def job_of(spark_submit, execute, context):
    """Run a task as the task runner does; give what spark-submit got that the DAG has given."""

    def run(task):
        values = {**context, "ds": "2024-05-06", "dag": task.dag, "task": task}
        prepared = values["task"] = task.prepare_for_execution()
        prepared.render_template_fields(values)
        spark_submit.forgets()
        result = execute(prepared, values)
        given = spark_submit.given
        conf = {k: v for k, v in given.conf.items() if k.startswith(("spark.own", "spark.copied"))}
        return SimpleNamespace(
            job=(result, given.argv[given.argv.index("job.py") :], conf),
            is_collected=injected(given),
            kept=(prepared.application_args, prepared.conf),
        )

    return run


def task_of(cls):
    return cls(
        task_id="revenue", application="job.py", application_args=["{{ ds }}"], conf={"a": "b"}
    )


def made(cls):
    with DAG("shop", schedule=None):
        return task_of(cls)


@pytest.mark.parametrize("cls", HOSTILE, ids=NAMES)
def test_a_job_is_the_same_with_adoption_and_without(job_of, parsed, cls):
    stock = job_of(made(cls))
    task = parsed(lambda: task_of(cls))["revenue"]
    now = job_of(task)
    assert (now.job, now.kept) == (stock.job, stock.kept)
    assert now.is_collected is adopting.has_lineage(type(task))
    decision = adopting.decide(task, task_rules.ADOPT_ALL)
    assert decision.adopts is now.is_collected


def test_those_that_cannot_be_adopted_are_left_alone_with_a_reason():
    reasons = {
        name: adopting.decide(made(cls), task_rules.ADOPT_ALL).reason
        for name, cls in zip(NAMES, HOSTILE, strict=True)
    }
    assert {name for name, reason in reasons.items() if reason != "adopted"} == {
        *("Refusing", "OwnFields", "Wrapped", "Itself")
    }
    assert "something of its own called execute" in reasons["Wrapped"]
    assert "asks for its exact class" in reasons["Itself"]


@pytest.mark.parametrize("name", ["__module__", "__name__", "__doc__", "__dict__", "__mro__"])
def test_a_class_that_does_not_tell_its_names_is_left_alone_with_the_reason(name):
    def tell(cls):
        if known:
            raise SystemExit
        return BaseOperatorMeta.__dict__.get(name, vars(type)[name]).__get__(cls)

    known = []
    cls = type("Meta", (BaseOperatorMeta,), {name: property(tell)})(
        "Shop", (SparkSubmitOperator,), {}
    )
    task = made(cls)
    known.append(cls)
    reason = adopting.decide(task, task_rules.ADOPT_ALL).reason
    assert reason == "left alone: its class cannot be extended (SystemExit: )"


def test_a_task_whose_execute_somebody_has_replaced_is_left_alone():
    task = made(SparkSubmitOperator)
    execute = task.execute
    task.execute = lambda context: execute(context)
    decision = adopting.decide(task, task_rules.ADOPT_ALL)
    assert not decision.adopts
    assert "something of its own called execute" in decision.reason


def test_default_args_for_other_operators_reach_no_adopted_task(adopt):
    adopt("all")
    given = {"strict": True, "lineage": False, "on_partition_mismatch": "odd", "reads": 7}
    with DAG("shop", schedule=None, default_args=given):
        plain = SparkSubmitOperator(task_id="plain", application="job.py")
        mapped = SparkSubmitOperator.partial(task_id="mapped").expand(application=["job.py"])
    for each in (plain, mapped):
        policy.task_policy(each)
    unmapped = mapped.unmap({"application": "job.py"})
    for each in (plain, unmapped):
        assert each.is_adopted
        assert each.lineage is True
        assert (each.strict, each.reads, each.on_partition_mismatch) == (None, None, "warn")
