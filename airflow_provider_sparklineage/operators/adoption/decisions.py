"""Whether a task is adopted, and why not: in a sentence, for people."""

from __future__ import annotations

import inspect
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from airflow_provider_sparklineage.model.task_rules import TaskNames
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.operators.adoption import classes, kinds, obstacles
from airflow_provider_sparklineage.operators.lineage_mixin import LineageMixin

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping, Sequence

    from airflow_provider_sparklineage.model.task_rules import AdoptionRules, Verdict
    from airflow_provider_sparklineage.operators.adoption.kinds import Kind

OFF = "left alone: adoption is off"
NO_SPARK = "left alone: it is none of Airflow's Spark operators, nor made of one"

_OF_ATTRIBUTES = ("__setattr__", "__getattribute__")
"""What decides which attributes a task has: it may refuse those of lineage."""


class Decision(Frozen, frozen=True):
    """What becomes of a task.

    :param reason: "adopted", or "left alone: …", with what decides
    :param rule: the one that decides, counted from 0; None if none does
    """

    adopts: bool
    reason: str
    rule: int | None = None


class _Class(Frozen, frozen=True):
    """What counts for all tasks of a class.

    :param has_lineage: whether its tasks have lineage by themselves
    :param names: which rules may call it by
    :param reserved: names that a task of it may not have for things of its own
    :param obstacle: why none of its tasks can be adopted; empty if they can
    :param is_deferrable: of tasks that do not say so themselves
    """

    has_lineage: bool
    names: tuple[str, ...]
    reserved: frozenset[str] = frozenset()
    obstacle: str = ""
    is_deferrable: bool = False


_known: MutableMapping[type, _Class] = WeakKeyDictionary()


def decide(task: Any, rules: AdoptionRules) -> Decision:
    """Decide about a task, adopted already or not: by what the DAG has made."""
    cls, kind = kinds.of(task)
    if kind is None:
        return Decision(False, NO_SPARK)
    known = _class(cls, kind)
    if known.has_lineage:
        return Decision(False, "left alone: it has lineage by itself")
    if rules.is_off:
        return Decision(False, OFF)
    verdict = rules.verdict(_names(task, known))
    if not verdict.adopts:
        return Decision(False, f"left alone: {_unchosen(verdict)}", verdict.rule)
    obstacle = known.obstacle or _of_task(task, known)
    if obstacle:
        return Decision(False, f"left alone: {obstacle}", verdict.rule)
    return Decision(True, f"adopted{_of_rule(verdict)}", verdict.rule)


def names_of(task: Any) -> TaskNames | None:
    """Give what rules know of a task; None if it runs no Spark."""
    cls, kind = kinds.of(task)
    return None if kind is None else _names(task, _class(cls, kind))


def _names(task: Any, known: _Class) -> TaskNames:
    dag = task.get_dag()
    tags = tuple(map(str, dag.tags or ())) if dag is not None else ()
    return TaskNames(task.dag_id, task.task_id, known.names, tags)


def _unchosen(verdict: Verdict) -> str:
    return "no rule is for it" if verdict.rule is None else f"rule {verdict.rule + 1} excludes it"


def _of_rule(verdict: Verdict) -> str:
    return "" if verdict.rule is None else f" (rule {verdict.rule + 1})"


def _class(cls: type, kind: Kind) -> _Class:
    found = _known.get(cls)
    if found is None:
        found = _known[cls] = _look_at(classes.original(cls), kind)
    return found


def _look_at(cls: type, kind: Kind) -> _Class:
    names = _class_names(cls)
    if issubclass(cls, LineageMixin):
        return _Class(True, names)
    try:
        own = kind.own_classes(cls)
        stock = cls.__mro__[len(own)]
        reserved = _reserved(classes.lineage_class(kind), stock)
        added = [each for each in cls.__mro__ if each not in stock.__mro__]
        obstacle = obstacles.unreached(own, kind.methods)
        if name := obstacles.own_names(added, [*_OF_ATTRIBUTES, *sorted(reserved)]):
            obstacle = obstacle or _own_name(name)
        if name := obstacles.assigned(added, kind.methods):
            obstacle = obstacle or _own_name(name)
        if name := obstacles.assigned(added, kind.replaced):
            obstacle = obstacle or f"its own code sets {name}, which lineage has made anew"
        if obstacles.compares_class(own):
            obstacle = obstacle or "its code asks for its exact class"
        if not obstacle:
            classes.adopted_class(cls, kind)
        # A wrapper that a task has of its own would go past ours.
        reserved |= {*kind.methods}
        return _Class(False, names, reserved, obstacle, _is_deferrable(own))
    except Exception as error:
        return _Class(False, names, obstacle=_failed(error))


def _class_names(cls: type) -> tuple[str, ...]:
    """Give the paths and the names of a class and of its bases, and what Airflow's pages show."""
    names = (n for each in cls.__mro__ for n in (kinds.path(each), each.__qualname__))
    shown = None
    with suppress(Exception):  # of a descriptor
        shown = cls.custom_operator_name  # type: ignore[attr-defined]
    return tuple(dict.fromkeys([*names, *([shown] if isinstance(shown, str) and shown else [])]))


def _reserved(ours: type, stock: type) -> frozenset[str]:
    """Give the names that lineage adds to an operator."""
    mixins = ours.__mro__[: ours.__mro__.index(stock)]
    names = (name for mixin in mixins for name in vars(mixin))
    ours_alone = (name for name in names if not hasattr(stock, name))
    return frozenset(n for n in ours_alone if not n.startswith(("__", "_convert")))


def _own_name(name: str) -> str:
    return f"it has something of its own called {name}, as lineage has"


def _failed(error: Exception) -> str:
    return f"its class cannot be extended ({type(error).__name__}: {error})"


def _is_deferrable(own: Sequence[type]) -> bool:
    """Whether tasks of a class wait in the triggerer if nobody says whether they do."""
    for cls in own:
        if "start_from_trigger" in vars(cls):
            return bool(vars(cls)["start_from_trigger"])
        constructor = vars(cls).get("__init__")
        if constructor is not None:
            argument = inspect.signature(constructor).parameters.get("deferrable")
            if argument is not None:
                return argument.default is not False
    return obstacles.defers(own)


def _of_task(task: Any, known: _Class) -> str:
    """Say why a single task cannot be adopted; empty if it can."""
    has, given = _made_with(task)
    if has.get("start_from_trigger"):
        return "it is deferrable"
    if has.get("deferrable", given.get("deferrable", known.is_deferrable)):
        return "it is deferrable"
    function = has.get("python_callable")
    if callable(function) and inspect.iscoroutinefunction(inspect.unwrap(function)):
        return "its function is asynchronous"
    found = has.keys() & known.reserved
    return _own_name(min(found)) if found else ""


def _made_with(task: Any) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Give the attributes of a task, as far as they are known, and its arguments."""
    if not task.is_mapped:
        attributes = vars(task)
        return attributes, attributes.get("_BaseOperator__init_kwargs", {})
    mapped = getattr(task.expand_input, "value", None)
    # Of a decorated function, Airflow's mapped task has that itself.
    own = {"python_callable": getattr(task, "python_callable", None)}
    arguments = {**own, **task.partial_kwargs, **(mapped if isinstance(mapped, dict) else {})}
    for each in mapped if isinstance(mapped, list | tuple) else ():  # of expand_kwargs()
        if isinstance(each, dict):
            arguments |= {name: value for name, value in each.items() if value}
    return arguments, arguments
