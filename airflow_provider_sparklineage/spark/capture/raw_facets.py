"""Raw facets: the JSON text of a facet, which is decoded only when the facet is needed."""

from __future__ import annotations

from functools import cache
from itertools import chain
from typing import Any, TypeVar

import msgspec

RawFacets = dict[str, msgspec.Raw]

MAX_DEPTH = 200
"""The largest number of levels in a facet that is passed on unchanged. A schema facet has two
levels for each level of nested structs. A deeper facet would exceed Python's recursion limit, on
the way to the backend or in the backend."""


def is_too_deep(text: bytes, value: Any) -> bool:
    """Whether a JSON object or array has more levels than :data:`MAX_DEPTH`.

    :param text: the JSON text of the value. Most texts have no more opening brackets than that, so
        that the levels need not be counted.
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
    """Decode a raw facet; None if there is no facet, or if it has another shape.

    Other programs write the facets. A facet of another shape is left out, and the rest of its event
    is still used.
    """
    if facet is None:
        return None
    try:
        of: Any = shape
        known: _T = _decoder(of).decode(facet)
    except (ValueError, RecursionError):
        return None
    return known


@cache  # this package has few shapes, and making a decoder takes longer than decoding a facet
def _decoder(shape: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(shape)
