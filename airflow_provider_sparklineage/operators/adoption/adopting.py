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
import dis
import inspect
import types
from contextlib import suppress
from copy import copy
from functools import cache
from importlib import import_module
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from airflow_provider_sparklineage.model.task_rules import TaskNames
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.operators.adoption import kinds
from airflow_provider_sparklineage.operators.lineage_mixin import LineageMixin

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping, Sequence

    from airflow_provider_sparklineage.model.task_rules import AdoptionRules
    from airflow_provider_sparklineage.operators.adoption.kinds import Kind


# Obstacles in the code of a class. The code is read and not run. Code that cannot be read counts as
# an obstacle: it is better to leave a task alone than to break it.


_COMPARISONS = frozenset({"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"})


def unreached(classes: Sequence[type], methods: Collection[str]) -> str:
    """Find a method of the classes that does not call the same method of ``super()``.

    A method that is asynchronous, or that is not a plain function, counts as such a method.

    :param classes: the classes that come before the class whose methods have to be called
    :param methods: names of the methods that have to be called
    :return: a sentence on the first such method, e.g. "its execute() does not call
        super().execute()"; empty if there is none
    """
    for cls in classes:
        for name in methods:
            method = vars(cls).get(name)
            if method is None:
                continue
            function = inspect.unwrap(method)
            if not isinstance(function, FunctionType):
                return f"its {name}() is no plain method"
            if inspect.iscoroutinefunction(function):
                return f"its {name}() is asynchronous"
            if not any(_calls_super(code, name) for code in _codes(function.__code__)):
                return f"its {name}() does not call super().{name}()"
    return ""


def own_names(classes: Sequence[type], names: Collection[str]) -> str:
    """Give one of ``names`` that one of the classes defines or assigns on ``self``; else empty."""
    of_classes = (name for cls in classes for name in names if name in vars(cls))
    return next(of_classes, "") or assigned(classes, names)


def assigned(classes: Sequence[type], names: Collection[str]) -> str:
    """Give one of ``names`` that one of the classes assigns on ``self``; else empty."""
    return next(filter(None, (_assigned(code, names) for code in _codes_of(classes))), "")


def defers(classes: Sequence[type]) -> bool:
    """Whether the classes may wait in Airflow's triggerer.

    They may if their code uses the name ``defer`` or ``TaskDeferred``.
    """
    return any({"defer", "TaskDeferred"} & {*code.co_names} for code in _codes_of(classes))


def compares_class(classes: Sequence[type]) -> bool:
    """Whether one of the classes compares the exact class of ``self``, which adoption changes."""
    return any(map(_compares_class, _codes_of(classes)))


def _codes_of(classes: Sequence[type]) -> Iterator[CodeType]:
    """Yield the code of all functions that the classes define themselves, not of inherited ones."""
    for cls in classes:
        for function in _functions(cls):
            yield from _codes(function.__code__)


def _functions(cls: type) -> Iterator[FunctionType]:
    for value in vars(cls).values():
        accessors: tuple[Callable[..., Any] | None, ...] = (value,)
        if isinstance(value, property):
            accessors = (value.fget, value.fset)
        for each in accessors:
            function = inspect.unwrap(each) if callable(each) else None
            if isinstance(function, FunctionType):
                yield function


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of a function, and of all functions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _calls_super(code: CodeType, method: str) -> bool:
    """Whether ``method`` is the first attribute that the code reads after a ``super``."""
    if not {"super", method} <= {*code.co_names}:
        return False
    is_super = False
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            is_super = is_super or instruction.argval == "super"
        elif is_super and instruction.opname in ("LOAD_METHOD", "LOAD_ATTR", "LOAD_SUPER_ATTR"):
            if instruction.argval == method:
                return True
            is_super = False
    return False


def _compares_class(code: CodeType) -> bool:
    """Whether code compares the class of ``self``, as in ``type(self) is …``.

    A comparison of an attribute of the class, such as its name, does not count, and neither does a
    comparison in a method such as ``__eq__``.
    """
    if not {"type", "__class__"} & {*code.co_names} or not code.co_varnames:
        return False
    if code.co_name in _COMPARISONS:  # comparing two operators by class is usual there
        return False
    before: list[tuple[str, object]] = [("", None)] * 2
    left = 0  # number of next instructions in which a comparison counts
    for instruction in dis.get_instructions(code):
        name, value = instruction.opname, instruction.argval
        if name in ("CACHE", "PRECALL", "PUSH_NULL"):
            continue
        is_used = name == "LOAD_ATTR" and before[-1][0] in ("CALL", "LOAD_ATTR")
        if is_used or name == "CALL":  # an attribute or an instance of the class, not the class
            left = 0
        if left and (name in ("IS_OP", "CONTAINS_OP") or _is_equality(name, value)):
            return True
        left = max(left - 1, 0)
        of_self = [v for _, v in before][-1] == code.co_varnames[0]
        if (name == "CALL" and of_self and before[-2][1] == "type") or (
            name == "LOAD_ATTR" and of_self and value == "__class__"
        ):
            left = 4
        before = [before[-1], (name, value)]
    return False


def _is_equality(name: str, value: object) -> bool:
    return name == "COMPARE_OP" and any(sign in str(value) for sign in ("==", "!="))


def _assigned(code: CodeType, names: Collection[str]) -> str:
    """Give one of ``names`` that a method assigns on its first argument, ``self``; else empty.

    :param code: the code of the method
    """
    if not code.co_varnames or not {*names} & {*code.co_names}:
        return ""
    target: object = None
    for instruction in dis.get_instructions(code):
        if instruction.opname == "STORE_ATTR" and instruction.argval in names:
            # A tuple: some versions of Python load two variables by one instruction.
            last = target[-1] if isinstance(target, tuple) else target
            if last == code.co_varnames[0]:
                return str(instruction.argval)
        target = instruction.argval
    return ""


# The references are weak: an adopted class lives as long as tasks have it, and it refers to the
# class that it is made from.
_adopted: MutableMapping[type, type] = WeakValueDictionary()


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
    if vars(cls).get("is_adopted"):
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
    adopted = _adopted.get(cls)
    if adopted is None:
        ours = lineage_class(kind)
        # Python lets an object change its class only if the first base of the new class has the
        # layout of the object. The stock operator itself cannot come before the lineage operator,
        # which is a subclass of it, so a subclass of the stock operator comes first then.
        first = _subclass(cls, (cls,)) if issubclass(ours, cls) else cls
        adopted = _subclass(cls, (first, ours))
        object.__setattr__(object.__new__(cls), "__class__", adopted)
        _adopted[cls] = adopted
    return adopted


def lineage_class(kind: Kind) -> type:
    """Import the operator with lineage that takes the place of a kind of stock operator."""
    module, _, name = kind.ours.rpartition(".")
    ours: type = getattr(import_module(module), name)
    return ours


def original(cls: type) -> type:
    """Give the class that the DAG used.

    For a class that adoption has made, it is the class before adoption; else it is ``cls`` itself.
    """
    while vars(cls).get("is_adopted"):
        cls = cls.__bases__[0]
    return cls


def _subclass(cls: type, bases: tuple[type, ...]) -> type:
    namespace = {
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__slots__": (),
        "is_adopted": True,
    }
    options = {"metaclass": _metaclass(type(cls))}
    return types.new_class(cls.__name__, bases, options, lambda into: into.update(namespace))


@cache
def _metaclass(original_metaclass: type) -> type:
    """Make a metaclass for adopted classes: they are pickled as the classes that the DAG used.

    The DAG of a virtualenv task may be pickled, and this package may not be installed in the
    virtualenv.

    :param original_metaclass: the metaclass of the class that the DAG used; base of the new one
    """
    metaclass = type(original_metaclass.__name__, (original_metaclass,), {})
    # copy() of a class gives the class itself.
    copyreg.pickle(metaclass, lambda cls: (copy, (original(cls),)))
    return metaclass


OFF = "left alone: adoption is off"
NO_SPARK = "left alone: it is none of Airflow's Spark operators, nor made of one"

_OF_ATTRIBUTES = ("__setattr__", "__getattribute__")
"""Methods that control the attributes of a task.

A user's class that defines one of them may refuse the attributes that lineage adds.
"""


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
    """

    has_lineage: bool
    names: tuple[str, ...]
    reserved: frozenset[str] = frozenset()
    obstacle: str = ""
    is_deferrable: bool = False


_known: MutableMapping[type, _Class] = WeakKeyDictionary()


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
    obstacle = known.obstacle or _of_task(task, known)
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
        facts = _known[cls] = _look_at(original(cls), kind)
    return facts


def _look_at(cls: type, kind: Kind) -> _Class:
    names = _class_names(cls)
    if issubclass(cls, LineageMixin):
        return _Class(True, names)
    try:
        own = kind.own_classes(cls)
        stock = cls.__mro__[len(own)]
        reserved = _reserved(lineage_class(kind), stock)
        added = [each for each in cls.__mro__ if each not in stock.__mro__]
        obstacle = unreached(own, kind.methods)
        names_of_ours = [*_OF_ATTRIBUTES, *sorted(reserved)]
        if name := own_names(added, names_of_ours) or assigned(added, kind.methods):
            obstacle = obstacle or _own_name(name)
        if name := assigned(added, kind.replaced):
            obstacle = obstacle or f"its own code sets {name}, which lineage has made anew"
        if compares_class(own):
            obstacle = obstacle or "its code asks for its exact class"
        if not obstacle:
            adopted_class(cls, kind)
        # A task with such a method among its own attributes would bypass lineage's method.
        reserved |= {*kind.methods}
        return _Class(False, names, reserved, obstacle, _is_deferrable(own))
    except Exception as error:
        obstacle = f"its class cannot be extended ({type(error).__name__}: {error})"
        return _Class(False, names, obstacle=obstacle)


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
    return defers(own)


def _of_task(task: Any, known: _Class) -> str:
    """Give the reason why a single task cannot be adopted; empty if it can.

    :param known: the facts about the task's class
    """
    attributes, arguments = _made_with(task)
    if attributes.get("start_from_trigger"):
        return "it is deferrable"
    if attributes.get("deferrable", arguments.get("deferrable", known.is_deferrable)):
        return "it is deferrable"
    function = attributes.get("python_callable")
    if callable(function) and inspect.iscoroutinefunction(inspect.unwrap(function)):
        return "its function is asynchronous"
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
