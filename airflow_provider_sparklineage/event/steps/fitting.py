"""An event that is too large, on its way to fitting.

:class:`Fitting` drops one thing after the other, in the order that :mod:`.size` has. There are
kinds of detail of which all goes at once (:data:`KINDS`), and columns of schemas, of which those
stay longest that column lineage names (:class:`NamedColumns`). What went is declared, in sentences
for people.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.event.capture_facet import with_degradations
from airflow_provider_sparklineage.event.document import BYTES, MeasuredEvent, replaced
from airflow_provider_sparklineage.event.model import CAPTURE_KEY, COLUMNS_KEY, name_of
from airflow_provider_sparklineage.lineage.columns.edges import DIRECT, INDIRECT
from airflow_provider_sparklineage.model.budget import UNLIMITED
from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.model.texts import some

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from airflow_provider_sparklineage.event.document import Event, Measure, Place, Reduced
    from airflow_provider_sparklineage.model.budget import Budget
    from airflow_provider_sparklineage.model.datasets import DatasetName

    Json = dict[str, Any]
    Facet = Json
    Left = tuple[list[Json] | None, int]
    """What is left of a source's transformations, and how much went; None: the source goes, too."""
    Named = tuple[DatasetName, str]


# --- sentences ------------------------------------------------------------------------------------


NAMED = 5
"""Outputs and facets that are named; the others are counted."""


def of_dropped(what: str, option: str, dataset: DatasetName | None = None) -> Degradation:
    """Declare what was dropped: ``3 descriptions``, or ``The column lineage of a dataset``.

    :param option: what a person would change to get more, as a sentence calls it
    """
    was, they = ("was", "it is") if dataset else ("were", "they are")
    return too_large(f"{what} {was} left out: {they} more", option, dataset)


def of_column_lineage(outputs: Sequence[DatasetName], option: str) -> list[Degradation]:
    """Declare whose column lineage was dropped: of each output, or in one sentence if many."""
    if len(outputs) <= NAMED:
        return [of_dropped(f"The column lineage of {name}", option, name) for name in outputs]
    named = some(outputs, NAMED)
    return [of_dropped(f"The column lineage of {len(outputs)} outputs ({named})", option)]


_ADVICE = "; raise it if what receives the event takes more"


def too_large(what: str, option: str, dataset: DatasetName | None = None) -> Degradation:
    """Declare what is more than there may be.

    :param option: with its section, as ``[sparklineage] max_columns``; or a bound that nobody sets
    """
    return Degradation(
        DegradationCode.DETAIL_DROPPED,
        f"{what} than {option} allows{_ADVICE if option.startswith('[') else ''}.",
        dataset,
    )


# --- kinds of detail ------------------------------------------------------------------------------


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
    def left(given: list[Json], _: Json) -> Left:
        bare = [_without(t, "description") for t in given]
        return bare, sum(bool(t.get("description")) for t in given)

    texts = sum(bool(f.get("transformationDescription")) for f in facet["fields"].values())
    fields, of_columns = _with_fewer_sources(facet, left, without="transformationDescription")
    dataset, of_dataset = _fewer_sources(facet["dataset"], left, facet)
    return facet | {"fields": fields, "dataset": dataset}, texts + of_columns + of_dataset


def _without_indirect_transformations(facet: Facet) -> Reduced:
    def left(given: list[Json], _: Json) -> Left:
        indirect = [t for t in given if t["type"] == INDIRECT]
        if not indirect or indirect == [_INDIRECT]:
            return given, 0
        others = [t for t in given if t["type"] != INDIRECT]
        return [*others, _INDIRECT], len(indirect)

    # What influences the full dataset is INDIRECT, and need not say so.
    of_dataset = sum(len(source.get("transformations", ())) for source in facet["dataset"])
    dataset = [_without(source, "transformations") for source in facet["dataset"]]
    fields, of_columns = _with_fewer_sources(facet, left)
    return facet | {"fields": fields, "dataset": dataset}, of_columns + of_dataset


_INDIRECT = {"type": INDIRECT}


def _without_direct_transformations(facet: Facet) -> Reduced:
    """Leave out what the type of an output column says of its sources anyway."""

    def left(given: list[Json], field: Json) -> Left:
        return ([], 1) if _is_of_type(given, field) else (given, 0)

    fields, count = _with_fewer_sources(facet, left)
    return facet | {"fields": fields}, count


def _is_of_type(given: list[Json], field: Json) -> bool:
    if len(given) != 1 or given[0]["type"] != DIRECT or "description" in given[0]:
        return False
    [how] = given
    kind = f"{DIRECT}:{how['subtype']}" if how.get("subtype") else DIRECT
    return field["transformationType"] == kind and not how.get("masking")


def _without_indirect(facet: Facet) -> Reduced:
    def left(given: list[Json], _: Json) -> Left:
        others = [t for t in given if t["type"] != INDIRECT]
        return others or None, len(others) < len(given)

    fields, count = _with_fewer_sources(facet, left)
    # What was left of some sources, while INDIRECT stood next to it, is of one kind now.
    reduced, _ = _without_direct_transformations(facet | {"fields": fields, "dataset": []})
    return (reduced if fields else None), count + len(facet["dataset"])


def _with_fewer_sources(
    facet: Facet, left: Callable[[list[Json], Json], Left], without: str = ""
) -> tuple[Json, int]:
    """Leave out what is not left of columns' sources, and columns that lose all; count it.

    Columns with the same sources have one entry, at which one look is enough.

    :param left: what is left of a source's transformations, by them and by the column's entry
    """
    fields, count = {}, 0
    seen: dict[int, tuple[Json | None, int]] = {}
    for name, field in facet["fields"].items():
        if id(field) not in seen:
            sources, gone = _fewer_sources(field["inputFields"], left, field)
            kept = _without(field, without) | {"inputFields": sources}
            seen[id(field)] = (kept if sources or not gone else None), gone
        kept_field, gone = seen[id(field)]
        count += gone
        if kept_field is not None:
            fields[name] = kept_field
    return fields, count


def _fewer_sources(
    sources: list[Json], left: Callable[[list[Json], Json], Left], field: Json
) -> tuple[list[Json], int]:
    found, count = [], 0
    seen: dict[int, Left] = {}  # most have the same list
    for source in sources:
        given = source.get("transformations")
        if not given:  # how it influences is not known, or went before
            found.append(source)
            continue
        if id(given) not in seen:
            seen[id(given)] = left(given, field)
        kept, gone = seen[id(given)]
        count += gone
        if kept is given:
            found.append(source)
        elif kept is not None:
            bare = _without(source, "transformations")
            found.append(bare | {"transformations": kept} if kept else bare)
    return found, count


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


# --- columns that column lineage names ------------------------------------------------------------


class NamedColumns:
    """Which columns are named, by the column lineage of which outputs.

    :param lineages: facets ``columnLineage``, by where they stand, with their outputs
    """

    def __init__(self, lineages: Iterable[tuple[Place, DatasetName, Mapping[str, Any]]]) -> None:
        self._by = {place: set(_named(output, facet)) for place, output, facet in lineages}
        self._times = Counter(named for by_one in self._by.values() for named in by_one)

    def forget(self, place: Place) -> set[DatasetName]:
        """Take the lineage of an output away; give the datasets of which it named columns."""
        forgotten = self._by.pop(place, set())
        self._times.subtract(forgotten)
        return {dataset for dataset, _ in forgotten}

    def left_of(self, dataset: DatasetName, schema: dict[str, Any]) -> Reduced:
        """Leave of a schema the columns that are named."""
        return left_of(schema, lambda column: self._times[dataset, column] > 0)


def left_of(schema: dict[str, Any], is_left: Callable[[str], bool]) -> Reduced:
    """Leave some of the columns of a schema; what has another shape stays."""
    fields = schema.get("fields")
    if not isinstance(fields, list):
        return schema, 0
    names = (field.get("name") if isinstance(field, dict) else None for field in fields)
    kept = [
        field
        for field, name in zip(fields, names, strict=True)
        if not isinstance(name, str) or is_left(name)
    ]
    return (schema | {"fields": kept} if kept else None), len(fields) - len(kept)


def _named(output: DatasetName, facet: Mapping[str, Any]) -> Iterator[Named]:
    for column in facet["fields"]:
        yield from _and_outer(output, column)
    seen: set[int] = set()  # columns with the same sources have one list of them
    for sources in (*(f["inputFields"] for f in facet["fields"].values()), facet["dataset"]):
        if id(sources) in seen:
            continue
        seen.add(id(sources))
        for source in sources:
            yield from _and_outer(name_of(source), source["field"])


def _and_outer(dataset: DatasetName, column: str) -> Iterator[Named]:
    """Give a column, and the one that a nested one is in: schemas list that."""
    yield dataset, column
    outer, dot, _ = column.partition(".")
    if dot:
        yield dataset, outer


# --- one after the other --------------------------------------------------------------------------


_COLUMNS_OF = {
    "inputs": "columns of inputs that no column lineage names",
    "outputs": "columns of outputs without lineage",
}
_FACETS, _NAMES = "facets", "names"


class Fitting:
    """Dropping in progress; the capture facet is measured with all that it has to say by then.

    :param budget: when nothing is left, column lineage and facets go at once
    :param measure: of what the event may have so much
    """

    def __init__(
        self, event: Event, option: str, budget: Budget = UNLIMITED, measure: Measure = BYTES
    ) -> None:
        self._event = event
        self._option = option
        self._budget = budget
        self._measure = measure
        self._capture = self._known = event["run"]["facets"].get(CAPTURE_KEY)
        self._drops: Iterator[None] | None = None
        self._gone: dict[str, list[Any]] = {}
        """By kind, in the order in which kinds went: counts, outputs without lineage, facets."""
        self._named: NamedColumns | None = None

    def within(self, limit: int) -> Event:
        """Give the event in so much, which is no more than the last time."""
        if self._drops is None:
            if self._measured.size <= limit:
                return self._event
            for place in self._measured.places(CAPTURE_KEY, group="run"):
                self._measured.reduce(place, everything)
            self._drops = self._dropping()
        for _ in chain((None,), self._drops):
            if self._fits(limit):
                break
        self._declare()
        kept = self._measured.event()
        if self._capture is None:
            return kept
        return replaced(kept, run_facets={**kept["run"]["facets"], CAPTURE_KEY: self._capture})

    @property
    def dropped(self) -> tuple[Degradation, ...]:
        """What went by now."""
        return tuple(chain.from_iterable(map(self._sentences, self._gone, self._gone.values())))

    def _sentences(self, kind: str, gone: list[Any]) -> list[Degradation]:
        if kind == COLUMNS_KEY:
            return of_column_lineage(gone, self._option)
        if kind == _FACETS:
            named = some(gone, NAMED, self._called)
            return [too_large(f"Facets were left out ({named}): they are more", self._option)]
        if kind == _NAMES:
            what = "Even the names of the datasets, and the list of what is missing, are more"
            return [too_large(what, self._option)]
        return [of_dropped(f"{sum(gone)} {kind}", self._option)]

    def _note(self, kind: str, gone: Any) -> None:
        self._gone.setdefault(kind, []).append(gone)

    @cached_property
    def _measured(self) -> MeasuredEvent:
        return MeasuredEvent(self._event, self._measure)

    def _fits(self, limit: int) -> bool:
        if self._measured.size > limit:  # then there is no need to make the facet
            return False
        self._declare()
        declared = 0 if self._capture is None else self._measure.facet(CAPTURE_KEY, self._capture)
        return self._measured.size + declared <= limit

    def _declare(self) -> None:
        """Make the facet that says what went."""
        if self._known is not None:
            self._capture = with_degradations(self._known, self.dropped, in_front=True)

    def _dropping(self) -> Iterator[None]:
        """Drop one thing after the other, each when it is asked for."""
        yield from self._columns("inputs")
        yield from self._details()
        yield from self._columns("inputs")  # those that INDIRECT edges named
        if self._measure.of_text:
            yield from self._witnesses()
        yield from self._columns("outputs")
        yield from self._column_lineage()
        yield from self._facets()
        self._note(_NAMES, 1)

    def _columns(self, side: str) -> Iterator[None]:
        for place in self._measured.largest_first(self._measured.places("schema", group=side)):
            self._leave_named(place)
            yield

    def _leave_named(self, place: Place) -> None:
        """Leave only columns that column lineage names in a schema."""
        name = self._measured.dataset(place)
        if name is None or self._measured.facet(place) is None:
            return
        if gone := self._measured.reduce(place, partial(self._names.left_of, name)):
            self._note(_COLUMNS_OF[place.group], gone)

    @property
    def _names(self) -> NamedColumns:
        if self._named is None:
            places = self._measured.places(COLUMNS_KEY, group="outputs")
            names = ((place, self._measured.dataset(place)) for place in places)
            self._named = NamedColumns((p, n, self._measured.facet(p)) for p, n in names if n)
        return self._named

    def _details(self) -> Iterator[None]:
        for kind in KINDS:
            if self._budget.is_spent():
                return
            if kind.is_text and not self._measure.of_text:
                continue
            places = self._measured.places(*kind.keys)
            count = sum(self._measured.reduce(place, kind.reduced) for place in places)
            if count:
                self._named = None
                self._note(kind.what, count)
            yield

    def _witnesses(self) -> Iterator[None]:
        if self._known is not None and (datasets := self._known.get("datasets")):
            self._known = {k: v for k, v in self._known.items() if k != "datasets"}
            self._note("entries on who saw a dataset", len(datasets))
            yield

    def _column_lineage(self) -> Iterator[None]:
        names = self._names
        schemas: dict[DatasetName | None, list[Place]] = {}
        for place in self._measured.places("schema"):
            schemas.setdefault(self._measured.dataset(place), []).append(place)
        places = self._measured.places(COLUMNS_KEY, group="outputs")
        for place in self._measured.largest_first(places):
            name = self._measured.dataset(place)
            if name is None or not self._measured.reduce(place, everything):
                continue
            self._note(COLUMNS_KEY, name)
            yield
            for dataset in names.forget(place):
                for schema in schemas.get(dataset, ()):
                    self._leave_named(schema)
            yield

    def _facets(self) -> Iterator[None]:
        for place in self._measured.largest_first(self._measured.places()):
            if self._measured.reduce(place, everything):
                self._note(_FACETS, place)
                yield

    def _called(self, place: Place) -> str:
        name = self._measured.dataset(place)
        return f"{place.key} of {name}" if name else place.key
