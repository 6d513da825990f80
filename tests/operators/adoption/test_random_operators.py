"""Operators made at random of what users do in one: each does as adopted what it does as stock.

Each feature adds to a class, and most features write into a diary when Airflow or the class's own
code calls them. The diaries, the submission, the class and the task are compared.
"""

# The operators do what users' operators do.
# ruff: noqa: ARG005, B010

from __future__ import annotations

import abc
import contextlib
import copy
import copyreg
import dataclasses
import functools
import os
import pickle
import random
import threading
import types
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import attrs
import pytest
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.common.compat.sdk import AirflowException, AirflowSkipException
from airflow.sdk import DAG, TaskGroup
from airflow.sdk.bases.operator import BaseOperatorMeta
from airflow.serialization.serialized_objects import DagSerialization

from airflow_provider_sparklineage.model import task_rules
from airflow_provider_sparklineage.operators.adoption import adopting

pytestmark = pytest.mark.airflow

SEEDS = int(os.environ.get("RANDOM_OPERATORS", "24"))
"""How many operators are made; ``RANDOM_OPERATORS=1000`` finds more."""

T = TypeVar("T")
FEATURES: list[Any] = []


class Recipe:
    """What a class is made of.

    :ivar diary: what its code has seen
    """

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.diary: list[Any] = []
        self.space: dict[str, Any] = {}
        self.before: list[type] = []
        self.behind: list[type] = []
        self.meta: dict[str, Any] = {}
        self.wraps: list[Any] = []
        self.decorators: list[Any] = []
        self.first: list[Any] = []  # functions of self, called before the job
        self.last: list[Any] = []
        self.of_task: list[Any] = []  # functions of a task, when the DAG has made it
        self.derive: Any = lambda cls: cls
        self.cls: Any = None

    def note(self, *seen):
        self.diary.append(seen)

    def make(self):
        recipe = self
        first, last = self.first, self.last

        def execute(this, context):
            own = recipe.cls
            for step in first:
                recipe.note(step(this))
            result = super(own, this).execute(context)
            for step in last:
                recipe.note(step(this))
            return result

        space = {"execute": execute, **self.space}
        execute = space["execute"]
        for wrap in self.wraps:
            execute = wrap(execute)
        space["execute"] = execute
        bases = (*self.before, SparkSubmitOperator, *self.behind)
        meta = type("Meta", (BaseOperatorMeta,), self.meta) if self.meta else BaseOperatorMeta
        cls = types.new_class("Shop", bases, {"metaclass": meta}, lambda ns: ns.update(space))
        self.cls = cls
        for decorator in self.decorators:
            self.cls = cls = decorator(cls)
        return self.derive(cls)


def feature(function):
    FEATURES.append(function)
    return function


# --- the class ------------------------------------------------------------------------------------


@feature
def a_table(r):
    table = {}
    r.decorators.append(lambda cls: table.update({cls: cls.__name__}) or cls)
    r.first.append(lambda this: (table[type(this)], type(this) in table, table.get(this.__class__)))


@feature
def a_counter(r):
    r.space["count"] = 0

    def count(this):
        type(this).count += 1
        return r.cls.count, type(this).count

    r.first.append(count)


@feature
def a_class_method(r):
    def register(cls, name):
        cls.names = [*getattr(cls, "names", ()), name]
        return cls.__name__, r.cls.names

    r.space["register"] = classmethod(register)
    r.first.append(lambda this: (this.register("a"), type(this).register("b"), r.cls.names))


@feature
def its_names(r):
    r.space["__doc__"] = "A shop."
    r.last.append(
        lambda this: (
            *(type(this).__name__, this.__class__.__qualname__, type(this).__module__),
            *(this.__doc__, type(this).__doc__, repr(type(this)), str(this), repr(this)),
            *(this.task_type, this.operator_name, sorted(vars(type(this)))),
        )
    )


@feature
def dispatching(r):
    @functools.singledispatch
    def kind(_):
        return "other"

    r.decorators.append(lambda cls: kind.register(cls, lambda _: "shop") and cls)
    kind.register(SparkSubmitOperator, lambda _: "stock")
    r.first.append(kind)


@feature
def dispatching_method(r):
    method = functools.singledispatchmethod(lambda this, value: f"any {value}")
    method.register(int, lambda this, value: f"int {value}")
    r.space["kind"] = method
    r.first.append(lambda this: (this.kind(1), this.kind("x")))


@feature
def instances(r):
    r.first.append(
        lambda this: (
            *(isinstance(this, r.cls), issubclass(type(this), r.cls)),
            *(isinstance(r.cls(task_id="b"), type(this)), issubclass(r.cls, type(this))),
        )
    )


@feature
def a_clone(r):
    def clone(this):
        other = type(this)(task_id="clone", application="other.py", conf={"b": "c"})
        return type(other).__name__, other.application, other.conf, other.task_id

    r.last.append(clone)


@feature
def patched_later(r):
    def patch(this):
        type(this).helper = lambda self: "patched"
        return this.helper(), r.cls.helper(this)

    r.space["helper"] = lambda self: "helper"
    r.first.append(patch)


# --- metaclasses and bases ------------------------------------------------------------------------


@feature
def a_counting_metaclass(r):
    made = []

    def init(cls, *args, **kwargs):
        BaseOperatorMeta.__init__(cls, *args, **kwargs)
        made.append(cls)

    r.meta["__init__"] = init
    r.last.append(lambda this: len(made))


@feature
def a_calling_metaclass(r):
    def call(cls, *args, **kwargs):
        r.note("made", cls.__name__, sorted(kwargs.keys() - {"_airflow_from_mapped"}))
        return BaseOperatorMeta.__call__(cls, *args, **kwargs)

    r.meta["__call__"] = call


@feature
def a_false_metaclass(r):
    r.meta["__bool__"] = lambda cls: False
    r.meta["__len__"] = lambda cls: 0
    r.meta["__iter__"] = lambda cls: iter(())


@feature
def an_own_equality(r):
    r.meta["__eq__"] = lambda cls, other: getattr(other, "__name__", "") == cls.__name__
    r.meta["__hash__"] = lambda cls: hash(cls.__name__)


@feature
def a_refusing_hook(r):
    error = r.rng.choice([ValueError, SystemExit, KeyboardInterrupt, GeneratorExit])

    def refuse(cls, **_):
        if "helping" not in vars(cls):
            raise error

    r.before.append(type("Base", (SparkSubmitOperator,), {"__init_subclass__": refuse}))
    r.space["helping"] = True


@feature
def a_metaclass_of_attributes(r):
    r.meta["__getattr__"] = lambda cls, name: _missing(cls, name)
    r.last.append(lambda this: type(this).of_meta_x)


def _missing(cls, name):
    if name.startswith("of_meta"):
        return f"{cls.__name__}.{name}"
    raise AttributeError(name)


@feature
def a_mixin_before(r):
    class Mix:
        def execute(self, context):
            r.note("mix", sorted(self.conf or {}))
            return super().execute(context)

    r.before.append(Mix)


@feature
def a_mixin_behind(r):
    class Behind:
        helper_of = "behind"

        def _convert_owner(self, value):
            return value

    r.behind.append(Behind)
    r.first.append(lambda this: this.helper_of)


@feature
def abstract(r):
    class Base(abc.ABC):
        @abc.abstractmethod
        def shop_name(self): ...

    r.before.append(Base)
    r.space["shop_name"] = lambda self: "named"
    r.first.append(
        lambda this: (this.shop_name(), isinstance(this, Base), issubclass(type(this), Base))
    )


@feature
def registered(r):
    class Base(abc.ABC):  # noqa: B024
        pass

    r.decorators.append(lambda cls: Base.register(cls))
    r.first.append(lambda this: (isinstance(this, Base), issubclass(type(this), Base)))


@feature
def generic(r):
    class Typed(Generic[T]):
        pass

    r.behind.append(Typed)


@feature
def slots(r):
    r.space["__slots__"] = ("of_slot",)

    def put(this):
        this.of_slot = "x"
        return this.of_slot

    r.first.append(put)


@feature
def a_dataclass(r):
    r.space["__annotations__"] = {"day": str}
    r.space["day"] = "x"
    options = r.rng.choice([{"eq": False}, {"eq": True, "unsafe_hash": True}, {"repr": False}])
    r.decorators.append(dataclasses.dataclass(init=False, **options))
    r.first.append(lambda this: ([f.name for f in dataclasses.fields(this)][-1], this.day))


# --- attributes -----------------------------------------------------------------------------------


@feature
def a_constructor(r):
    def __init__(self, *, table="orders", **kwargs):  # noqa: N807
        super(r.cls, self).__init__(**kwargs)
        self.table = table
        setattr(self, "day", "x")
        vars(self)["hour"] = 1

    r.space["__init__"] = __init__
    r.first.append(lambda this: (this.table, this.day, this.hour))


@feature
def a_free_constructor(r):
    def __init__(self, **kwargs):  # noqa: N807
        super(r.cls, self).__init__(**kwargs)
        self.__dict__.update({"one": 1, "two": 2})

    r.space["__init__"] = __init__
    r.first.append(lambda this: (this.one, this.two))


@feature
def made_by_new(r):
    def new(cls, *args, **kwargs):
        this = object.__new__(cls)
        object.__setattr__(this, "made_by", cls.__name__)
        return this

    r.space["__new__"] = new
    r.first.append(lambda this: this.made_by)


@feature
def any_attribute(r):
    def __getattr__(self, name):  # noqa: N807
        if name.startswith("any_"):
            return f"any {name}"
        raise AttributeError(name)

    r.space["__getattr__"] = __getattr__
    r.first.append(lambda this: (this.any_x, hasattr(this, "none_x")))


@feature
def every_attribute(r):
    def __getattr__(self, name):  # noqa: N807
        if name.startswith("_"):
            raise AttributeError(name)

    r.space["__getattr__"] = __getattr__
    r.first.append(lambda this: (this.nothing, this.at_all))


@feature
def guarded(r):
    def __setattr__(self, name, value):  # noqa: N807
        if name == "frozen":
            raise AttributeError(name)
        super(r.cls, self).__setattr__(name, value)

    r.space["__setattr__"] = __setattr__


@feature
def properties(r):
    r.space["hour"] = property(lambda self: len(self.task_id))
    r.space["minute"] = functools.cached_property(lambda self: [self.task_id])
    r.first.append(lambda this: (this.hour, this.minute, this.minute is this.minute))


@feature
def remembering(r):
    r.space["cube"] = functools.lru_cache(lambda self, n: n**3)
    r.first.append(lambda this: (this.cube(2), this.cube(2), r.cls.cube.cache_info().hits > 0))


@feature
def weak_keys(r):
    known = weakref.WeakKeyDictionary()

    def know(this):
        known[this] = 1
        return known[this], weakref.ref(this)() is this

    r.first.append(know)


@feature
def compared(r):
    r.space["__eq__"] = lambda self, other: self is other
    r.space["__hash__"] = lambda self: 7
    r.first.append(lambda this: (this == this, this != 1, hash(this)))


@feature
def falsy(r):
    r.space["__bool__"] = lambda self: False
    r.space["__len__"] = lambda self: 0


@feature
def a_log(r):
    class Log:
        def __getattr__(self, name):
            return lambda *args, **kwargs: None

    r.space["log"] = property(lambda self: Log())


@feature
def templates(r):
    kind = r.rng.choice([list, tuple])
    r.space["template_fields"] = kind([*SparkSubmitOperator.template_fields, "table"])
    r.space["table"] = "{{ ds }}"
    r.last.append(lambda this: (this.table, type(this.template_fields).__name__))


@feature
def own_templates(r):
    r.of_task.append(lambda task: setattr(task, "template_fields", ["application_args"]))


@feature
def counted_templates(r):
    r.first.append(lambda this: [getattr(this, name) for name in this.template_fields])


@feature
def links(r):
    kind = r.rng.choice([list, tuple])
    r.space["operator_extra_links"] = kind()
    r.first.append(lambda this: type(this.operator_extra_links).__name__)


# --- what Airflow calls ---------------------------------------------------------------------------


@feature
def hooks_around(r):
    def pre(self, context):
        r.note("pre", self.task_id)

    def post(self, context, result=None):
        r.note("post", result)

    r.space["pre_execute"], r.space["post_execute"] = pre, post


@feature
def killed(r):
    if r.rng.random() < 0.5:
        r.space["on_kill"] = lambda self: r.note("killed")
    else:
        r.space["on_kill"] = lambda self: (r.note("killed"), super(r.cls, self).on_kill())
    r.last.append(lambda this: this.on_kill() and None)


@feature
def rendering(r):
    def render(self, context, jinja_env=None):
        r.note("render", self.conf)
        super(r.cls, self).render_template_fields(context, jinja_env)
        self.application_args = ["rendered"]

    r.space["render_template_fields"] = render


@feature
def preparing(r):
    how = r.rng.choice([copy.copy, copy.deepcopy])

    def prepare(self):
        other = how(super(r.cls, self).prepare_for_execution())
        r.note("prepared", type(other).__name__, type(other) == type(self))  # noqa: E721
        return other

    r.space["prepare_for_execution"] = prepare


@feature
def own_copies(r):
    def __copy__(self):  # noqa: N807
        other = type(self).__new__(type(self))
        vars(other).update(vars(self))
        r.note("copied")
        return other

    r.space["__copy__"] = __copy__


@feature
def a_hook(r):
    class Hook(SparkSubmitHook):
        pass

    def get(self):
        hook = super(r.cls, self)._get_hook()
        r.note("hook", sorted(k for k in hook._conf if not k.startswith("spark.")))
        return hook

    if r.rng.random() < 0.3:
        r.space["_get_hook"] = lambda self: super(r.cls, self)._get_hook()


@feature
def changing_the_job(r):
    def change(this):
        this.conf = {**(this.conf or {}), "mine": "1"}
        this.conf["place"] = "2"
        this.application_args = [*(this.application_args or ()), "more"]
        return sorted(this.conf)

    r.first.append(change)
    r.last.append(lambda this: (sorted(this.conf), this.application_args, this.jars, this.env_vars))


@feature
def nothing_in_conf(r):
    r.first.append(lambda this: setattr(this, "conf", None))
    r.last.append(lambda this: this.conf)


@feature
def conf_in_place(r):
    r.first.append(lambda this: this.conf.update(early="1") if this.conf else None)
    r.last.append(lambda this: this.conf.update(late="1") if this.conf else None)


@feature
def odd_conf(r):
    def get(self):
        return {**vars(self).get("given", {}), "own": "1"}

    def put(self, value):
        vars(self)["given"] = value or {}

    r.space["conf"] = property(get, put)
    r.last.append(lambda this: this.conf)


@feature
def described(r):
    r.of_task.append(lambda task: task.is_mapped or setattr(task, "doc_md", "# Shop"))
    r.first.append(lambda this: (setattr(this, "doc", "of the shop"), this.doc, this.doc_md)[1:])


@feature
def environment(r):
    r.first.append(lambda this: setattr(this, "env_vars", {"A": "1"}))
    r.last.append(lambda this: (this.env_vars, this.py_files, this.properties_file))


@feature
def failing_job(r):
    r.of_task.append(lambda task: setattr(task, "application", "fails.py"))


@feature
def trying_again(r):
    def wrap(execute):
        @functools.wraps(execute)
        def run(self, context):
            for _ in range(2):
                try:
                    return execute(self, context)
                except Exception as error:
                    r.note("again", type(error).__name__)
            return "given up"

        return run

    r.wraps.append(wrap)


@feature
def private_names(r):
    names = ("_try", "_capture", "_events", "_client", "_listener", "_state", "_job", "_arguments")

    def put(this):
        this._try = this._capture = this._events = this._client = 1
        this._listener = this._state = this._job = this._arguments = 2
        return [getattr(this, name) for name in names]

    r.first.append(put)


# --- what else a class may be ---------------------------------------------------------------------


@feature
def of_attrs(r):
    r.space["__annotations__"] = {"week": str}
    r.space["week"] = "x"
    options = {"slots": r.rng.random() < 0.5, "init": False, "eq": False, "repr": False}
    r.decorators.append(attrs.define(**options))


@feature
def a_protocol(r):
    @runtime_checkable
    class Named(Protocol):
        def execute(self, context): ...

    r.first.append(lambda this: isinstance(this, Named))


@feature
def a_context(r):
    r.space["__enter__"] = lambda self: (r.note("in"), self)[1]
    r.space["__exit__"] = lambda self, *_: r.note("out")

    def wrap(execute):
        @functools.wraps(execute)
        def run(self, context):
            with self:
                return execute(self, context)

        return run

    r.wraps.append(wrap)


@feature
def a_container(r):
    r.space["__iter__"] = lambda self: iter((1, 2))
    r.space["__contains__"] = lambda self, other: True
    r.space["__getitem__"] = lambda self, key: key
    r.space["__call__"] = lambda self, *_: "called"
    r.first.append(lambda this: ([*this], 7 in this, this["x"], this(1)))


@feature
def a_child(r):
    table = {}

    def derive(cls):
        table[cls] = "parent"
        child = types.new_class("Child", (cls,), {"metaclass": type(cls)})
        table[child] = "child"
        return child

    r.space["__init_subclass__"] = classmethod(lambda cls, **_: r.note("derived", cls.__name__))
    r.derive = derive
    r.first.append(lambda this: (table[type(this)], sorted(table.values())))


@feature
def a_descriptor(r):
    class Field:
        def __set_name__(self, owner, name):
            r.note("named", owner.__name__, name)

        def __get__(self, this, owner):
            return owner.__name__, this is None

    r.space["field"] = Field()
    r.first.append(lambda this: (this.field, type(this).field))


@feature
def a_lock(r):
    r.space["lock"], r.space["cache"] = threading.RLock(), {}

    def use(this):
        with type(this).lock:
            type(this).cache[this.task_id] = 1
        return r.cls.cache

    r.first.append(use)


@feature
def a_property_of_the_class(r):
    r.meta["total"] = property(lambda cls: len(cls.__name__))
    r.first.append(lambda this: type(this).total)


@feature
def in_a_pickle(r):
    copyreg_of = copyreg.dispatch_table
    r.decorators.append(lambda cls: copyreg_of.update({cls: lambda _: (str, ("reduced",))}) or cls)
    r.last.append(lambda this: pickle.loads(pickle.dumps(this)))


@feature
def finalised(r):
    r.space["__del__"] = lambda self: r.note("gone") if vars(self).get("unseen") else None


# --- around execute -------------------------------------------------------------------------------


@feature
def wrapped(r):
    def wrap(execute):
        @functools.wraps(execute)
        def run(*args, **kwargs):
            r.note("around", len(args))
            try:
                return execute(*args, **kwargs)
            finally:
                r.note("after")

        return run

    r.wraps.append(wrap)


@feature
def wrapped_without_saying(r):
    def wrap(execute):
        def run(self, context):
            r.note("around")
            return execute(self, context)

        return run

    r.wraps.append(wrap)


@feature
def in_a_context(r):
    @contextlib.contextmanager
    def around(name):
        r.note("enter", name)
        yield
        r.note("exit", name)

    r.wraps.append(around("shop"))


@feature
def in_a_thread(r):
    def wrap(execute):
        @functools.wraps(execute)
        def run(self, context):
            with ThreadPoolExecutor(1) as pool:
                return pool.submit(execute, self, context).result()

        return run

    r.wraps.append(wrap)


@feature
def a_partial_method(r):
    r.space["twice"] = functools.partialmethod(lambda self, n, m: n * m, 2)
    r.first.append(lambda this: this.twice(4))


@feature
def failing(r):
    error = r.rng.choice([ValueError("shop"), AirflowSkipException("skip"), KeyError("x")])

    def fail(this):
        raise error

    (r.first if r.rng.random() < 0.5 else r.last).append(fail)


@feature
def replaced_on_the_task(r):
    def replace(task):
        if not task.is_mapped:
            task.execute = types.MethodType(type(task).execute, task)

    r.of_task.append(replace)


@feature
def pickled(r):
    def roundtrip(task):
        if not task.is_mapped:
            with contextlib.suppress(Exception):
                r.note(type(pickle.loads(pickle.dumps(task))).__name__)

    r.of_task.append(roundtrip)


@feature
def reduced(r):
    r.space["__reduce_ex__"] = lambda self, protocol: (str, ("reduced",))


# --- running --------------------------------------------------------------------------------------


WAYS = ["direct", "direct", "mapped", "kwargs", "deep", "twice", "group", "late"]


@pytest.fixture
def outcome(monkeypatch, context, execute, adopt):
    """Make the operator of a seed, and run its task; give what has come of it."""
    submitted: list[Any] = []

    def submit(hook, application="", **_):
        own = {name: of for name, of in hook._conf.items() if not name.startswith("spark.")}
        env = {k: v for k, v in (hook._env_vars or {}).items() if k != "SPARK_SUBMIT_OPTS"}
        submitted.append([application, own, hook._application_args, env])
        if application == "fails.py":
            raise AirflowException(application)

    monkeypatch.setattr(SparkSubmitHook, "submit", submit)
    adopt("all")

    def run(seed, chosen, way, *, is_adopted):
        submitted.clear()
        recipe = Recipe(seed)
        for one in chosen:
            one(recipe)
        cls = recipe.make()
        dag = dag_of(cls, way)
        [task] = dag.tasks
        for change in recipe.of_task:
            change(task)
        reason = adopting.decide(task, task_rules.ADOPT_ALL).reason
        adopts = is_adopted and reason == "adopted"
        if adopts and way != "late":
            adopting.adopt(task)
        if way == "deep":
            [task] = copy.deepcopy(dag).tasks
        serialised = str(DagSerialization.to_dict(dag)["dag"]["tasks"][0]["__var"]["task_type"])
        values = {**context, "ds": "2024-05-06", "dag": dag, "params": {}, "macros": None}
        late = adopts and way == "late"
        times = range(2 if way == "twice" else 1)
        results = [ran(task, execute, {**values}, late=late) for _ in times]
        state = {k: v for k, v in vars(cls).items() if isinstance(v, int | str | list)}
        return reason, [serialised, results, recipe.diary, [*submitted], state]

    return run


def ran(task, execute, values, *, late):
    """Run a task as the task runner does; give its result, and what the task has become.

    :param late: whether it is adopted when it has been rendered, as by the listener
    """
    try:
        if task.is_mapped:
            task = task.unmap({"application_args": ["a", "{{ ds }}"]})
        values["task"] = task
        prepared = values["task"] = task.prepare_for_execution()
        prepared.render_template_fields(values)
        if late:
            adopting.adopt(prepared)
            prepared.follow_rendering({}, values, values["dag"].get_template_env())
        prepared.pre_execute(values)
        result = execute(prepared, values)
        prepared.post_execute(values, result)
        kept = (prepared.conf, prepared.application_args, prepared.task_id, prepared.jars)
        names = vars(prepared).keys() - {"_lineage_try", "doc"}
        return result, str(kept), sorted(names), type(copy.copy(prepared)).__name__
    except Exception as error:
        return type(error).__name__, str(error)


def dag_of(cls, way):
    given = {"task_id": "revenue", "application": "job.py", "conf": {"a": "{{ ds }}"}}
    with DAG("shop", schedule=None, default_args={"retries": 1, "strict": "x"}) as dag:
        if way == "mapped":
            cls.partial(**given).expand(application_args=[["a", "{{ ds }}"]])
        elif way == "group":
            with TaskGroup("etl"):
                cls(**given, application_args=["a", "{{ ds }}"])
        elif way == "kwargs":
            cls.partial(**given).expand_kwargs([{"application_args": ["a", "{{ ds }}"]}])
        else:
            cls(**given, application_args=["a", "{{ ds }}"])
    return dag


def chosen_of(seed):
    rng = random.Random(f"of {seed}")
    return rng.sample(FEATURES, rng.randint(1, 4)), rng.choice(WAYS)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_random_operator_does_what_it_does_without_adoption(spark_submit, outcome, seed):
    chosen, way = chosen_of(seed)
    about = f"{way}: {[one.__name__ for one in chosen]}"
    try:
        _, stock = outcome(seed, chosen, way, is_adopted=False)
    except (Exception, SystemExit, KeyboardInterrupt, GeneratorExit) as error:
        pytest.skip(f"Airflow does not take it: {about}: {type(error).__name__}: {error}")
    reason, now = outcome(seed, chosen, way, is_adopted=True)
    print(f"{reason} {about}")
    assert now == stock, about
