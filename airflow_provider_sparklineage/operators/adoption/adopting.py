"""Decide whether a task is adopted, and give an adopted task a class with lineage.

The input is a task that a DAG has made, and the rules of ``[sparklineage] adopt``. The output is a
decision with its reason, and for an adopted task a subclass of its own class. In the method
resolution order of the subclass, the operator with lineage comes between the DAG's own classes and
the stock operator: ``execute()`` of the DAG's class runs first, and its ``super().execute()`` is
that of the operator with lineage. The subclass has the names of the task's own class, for Airflow's
pages, for serialised DAGs and for rules about classes.
"""

from __future__ import annotations

import copyreg
import inspect
from contextlib import suppress
from copy import copy
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any
from weakref import ref

from airflow_provider_sparklineage.model.task_rules import TaskNames
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.operators.adoption import kinds, obstacles
from airflow_provider_sparklineage.operators.lineage_mixin import LineageMixin, extend

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_provider_sparklineage.model.task_rules import AdoptionRules
    from airflow_provider_sparklineage.operators.adoption.kinds import Kind


# The references are weak: an adopted class lives as long as tasks have it, and it refers to the
# class that it is made from.
_adopted = kinds.ByClass[ref[type]]()


def adopt(task: Any) -> None:
    """Change the class of a task to a class with lineage.

    For a mapped task, the class from which its task instances are made is changed instead.

    :raise TypeError: if the task runs no Spark
    :raise Exception: if the class with lineage cannot be made from the task's class
    """
    cls, kind = kinds.kind_of(task)
    if kind is None:
        msg = f"{kinds.path(cls)} runs no Spark."
        raise TypeError(msg)
    if isinstance(cls, _Disguise):
        return
    adopted = adopted_class(cls, kind)
    if cls is type(task):
        # Airflow's own __setattr__ would look for converters, and at the arguments of the task.
        object.__setattr__(task, "__class__", adopted)
    else:
        task.operator_class = adopted
        task.operator_extra_links = adopted.operator_extra_links  # type: ignore[attr-defined]


def adopted_class(cls: type, kind: Kind) -> type:
    """Give the subclass with lineage of a class; it is made once, and kept as long as in use.

    :param cls: the class of tasks that are not adopted yet
    :param kind: the kind of stock operator from which ``cls`` is derived
    :raise Exception: if Python, or a base of the class, refuses the new class
    """
    reference = _adopted.get(cls)
    adopted = None if reference is None else reference()
    if adopted is None:
        ours = lineage_class(kind)
        # Python lets an object change its class only if the first base of the new class has the
        # layout of the object. The stock operator itself cannot come before the lineage operator,
        # which is a subclass of it, so a subclass of the stock operator comes first then.
        first = _subclass(cls, (cls,)) if issubclass(ours, cls) else cls
        adopted = _subclass(cls, (first, ours))
        extend(adopted)
        # Its code may count the template fields, so only a task that has declarations has more.
        fields = cls.template_fields  # type: ignore[attr-defined]
        type.__setattr__(adopted, "template_fields", fields)
        type.__setattr__(adopted, "__del__", lambda _: None)  # for what is tried here is no task
        object.__setattr__(object.__new__(cls), "__class__", adopted)
        type.__delattr__(adopted, "__del__")
        _adopted.put(cls, ref(adopted))
    return adopted


def lineage_class(kind: Kind) -> type:
    """Import the operator with lineage that takes the place of a kind of stock operator."""
    module, _, name = kind.ours.rpartition(".")
    ours: type = getattr(import_module(module), name)
    return ours


def has_lineage(cls: type) -> bool:
    """Whether the tasks of a class have lineage, by adoption or without it."""
    # Not by issubclass(): BaseOperator is an abstract base class, which remembers its answers by
    # class, and an adopted class equals the class that it is made of.
    return any(each is LineageMixin for each in cls.__mro__)


def original(cls: type) -> type:
    """Give the class that the DAG used.

    For a class that adoption has made, it is the class before adoption; else it is ``cls`` itself.
    """
    while isinstance(cls, _Disguise):
        cls = cls.__bases__[0]
    return cls


class _Disguise(type):
    """A metaclass by which an adopted class passes as the class that it is made of.

    The adopted class equals that class, and is found where that class is a key. What is set on the
    adopted class is set on that class. Only ``is`` and ``super(type(self), self)`` tell the two
    from each other, and :mod:`.obstacles` finds these.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Call no ``__init_subclass__`` of a user's metaclass."""

    def __eq__(cls, other: object) -> bool:
        return bool(original(cls) == (original(other) if isinstance(other, type) else other))

    def __hash__(cls) -> int:
        return hash(original(cls))

    def __setattr__(cls, name: str, value: object) -> None:
        setattr(original(cls), name, value)
        if name in ("__name__", "__qualname__", "__module__"):  # each class has its own
            type.__setattr__(cls, name, value)
            return
        with suppress(AttributeError):  # such as `template_fields`, which would hide it
            type.__delattr__(cls, name)

    def __delattr__(cls, name: str) -> None:
        delattr(original(cls), name)

    # Not by isinstance() and issubclass(): for an abstract base class, as operators are, these ask
    # each subclass, and so the adopted one again.

    def __instancecheck__(cls, instance: object) -> bool:
        return type.__instancecheck__(original(cls), instance)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return type.__subclasscheck__(original(cls), subclass)

    @property  # type: ignore[misc]
    def __dict__(cls) -> Any:  # type: ignore[override]
        return vars(original(cls))


class _Quiet:
    """A class whose ``__init_subclass__`` calls no other one."""

    __slots__ = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Do nothing."""


class _Making(type):
    """A metaclass for a class that is being made: no ``__init_subclass__`` of a user is called.

    A user's could refuse the class, or enter it in a list. Python calls the first one in the method
    resolution order.
    """

    def mro(cls) -> list[type]:
        first, *others = super().mro()
        return [first, _Quiet, *others]


def _subclass(cls: type, bases: tuple[type, ...]) -> type:
    """Make a subclass that passes as ``cls``; no code of a user's class or metaclass is run."""
    namespace = {
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": cls.__doc__,
        "__annotations__": vars(cls).get("__annotations__", {}),
        "__slots__": (),
        "is_adopted": True,
    }
    metaclass = _metaclass(type(cls))
    making = type(metaclass.__name__, (_Making, metaclass), {})
    made: type = type.__new__(making, cls.__name__, bases, namespace)
    type.__setattr__(made, "__class__", metaclass)
    type.__setattr__(made, "__bases__", bases)  # without a change: the order is found anew
    return made


@cache
def _metaclass(original_metaclass: type) -> type[type]:
    """Make a metaclass for adopted classes: they are pickled as the classes that the DAG used.

    The DAG of a virtualenv task may be pickled, and this package may not be installed in the
    virtualenv.

    :param original_metaclass: the metaclass of the class that the DAG used; base of the new one
    """
    bases = (_Disguise, original_metaclass)
    metaclass: type[type] = type(original_metaclass.__name__, bases, {})
    # copy() of a class gives the class itself.
    copyreg.pickle(metaclass, lambda cls: (copy, (original(cls),)))
    return metaclass


OFF = "left alone: adoption is off"
UNKNOWN_NAMES = "its code sets attributes whose names are not in it"
NO_SPARK = "left alone: it is none of Airflow's Spark operators, nor made of one"

_OF_ATTRIBUTES = ("__setattr__", "__getattribute__", "__class__")
"""Methods that control the attributes of a task, and the attribute that adoption changes.

A user's class that defines one of them may refuse the attributes that lineage adds.
"""

_OF_INSTANCES = frozenset({"__instancecheck__", "__subclasscheck__", "__subclasshook__"})


class Decision(Frozen, frozen=True):
    """The decision about a task.

    :param reason: "adopted", or "left alone: …", for people: with the obstacle, or with the number
        of the rule, counted from 1
    :param rule: number of the rule that decides, counted from 0; None if no rule decides
    """

    adopts: bool
    reason: str
    rule: int | None = None


class _Class(Frozen, frozen=True):
    """The facts about a class that are the same for all its tasks.

    :param has_lineage: whether its tasks have lineage without adoption
    :param names: names by which rules may refer to the class
    :param reserved: names that an adopted task may not have as attributes of its own
    :param obstacle: the reason why none of its tasks can be adopted; empty if they can
    :param is_deferrable: whether its tasks are deferrable if they are made without ``deferrable``
    :param is_made_freely: whether its constructor sets attributes whose names are not in its code
    """

    has_lineage: bool
    names: tuple[str, ...]
    reserved: frozenset[str] = frozenset()
    obstacle: str = ""
    is_deferrable: bool = False
    is_made_freely: bool = False


_known = kinds.ByClass[_Class]()


def decide(task: Any, rules: AdoptionRules) -> Decision:
    """Decide whether a task is adopted.

    For a task that is adopted already, decide by the class that the DAG used.

    :param rules: the rules of ``[sparklineage] adopt``
    """
    cls, kind = kinds.kind_of(task)
    if kind is None:
        return Decision(False, NO_SPARK)
    known = _class(cls, kind)
    if known.has_lineage:
        return Decision(False, "left alone: it has lineage by itself")
    if rules.is_off:
        return Decision(False, OFF)
    verdict = rules.verdict(_names(task, known))
    number = verdict.rule
    if not verdict.adopts:
        reason = "no rule is for it" if number is None else f"rule {number + 1} excludes it"
        return Decision(False, f"left alone: {reason}", number)
    obstacle = known.obstacle or _of_task(task, known, kind)
    if obstacle:
        return Decision(False, f"left alone: {obstacle}", number)
    return Decision(True, "adopted" if number is None else f"adopted (rule {number + 1})", number)


def names_of(task: Any) -> TaskNames | None:
    """Give the names by which rules may refer to a task; None if it runs no Spark."""
    cls, kind = kinds.kind_of(task)
    return None if kind is None else _names(task, _class(cls, kind))


def _names(task: Any, known: _Class) -> TaskNames:
    dag = task.get_dag()
    tags = tuple(map(str, dag.tags or ())) if dag is not None else ()
    return TaskNames(task.dag_id, task.task_id, known.names, tags)


def _class(cls: type, kind: Kind) -> _Class:
    facts = _known.get(cls)
    if facts is None:
        facts = _known.put(cls, _look_at(original(cls), kind))
    return facts


def _look_at(cls: type, kind: Kind) -> _Class:
    names: tuple[str, ...] = ()
    try:
        names = _class_names(cls)
        if has_lineage(cls):
            return _Class(True, names)
        own = kind.own_classes(cls)
        stock = cls.__mro__[len(own)]
        added = [each for each in cls.__mro__ if each not in stock.__mro__]
        reserved = _reserved(lineage_class(kind), stock)
        obstacle = _obstacle(cls, kind, stock, added, reserved)
        if not obstacle:
            adopted_class(cls, kind)
        return _Class(
            False,
            names,
            # A task with such a method among its own attributes would bypass lineage's method.
            reserved | {*kind.methods},
            obstacle,
            _is_deferrable(own),
            obstacles.sets_unknown(added, constructors=True),
        )
    except BaseException as error:  # a descriptor or a metaclass of the user's may raise SystemExit
        obstacle = f"its class cannot be extended ({kinds.described(error)})"
        return _Class(False, names, obstacle=obstacle)


def _obstacle(
    cls: type, kind: Kind, stock: type, added: Sequence[type], reserved: frozenset[str]
) -> str:
    """Find the reason why no task of a class can be adopted; empty if they can.

    :param stock: the stock class from which ``cls`` is derived
    :param added: the classes of its method resolution order that the stock class does not have
    :param reserved: names of the attributes that lineage adds
    """
    own = kind.own_classes(cls)
    if kind.may_defer and cls.start_from_trigger:  # type: ignore[attr-defined]
        return "it starts in the triggerer, where nothing can be added to its job"
    if obstacle := obstacles.unreached(own, kind.methods):
        return obstacle
    name = (
        next((name for each in added for name in _OF_ATTRIBUTES if name in vars(each)), "")
        or obstacles.own_names(added, sorted(reserved))
        or obstacles.assigned(added, ("__class__", *kind.methods))
    )
    if name:
        return _own_name(name)
    if name := obstacles.assigned(added, kind.replaced):
        return f"its own code sets {name}, which lineage has made anew"
    if obstacles.sets_unknown(added, constructors=False):
        return UNKNOWN_NAMES
    # Python asks them about a task of an adopted class, and about none of the class itself.
    metaclasses = {*inspect.getmro(type(cls))} - {*inspect.getmro(type(stock))}
    if any(not _OF_INSTANCES.isdisjoint(vars(each)) for each in (*metaclasses, *added)):
        return "its code decides what isinstance() answers"
    if not isinstance(cls.template_fields, list | tuple):  # type: ignore[attr-defined]
        return "its template_fields are no list or tuple"
    return obstacles.asks_for_class(added)


def _class_names(cls: type) -> tuple[str, ...]:
    """Give the paths and names of a class and its bases, and the name that Airflow's pages show."""
    names = (n for each in cls.__mro__ for n in (kinds.path(each), each.__qualname__))
    shown = None
    with suppress(Exception):  # a descriptor may raise
        shown = cls.custom_operator_name  # type: ignore[attr-defined]
    return tuple(dict.fromkeys([*names, *([shown] if isinstance(shown, str) and shown else [])]))


def _reserved(ours: type, stock: type) -> frozenset[str]:
    """Give the names of the attributes that lineage adds to an operator.

    :param ours: class of the operator with lineage
    :param stock: class of the operator without lineage
    """
    mixins = ours.__mro__[: ours.__mro__.index(stock)]
    names = (name for mixin in mixins for name in vars(mixin))
    ours_alone = (name for name in names if not hasattr(stock, name))
    return frozenset(n for n in ours_alone if not n.startswith(("__", "_convert")))


def _own_name(name: str) -> str:
    return f"it has something of its own called {name}, as lineage has"


def _is_deferrable(own: Sequence[type]) -> bool:
    """Whether tasks of a class wait in the triggerer if they are made without ``deferrable``.

    :param own: the classes before the stock class in the class's method resolution order
    """
    for cls in own:
        if "start_from_trigger" in vars(cls):
            return bool(vars(cls)["start_from_trigger"])
        constructor = vars(cls).get("__init__")
        if constructor is not None:
            argument = inspect.signature(constructor).parameters.get("deferrable")
            if argument is not None:
                return argument.default is not False
    return obstacles.defers(own)


def _of_task(task: Any, known: _Class, kind: Kind) -> str:
    """Give the reason why a single task cannot be adopted; empty if it can.

    :param known: the facts about the task's class
    """
    attributes, arguments = _made_with(task)
    if attributes.get("start_from_trigger"):
        return "it is deferrable"
    is_deferrable = attributes.get("deferrable", arguments.get("deferrable", known.is_deferrable))
    if is_deferrable and not kind.may_defer:
        return "it is deferrable"
    function = attributes.get("python_callable")
    if callable(function) and inspect.iscoroutinefunction(inspect.unwrap(function)):
        return "its function is asynchronous"
    if task.is_mapped and known.is_made_freely:
        return UNKNOWN_NAMES
    clashes = attributes.keys() & known.reserved
    return _own_name(min(clashes)) if clashes else ""


def _made_with(task: Any) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Give a task's attributes, and the arguments of its constructor, each by name.

    The attributes of a mapped task are not known, so its arguments are given in their place, too.
    """
    if not task.is_mapped:
        attributes = vars(task)
        return attributes, attributes.get("_BaseOperator__init_kwargs", {})
    mapped = getattr(task.expand_input, "value", None)
    # For a decorated function, Airflow's mapped task has the function as an attribute.
    own = {"python_callable": getattr(task, "python_callable", None)}
    arguments = {**own, **task.partial_kwargs, **(mapped if isinstance(mapped, dict) else {})}
    for each in mapped if isinstance(mapped, list | tuple) else ():  # of expand_kwargs()
        if isinstance(each, dict):
            arguments |= {name: value for name, value in each.items() if value}
    return arguments, arguments
