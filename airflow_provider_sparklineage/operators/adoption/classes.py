"""Adopted classes: what a DAG's operator is made into, so that its tasks have lineage.

The class of the lineage operator comes between the DAG's own classes and the stock one: an own
``execute()`` runs first, and what it calls by ``super()`` is ours, after all that it prepares.
Names stay as they are, for Airflow's pages, its serialised DAGs and rules about classes.
"""

from __future__ import annotations

import copyreg
import types
from copy import copy
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from airflow_provider_sparklineage.operators.adoption import kinds

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from airflow_provider_sparklineage.operators.adoption.kinds import Kind

# An adopted class lives as long as tasks have it, and with it the class that it is made of.
_adopted: MutableMapping[type, type] = WeakValueDictionary()


def adopt(task: Any) -> None:
    """Give a task lineage: a plain one now, those of a mapped one when they are made.

    :raise Exception: whatever the class has against it
    """
    cls, kind = kinds.of(task)
    if kind is None:
        msg = f"{kinds.path(cls)} runs no Spark."
        raise TypeError(msg)
    if vars(cls).get("is_adopted"):
        return
    adopted = adopted_class(cls, kind)
    if cls is type(task):
        # Airflow's own way to assign looks for converters, and at the arguments of the task.
        object.__setattr__(task, "__class__", adopted)
    else:
        task.operator_class = adopted
        task.operator_extra_links = adopted.operator_extra_links  # type: ignore[attr-defined]


def adopted_class(cls: type, kind: Kind) -> type:
    """Make the class with lineage of one without it, once.

    :raise Exception: if Python, or a base of the class, does not let it be made
    """
    adopted = _adopted.get(cls)
    if adopted is None:
        ours = lineage_class(kind)
        # Python lets an object change its class where the first of the bases has all that the
        # object has. The stock operator itself cannot come before the operator that is made of it.
        first = _subclass(cls, (cls,)) if issubclass(ours, cls) else cls
        adopted = _subclass(cls, (first, ours))
        object.__setattr__(object.__new__(cls), "__class__", adopted)
        _adopted[cls] = adopted
    return adopted


def lineage_class(kind: Kind) -> type:
    """Import the lineage operator of a kind."""
    module, _, name = kind.ours.rpartition(".")
    ours: type = getattr(import_module(module), name)
    return ours


def original(cls: type) -> type:
    """Give the class that the DAG has, of an adopted one or of any other."""
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
def _metaclass(of: type) -> type:
    """Make a metaclass whose classes are pickled as those that they are made of.

    A virtualenv task may be given its DAG, pickled. There nobody adopts, nor has this package.
    """
    made = type(of.__name__, (of,), {})
    copyreg.pickle(made, lambda cls: (copy, (original(cls),)))  # which copies no class
    return made
