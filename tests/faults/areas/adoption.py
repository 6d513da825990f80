"""Operators of users that are adopted: code that asks about its class, or that raises for another.

Operators that are left alone have no event of ours; ``tests/operators/adoption`` has their reasons.
"""

from __future__ import annotations

import copy
import functools
import logging
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.bases.operator import BaseOperatorMeta

from tests.faults.bench import raising
from tests.faults.registry import Area

AREA = Area(
    "Adopted operators",
    "An adopted task does what it does without adoption, or is left alone with the reason.",
)
fault = AREA.fault


def shop(execute: Any, **namespace: Any) -> type:
    """Make an operator that calls a function with itself, and then submits its job."""

    class Shop(SparkSubmitOperator):
        def execute(self, context: Any) -> Any:
            execute(self)
            return super().execute(context)

    for name, value in namespace.items():
        setattr(Shop, name, value)
    return Shop


@fault("The operator looks for its class in a table")
def _(bench):
    def make():
        cls = shop(lambda self: tables[type(self)])
        tables = {cls: "orders"}
        return cls

    bench.adopt(make)


@fault("A function is chosen by the operator's class")
def _(bench):
    def make():
        @functools.singledispatch
        def table(_):
            raise LookupError

        cls = shop(table)
        table.register(cls, lambda _: "orders")
        return cls

    bench.adopt(make)


@fault("The operator counts its tasks on its class")
def _(bench):
    def count(self):
        type(self).count += 1

    cls = shop(count, count=0)
    bench.adopt(lambda: cls)
    bench.expect("the user's class has counted both runs", lambda: cls.count == 2)


@fault("The operator gives its class another name")
def _(bench):
    def rename(self):
        type(self).__name__, type(self).__qualname__ = "Table", "Shop.Table"
        assert repr(type(self)).endswith(".Shop.Table'>")

    bench.adopt(lambda: shop(rename))


@fault("The operator copies itself and its class")
def _(bench):
    def copied(self):
        for each in (self, type(self)):
            assert copy.copy(each).template_fields == self.template_fields
            assert copy.deepcopy(each).template_fields == self.template_fields

    bench.adopt(lambda: shop(copied))


@fault("The operator derives another class from its own, and makes a task of it")
def _(bench):
    def derive(self):
        derived = type("Derived", (type(self),), {})
        assert isinstance(derived(task_id="another", application="another.py"), type(self))

    bench.adopt(lambda: shop(derive))


@fault("The operator sets attributes by `setattr`, `vars` and `__dict__`")
def _(bench):
    def put(self):
        setattr(self, "table", "orders")  # noqa: B010  (as users do)
        vars(self)["day"] = self.__dict__["hour"] = self.table

    bench.adopt(lambda: shop(put))


@fault("The operator's `template_fields` are a list, to which its code adds another one")
def _(bench):
    fields = [*SparkSubmitOperator.template_fields]
    bench.adopt(lambda: shop(lambda self: self.template_fields + fields, template_fields=fields))


@fault("The operator takes its template fields for those that it has declared")
def _(bench):
    of = {*SparkSubmitOperator.template_fields}
    bench.adopt(lambda: shop(lambda self: dict.fromkeys(of, 1)[self.template_fields[-1]]))


class Once:
    """Raises when it is called for the second time, as for a subclass."""

    def __init__(self, error: BaseException) -> None:
        self._error, self._is_over = error, False

    def __call__(self) -> None:
        if self._is_over:
            raise self._error
        self._is_over = True


@fault("A metaclass raises SystemExit when a class is derived")
def _(bench):
    def make():
        once = Once(SystemExit())

        class Meta(BaseOperatorMeta):
            def __new__(cls, *args, **kwargs):
                once()
                return super().__new__(cls, *args, **kwargs)

        return Meta("Shop", (SparkSubmitOperator,), {})

    bench.adopt(make)


@fault("`__init_subclass__` raises KeyboardInterrupt when a class is derived")
def _(bench):
    bench.adopt(lambda: shop(id, __init_subclass__=classmethod(raising(KeyboardInterrupt()))))


@fault("A register of operators refuses a second class of the same name")
def _(bench):
    def make():
        names = set()

        class Base(SparkSubmitOperator):
            def __init_subclass__(cls):
                if cls.__name__ in names:
                    raise ValueError(cls.__name__)
                names.add(cls.__name__)

        return type("Shop", (Base,), {})

    bench.adopt(make)


@fault("A log handler raises whatever it is given")
def _(bench):
    class Handler(logging.Handler):
        def emit(self, _):
            raise ZeroDivisionError

    handler, ours = Handler(), logging.getLogger("airflow_provider_sparklineage")
    ours.addHandler(handler)
    bench.resources.callback(ours.removeHandler, handler)
    bench.adopt(lambda: SparkSubmitOperator)
