"""Parts of an event, from which facets can be taken one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs

from airflow_provider_sparklineage.event.size.measuring import ENVELOPE, entries_size, size_of
from airflow_provider_sparklineage.model.datasets import DatasetName

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from airflow_provider_sparklineage.event.event_parts import OpenLineageParts
    from airflow_provider_sparklineage.event.size.reductions import Reduced

_KEYS = 100
"""Bytes for the keys, braces and separators of a dataset, which are 70."""


class Place(NamedTuple):
    """Where a facet stands: ``inputs[2].inputFacets["subset"]``; 0 and "" for run and job."""

    group: str
    number: int
    facets: str
    key: str


class MeasuredParts:
    """Parts of an event, from which facets can be taken."""

    def __init__(self, said: OpenLineageParts) -> None:
        self._said = said
        self._facets: dict[str, dict[Place, Any]] = {}
        for place, facet in _facets(said):
            self._facets.setdefault(place.key, {})[place] = facet
        names = [[d.namespace, d.name] for d in (*said.inputs, *said.outputs)]
        self._around = ENVELOPE + size_of(names) + _KEYS * len(names)
        self._sizes: dict[str, int] = {}
        """Of all facets of a key together, which is far cheaper than of each."""
        self._alone: dict[Place, int] = {}

    @property
    def bytes(self) -> int:
        """How large all of it is by now."""
        for key in self._facets.keys() - self._sizes.keys():
            self._sizes[key] = entries_size(key, self._facets[key].values())
        return self._around + sum(self._sizes.values())

    def places(self, *keys: str, group: str = "") -> list[Place]:
        """Give the places of facets with these keys, or of all, on one side of the job or any."""
        of = (self._facets.get(key, {}) for key in keys) if keys else self._facets.values()
        return [place for places in of for place in places if not group or place.group == group]

    def largest_first(self, places: Iterable[Place]) -> list[Place]:
        """Sort places by the size of what stands there."""
        return sorted(places, key=lambda place: (-self._size(place), place))

    def _size(self, place: Place) -> int:
        if place not in self._alone:
            self._alone[place] = entries_size(place.key, [self._facets[place.key][place]])
        return self._alone[place]

    def dataset(self, place: Place) -> DatasetName | None:
        """Name the dataset that a facet is of."""
        if place.group not in ("inputs", "outputs"):
            return None
        dataset = getattr(self._said, place.group)[place.number]
        return DatasetName(dataset.namespace, dataset.name)

    def reduce(self, place: Place, reduced: Callable[[Any], Reduced]) -> int:
        """Put what is left of a facet into its place, and tell how much went."""
        facets = self._facets[place.key]
        left, count = reduced(facets[place])
        if not count:
            return 0
        if left is None and place in self._alone and place.key in self._sizes:
            self._sizes[place.key] -= self._alone[place]
        else:
            self._sizes.pop(place.key, None)
        self._alone.pop(place, None)
        if left is None:
            del facets[place]
        else:
            facets[place] = left
        return count

    def parts(self) -> OpenLineageParts:
        """Give the parts with the facets that are left."""

        def left(group: str, number: int, facets: str) -> dict[str, Any]:
            given = _group(self._said, group, number, facets)
            places = (Place(group, number, facets, key) for key in given)
            return {p.key: self._facets[p.key][p] for p in places if p in self._facets[p.key]}

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


def _facets(said: OpenLineageParts) -> Iterable[tuple[Place, Any]]:
    groups = [
        (group, number, facets)
        for group, kinds in _OF_DATASETS.items()
        for number in range(len(getattr(said, group)))
        for facets in kinds
    ]
    for group, number, facets in (*groups, ("run_facets", 0, ""), ("job_facets", 0, "")):
        for key, facet in _group(said, group, number, facets).items():
            yield Place(group, number, facets, key), facet


def _group(said: OpenLineageParts, group: str, number: int, facets: str) -> dict[str, Any]:
    of = getattr(said, group)
    return (getattr(of[number], facets) if facets else of) or {}
