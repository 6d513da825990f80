"""How many bytes facets take in an event.

Sizes are those of the JSON that OpenLineage's client sends (ASCII, with a space after each
separator). That encoder is slow, so where the two differ by spaces only, they are counted in the
text of a fast one.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec
from openlineage.client.facet_v2 import column_lineage_dataset

from airflow_provider_sparklineage.event.event_parts import field_names

ColumnLineageDatasetFacet = column_lineage_dataset.ColumnLineageDatasetFacet

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ENVELOPE = 1024
"""Bytes for what is around the datasets and facets: the event's run, job, time and producer."""


def entries_size(key: str, facets: Iterable[Any]) -> int:
    """Measure facets of one key, with the key before each and what separates it from the next."""
    every = list(facets)
    before = size_of(key) + len(": ")
    chunks = (every[n : n + _CHUNK] for n in range(0, len(every), _CHUNK))
    return len(every) * before + sum(map(_listed_size, chunks))


# A text of all of them would be memory that is asked of the system and given back each time.
_CHUNK = 32


def _listed_size(facets: Sequence[Any]) -> int:
    """Measure facets, with what separates each from the next."""
    text, nulls = msgspec.json.encode(facets), 0
    if all(isinstance(facet, ColumnLineageDatasetFacet) for facet in facets):
        # No value in them is null, so these are fields that are left out.
        text, nulls = _NULL.subn(b"", text)
    size = _spaced(text)
    if size is not None:
        return size + sum(map(_header, facets)) - nulls * len(", ")
    if len(facets) > 1:  # some of them are to blame
        return sum(_listed_size([facet]) for facet in facets)
    return size_of(facets)


_NULL = re.compile(rb'"\w+":null')
_FLOATING = re.compile(rb"\d[.e]")


def _spaced(text: bytes) -> int | None:
    """Give the size of a text without spaces once it has them; None if more would be different.

    That is what needs an escape, numbers that are not whole, and null.
    """
    if not text.isascii() or b"\\" in text or b"\x7f" in text:
        return None
    around = b"".join(text.split(b'"')[::2])
    if b"null" in around or _FLOATING.search(around):
        return None
    return len(text) + around.count(b",") + around.count(b":")


def _header(facet: Any) -> int:
    """Measure what the fast encoder leaves out: what begins with an underscore."""
    if isinstance(facet, dict):
        return 0
    return _header_size(*(getattr(facet, name, None) for name in _HEADER))


_HEADER = ("_producer", "_schemaURL", "_deleted")


@lru_cache(maxsize=256)  # one of each class of facets
def _header_size(*said: Any) -> int:
    named = zip(_HEADER, said, strict=True)
    return sum(size_of({name: value}) for name, value in named if value is not None)


def size_of(value: Any) -> int:
    """Give the bytes of a value in JSON, as OpenLineage's client writes it."""
    return len(_ENCODER.encode(value))


def _fields(value: Any) -> dict[str, Any]:
    """Read an attrs object as OpenLineage's client does, which leaves out what is None."""
    return {
        name: field
        for name in field_names(value.__class__)
        if (field := getattr(value, name)) is not None
    }


_ENCODER = json.JSONEncoder(default=_fields)
