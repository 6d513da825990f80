"""Two transformations in a row, as one.

The rule is the listener's own (``io.openlineage.client.utils.TransformationInfo.merge``), so that
lineage through a staging table reads like lineage within one query.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from airflow_provider_sparklineage.lineage.columns import descriptions
from airflow_provider_sparklineage.lineage.columns.edges import (
    DIRECT,
    DIRECT_SUBTYPES,
    INDIRECT,
    Transformation,
    Transformations,
)


def combine(this: Transformation, upstream: Transformation, via: str = "") -> Transformation:
    """Combine two transformations in a row: ``this`` is the one nearer to the output.

    INDIRECT here stays; DIRECT after an unknown is unknown; DIRECT after INDIRECT is that INDIRECT;
    DIRECT after DIRECT is the first of AGGREGATION, TRANSFORMATION, IDENTITY. Masking anywhere
    masks. The description is this one's with the upstream one's text put into it, within
    :data:`.descriptions.MAX_DESCRIPTION` characters; it is the upstream one's where this one
    adds nothing.

    :param via: the column between the two, as this one's description names it; empty where a text
        could mean another column by that name
    """
    if _adds_no_text(this, upstream):
        description = descriptions.shortened(upstream.description or this.description)
    elif via:
        description = descriptions.composed(this.description, via, upstream.description)
    else:
        description = descriptions.shortened(this.description)
    kind = _kind(this.type, this.subtype, upstream.type, upstream.subtype)
    return Transformation(*kind, description, this.masking or upstream.masking)


@lru_cache(maxsize=1024)  # there are few
def _kind(
    this: str | None, subtype: str | None, upstream: str | None, upstream_subtype: str | None
) -> tuple[str | None, str | None]:
    if this == INDIRECT:
        return INDIRECT, subtype
    if this is None or upstream is None:
        return None, None
    if upstream == INDIRECT:
        return INDIRECT, upstream_subtype
    return DIRECT, _stronger(subtype, upstream_subtype)


def _adds_no_text(this: Transformation, upstream: Transformation) -> bool:
    return this.type == DIRECT and (this.subtype == "IDENTITY" or upstream.type == INDIRECT)


def _stronger(first: str | None, second: str | None) -> str | None:
    if None in (first, second) and "IDENTITY" in (first, second):
        return None  # how is not known of one of the two, and the other changes nothing
    for subtype in DIRECT_SUBTYPES:
        if subtype in (first, second):
            return subtype
    return first or second


class Way(NamedTuple):
    """Two transformations in a row, the text of one still to be put into that of the other.

    That takes most of the time, and texts may be dropped before.
    """

    this: Transformation
    upstream: Transformation
    via: str


Variant = Transformation | Way


class Upstream:
    """The transformations by which some sources make a column that is read again.

    :param via: the column, as :func:`combine` takes it
    """

    def __init__(self, transformations: Transformations, via: str) -> None:
        self.transformations = transformations
        self._via = via
        self._plain: Transformations | None = None

    def variants(self, these: Transformations) -> tuple[Variant, ...]:
        """Combine what is done with the column with what made it."""
        found = [variant for this in these for variant in self._variants(this)]
        return tuple(dict.fromkeys(found)) if len(found) > 1 else tuple(found)

    def _variants(self, this: Transformation) -> list[Variant]:
        if this[:2] == _IDENTITY:
            return [combine(this, t) for t in self.transformations]
        if self._via and self._via in this.description:
            return [_variant(this, t, self._via) for t in self.transformations]
        return [combine(this, t) for t in self._without_texts()]

    def _without_texts(self) -> Transformations:
        """Leave out the texts that would have to be put into others, but are not."""
        if self._plain is None:
            plain = (t if t.type == INDIRECT else without_text(t) for t in self.transformations)
            self._plain = tuple(dict.fromkeys(plain))
        return self._plain


_IDENTITY = (DIRECT, "IDENTITY")


def _variant(this: Transformation, upstream: Transformation, via: str) -> Variant:
    if upstream.description and not _adds_no_text(this, upstream):
        return Way(this, upstream, via)
    return combine(this, upstream)


def with_text(variant: Variant) -> Transformation:
    """Give the transformation that a variant is."""
    return combine(*variant) if isinstance(variant, Way) else variant


def without_text(variant: Variant) -> Transformation:
    """Give the transformation that a variant is, without its description."""
    if isinstance(variant, Way):
        this, upstream, _ = variant
        kind = _kind(this.type, this.subtype, upstream.type, upstream.subtype)
        return Transformation(*kind, masking=this.masking or upstream.masking)
    if not variant.description:
        return variant
    return variant._replace(description="")
