"""Find code in a user's operator that would not work in an adopted task.

The code of the classes is read, compiled, and not run. Code that cannot be read counts as an
obstacle: it is better to leave a task alone than to break it.
"""

from __future__ import annotations

import dis
import functools
import inspect
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence


_COMPARISONS = frozenset({"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"})
_OF_CLASSES = frozenset({"__new__", "__init_subclass__", "__class_getitem__"})
"""Methods whose first argument is a class, without a decorator that says so."""
_CONSTRUCTORS = frozenset({"__init__", "__new__", "__post_init__", "__attrs_post_init__"})
_BASES = frozenset({"__mro__", "mro", "getmro", "__bases__", "__base__", "__subclasses__"})
_SETTERS = frozenset({"setattr", "delattr", "__setattr__", "__delattr__", "__dict__", "vars"})
_GETTERS = frozenset({"getattr", "hasattr", "__getattribute__", "attrgetter"})
_NO_STEPS = frozenset({"CACHE", "PRECALL", "PUSH_NULL", "RESUME", "NOP", "COPY_FREE_VARS"})
_LOADS = frozenset({"LOAD_FAST", "LOAD_DEREF"})
_READS = frozenset({"LOAD_ATTR", "LOAD_METHOD"})


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
    """Give one of ``names`` that one of the classes defines, or that its code uses on ``self``.

    :return: the name; empty if there is none
    """
    defined = (name for cls in classes for name in names if name in vars(cls))
    used = (
        _attribute(part, names, (*_READS, "STORE_ATTR", "DELETE_ATTR"))
        or _in_text(part, names, _SETTERS | _GETTERS)
        for part in _parts(classes)
    )
    return next(filter(None, (*defined, *used)), "")


def assigned(classes: Sequence[type], names: Collection[str]) -> str:
    """Give one of ``names`` that one of the classes assigns on ``self``; else empty."""
    found = (
        _attribute(part, names, ("STORE_ATTR", "DELETE_ATTR")) or _in_text(part, names, _SETTERS)
        for part in _parts(classes)
    )
    return next(filter(None, found), "")


def defers(classes: Sequence[type]) -> bool:
    """Whether the classes may wait in Airflow's triggerer.

    They may if their code uses the name ``defer`` or ``TaskDeferred``.
    """
    return any({"defer", "TaskDeferred"} & {*part.code.co_names} for part in _parts(classes))


def asks_for_class(classes: Sequence[type]) -> str:
    """Find code for which an adopted class cannot pass as the class that it is made of.

    :return: a clause on the code, e.g. "its code asks for its exact class"; empty if there is none
    """
    for part in (*_parts(classes), *_parts_of_descriptors(classes)):
        if _BASES & {*part.code.co_names}:
            return "its code asks for the bases or the subclasses of a class"
        if _is_identity_used(part):
            return "its code asks for its exact class"
    return ""


def sets_unknown(classes: Sequence[type], *, constructors: bool) -> bool:
    """Whether the classes set attributes of ``self`` whose names cannot be read in their code.

    :param constructors: whether the code of constructors counts, and no other; if not, all other
        code counts
    """
    return any(
        _sets_unknown(part)
        for part in _parts(classes)
        if (part.method in _CONSTRUCTORS) is constructors
    )


# --- the code of a class --------------------------------------------------------------------------


class _Part(NamedTuple):
    """The code of a method, or of a function inside it.

    :param first: name of the method's first argument
    :param is_class: whether the first argument is the class, as in a ``classmethod``
    """

    method: str
    code: CodeType
    first: str
    is_class: bool


def _parts(classes: Sequence[type]) -> Iterator[_Part]:
    """Yield the code of all functions that the classes define themselves, not of inherited ones."""
    for cls in classes:
        inherited = [
            inspect.unwrap(vars(base)["__init__"])
            for base in cls.__mro__[1:]
            if "__init__" in vars(base)
        ]
        for name, value in vars(cls).items():
            # Airflow wraps a constructor again for a class whose first base is no operator.
            if name == "__init__" and inspect.unwrap(value) in inherited:
                continue
            is_class = name in _OF_CLASSES or isinstance(value, classmethod)
            for function in _functions(value):
                first = (*function.__code__.co_varnames, "")[0]
                for code in _codes(function.__code__):
                    yield _Part(name, code, first, is_class)


def _parts_of_descriptors(classes: Sequence[type]) -> Iterator[_Part]:
    """Yield the code of attributes that answer by a ``__get__`` in Python, as a class property.

    The ``__get__`` is given the class, and gives it to the functions that the attribute holds.
    """
    for name, value in (item for cls in classes for item in vars(cls).items()):
        get = next((vars(t)["__get__"] for t in type(value).__mro__ if "__get__" in vars(t)), None)
        if not isinstance(get, FunctionType) or type(value).__module__ == "functools":
            continue
        arguments = get.__code__.co_varnames[1 : get.__code__.co_argcount][:2]
        for argument, is_class in zip(arguments, (False, True), strict=False):
            for code in _codes(get.__code__):
                yield _Part(name, code, argument, is_class)
        for held in getattr(value, "__dict__", {}).values():
            for function in _functions(held):
                first = (*function.__code__.co_varnames, "")[0]
                for code in _codes(function.__code__):
                    yield _Part(name, code, first, is_class=True)


def _functions(value: object) -> Iterator[FunctionType]:
    """Yield the functions in an attribute of a class, also those that a decorator has wrapped."""
    waiting, seen = [value], set[int]()
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, FunctionType):
            wrapped = vars(value).get("__wrapped__")
            # Airflow wraps each constructor and each execute().
            if wrapped is None or not str(value.__globals__.get("__name__")).startswith("airflow."):
                yield value
            waiting += [wrapped, *(_content(cell) for cell in value.__closure__ or ())]
        elif isinstance(value, property):
            waiting += [value.fget, value.fset, value.fdel]
        elif isinstance(value, classmethod | staticmethod):
            waiting.append(value.__func__)
        elif isinstance(
            value,
            functools.partial
            | functools.partialmethod
            | functools.cached_property
            | functools.singledispatchmethod,
        ):
            waiting.append(value.func)


def _content(cell: Any) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty
        return None


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of a function, and of all functions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _steps(code: CodeType) -> list[tuple[str, Any]]:
    """List the instructions of code, each as its name and its argument.

    Instructions that only some versions of Python have, and that change no value, are left out. An
    instruction that loads or stores two variables counts as two.
    """
    steps: list[tuple[str, Any]] = []
    for instruction in dis.get_instructions(code):
        name, value = instruction.opname, instruction.argval
        if name in _NO_STEPS:
            continue
        if isinstance(value, tuple) and name.count("_FAST") > 1:  # e.g. STORE_FAST_LOAD_FAST
            verbs = [verb.strip("_") for verb in name.split("_FAST") if verb]
            steps += [(f"{verb}_FAST", each) for verb, each in zip(verbs, value, strict=False)]
        elif name == "BINARY_OP":
            steps.append((name, instruction.argrepr))
        else:
            steps.append((name.removesuffix("_BORROW"), value))
    return steps


def _calls_super(code: CodeType, method: str) -> bool:
    """Whether ``method`` is the first attribute that the code reads after a ``super``."""
    if not {"super", method} <= {*code.co_names}:
        return False
    is_super = False
    for name, value in _steps(code):
        if name in ("LOAD_GLOBAL", "LOAD_NAME"):
            is_super = is_super or value == "super"
        elif is_super and name in (*_READS, "LOAD_SUPER_ATTR"):
            if value == method:
                return True
            is_super = False
    return False


def _attribute(part: _Part, wanted: Collection[str], instructions: Collection[str]) -> str:
    """Give one of the wanted attributes of ``self`` that code reads, sets or deletes; else empty.

    :param instructions: names of the instructions that count
    """
    if not {*wanted} & {*part.code.co_names}:
        return ""
    steps = _steps(part.code)
    for before, (name, value) in zip([("", None), *steps], steps, strict=False):
        if name in instructions and value in wanted and _is_load(before, part.first):
            return str(value)
    return ""


def _is_load(step: tuple[str, Any], variable: str) -> bool:
    return step[0] in _LOADS and step[1] == variable


def _in_text(part: _Part, wanted: Collection[str], functions: Collection[str]) -> str:
    """Give one of the wanted names that is a text in code which calls one of the functions."""
    if not {*functions} & {*part.code.co_names}:
        return ""
    return next((text for text in _texts(part.code.co_consts) if text in wanted), "")


def _texts(constants: Collection[object]) -> Iterator[str]:
    for constant in constants:
        if isinstance(constant, str):
            yield constant
        elif isinstance(constant, tuple | frozenset):
            yield from _texts(constant)


def _sets_unknown(part: _Part) -> bool:
    """Whether code sets an attribute of ``self`` by a name that is no text in the code."""
    used = {*part.code.co_names}
    if not _SETTERS & used:
        return False
    is_dict = not used.isdisjoint({"__dict__", "vars"})
    if is_dict and {"update", "setdefault", "__setitem__"} & used:
        return True
    none = ("", None)
    steps = [none, *_steps(part.code), none, none]
    for before, (name, value), *after in zip(steps, steps[1:], steps[2:], steps[3:], strict=False):
        if value in ("setattr", "__setattr__") and _is_load(after[0], part.first):
            is_set = not _is_text(after[1])
        elif is_dict:
            is_set = (name == "STORE_SUBSCR" and not _is_text(before)) or value == "|="
        else:
            is_set = False
        if is_set or (name, value) == ("STORE_ATTR", "__dict__"):
            return True
    return False


def _is_text(step: tuple[str, Any]) -> bool:
    return step[0].startswith("LOAD_CONST") and isinstance(step[1], str)


def _is_identity_used(part: _Part) -> bool:
    """Whether code compares the class of ``self`` by ``is``, or gives it to ``super`` or ``id``.

    A comparison of an attribute of the class, such as its name, does not count, and neither does a
    comparison in a method such as ``__eq__``.
    """
    if not ({"type", "__class__"} & {*part.code.co_names} or part.is_class):
        return False
    steps = _steps(part.code)
    variables = {part.first} if part.is_class else set()  # that hold the class
    for number in range(len(steps)):
        start = _start_of_class(steps, number, part.first, variables)
        if start is None:
            continue
        if start and steps[start - 1] in (("LOAD_GLOBAL", "super"), ("LOAD_GLOBAL", "id")):
            return True
        after = steps[number + 1 : number + 6]
        if after and after[0][0] in ("STORE_FAST", "STORE_DEREF"):
            variables.add(after[0][1])
        elif part.method not in _COMPARISONS and _is_compared(after):
            return True
    return False


def _start_of_class(
    steps: Sequence[tuple[str, Any]], number: int, first: str, variables: Collection[str]
) -> int | None:
    """Give the number of the step with which an expression for the class of ``self`` begins.

    :param number: number of the step with which the expression ends
    :param first: the variable ``self``
    :param variables: variables that hold the class
    :return: None if no such expression ends there
    """
    name, value = steps[number]
    if name in _LOADS and value in variables:
        return number
    if not number or not _is_load(steps[number - 1], first):
        return None
    if (name, value) == ("LOAD_ATTR", "__class__"):
        return number - 1
    if name.startswith("CALL") and number > 1 and steps[number - 2][1] == "type":
        return number - 2
    return None


def _is_compared(steps: Sequence[tuple[str, Any]]) -> bool:
    """Whether ``is`` compares the value that is there before these instructions."""
    if steps and steps[0][0] in _READS:  # an attribute of the class, not the class
        return False
    for before, (name, _) in zip([("", None), *steps], steps, strict=False):
        if name.startswith("CALL"):
            return False
        if name == "IS_OP":
            return before != ("LOAD_CONST", None)
    return False
