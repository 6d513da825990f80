"""The reduction of an event that is too large, part by part, until it fits.

:class:`Fitting` drops the parts in the order of :mod:`.size`. A kind of detail is dropped as a
whole (:data:`KINDS`). Of the columns of schemas, those that column lineage names stay longest. The
event declares the dropped parts in full sentences.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from airflow_provider_sparklineage.event.document import FACET_KINDS, GROUPS, HEADER, with_facets
from airflow_provider_sparklineage.event.facets import with_degradations
from airflow_provider_sparklineage.event.model import (
    CAPTURE_KEY,
    COLUMNS_KEY,
    PARTITIONS_KEY,
    name_of,
)
from airflow_provider_sparklineage.lineage.columns.edges import DIRECT, INDIRECT, mapped
from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.model.texts import some

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from airflow_provider_sparklineage.event.document import Event
    from airflow_provider_sparklineage.model.datasets import DatasetName

    Json = dict[str, Any]
    Facet = Json
    Cost = Callable[[str, Any], int]
    Reduced = tuple[Facet | None, int]
    """The reduced facet (None if nothing is left of it), and the number of removed parts."""
    Left = tuple[list[Json] | None, int]
    """The remaining transformations of a source (None to drop the source, too), and the number of
    dropped ones."""
    Named = tuple[DatasetName, str]


# --- sentences ------------------------------------------------------------------------------------


NAMED = 5
"""The most outputs or facets that a sentence names; it only counts the others."""


def of_dropped(
    what: str, option: str, dataset: DatasetName | None = None, reason: str = ""
) -> Degradation:
    """Make the degradation for dropped parts.

    :param what: the parts, e.g. ``3 descriptions`` or ``The column lineage of a dataset``
    :param option: the setting that allows more, as a sentence names it
    :param dataset: the dataset that lost its one part; None if several parts were dropped
    :param reason: as for :func:`too_large`
    """
    was, they = ("was", "it is") if dataset else ("were", "they are")
    return too_large(f"{what} {was} left out: {they} more", option, dataset, reason)


def of_column_lineage(
    outputs: Sequence[DatasetName], option: str, reason: str = ""
) -> list[Degradation]:
    """Make the degradations for dropped column lineage.

    :param outputs: the outputs that lost their column lineage
    :param option: the setting that allows more, as a sentence names it
    :param reason: as for :func:`too_large`
    :return: one for each output; if there are more than ``NAMED`` outputs, one for all of them
    """
    if len(outputs) <= NAMED:
        texts = ((f"The column lineage of {name}", name) for name in outputs)
        return [of_dropped(text, option, name, reason) for text, name in texts]
    text = f"The column lineage of {len(outputs)} outputs ({some(outputs, NAMED)})"
    return [of_dropped(text, option, None, reason)]


_ADVICE = "raise it if what receives the event takes more"


def too_large(
    what: str, option: str, dataset: DatasetName | None = None, reason: str = ""
) -> Degradation:
    """Make the degradation for a part that is larger than a limit allows.

    :param what: beginning of the sentence, up to the word before ``than``: ``3 descriptions were
        left out: they are more``
    :param option: the setting with its section, e.g. ``[sparklineage] max_columns``; or the name of
        another limit
    :param dataset: the dataset of the part; None if the sentence is not about a single dataset
    :param reason: end of the sentence, on the reason for the limit; empty for a setting, which the
        reader may raise, and for a fixed limit
    """
    end = reason or (_ADVICE if option.startswith("[") else "")
    message = f"{what} than {option} allows{'; ' if end else ''}{end}."
    return Degradation(DegradationCode.DETAIL_DROPPED, message, dataset)


# --- kinds of detail ------------------------------------------------------------------------------


class Kind(Frozen, frozen=True):
    """A kind of detail, which is dropped as a whole.

    :param what: its name in a sentence, in the plural
    :param keys: keys of the facets that have it
    :param reduced: gives a facet without this detail, and the number of dropped parts
    :param is_text: whether the numbers of columns and edges stay the same if it is dropped
    """

    what: str
    keys: tuple[str, ...]
    reduced: Callable[[Facet], Reduced]
    is_text: bool = True


def everything(_facet: Facet) -> Reduced:
    """Remove a facet as a whole.

    :return: None in place of the facet, and 1 as the number of dropped parts
    """
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

    # Entries for the whole dataset are always INDIRECT, so they lose all transformations.
    of_dataset = sum(len(source.get("transformations", ())) for source in facet["dataset"])
    dataset = [_without(source, "transformations") for source in facet["dataset"]]
    fields, of_columns = _with_fewer_sources(facet, left)
    return facet | {"fields": fields, "dataset": dataset}, of_columns + of_dataset


_INDIRECT = {"type": INDIRECT}


def _without_direct_transformations(facet: Facet) -> Reduced:
    """Leave out the transformations that only repeat the column's ``transformationType``.

    :param facet: a facet ``columnLineage``
    :return: the new facet, and the number of dropped transformations
    """

    def left(given: list[Json], field: Json) -> Left:
        return ([], 1) if _is_of_type(given, field) else (given, 0)

    fields, count = _with_fewer_sources(facet, left)
    return facet | {"fields": fields}, count


def _is_of_type(given: list[Json], field: Json) -> bool:
    how, *others = given
    if others or how["type"] != DIRECT or "description" in how:
        return False
    kind = f"{DIRECT}:{how['subtype']}" if how.get("subtype") else DIRECT
    return field["transformationType"] == kind and not how.get("masking")


def _without_indirect(facet: Facet) -> Reduced:
    def left(given: list[Json], _: Json) -> Left:
        others = [t for t in given if t["type"] != INDIRECT]
        return others or None, len(others) < len(given)

    fields, count = _with_fewer_sources(facet, left)
    # Sources that had INDIRECT next to DIRECT have one kind now, which the type may repeat.
    reduced, _ = _without_direct_transformations(facet | {"fields": fields, "dataset": []})
    return (reduced if fields else None), count + len(facet["dataset"])


def _with_fewer_sources(
    facet: Facet, left: Callable[[list[Json], Json], Left], without: str = ""
) -> tuple[Json, int]:
    """Reduce the sources of all columns in a facet; leave out columns that lose all their sources.

    Columns with the same sources share one entry, which is reduced once.

    :param facet: a facet ``columnLineage``
    :param left: called with all transformations of a source, and the column's entry; gives the
        transformations that stay (None to drop the source), and the number of dropped ones
    :param without: key of the columns' entries that is also removed
    :return: the new entries by column, and the number of dropped transformations and sources
    """

    def reduced(field: Json) -> Reduced:
        sources, gone = _fewer_sources(field["inputFields"], left, field)
        kept = _without(field, without) | {"inputFields": sources}
        return (kept if sources or not gone else None), gone

    fields = mapped(facet["fields"], reduced)
    count = sum(gone for _, gone in fields.values())
    return {name: kept for name, (kept, _) in fields.items() if kept is not None}, count


def _fewer_sources(
    sources: list[Json], left: Callable[[list[Json], Json], Left], field: Json
) -> tuple[list[Json], int]:
    found, count = [], 0
    seen: dict[int, Left] = {}  # most have the same list
    for source in sources:
        given = source.get("transformations")
        if not given:  # its transformations are not known, or were dropped before
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


def _without_figures(facet: Facet) -> Reduced:
    count = ("rows" in facet) + ("bytes" in facet)
    return _without(_without(facet, "rows"), "bytes"), count


def _without_comments(facet: Facet) -> Reduced:
    """Leave the comments out of a facet ``schema``; fields of an unknown shape stay as they are.

    :return: the schema, and the number of dropped comments
    """
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
    Kind("lists of rows and bytes of partitions", (PARTITIONS_KEY,), _without_figures),
    Kind("comments of schemas", ("schema",), _without_comments),
    Kind("INDIRECT edges of column lineage", _COLUMNS, _without_indirect, is_text=False),
)
"""The kinds in the order in which they are dropped."""


# --- columns that column lineage names ------------------------------------------------------------


def left_of(schema: dict[str, Any], is_left: Callable[[str], bool]) -> Reduced:
    """Leave only some of the columns in a facet ``schema``; fields of an unknown shape stay.

    :param is_left: tells for a column's name whether the column stays
    :return: the schema, or None if no column is left, and the number of dropped columns
    """
    fields = schema.get("fields")
    if not isinstance(fields, list):
        return schema, 0

    def stays(field: Any) -> bool:
        name = field.get("name") if isinstance(field, dict) else None
        return not isinstance(name, str) or is_left(name)

    kept = list(filter(stays, fields))
    return (schema | {"fields": kept} if kept else None), len(fields) - len(kept)


def _named(output: DatasetName, facet: Mapping[str, Any]) -> Iterator[Named]:
    for column in facet["fields"]:
        yield from _and_outer(output, column)
    lists = (*(f["inputFields"] for f in facet["fields"].values()), facet["dataset"])
    # Columns with the same sources have one list of them.
    for sources in {id(sources): sources for sources in lists}.values():
        for source in sources:
            yield from _and_outer(name_of(source), source["field"])


def _and_outer(dataset: DatasetName, column: str) -> Iterator[Named]:
    """Yield a column; for a field of a nested column (``address.city``), also the nested column.

    A column is yielded as ``(dataset, name)``. Schemas list nested columns without their fields.
    """
    yield dataset, column
    outer, dot, _ = column.partition(".")
    if dot:
        yield dataset, outer


# --- the size of an event, facet by facet ---------------------------------------------------------
#
# A size is in bytes or in columns. Bytes are those of the JSON that OpenLineage's client sends:
# ASCII, a space after each separator.


_SEPARATORS = len(": ") + len(", ")


def size_of(value: Any) -> int:
    """Give the number of bytes of a value in JSON, as OpenLineage's client writes it.

    The client uses Python's own encoder, which is slow. A fast encoder mostly gives the same text
    without the spaces, which are added to the number here. If the value has a character to escape,
    a null, or a number that is not an integer, the slow encoder is used. It is also used for half
    of a surrogate pair, which the fast one refuses.
    """
    try:
        text = msgspec.json.encode(value)
    except UnicodeEncodeError:
        return len(json.dumps(value))
    if not text.isascii() or b"\\" in text or b"\x7f" in text:
        return len(json.dumps(value))
    around = b"".join(text.split(b'"')[::2])
    if b"null" in around or _FLOATING.search(around):
        return len(json.dumps(value))
    return len(text) + around.count(b",") + around.count(b":")


_FLOATING = re.compile(rb"\d[.e]")


def _bytes_of_facet(key: str, facet: Any) -> int:
    return size_of(key) + _SEPARATORS + size_of(facet)


class Place(NamedTuple):
    """The place of a facet in an event, e.g. ``inputs[2].inputFacets["subset"]``.

    :param group: ``inputs``, ``outputs``, ``run`` or ``job``
    :param number: index of the dataset; 0 for run and job
    :param facets: key of the facets of a dataset, a run or a job
    :param key: key of the facet
    """

    group: str
    number: int
    facets: str
    key: str


class MeasuredEvent:
    """A copy of an event with the sizes of its facets, which can be reduced and removed.

    :param cost: gives the size of a facet from its key and its value; None to measure the event in
        bytes
    """

    def __init__(self, event: Event, cost: Cost | None = None) -> None:
        self._event = with_facets(event, dict)
        self.cost = cost or _bytes_of_facet
        self._sizes = {place: self.cost(place.key, facet) for place, facet in _facets(event)}
        rest = 0 if cost else HEADER + size_of(with_facets(event, lambda _: {}))
        self.size = rest + sum(self._sizes.values())
        """The size of the event with its remaining facets."""

    def places(self, *keys: str, group: str = "") -> list[Place]:
        """Find the facets with these keys, and give the place of each in the event.

        :param keys: if there are none, facets with any key
        :param group: ``inputs``, ``outputs``, ``run`` or ``job``; empty for all four
        """
        return [
            place
            for place in self._sizes
            if (not keys or place.key in keys) and (not group or place.group == group)
        ]

    def largest_first(self, places: Iterable[Place]) -> list[Place]:
        """Sort places by the sizes of their facets, in descending order."""
        return sorted(places, key=lambda place: (-self._sizes[place], place))

    def facet(self, place: Place) -> Any:
        """Give a facet as it is now; None if it was removed."""
        return self._facets_at(place).get(place.key)

    def dataset(self, place: Place) -> DatasetName | None:
        """Give the name of a facet's dataset; None for a facet of the run or the job."""
        owner = self._event[place.group]
        return name_of(owner[place.number]) if isinstance(owner, list) else None

    def reduce(self, place: Place, reduced: Callable[[Any], Reduced]) -> int:
        """Replace a facet by a reduced one, or remove it; give the number of removed parts.

        :param reduced: gives from a facet the reduced one, or None to remove it, and the number of
            its parts that this removes; if that is 0, the facet stays
        """
        facets = self._facets_at(place)
        left, count = reduced(facets[place.key])
        if count:
            self.size -= self._sizes[place]
            if left is None:
                del facets[place.key], self._sizes[place]
            else:
                facets[place.key] = left
                self._sizes[place] = self.cost(place.key, left)
                self.size += self._sizes[place]
        return count

    def event(self) -> Event:
        """Give the event with the remaining facets."""
        return with_facets(self._event, dict)

    def _facets_at(self, place: Place) -> Facet:
        owner = self._event[place.group]
        facets: Facet = (owner[place.number] if isinstance(owner, list) else owner)[place.facets]
        return facets


def _facets(event: Event) -> Iterator[tuple[Place, Any]]:
    for group in GROUPS:
        owners = event[group] if isinstance(event[group], list) else [event[group]]
        for number, owner in enumerate(owners):
            for of in FACET_KINDS:
                for key, facet in owner.get(of, {}).items():
                    yield Place(group, number, of, key), facet


# --- one after the other --------------------------------------------------------------------------


_COLUMNS_OF = {
    "inputs": "columns of inputs that no column lineage names",
    "outputs": "columns of outputs without lineage",
}
_FACETS, _NAMES = "facets", "names"


class Fitting:
    """Reduces one event to a limit, and then further to smaller limits.

    The capture facet, in which the dropped parts are declared, counts for the size, too.

    :param option: the setting of the limit, as a sentence names it
    :param is_late: tells whether time is short; then column lineage and facets are dropped as a
        whole, which is faster
    :param cost: gives the size of a facet from its key and its value; by default the limit is in
        bytes
    :param reason: as for :func:`too_large`
    """

    def __init__(
        self,
        event: Event,
        option: str,
        is_late: Callable[[], bool] = lambda: False,
        cost: Cost | None = None,
        reason: str = "",
    ) -> None:
        self._event = event
        self._option = option
        self._reason = reason
        self._is_late = is_late
        self._cost = cost
        self._capture = self._known = event["run"]["facets"].get(CAPTURE_KEY)
        self._drops: Iterator[None] | None = None
        self._gone: dict[str, list[Any]] = {}
        """The dropped parts by kind, in their order: numbers of parts, or outputs that have lost
        their column lineage, or places of facets."""

    def within(self, limit: int) -> Event:
        """Give the event reduced to a limit, which must not be larger than in the call before."""
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
        if self._capture is not None:
            kept["run"]["facets"][CAPTURE_KEY] = self._capture
        return kept

    @property
    def dropped(self) -> tuple[Degradation, ...]:
        """The degradations for the parts dropped so far."""
        return tuple(chain.from_iterable(map(self._sentences, self._gone, self._gone.values())))

    def _sentences(self, kind: str, gone: list[Any]) -> list[Degradation]:
        if kind == COLUMNS_KEY:
            return of_column_lineage(gone, self._option, self._reason)
        if kind == _FACETS:
            named = some(gone, NAMED, self._called)
            what = f"Facets were left out ({named}): they are more"
            return [too_large(what, self._option, None, self._reason)]
        if kind == _NAMES:
            what = "Even the names of the datasets, and the list of what is missing, are more"
            return [too_large(what, self._option, None, self._reason)]
        return [of_dropped(f"{sum(gone)} {kind}", self._option, None, self._reason)]

    def _note(self, kind: str, gone: Any) -> None:
        self._gone.setdefault(kind, []).append(gone)

    @cached_property
    def _measured(self) -> MeasuredEvent:
        return MeasuredEvent(self._event, self._cost)

    def _fits(self, limit: int) -> bool:
        if self._measured.size > limit:  # spares making the facet
            return False
        self._declare()
        declared = 0 if self._capture is None else self._measured.cost(CAPTURE_KEY, self._capture)
        return self._measured.size + declared <= limit

    def _declare(self) -> None:
        """Make the capture facet that declares the dropped parts."""
        if self._known is not None:
            self._capture = with_degradations(self._known, self.dropped, in_front=True)

    def _dropping(self) -> Iterator[None]:
        """Drop one part after the other; each step of the iterator drops the next part."""
        yield from self._columns("inputs", self._named_columns())
        yield from self._details()
        named = self._named_columns()  # fewer: INDIRECT edges, which are gone, named some
        yield from self._columns("inputs", named)
        if self._cost is None:
            yield from self._witnesses()
        yield from self._columns("outputs", named)
        yield from self._column_lineage(named)
        yield from self._facets()
        self._note(_NAMES, 1)

    def _columns(self, side: str, named: Counter[Named]) -> Iterator[None]:
        for place in self._measured.largest_first(self._measured.places("schema", group=side)):
            self._leave_named(place, named)
            yield

    def _leave_named(self, place: Place, named: Counter[Named]) -> None:
        """Drop the columns of a schema that no column lineage names.

        :param place: the place of the schema in the event
        :param named: the columns that column lineage names, as :meth:`_named_columns` counts them
        """
        dataset = self._measured.dataset(place)
        if dataset is None or self._measured.facet(place) is None:
            return
        if gone := self._measured.reduce(
            place, lambda schema: left_of(schema, lambda column: named[dataset, column] > 0)
        ):
            self._note(_COLUMNS_OF[place.group], gone)

    def _named_columns(self) -> Counter[Named]:
        """Count, by dataset and column, the outputs whose column lineage names the column."""
        places = self._measured.places(COLUMNS_KEY, group="outputs")
        return Counter(chain.from_iterable(map(self._named_by, places)))

    def _named_by(self, place: Place) -> set[Named]:
        output = self._measured.dataset(place)
        return {*_named(output, self._measured.facet(place))} if output else set()

    def _details(self) -> Iterator[None]:
        for kind in KINDS:
            if self._is_late():
                return
            if kind.is_text and self._cost is not None:
                continue
            places = self._measured.places(*kind.keys)
            count = sum(self._measured.reduce(place, kind.reduced) for place in places)
            if count:
                self._note(kind.what, count)
            yield

    def _witnesses(self) -> Iterator[None]:
        if self._known is not None and (datasets := self._known.get("datasets")):
            self._known = {k: v for k, v in self._known.items() if k != "datasets"}
            self._note("entries on who saw a dataset", len(datasets))
            yield

    def _column_lineage(self, named: Counter[Named]) -> Iterator[None]:
        schemas: dict[DatasetName | None, list[Place]] = {}
        for place in self._measured.places("schema"):
            schemas.setdefault(self._measured.dataset(place), []).append(place)
        places = self._measured.places(COLUMNS_KEY, group="outputs")
        for place in self._measured.largest_first(places):
            of_output = self._named_by(place)
            self._measured.reduce(place, everything)
            self._note(COLUMNS_KEY, self._measured.dataset(place))
            yield
            named.subtract(of_output)
            for dataset in sorted({dataset for dataset, _ in of_output}):
                for schema in schemas.get(dataset, ()):
                    self._leave_named(schema, named)
            yield

    def _facets(self) -> Iterator[None]:
        for place in self._measured.largest_first(self._measured.places()):
            self._measured.reduce(place, everything)
            self._note(_FACETS, place)
            yield

    def _called(self, place: Place) -> str:
        name = self._measured.dataset(place)
        return f"{place.key} of {name}" if name else place.key
