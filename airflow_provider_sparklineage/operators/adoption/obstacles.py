"""Why an operator class cannot be adopted, as its code says; nothing of it is run.

What cannot be seen counts as an obstacle: it is better to leave a task alone than to break it.
"""

from __future__ import annotations

import dis
import inspect
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence


_COMPARISONS = frozenset({"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"})


def unreached(classes: Sequence[type], methods: Collection[str]) -> str:
    """Find a method that does not come to the one of the same name behind it; else empty.

    :param classes: those before the one whose methods are to be reached
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
    """Find a name that classes have, or give to their instances; else empty."""
    of_classes = (name for cls in classes for name in names if name in vars(cls))
    return next(of_classes, "") or assigned(classes, names)


def assigned(classes: Sequence[type], names: Collection[str]) -> str:
    """Find a name that classes give to their instances; else empty."""
    return next(filter(None, (_assigned(code, names) for code in _codes_of(classes))), "")


def defers(classes: Sequence[type]) -> bool:
    """Whether a class has code that waits in the triggerer."""
    return any({"defer", "TaskDeferred"} & {*code.co_names} for code in _codes_of(classes))


def compares_class(classes: Sequence[type]) -> bool:
    """Whether classes ask if ``self`` is of one class and of none made of it."""
    return any(map(_compares_class, _codes_of(classes)))


def _codes_of(classes: Sequence[type]) -> Iterator[CodeType]:
    """Give the code of all that classes define themselves."""
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
    """Give the code of a function, and of those inside of it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _calls_super(code: CodeType, method: str) -> bool:
    """Whether a method is the first thing that is asked of a ``super()``."""
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
    """Find ``type(self) is …`` and the like: the class of ``self``, and soon after it a comparison.

    Not of something that the class has, such as its name.
    """
    if not {"type", "__class__"} & {*code.co_names} or not code.co_varnames:
        return False
    if code.co_name in _COMPARISONS:  # of two operators
        return False
    before: list[tuple[str, object]] = [("", None)] * 2
    left = 0  # instructions in which the comparison would be
    for instruction in dis.get_instructions(code):
        name, value = instruction.opname, instruction.argval
        if name in ("CACHE", "PRECALL", "PUSH_NULL"):
            continue
        is_used = name == "LOAD_ATTR" and before[-1][0] in ("CALL", "LOAD_ATTR")
        if is_used or name == "CALL":  # what the class has or makes, not the class
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
    """Find one of some names that a method gives to its first argument, ``self``."""
    if not code.co_varnames or not {*names} & {*code.co_names}:
        return ""
    target: object = None
    for instruction in dis.get_instructions(code):
        if instruction.opname == "STORE_ATTR" and instruction.argval in names:
            last = target[-1] if isinstance(target, tuple) else target  # two are loaded at once
            if last == code.co_varnames[0]:
                return str(instruction.argval)
        target = instruction.argval
    return ""
