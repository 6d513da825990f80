"""How large an event may be, and what it goes without when it would be larger.

Consumers refuse large events (one at 5 MB), and then all of the event is lost. So detail goes, kind
by kind and all of a kind at once, until the rest fits:

1. descriptions of column lineage,
2. transformations of INDIRECT column lineage: the edges stay, and stay INDIRECT,
3. statistics,
4. comments of schemas,
5. INDIRECT column lineage,
6. column lineage of whole outputs, the largest first,
7. other facets, the largest first.

Each kind that went is a degradation that says how much of it there was; of the sixth, each output
is named. What always stays: the names of the datasets, and the facet that says what is missing.

Sizes are those of the JSON that OpenLineage's client sends (ASCII, with a space after each
separator), and never less. What Airflow adds to the event, some KB of its own facets, is not in it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs
from openlineage.client.facet_v2 import column_lineage_dataset

from airflow_provider_sparklineage.datasets import DatasetName
from airflow_provider_sparklineage.degradations import Degradation, DegradationCode
from airflow_provider_sparklineage.lineage.columns import INDIRECT

ColumnLineageDatasetFacet = column_lineage_dataset.ColumnLineageDatasetFacet
Fields = column_lineage_dataset.Fields
InputField = column_lineage_dataset.InputField
Transformation = column_lineage_dataset.Transformation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from openlineage.client.facet_v2 import RunFacet

    from airflow_provider_sparklineage.lineage.parts import OpenLineageParts

    Reduced = tuple[Any, int]
    """What is left of a facet (None: nothing), and how much went."""

_NAMED = 5
"""Facets of the last step that are named; the others are counted."""
_ENVELOPE = 1024
"""Bytes for what is around the datasets and facets: the event's run, job, time and producer."""
_KEYS = 100
"""Bytes for the keys, braces and separators of a dataset, which are 70."""


def fitted(
    said: OpenLineageParts,
    max_bytes: int,
    told: Callable[[Sequence[Degradation]], RunFacet],
    told_key: str,
) -> OpenLineageParts:
    """Add the facet that says what is missing, and drop what is too much to be sent with it.

    :param told: makes that facet, of what was dropped and of what it says besides
    :param told_key: the facet's key among the run facets; it stays in any case
    """
    event = _Event(said)
    dropped: list[Degradation] = []
    facet = told(dropped)

    def fits() -> bool:
        nonlocal facet
        if event.bytes > max_bytes:  # then there is no need to make the facet
            return False
        facet = told(dropped)
        return event.bytes + _bytes({told_key: facet}) <= max_bytes

    for drop in (_details_dropped, _column_lineage_dropped, _facets_dropped):
        if not fits():
            drop(event, dropped, fits)
    if not fits():
        dropped.append(
            _degradation("Even the names of the datasets, and what is said to be missing, are more")
        )
        facet = told(dropped)
    kept = event.parts()
    return replace(kept, run_facets={**kept.run_facets, told_key: facet})


def _degradation(what: str, dataset: DatasetName | None = None) -> Degradation:
    return Degradation(
        DegradationCode.DETAIL_DROPPED,
        f"{what} than [sparklineage] max_event_bytes allows; raise it if your lineage backend "
        "takes larger events.",
        dataset,
    )


# --- an event, facet by facet ---------------------------------------------------------------------


class _Place(NamedTuple):
    """Where a facet stands: ``inputs[2].inputFacets["subset"]``; 0 and "" for run and job."""

    group: str
    number: int
    facets: str
    key: str


class _Event:
    """Parts of an event, from which facets can be taken; each is measured when it changes."""

    def __init__(self, said: OpenLineageParts) -> None:
        self._said = said
        self._facets = dict(_facets(said))
        self._measured = _Measuring().facet
        self._sizes = {place: self._measured(place.key, f) for place, f in self._facets.items()}
        names = [[d.namespace, d.name] for d in (*said.inputs, *said.outputs)]
        self.bytes = _ENVELOPE + _bytes(names) + _KEYS * len(names) + sum(self._sizes.values())

    def places(self, *keys: str, group: str = "") -> list[_Place]:
        """Give the places of facets with these keys, or of all; the largest first."""
        found = [
            p
            for p in self._facets
            if (not keys or p.key in keys) and (not group or p.group == group)
        ]
        return sorted(found, key=lambda p: (-self._sizes[p], p))

    def dataset(self, place: _Place) -> DatasetName | None:
        """Name the dataset that a facet is of."""
        if place.group not in ("inputs", "outputs"):
            return None
        dataset = getattr(self._said, place.group)[place.number]
        return DatasetName(dataset.namespace, dataset.name)

    def reduce(self, place: _Place, reduced: Callable[[Any], Reduced]) -> int:
        """Put what is left of a facet into its place, and tell how much went."""
        left, count = reduced(self._facets[place])
        if not count:
            return 0
        self.bytes -= self._sizes.pop(place)
        del self._facets[place]
        if left is not None:
            self._facets[place] = left
            self._sizes[place] = self._measured(place.key, left)
            self.bytes += self._sizes[place]
        return count

    def parts(self) -> OpenLineageParts:
        """Give the parts with the facets that are left."""

        def left(group: str, number: int, facets: str) -> dict[str, Any]:
            given = _group(self._said, group, number, facets)
            places = (_Place(group, number, facets, key) for key in given)
            return {p.key: self._facets[p] for p in places if p in self._facets}

        return replace(
            self._said,
            inputs=[
                attrs.evolve(
                    d,
                    facets=left("inputs", n, "facets"),
                    inputFacets=left("inputs", n, "inputFacets"),
                )
                for n, d in enumerate(self._said.inputs)
            ],
            outputs=[
                attrs.evolve(
                    d,
                    facets=left("outputs", n, "facets"),
                    outputFacets=left("outputs", n, "outputFacets"),
                )
                for n, d in enumerate(self._said.outputs)
            ],
            run_facets=left("run_facets", 0, ""),
            job_facets=left("job_facets", 0, ""),
        )


_OF_DATASETS = {"inputs": ("facets", "inputFacets"), "outputs": ("facets", "outputFacets")}


def _facets(said: OpenLineageParts) -> Iterable[tuple[_Place, Any]]:
    groups = [
        (group, number, facets)
        for group, kinds in _OF_DATASETS.items()
        for number in range(len(getattr(said, group)))
        for facets in kinds
    ]
    for group, number, facets in (*groups, ("run_facets", 0, ""), ("job_facets", 0, "")):
        for key, facet in _group(said, group, number, facets).items():
            yield _Place(group, number, facets, key), facet


def _group(said: OpenLineageParts, group: str, number: int, facets: str) -> dict[str, Any]:
    of = getattr(said, group)
    return (getattr(of[number], facets) if facets else of) or {}


class _Measuring:
    """Measures facets; of column lineage, which is nearly all of a large event, by its pieces.

    The same columns and transformations come again with each column that is made of them.
    """

    def __init__(self) -> None:
        self._column = cache(
            lambda namespace, name, column: _bytes(InputField(namespace, name, column, None))
        )
        self._transformation = cache(lambda *said: _bytes(Transformation(*said)))

    def facet(self, key: str, facet: Any) -> int:
        """Measure a facet with its key."""
        if not isinstance(facet, ColumnLineageDatasetFacet):
            return _bytes({key: facet})
        bare = _bytes({key: attrs.evolve(facet, fields={}, dataset=[])})
        fields = (
            _bytes({name: Fields([], said.transformationDescription, said.transformationType)})
            - len("{}")
            + self._sources(said.inputFields)
            for name, said in facet.fields.items()
        )
        return bare + _listed(fields) + self._sources(facet.dataset or [])

    def _sources(self, sources: Iterable[InputField]) -> int:
        return _listed(map(self._source, sources))

    def _source(self, source: InputField) -> int:
        size = self._column(source.namespace, source.name, source.field)
        if source.transformations is None:
            return size
        said = (
            self._transformation(t.type, t.subtype, t.description, t.masking)
            for t in source.transformations
        )
        return size + len(', "transformations": []') + _listed(said)


def _listed(sizes: Iterable[int]) -> int:
    """Add the sizes of entries, and of what stands between them."""
    return max(0, sum(size + len(", ") for size in sizes) - len(", "))


def _bytes(value: Any) -> int:
    return len(json.dumps(value, default=_fields))


def _fields(value: Any) -> dict[str, Any]:
    """Read an attrs object as OpenLineage's client does, which leaves out what is None."""
    return {
        name: field
        for name in _field_names(value.__class__)
        if (field := getattr(value, name)) is not None
    }


@cache
def _field_names(of: type) -> tuple[str, ...]:
    return tuple(a.name for a in attrs.fields(of))


# --- what is dropped ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """A kind of detail that goes as a whole.

    :param what: in words, in the plural
    :param keys: facets that have it
    :param reduced: a facet without it, and how much of it there was
    """

    what: str
    keys: tuple[str, ...]
    reduced: Callable[[Any], Reduced]


def _details_dropped(event: _Event, dropped: list[Degradation], fits: Callable[[], bool]) -> None:
    for step in STEPS:
        if fits():
            return
        count = sum(event.reduce(place, step.reduced) for place in event.places(*step.keys))
        if count:
            dropped.append(_degradation(f"{count} {step.what} were left out: they are more"))


def _column_lineage_dropped(
    event: _Event, dropped: list[Degradation], fits: Callable[[], bool]
) -> None:
    for place in event.places("columnLineage", group="outputs"):
        if fits():
            return
        event.reduce(place, _whole)
        name = event.dataset(place)
        dropped.append(_degradation(f"The column lineage of {name} was left out: it is more", name))


def _facets_dropped(event: _Event, dropped: list[Degradation], fits: Callable[[], bool]) -> None:
    before, gone = list(dropped), list[str]()
    for place in event.places():
        if gone and fits():
            return
        event.reduce(place, _whole)
        name = event.dataset(place)
        gone.append(f"{place.key} of {name}" if name else place.key)
        more = f" and {len(gone) - _NAMED} more" if len(gone) > _NAMED else ""
        named = f"Facets were left out ({', '.join(gone[:_NAMED])}{more}): they are more"
        dropped[:] = [*before, _degradation(named)]


def _whole(_facet: Any) -> Reduced:
    return None, 1


def _without_descriptions(facet: ColumnLineageDatasetFacet) -> Reduced:
    count = sum(bool(f.transformationDescription) for f in facet.fields.values())

    def bare(source: InputField) -> InputField:
        nonlocal count
        said = source.transformations or []
        count += sum(bool(t.description) for t in said)
        return _input_field(
            source, [Transformation(t.type, t.subtype, None, t.masking) for t in said]
        )

    dataset = [bare(source) for source in facet.dataset or []]
    return _mapped(facet, bare, dataset, with_text=False), count


def _without_indirect_transformations(facet: ColumnLineageDatasetFacet) -> Reduced:
    count = sum(len(source.transformations or []) for source in facet.dataset or [])

    def bare(source: InputField) -> InputField:
        nonlocal count
        said = source.transformations or []
        indirect = [t for t in said if t.type == INDIRECT]
        if not indirect or indirect == [_INDIRECT]:
            return source
        count += len(indirect)
        return _input_field(source, [*(t for t in said if t.type != INDIRECT), _INDIRECT])

    # What influences the whole dataset is INDIRECT, and need not say so.
    dataset = [_input_field(source, None) for source in facet.dataset or []]
    return _mapped(facet, bare, dataset), count


_INDIRECT = Transformation(INDIRECT)


def _without_indirect(facet: ColumnLineageDatasetFacet) -> Reduced:
    count = len(facet.dataset or [])

    def direct(source: InputField) -> InputField | None:
        nonlocal count
        said = source.transformations or []
        others = [t for t in said if t.type != INDIRECT]
        count += len(others) < len(said)
        return _input_field(source, others) if others or not said else None

    reduced = _mapped(facet, direct, [])
    return (reduced if reduced.fields else None), count


def _input_field(source: InputField, transformations: list[Transformation] | None) -> InputField:
    return InputField(source.namespace, source.name, source.field, transformations)


def _mapped(
    facet: ColumnLineageDatasetFacet,
    of: Callable[[InputField], InputField | None],
    dataset: list[InputField],
    *,
    with_text: bool = True,
) -> ColumnLineageDatasetFacet:
    """Make the facet with other sources, without those that are None and fields that have none."""
    fields: dict[str, Fields] = {}
    for name, said in facet.fields.items():
        sources = [made for source in said.inputFields if (made := of(source)) is not None]
        text = said.transformationDescription if with_text else None
        if sources:
            fields[name] = Fields(sources, text, said.transformationType)
    return attrs.evolve(facet, fields=fields, dataset=dataset)


def _without_comments(facet: dict[str, Any]) -> Reduced:
    count = 0

    def bare(field: dict[str, Any]) -> dict[str, Any]:
        nonlocal count
        count += bool(field.get("description"))
        kept = {key: value for key, value in field.items() if key != "description"}
        return kept | ({"fields": list(map(bare, kept["fields"]))} if kept.get("fields") else {})

    fields = list(map(bare, facet.get("fields") or ()))
    return facet | {"fields": fields}, count


_COLUMNS = ("columnLineage",)

STEPS = (
    Step("descriptions of column lineage", _COLUMNS, _without_descriptions),
    Step("transformations of INDIRECT lineage", _COLUMNS, _without_indirect_transformations),
    Step("statistics", ("inputStatistics", "outputStatistics", "dataQualityMetrics"), _whole),
    Step("comments of schemas", ("schema",), _without_comments),
    Step("INDIRECT edges of column lineage", _COLUMNS, _without_indirect),
)
"""What goes first, in this order."""
