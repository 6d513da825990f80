"""What the code of a class says about whether it can be adopted; none of it is run."""

from __future__ import annotations

import functools
import inspect

import pytest

from airflow_provider_sparklineage.operators.adoption.obstacles import (
    asks_for_class,
    defers,
    own_names,
    unreached,
)


class Stock:
    def execute(self, context):
        return context


class Calls(Stock):
    def execute(self, context):
        self.table = "orders"
        return super().execute(context)


class NamesItsClass(Stock):
    def execute(self, context):
        return super(NamesItsClass, self).execute(context)  # noqa: UP008


class CallsWithKeyword(Stock):
    def execute(self, context):
        self.result = super().execute(context=context)


class CallsInside(Stock):
    def execute(self, context):
        def again():
            return super(CallsInside, self).execute(context)

        return again()


class CallsSometimes(Stock):
    def execute(self, context):
        if context:
            super().execute(context)
        else:
            print("nothing to do")


class CallsInTry(Stock):
    def execute(self, context):
        try:
            return super().execute(context)
        finally:
            self.table = None


def timed(method):
    @functools.wraps(method)
    def run(*args, **kwargs):
        return method(*args, **kwargs)

    return run


class CallsDecorated(Stock):
    @timed
    def execute(self, context):
        return super().execute(context)


class Never(Stock):
    def execute(self, context):
        return context


class CallsAnotherMethod(Stock):
    def execute(self, context):
        super().pre_execute(context)
        self.hook.execute(context)


class CallsTheClass(Stock):
    def execute(self, context):
        return Stock.execute(self, context)


class HasItFetched(Stock):
    def execute(self, context):
        return getattr(super(), "execute")(context)  # noqa: B009


class NeverInside(Stock):
    def execute(self, context):
        class Other(Stock):
            def run(self, context):
                return self.execute(context)

        return Other().run(context)


class IsAsynchronous(Stock):
    async def execute(self, context):
        return super().execute(context)


class IsNoFunction(Stock):
    execute = functools.partial(print, "done")


@pytest.mark.parametrize(
    "cls",
    [
        Calls,
        NamesItsClass,
        CallsWithKeyword,
        CallsInside,
        CallsSometimes,
        CallsInTry,
        CallsDecorated,
    ],
)
def test_an_execute_that_calls_super_reaches_what_is_behind_it(cls):
    assert unreached([cls], ["execute"]) == ""


@pytest.mark.parametrize(
    ("cls", "reason"),
    [
        (Never, "its execute() does not call super().execute()"),
        (CallsAnotherMethod, "its execute() does not call super().execute()"),
        (CallsTheClass, "its execute() does not call super().execute()"),
        (HasItFetched, "its execute() does not call super().execute()"),
        (NeverInside, "its execute() does not call super().execute()"),
        (IsAsynchronous, "its execute() is asynchronous"),
        (IsNoFunction, "its execute() is no plain method"),
    ],
)
def test_what_cannot_be_seen_to_call_super_is_an_obstacle(cls, reason):
    assert unreached([cls], ["execute"]) == reason


def test_every_class_before_the_stock_one_has_to_call_super():
    assert unreached([Calls, Never], ["execute"]) != ""
    assert unreached([Never, Calls], ["execute"]) != ""
    assert unreached([Calls, CallsInside], ["execute"]) == ""


class HasAttribute:
    reads = ()


class HasProperty:
    @property
    def strict(self):
        return True


class Sets:
    def __init__(self, writes):
        self.writes = writes


class SetsUnderAnotherName:
    def prepare(this, given):  # noqa: N805
        this.table, this.reads = given, given


class SetsSomebodyElses:
    def __init__(self, hook):
        self.hook = hook
        hook.strict = True
        self.hook.reads = hook.writes


@pytest.mark.parametrize(
    ("cls", "name"),
    [
        (HasAttribute, "reads"),
        (HasProperty, "strict"),
        (Sets, "writes"),
        (SetsUnderAnotherName, "reads"),
        (SetsSomebodyElses, ""),
        (Calls, ""),
    ],
)
def test_names_that_a_class_has_or_gives_to_itself_are_found(cls, name):
    assert own_names([Stock, cls], ["reads", "writes", "strict"]) == name


class Defers:
    def execute(self):
        self.defer(trigger=None, method_name="execute")


class Raises:
    def execute(self):
        raise TaskDeferred  # noqa: F821


@pytest.mark.parametrize(("cls", "does"), [(Defers, True), (Raises, True), (Calls, False)])
def test_code_that_waits_in_the_triggerer_is_found(cls, does):
    assert defers([Stock, cls]) is does


class OfItself:
    def is_it(self):
        return type(self) is OfItself

    def is_it_here(self):
        return OfItself is self.__class__

    def is_one_of(self):
        return self.__class__ in (OfItself, int)

    def is_not_in_module(self):
        return self.__class__ is not inspect.Parameter

    def is_like(self, other):
        return isinstance(other, type(self)) and other is not self

    def has_name(self, name):
        return self.__class__.__name__ == name and type(self).__module__ != name

    def is_other(self, other):
        return type(other) is int or other.__class__ is str

    def __eq__(self, other):
        return self.__class__ is other.__class__

    __hash__ = None

    def is_given(self, other):
        made = type(self)(other)
        return made is not None


@pytest.mark.parametrize(
    ("method", "compares"),
    [
        ("is_it", True),
        ("is_it_here", True),
        ("is_one_of", False),
        ("is_not_in_module", True),
        ("is_like", False),
        ("has_name", False),
        ("is_other", False),
        ("is_given", False),
        ("__eq__", False),
    ],
)
def test_code_that_asks_for_the_exact_class_is_found(method, compares):
    one = type("One", (), {method: vars(OfItself)[method]})
    assert bool(asks_for_class([one])) is compares
