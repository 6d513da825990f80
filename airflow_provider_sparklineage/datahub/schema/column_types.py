"""Types of columns, as trees: read from their text, or from the nested fields of a schema facet.

A producer writes a nested type in one of two forms, and both are read:

- as text: ``struct<a:int,b:array<string>>`` (Spark, Hive), ``STRUCT<a INT64>`` (BigQuery),
  ``row(a integer)`` (Trino);
- as a name with ``fields`` (``SchemaDatasetFacet``): the OpenLineage listener has ``_element``
  below an ``array``, ``key`` and ``value`` below a ``map``, and the columns of a ``struct``.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.datahub.lenient import items, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from airflow_provider_sparklineage.datahub.proposals import Json

MAX_DEPTH = 16
"""Levels of structs, arrays and maps that are read; a path of DataHub names all of them."""
MAX_NAME = 500
"""Characters of a column's name that are kept; a longer one ends in a checksum."""
MAX_TYPE = 100_000
"""Characters of a type that is read; a longer one is only shown, by its beginning."""
MAX_NATIVE = 1_000
"""Characters of a type that are shown."""

STRUCT, ARRAY, MAP, UNION = "struct", "array", "map", "union"

_NESTED = {
    "struct": STRUCT,
    "record": STRUCT,
    "row": STRUCT,
    "array": ARRAY,
    "list": ARRAY,
    "map": MAP,
    "union": UNION,
    "uniontype": UNION,
}
_UNKNOWN = "unknown"
_OPENING, _CLOSING = "<([{", ">)]}"


class ColumnType(NamedTuple):
    """A type.

    :param native: as the producer has it, at most ``MAX_NATIVE`` characters
    :param name: without parameters, in lower case: ``decimal``; of nested types ``struct``,
        ``array``, ``map``, ``union``
    :param children: the fields of a struct, the element of an array, key and value of a map, the
        members of a union; none where they are not known
    :param is_cut: whether it has children that are left out, being too deep or too long
    """

    native: str
    name: str
    children: tuple[Child, ...] = ()
    is_cut: bool = False


class Child(NamedTuple):
    """A type within a type.

    :param name: of a struct's field; else empty
    """

    name: str
    type: ColumnType
    description: str = ""


# --- as nested fields -----------------------------------------------------------------------------


def of_field(field: Json, depth: int = 0) -> ColumnType:
    """Read the type of a field of a schema facet.

    :param field: its ``fields``, where there are any, say more than its ``type``
    """
    written = text(field.get("type"), MAX_TYPE)
    below = items(field.get("fields"))
    if not below:
        return of_text(written) if depth == 0 else _parsed(written, depth)
    kind = _NESTED.get(_base(written), STRUCT)
    if depth >= MAX_DEPTH:
        return ColumnType(_shown(written or kind), kind, is_cut=True)
    children = tuple(_children(kind, below, depth + 1))
    return ColumnType(_rendered(kind, children), kind, children)


def _children(kind: str, below: Sequence[Json], depth: int) -> Iterator[Child]:
    if kind == STRUCT:
        for field in below:
            if name := text(field.get("name"), MAX_NAME):
                yield Child(name, of_field(field, depth), text(field.get("description")))
    else:
        yield from (Child("", of_field(one, depth)) for one in _unnamed(kind, below))


def _unnamed(kind: str, below: Sequence[Json]) -> Sequence[Json]:
    names = [field.get("name") for field in below]
    if kind == MAP:
        named = dict(zip(names, below, strict=True))
        return [named.get("key", {}), named.get("value", {})]
    if kind == ARRAY and names not in (["_element"], ["element"]):
        # The columns of the elements, as BigQuery's repeated records have them.
        return [{"fields": below}]
    return below


def _rendered(kind: str, children: Sequence[Child]) -> str:
    """Write a type as Spark does; its beginning is enough, and keeps deep types linear."""
    shown = (f"{one.name}:{one.type.native}" if one.name else one.type.native for one in children)
    return _shown(f"{kind}<{','.join(islice(shown, MAX_NATIVE))}>")


# --- as text --------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def of_text(written: str) -> ColumnType:
    """Read a type from its text; one that is not nested has no children."""
    return _parsed(written, 0)


def _parsed(written: str, depth: int) -> ColumnType:
    written = written.strip()
    kind = _NESTED.get(_base(written))
    if kind is None:
        name = ARRAY if written.endswith("[]") else _base(written)
        return ColumnType(_shown(written), name or _UNKNOWN)
    inner = _inner(written)
    if depth >= MAX_DEPTH or not inner:
        return ColumnType(_shown(written), kind, is_cut=bool(inner) or len(written) >= MAX_TYPE)
    return ColumnType(_shown(written), kind, tuple(_members(kind, inner, depth + 1)))


def _members(kind: str, inner: str, depth: int) -> Iterator[Child]:
    for part in (inner,) if kind == ARRAY else _split(inner):
        if kind != STRUCT:
            yield Child("", _parsed(part, depth))
        elif found := _QUOTED.fullmatch(part) or _PLAIN.fullmatch(part):
            name = text(found[1].replace("``", "`"), MAX_NAME)
            yield Child(name, _parsed(_SUFFIX.sub("", found[2]), depth))


_BRACKETS = re.compile(r"[<(\[]")
_QUOTED = re.compile(r"`((?:[^`]|``)+)`\s*:?\s*(.+)", re.DOTALL)
_PLAIN = re.compile(r"([^\s:<>`]+)(?:\s*:|\s)\s*(.+)", re.DOTALL)
_SUFFIX = re.compile(r"\s+(?:not\s+null\b|comment\s+'|options\s*\().*", re.DOTALL | re.IGNORECASE)


def _base(written: str) -> str:
    """Give the name of a type: of ``timestamp(3) with time zone`` it is ``timestamp``."""
    start = _BRACKETS.search(written)
    return written[: start.start() if start else MAX_NATIVE].strip().lower()


def _shown(written: str) -> str:
    return text(written, MAX_NATIVE) or _UNKNOWN


def _inner(written: str) -> str:
    """Give what is between the outer brackets, if the text has some and ends with them."""
    start = _BRACKETS.search(written)
    return written[start.end() : -1].strip() if start and written[-1] in _CLOSING else ""


def _split(inner: str) -> Iterator[str]:
    """Part a list at the commas that are neither in brackets nor in backticks."""
    start = level = 0
    is_quoted = False
    for at, char in enumerate(inner):
        if char == "`":
            is_quoted = not is_quoted
        elif is_quoted:
            continue
        elif char in _OPENING:
            level += 1
        elif char in _CLOSING:
            level -= 1
        elif char == "," and level <= 0:
            yield inner[start:at].strip()
            start = at + 1
    yield inner[start:].strip()
