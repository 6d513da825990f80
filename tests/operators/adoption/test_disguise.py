"""Operators whose code asks about their class or changes it: each sees what it sees as stock.

Each operator is made anew for each run, as its class has state, and tells what it has seen. The
job is not run: what is compared is what would be submitted.
"""

# The operators do what users' operators do.
# ruff: noqa: ARG005, B010, E721, RUF005, RUF012

from __future__ import annotations

import functools
import logging
import weakref
from types import SimpleNamespace

import pytest
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG
from airflow.sdk.bases.operator import BaseOperatorMeta

from airflow_provider_sparklineage.model import task_rules
from airflow_provider_sparklineage.operators.adoption import adopting, policy

pytestmark = pytest.mark.airflow


def shop(execute=None, base=SparkSubmitOperator, **namespace):
    """Make an operator class that notes the result of a function before it submits its job."""

    class Shop(base):
        locals().update(namespace)

        def execute(self, context):
            self.seen = execute(self) if execute else None
            return super().execute(context)

    return Shop


# --- the class as a key, and state on it ----------------------------------------------------------


def a_table():
    cls = shop(lambda self: table[type(self)])
    table = {cls: "orders"}
    return cls


def a_table_by_attribute():
    cls = shop(
        lambda self: (table.get(self.__class__), type(self) in table, len({cls, type(self)}))
    )
    table = {cls: "orders"}
    return cls


def a_list():
    cls = shop(lambda self: (type(self) == cls, type(self) in [int, cls], [cls].index(type(self))))
    return cls


def a_weak_table():
    cls = shop(lambda self: table[type(self)])
    table = weakref.WeakKeyDictionary({cls: "orders"})
    return cls


def a_dispatch():
    @functools.singledispatch
    def table_of(task):
        return "other"

    cls = shop(lambda self: (table_of(self), table_of.dispatch(type(self))(self)))
    table_of.register(cls, lambda task: "orders")
    table_of.register(SparkSubmitOperator, lambda task: "stock")
    return cls


def a_cache():
    @functools.cache
    def table_of(cls):
        return len(calls.append(cls) or calls)

    calls = []
    cls = shop(lambda self: table_of(type(self)))
    assert table_of(cls) == 1
    return cls


def a_name():
    return shop(
        lambda self: (
            *(self.__class__.__name__, type(self).__qualname__, self.__module__, self.__doc__),
            *(repr(type(self)).split(" at ")[0], type(self).__doc__, vars(type(self)).keys()),
            *(type(self).__annotations__, str(type(self).__dict__.get("day"))),
        ),
        __doc__="Of the shop.",
        __annotations__={"day": str},
        day="x",
    )


def instances():
    cls = shop(lambda self: (isinstance(others[0], type(self)), issubclass(cls, type(self))))
    others = [cls(task_id="other", application="other.py")]
    return cls


def a_counter():
    def count(self):
        type(self).count += 1
        self.__class__.latest = self.task_id
        setattr(type(self), "more", "set")
        return cls.count, cls.latest, cls.more, vars(cls)["count"]

    cls = shop(count, count=0)
    return cls


def a_counter_of_a_classmethod():
    def bump(cls):
        cls.count = cls.count + 1
        cls.temporary = None
        del cls.temporary
        return cls.count

    cls = shop(
        lambda self: (self.bump(), type(self).bump(), cls.count, hasattr(cls, "temporary")),
        count=0,
        bump=classmethod(bump),
    )
    return cls


def its_fields_changed():
    def change(self):
        type(self).template_fields = (*cls.template_fields, "table")
        return type(self).template_fields, cls.template_fields

    cls = shop(change)
    return cls


def its_names_changed():
    def change(self):
        type(self).__name__, type(self).__qualname__ = "Table", "Shop.Table"
        type(self).__module__, type(self).__doc__ = "shop", "Of the shop."
        names = (type(self).__name__, type(self).__qualname__, repr(type(self)))
        return *names, cls.__name__, type(self).__module__, type(self).__doc__

    cls = shop(change)
    return cls


# --- what the class has ---------------------------------------------------------------------------


def a_list_of_fields():
    class Listed(shop(lambda self: self.template_fields + [])):
        template_fields = [*SparkSubmitOperator.template_fields, "table"]
        operator_extra_links = []
        table = "{{ ds }}"

        def links(self):
            return self.operator_extra_links + []

    return Listed


def fields_that_are_counted():
    return shop(lambda self: [len(getattr(self, f) or ()) for f in self.template_fields])


def names_by_setattr():
    def put(self):
        setattr(self, "table", "orders")
        vars(self)["day"] = "x"
        return self.table, self.day

    return shop(put)


def names_of_a_constructor():
    class Free(shop(lambda self: (self.table, self.day, self.hour))):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            for name in ("table", "day"):
                setattr(self, name, name)
            vars(self).update({"hour": 1})

    return Free


# --- metaclasses and hooks of subclasses ----------------------------------------------------------


def meta(**namespace):
    return type("Meta", (BaseOperatorMeta,), namespace)


def raising(error, *, at=1):
    """Raise when it is called for the second time, as for a subclass."""
    calls = []

    def hook(*args, **kwargs):
        calls.append(args)
        if len(calls) > at:
            raise error

    return hook


def of_hook(error):
    def make():
        class Base(SparkSubmitOperator):
            def __init_subclass__(cls, **kwargs):
                hook()
                super().__init_subclass__(**kwargs)

        hook = raising(error)
        return type("Shop", (Base,), {})

    return make


def of_metaclass(error):
    def make():
        hook = raising(error)

        def init(cls, *args, **kwargs):
            BaseOperatorMeta.__init__(cls, *args, **kwargs)
            hook()

        return meta(__init__=init)("Shop", (SparkSubmitOperator,), {})

    return make


def of_new(error):
    def make():
        hook = raising(error)

        def new(mcs, *args, **kwargs):
            hook()
            return BaseOperatorMeta.__new__(mcs, *args, **kwargs)

        return meta(__new__=new)("Shop", (SparkSubmitOperator,), {})

    return make


def of_a_metaclass_of_the_metaclass():
    class Meta(BaseOperatorMeta):
        def __init_subclass__(cls):
            raise SystemExit

    return Meta("Shop", (SparkSubmitOperator,), {})


def a_registry():
    class Base(SparkSubmitOperator):
        def __init_subclass__(cls, **kwargs):
            super().__init_subclass__(**kwargs)
            registry.append(cls)

    registry = []
    cls = shop(lambda self: (len(registry), registry[-1] is cls), base=Base)
    return cls


def a_frozen_class():
    def refuse(cls, name, value):
        if frozen:
            raise AttributeError(name)
        type.__setattr__(cls, name, value)

    frozen = []
    cls = meta(__setattr__=refuse)("Shop", (SparkSubmitOperator,), {})
    frozen.append(cls)
    return cls


def a_mixin_behind():
    class Mix:
        def __init_subclass__(cls, **kwargs):
            hook()

    hook = raising(KeyboardInterrupt())
    return type("Shop", (SparkSubmitOperator, Mix), {})


def an_end():
    return shop(__del__=lambda self: self.task_id)


ADOPTED = [
    *(a_table, a_table_by_attribute, a_list, a_weak_table, a_dispatch, a_cache, a_name),
    *(instances, a_counter, a_counter_of_a_classmethod, its_fields_changed),
    its_names_changed,
    *(a_list_of_fields, fields_that_are_counted, names_by_setattr, names_of_a_constructor),
    *(a_registry, a_frozen_class, a_mixin_behind, an_end, of_a_metaclass_of_the_metaclass),
    *(pytest.param(of(error()), id=f"{error.__name__} {of.__name__}")
      for error in (ValueError, SystemExit, KeyboardInterrupt)
      for of in (of_hook, of_metaclass, of_new)),
]  # fmt: skip


@pytest.fixture
def seen(monkeypatch, context, execute):
    """Run a task but for its job; give what its code has seen and what would be submitted."""
    submitted = []
    monkeypatch.setattr(
        SparkSubmitHook,
        "submit",
        lambda self, application="", **_: submitted.append([application, dict(self._conf)]),
    )

    def run(task):
        values = {**context, "ds": "2024-05-06", "dag": task.dag, "task": task}
        prepared = values["task"] = task.prepare_for_execution()
        prepared.render_template_fields(values)
        execute(prepared, values)
        application, conf = submitted.pop()
        listeners = conf.pop("spark.extraListeners", "")
        own = {name: value for name, value in conf.items() if not name.startswith("spark.")}
        return SimpleNamespace(
            here=[getattr(prepared, "seen", None), application, own, str(prepared.conf)],
            is_collected="OpenLineage" in listeners,
        )

    return run


def task_of(cls):
    return cls(task_id="revenue", application="job.py", conf={"a": "{{ ds }}"})


@pytest.mark.parametrize("make", ADOPTED)
def test_its_code_sees_what_it_sees_without_adoption(seen, spark_submit, parsed, make):
    with DAG("shop", schedule=None):
        stock = seen(task_of(make()))
    cls = make()
    task = parsed(lambda: task_of(cls))["revenue"]
    assert adopting.has_lineage(type(task)), adopting.decide(task, task_rules.ADOPT_ALL).reason
    now = seen(task)
    assert now.here == stock.here
    assert now.is_collected
    assert not stock.is_collected


# --- left alone -----------------------------------------------------------------------------------


def doing(function, name="help", **more):
    """Make an operator with one more method."""
    return lambda: type("Shop", (SparkSubmitOperator,), {name: function, **more})


def by_a_variable(self):
    cls = self.__class__
    print("of the shop")
    return cls is SparkSubmitOperator


def inside(self):
    return [type(self) is not int for _ in "shop"]


def by_super(self, context):
    super(type(self), self).execute(context)


def by_attribute(self, context):
    super(self.__class__, self).execute(context)


def new_one(cls, **_):
    return None if cls is int else object.__new__(cls)


def by_decorator(method):
    def run(self):
        return method(self)

    return run


def other_class(self):
    self.__class__ = SparkSubmitOperator


def free_names(self, given):
    for name, value in given.items():
        setattr(self, name, value)


def free_dict(self, given):
    self.__dict__.update(given)


def free_key(self, name):
    vars(self)[name] = 1


def merged(self, given):
    self.__dict__ |= given


def another_dict(self, given):
    self.__dict__ = given


def by_object(self, name):
    object.__setattr__(self, name, 1)


class ClassProperty:
    """Answers by the class, as many libraries have it."""

    def __init__(self, function):
        self.function = function

    def __get__(self, task, cls):
        return self.function(cls)


class Owned(ClassProperty):
    def __get__(self, task, cls):
        return "orders" if cls is self.function else "rates"


class Tasked(ClassProperty):
    def __get__(self, task, cls):
        return self.function is type(task)


def metaclass_with(name):
    method = getattr(BaseOperatorMeta, name)

    def ask(cls, other):
        return method(cls, other)

    return lambda: meta(**{name: ask})("Shop", (SparkSubmitOperator,), {})


INSTANCES = "its code decides what isinstance() answers"
EXACT = "its code asks for its exact class"
BASES = "its code asks for the bases or the subclasses of a class"
FREE = "its code sets attributes whose names are not in it"
FIELDS = "its template_fields are no list or tuple"


def named(name):
    return f"it has something of its own called {name}, as lineage has"


LEFT_ALONE = {
    "is": (doing(lambda self: type(self) is int), EXACT),
    "is not": (doing(lambda self: int is not self.__class__), EXACT),
    "a variable": (doing(by_a_variable), EXACT),
    "inside": (doing(inside), EXACT),
    "a property": (doing(property(lambda self: type(self) is int)), EXACT),
    "cached": (doing(functools.cached_property(lambda self: type(self) is int)), EXACT),
    "a classmethod": (doing(classmethod(lambda cls: cls is int)), EXACT),
    "a new one": (doing(new_one, "__new__"), EXACT),
    "decorated": (doing(by_decorator(lambda self: type(self) is int)), EXACT),
    "a class property": (doing(ClassProperty(lambda cls: cls is int)), EXACT),
    "a property of the owner": (doing(Owned(int)), EXACT),
    "a property of the task": (doing(Tasked(int)), EXACT),
    "an id": (doing(lambda self: id(type(self)) == 1), EXACT),
    "instances": (metaclass_with("__instancecheck__"), INSTANCES),
    "subclasses of a metaclass": (metaclass_with("__subclasscheck__"), INSTANCES),
    "a hook of subclasses": (
        doing(classmethod(lambda cls, other: NotImplemented), "__subclasshook__"),
        INSTANCES,
    ),
    "super of type(self)": (doing(by_super, "execute"), EXACT),
    "super of __class__": (
        doing(by_attribute, "execute"),
        "its execute() does not call super().execute()",
    ),
    "bases": (doing(lambda self: type(self).__bases__), BASES),
    "order": (doing(lambda self: self.__class__.__mro__), BASES),
    "subclasses": (doing(lambda self: SparkSubmitOperator.__subclasses__()), BASES),
    "another class": (doing(other_class), named("__class__")),
    "a class of its own": (doing(property(lambda self: int), "__class__"), named("__class__")),
    "setattr": (doing(lambda self: setattr(self, "strict", 1)), named("strict")),
    "getattr": (doing(lambda self: getattr(self, "reads", None)), named("reads")),
    "hasattr": (doing(lambda self: hasattr(self, "writes")), named("writes")),
    "reading": (doing(lambda self: self.reads), named("reads")),
    "a dict": (doing(lambda self: vars(self).update(observe=1)), named("observe")),
    "a key": (doing(lambda self: self.__dict__["lineage"]), named("lineage")),
    "execute": (doing(lambda self: setattr(self, "execute", print)), named("execute")),
    "hook": (
        doing(lambda self: vars(self).update(_hook=1)),
        "its own code sets _hook, which lineage has made anew",
    ),
    "free names": (doing(free_names), FREE),
    "a free dict": (doing(free_dict), FREE),
    "a free key": (doing(free_key), FREE),
    "a merged dict": (doing(merged), FREE),
    "another dict": (doing(another_dict), FREE),
    "past all": (doing(by_object), FREE),
    "a generator": (doing(None, template_fields=(f for f in ["conf"])), FIELDS),
    "a set": (doing(None, template_fields={"conf"}), FIELDS),
    "a property of fields": (doing(None, template_fields=property(lambda _: ["conf"])), FIELDS),
}


@pytest.mark.parametrize(("make", "reason"), LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_what_would_not_pass_is_left_alone_with_the_reason(make, reason):
    decision = adopting.decide(task_of(make()), task_rules.ADOPT_ALL)
    assert decision.reason == f"left alone: {reason}"


@pytest.mark.parametrize("given", [{"table": "orders"}, {"reads": "orders"}])
def test_a_constructor_that_sets_any_name_is_looked_at_when_it_has_run(given):
    class Free(SparkSubmitOperator):
        def __init__(self, *, given, **kwargs):
            super().__init__(**kwargs)
            self.__dict__.update(given)

    task = Free(task_id="revenue", application="job.py", given=given)
    mapped = Free.partial(task_id="mapped", application="job.py").expand(given=[given])
    reason = adopting.decide(task, task_rules.ADOPT_ALL).reason
    assert reason == ("adopted" if "table" in given else f"left alone: {named('reads')}")
    assert adopting.decide(mapped, task_rules.ADOPT_ALL).reason == f"left alone: {FREE}"


class Raising:
    """Raises when it is asked for a class or a text."""

    def __init__(self, error):
        self._error = error

    def __get__(self, *_):
        raise self._error


class Unsaid(BaseException):
    def __str__(self):
        raise SystemExit


@pytest.mark.parametrize("error", [SystemExit(), KeyboardInterrupt(), Unsaid()])
@pytest.mark.parametrize("name", ["custom_operator_name", "template_fields", "dag_id", "get_dag"])
def test_code_that_ends_processes_ends_none_that_parses(adopt, error, name):
    adopt("all")
    task = task_of(type("Shop", (SparkSubmitOperator,), {}))
    cls = type(task)
    setattr(cls, name, Raising(error))
    cls.__repr__ = Raising(error)
    policy.task_policy(task)
    assert type(task) is cls


def test_a_log_handler_that_raises_stops_no_dag(adopt, parsed):
    class Handler(logging.Handler):
        def emit(self, _):
            raise ZeroDivisionError

    handler = Handler()
    logging.getLogger("airflow_provider_sparklineage").addHandler(handler)
    try:
        parsed(lambda: task_of(SparkSubmitOperator), value="no such rules")
    finally:
        logging.getLogger("airflow_provider_sparklineage").removeHandler(handler)
