"""Facets that are kept as they were written: decoded when they are looked at, if at all."""

from __future__ import annotations

from functools import cache
from itertools import chain
from typing import Any, TypeVar

import msgspec

RawFacets = dict[str, msgspec.Raw]

MAX_DEPTH = 200
"""Of what is passed on as it is: a schema takes two for each level of its structs. What is deeper
would end in Python's recursion limit, somewhere on the way to the backend, or in the backend."""


def is_too_deep(text: bytes, value: Any) -> bool:
    """Whether an object or array has more levels than :data:`MAX_DEPTH`.

    :param text: its JSON: mostly it has not even so many brackets
    """
    if text.count(b"{") + text.count(b"[") <= MAX_DEPTH:
        return False
    level = [value]
    for _ in range(MAX_DEPTH):
        inner = chain.from_iterable(v.values() if isinstance(v, dict) else v for v in level)
        level = [v for v in inner if isinstance(v, (dict, list))]
        if not level:
            return False
    return True


_T = TypeVar("_T")


def decode_facet(facet: msgspec.Raw | None, shape: type[_T]) -> _T | None:
    """Decode a facet that was kept raw; None where there is none, or it is not of that shape.

    Facets are other people's text: one of another shape costs what it would have had, and not
    the event.
    """
    if facet is None:
        return None
    try:
        of: Any = shape
        known: _T = _decoder(of).decode(facet)
    except (ValueError, RecursionError):
        return None
    return known


@cache  # of the few shapes in this package; to make one takes longer than decoding a facet
def _decoder(shape: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(shape)
