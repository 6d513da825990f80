"""The kinds of detail that an event can go without, in the order in which they go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.event.document import COLUMNS_KEY
from airflow_provider_sparklineage.lineage.columns import INDIRECT
from airflow_provider_sparklineage.model.frozen import Frozen

if TYPE_CHECKING:
    from collections.abc import Callable

    Facet = dict[str, Any]
    Source = dict[str, Any]
    """An ``InputField`` of column lineage."""
    Reduced = tuple[Facet | None, int]
    """What is left of a facet (None: nothing), and how much went."""


class Kind(Frozen, frozen=True):
    """A kind of detail, of which all goes at once.

    :param what: in words, in the plural
    :param keys: facets that have it
    :param reduced: a facet without it, and how much of it there was
    """

    what: str
    keys: tuple[str, ...]
    reduced: Callable[[Facet], Reduced]


def everything(_facet: Facet) -> Reduced:
    """Leave nothing of a facet."""
    return None, 1


def _without_descriptions(facet: Facet) -> Reduced:
    count = sum(bool(f.get("transformationDescription")) for f in facet["fields"].values())

    def bare(source: Source) -> Source:
        nonlocal count
        given = source.get("transformations", [])
        count += sum(bool(t.get("description")) for t in given)
        return source | {"transformations": [_without(t, "description") for t in given]}

    dataset = [bare(source) for source in facet["dataset"]]
    return _mapped(facet, bare, dataset, with_text=False), count


def _without_indirect_transformations(facet: Facet) -> Reduced:
    count = sum(len(source.get("transformations", ())) for source in facet["dataset"])

    def bare(source: Source) -> Source:
        nonlocal count
        given = source.get("transformations", [])
        indirect = [t for t in given if t["type"] == INDIRECT]
        if not indirect or indirect == [_INDIRECT]:
            return source
        count += len(indirect)
        others = [t for t in given if t["type"] != INDIRECT]
        return source | {"transformations": [*others, _INDIRECT]}

    # What influences the full dataset is INDIRECT, and need not say so.
    dataset = [_without(source, "transformations") for source in facet["dataset"]]
    return _mapped(facet, bare, dataset), count


_INDIRECT = {"type": INDIRECT}


def _without_indirect(facet: Facet) -> Reduced:
    count = len(facet["dataset"])

    def direct(source: Source) -> Source | None:
        nonlocal count
        given = source.get("transformations", [])
        others = [t for t in given if t["type"] != INDIRECT]
        count += len(others) < len(given)
        return source | {"transformations": others} if others or not given else None

    reduced = _mapped(facet, direct, [])
    return (reduced if reduced["fields"] else None), count


def _mapped(
    facet: Facet,
    of: Callable[[Source], Source | None],
    dataset: list[Source],
    *,
    with_text: bool = True,
) -> Facet:
    """Make the facet with other sources, without those that are None and fields that have none."""
    fields: dict[str, Any] = {}
    for name, field in facet["fields"].items():
        sources = [made for source in field["inputFields"] if (made := of(source)) is not None]
        if sources:
            kept = field if with_text else _without(field, "transformationDescription")
            fields[name] = kept | {"inputFields": sources}
    return facet | {"fields": fields, "dataset": dataset}


def _without(value: dict[str, Any], key: str) -> dict[str, Any]:
    return {k: v for k, v in value.items() if k != key}


def _without_comments(facet: Facet) -> Reduced:
    """Leave the comments out of a schema; what Spark wrote in another shape stays as it is."""
    count = 0

    def bare(field: Any) -> Any:
        nonlocal count
        if not isinstance(field, dict):
            return field
        count += bool(field.get("description"))
        kept = _without(field, "description")
        return kept | ({"fields": of(kept["fields"])} if kept.get("fields") else {})

    def of(fields: Any) -> Any:
        return list(map(bare, fields)) if isinstance(fields, list) else fields

    return facet | ({"fields": of(facet["fields"])} if "fields" in facet else {}), count


_COLUMNS = (COLUMNS_KEY,)

KINDS = (
    Kind("descriptions of column lineage", _COLUMNS, _without_descriptions),
    Kind("transformations of INDIRECT lineage", _COLUMNS, _without_indirect_transformations),
    Kind("statistics", ("inputStatistics", "outputStatistics", "dataQualityMetrics"), everything),
    Kind("comments of schemas", ("schema",), _without_comments),
    Kind("INDIRECT edges of column lineage", _COLUMNS, _without_indirect),
)
"""What goes first, in this order."""
