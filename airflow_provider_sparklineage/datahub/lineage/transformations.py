"""What is done with a column, in DataHub's notation: ``DIRECT:IDENTITY,INDIRECT:FILTER``.

DataHub's own OpenLineage converter writes ``TYPE:SUBTYPE``, sorted and joined by commas. It has no
word for masking, which is a third part here: ``DIRECT:TRANSFORMATION:MASKING``. The text is a key
of DataHub's patches: columns of a different transformation, or masking, must not have the same one.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

IDENTITY = "DIRECT:IDENTITY"
"""The column is taken as it is."""

UNKNOWN = "NONE"
"""What DataHub's patches have where no transformation is known."""

_OLD_TYPES = {"IDENTITY": IDENTITY, "MASKED": "DIRECT:TRANSFORMATION:MASKING"}
"""``transformationType`` of the facet before 1-1-0, by the words that it defined."""

_MOST_KINDS = 16
"""Of one pair of columns: OpenLineage has twelve, and what is hostile may have any number."""


def kinds(transformations: Any) -> tuple[str, ...]:
    """Give each of OpenLineage's ``transformations`` once, in DataHub's notation.

    :param transformations: a list of objects; whatever is none is left out
    """
    if not isinstance(transformations, list):
        return ()
    if len(transformations) == 1:  # nearly all are
        only = _kind_of(transformations[0])
        return (only,) if only else ()
    found = dict.fromkeys(map(_kind_of, transformations))
    return tuple(kind for kind in found if kind)[:_MOST_KINDS]


def old_kinds(transformation_type: Any) -> tuple[str, ...]:
    """Give what the deprecated ``transformationType`` of an output column says of its inputs."""
    if not isinstance(transformation_type, str):
        return ()
    known = _OLD_TYPES.get(transformation_type.upper())
    return (known,) if known else ()


def operation(every: tuple[str, ...]) -> str:
    """Join kinds to what DataHub has as ``transformOperation``; :data:`UNKNOWN` for none."""
    return every[0] if len(every) == 1 else ",".join(sorted(every)) or UNKNOWN


def is_indirect(kind: str) -> bool:
    """Whether a column only influences another: a filter, a join, a condition."""
    return kind.startswith("INDIRECT")


def _kind_of(transformation: Any) -> str:
    if not isinstance(transformation, dict):
        return ""
    of, subtype = transformation.get("type"), transformation.get("subtype")
    is_masking = transformation.get("masking") is True
    if not isinstance(of, str):
        return ""
    return _kind(of, subtype if isinstance(subtype, str) else "", is_masking)


@lru_cache(maxsize=256)
def _kind(of: str, subtype: str, is_masking: bool) -> str:
    parts = (_word(of), _word(subtype), "MASKING" if is_masking else "")
    return ":".join(filter(None, parts))


_UNUSUAL = re.compile(r"[^A-Z0-9_]+")


def _word(text: str) -> str:
    """Give a word that separates nothing in the notation and in the path of a patch."""
    return _UNUSUAL.sub("_", text[:40].upper()).strip("_")
