"""The kinds of detail that an event can go without, in the order in which they go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.event.document import COLUMNS_KEY
from airflow_provider_sparklineage.lineage.columns import DIRECT, INDIRECT
from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from collections.abc import Callable

    Json = dict[str, Any]
    Facet = Json
    Left = tuple[list[Json] | None, int]
    """What is left of the transformations of a source (None: nothing), and how much went."""
    Reduced = tuple[Facet | None, int]
    """What is left of a facet (None: nothing), and how much went."""


class Kind(Frozen, frozen=True):
    """A kind of detail, of which all goes at once.

    :param what: in words, in the plural
    :param keys: facets that have it
    :param reduced: a facet without it, and how much of it there was
    :param is_text: whether columns and edges are as many without it
    """

    what: str
    keys: tuple[str, ...]
    reduced: Callable[[Facet], Reduced]
    is_text: bool = True


def everything(_facet: Facet) -> Reduced:
    """Leave nothing of a facet."""
    return None, 1


def _without_descriptions(facet: Facet) -> Reduced:
    def left(given: list[Json]) -> Left:
        bare = [_without(t, "description") for t in given]
        return bare, sum(bool(t.get("description")) for t in given)

    texts = sum(bool(f.get("transformationDescription")) for f in facet["fields"].values())
    fields, of_columns = _fields(facet, left, without="transformationDescription")
    dataset, of_dataset = _sources(facet["dataset"], left)
    return facet | {"fields": fields, "dataset": dataset}, texts + of_columns + of_dataset


def _without_indirect_transformations(facet: Facet) -> Reduced:
    def left(given: list[Json]) -> Left:
        indirect = [t for t in given if t["type"] == INDIRECT]
        if not indirect or indirect == [_INDIRECT]:
            return given, 0
        others = [t for t in given if t["type"] != INDIRECT]
        return [*others, _INDIRECT], len(indirect)

    # What influences the full dataset is INDIRECT, and need not say so.
    of_dataset = sum(len(source.get("transformations", ())) for source in facet["dataset"])
    dataset = [_without(source, "transformations") for source in facet["dataset"]]
    fields, of_columns = _fields(facet, left)
    return facet | {"fields": fields, "dataset": dataset}, of_columns + of_dataset


_INDIRECT = {"type": INDIRECT}


def _without_direct_transformations(facet: Facet) -> Reduced:
    """Leave out what the type of an output column says of its sources anyway."""
    count = 0
    fields = {}
    seen: dict[int, Json] = {}
    for name, field in facet["fields"].items():
        if id(field) not in seen:
            kept = [
                _without(source, "transformations") if _is_of_type(source, field) else source
                for source in field["inputFields"]
            ]
            seen[id(field)] = field | {"inputFields": kept}
        fields[name] = seen[id(field)]
        count += sum(_is_of_type(source, field) for source in field["inputFields"])
    return facet | {"fields": fields}, count


def _is_of_type(source: Json, field: Json) -> bool:
    given = source.get("transformations", _NOTHING)
    if len(given) != 1 or given[0]["type"] != DIRECT or "description" in given[0]:
        return False
    [how] = given
    kind = f"{DIRECT}:{how['subtype']}" if how.get("subtype") else DIRECT
    return field["transformationType"] == kind and not how.get("masking")


def _without_indirect(facet: Facet) -> Reduced:
    def left(given: list[Json]) -> Left:
        others = [t for t in given if t["type"] != INDIRECT]
        return others or None, len(others) < len(given)

    fields, count = _fields(facet, left)
    # What was left of some sources, while INDIRECT stood next to it, is of one kind now.
    reduced, _ = _without_direct_transformations(facet | {"fields": fields, "dataset": []})
    return (reduced if fields else None), count + len(facet["dataset"])


def _fields(
    facet: Facet, left: Callable[[list[Json]], Left], without: str = ""
) -> tuple[Json, int]:
    """Leave out what is not left of columns' sources, and columns that have none; count it.

    Columns with the same sources have one entry, at which one look is enough.

    :param left: what is left of a source's transformations; None if the source goes
    """
    fields, count = {}, 0
    seen: dict[int, tuple[Json | None, int]] = {}
    for name, field in facet["fields"].items():
        if id(field) not in seen:
            sources, gone = _sources(field["inputFields"], left)
            kept = _without(field, without) | {"inputFields": sources} if sources else None
            seen[id(field)] = kept, gone
        kept, gone = seen[id(field)]
        count += gone
        if kept is not None:
            fields[name] = kept
    return fields, count


def _sources(sources: list[Json], left: Callable[[list[Json]], Left]) -> tuple[list[Json], int]:
    found, count = [], 0
    seen: dict[int, Left] = {}  # most have the same list
    for source in sources:
        given = source.get("transformations", _NOTHING)
        if not given:  # how it influences is not known, or went before
            found.append(source)
            continue
        if id(given) not in seen:
            seen[id(given)] = left(given)
        kept, gone = seen[id(given)]
        count += gone
        if kept is not None:
            found.append(source if kept is given else source | {"transformations": kept})
    return found, count


_NOTHING: list[Json] = []


def _without(value: dict[str, Any], key: str) -> dict[str, Any]:
    kept = value.copy()
    kept.pop(key, None)
    return kept


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
    Kind("transformations of DIRECT lineage", _COLUMNS, _without_direct_transformations),
    Kind("statistics", ("inputStatistics", "outputStatistics", "dataQualityMetrics"), everything),
    Kind("comments of schemas", ("schema",), _without_comments),
    Kind("INDIRECT edges of column lineage", _COLUMNS, _without_indirect, is_text=False),
)
"""What goes first, in this order."""
