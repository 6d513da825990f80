"""Facets that are kept as they were written, and decoded only when they are looked at."""

from __future__ import annotations

from functools import cache
from itertools import chain
from typing import Any, TypeVar

import msgspec

RawFacets = dict[str, msgspec.Raw]

MAX_DEPTH = 200
"""Of a facet that is passed on as it is: a schema takes two levels for each level of its structs. A
deeper facet would end in Python's recursion limit, on the way to the backend or in the backend."""


def is_too_deep(text: bytes, value: Any) -> bool:
    """Whether an object or array has more levels than :data:`MAX_DEPTH`.

    :param text: the JSON of the value; most texts have fewer brackets, which is quick to count
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
    """Decode a facet that was kept raw; None if there is no facet, or it has another shape.

    Facets are the text of other programs: one of another shape costs its own content, and not the
    event.
    """
    if facet is None:
        return None
    try:
        of: Any = shape
        known: _T = _decoder(of).decode(facet)
    except (ValueError, RecursionError):
        return None
    return known


@cache  # of the few shapes in this package; making one takes longer than decoding a facet
def _decoder(shape: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(shape)
