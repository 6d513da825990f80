"""Reading what may have any shape: what does not fit is left out, part by part, and counted.

An event that fits as a whole, as nearly all do, is decoded in one go. Of another one each part is
tried by itself: what fits is as it would have been, an element of a list or a map that does not is
left out of it, and a key that does not is as if it were absent.
"""

from __future__ import annotations

import json
import types
from functools import cache
from typing import Any, NamedTuple, Union, get_args, get_origin

import msgspec

from airflow_provider_sparklineage.history.facts.shapes import (
    COLUMNS,
    DECODER,
    ColumnLineage,
    Event,
)

_ABSENT = object()


class Read(NamedTuple):
    """An event as it could be read.

    :param left_out: how many parts of it were not of their shape
    """

    event: Event
    left_out: int = 0


def read(text: bytes) -> Read | None:
    """Read an event.

    :return: None if the text is no run event: a run with an id, a job with a name, and a time
    :raise ValueError: if it is no JSON
    :raise RecursionError: if it is nested too deeply
    """
    event, left_out = _read(text, DECODER, Event)
    return Read(event, left_out) if isinstance(event, Event) else None


def read_columns(text: bytes) -> tuple[ColumnLineage | None, int]:
    """Read the text of a facet ``columnLineage``.

    :return: None if nothing of it can be read; how many parts of it were not of their shape
    """
    try:
        found, left_out = _read(text, COLUMNS, ColumnLineage)
    except (ValueError, RecursionError):
        return None, 1
    return (found if isinstance(found, ColumnLineage) else None), left_out


def _read(text: bytes, decoder: msgspec.json.Decoder[Any], of: type) -> tuple[Any, int]:
    try:
        return decoder.decode(text), 0
    except msgspec.ValidationError:
        value = msgspec.json.decode(text)
    except ValueError:
        value = _any_json(text)
    fitting = _Fitting()
    return fitting.to(value, of), fitting.left_out


def _any_json(text: bytes) -> Any:
    """Read what Python's own module writes, and msgspec refuses: NaN, halves of surrogate pairs."""
    value = json.loads(text, parse_constant=lambda _: None)
    return msgspec.json.decode(json.dumps(value, ensure_ascii=False).encode(errors="replace"))


class _Fitting:
    """Makes values of types; counts what fits nowhere."""

    def __init__(self) -> None:
        self.left_out = 0

    def to(self, value: Any, of: Any) -> Any:
        """Make a value of a type; ``_ABSENT`` if nothing of it can be."""
        try:
            return msgspec.convert(value, of)
        except msgspec.ValidationError:
            pass
        made = self._of_parts(value, _without_null(of))
        if made is _ABSENT:
            self.left_out += 1
        return made

    def _of_parts(self, value: Any, of: Any) -> Any:
        if of is msgspec.Raw:
            return msgspec.Raw(msgspec.json.encode(value))
        match get_origin(of), value:
            case None, dict() if issubclass(of, msgspec.Struct):
                return self._struct(value, of)
            case origin, list() if origin is list:
                made = [self.to(one, get_args(of)[0]) for one in value]
                return [one for one in made if one is not _ABSENT]
            case origin, dict() if origin is dict:
                named = {key: self.to(one, get_args(of)[1]) for key, one in value.items()}
                return {key: one for key, one in named.items() if one is not _ABSENT}
        return _ABSENT

    def _struct(self, value: dict[str, Any], of: type[msgspec.Struct]) -> Any:
        made = {}
        for part in _fields(of):
            given = value.get(part.encode_name, _ABSENT)
            found = _ABSENT if given is _ABSENT else self.to(given, part.type)
            if found is not _ABSENT:
                made[part.name] = found
            elif part.required:
                return _ABSENT
        return of(**made)


@cache  # to resolve the annotations takes longer than all else
def _fields(of: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(of)


def _without_null(of: Any) -> Any:
    """Give what a type is if it is not null; unions of several others have no parts."""
    if get_origin(of) in (Union, types.UnionType):
        others = [one for one in get_args(of) if one is not types.NoneType]
        return others[0] if len(others) == 1 else str
    return of
