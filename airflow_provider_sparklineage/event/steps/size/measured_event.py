"""An event from which facets can be taken one by one, and how large it is by then.

A size is in bytes or in columns (:class:`Measure`). Bytes are those of the JSON that OpenLineage's
client sends: ASCII, a space after each separator.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from airflow_provider_sparklineage.event.document import name_of, replaced
from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from airflow_provider_sparklineage.event.document import Event, Facets
    from airflow_provider_sparklineage.event.steps.size.reductions import Reduced
    from airflow_provider_sparklineage.model.datasets import DatasetName

HEADER = 1024
"""Bytes for the event's run, job, time and producer, which it may not have yet."""
_SEPARATORS = len(": ") + len(", ")


def size_of(value: Any) -> int:
    """Give the bytes of a value in JSON, as OpenLineage's client writes it.

    That encoder is slow. Where the text of a fast one differs from its by spaces only, they are
    counted: not where there is something to escape, null, or a number that is no integer.
    """
    text = msgspec.json.encode(value)
    if not text.isascii() or b"\\" in text or b"\x7f" in text:
        return len(json.dumps(value))
    around = b"".join(text.split(b'"')[::2])
    if b"null" in around or _FLOATING.search(around):
        return len(json.dumps(value))
    return len(text) + around.count(b",") + around.count(b":")


_FLOATING = re.compile(rb"\d[.e]")


def _size_of_facet(key: str, facet: Any) -> int:
    return _size_of_key(key) + _SEPARATORS + size_of(facet)


@lru_cache(maxsize=1024)  # the same few keys stand in each dataset
def _size_of_key(key: str) -> int:
    return size_of(key)


_PRINTABLE = bytes(range(0x20, 0x7F))


def is_surely_within(event: Event, max_bytes: int) -> bool:
    """Whether an event has at most so many bytes, by a look that is cheap and overrates them.

    What the fast encoder does not escape has six bytes more at most, and so has a number, with the
    space before it; each of them is after a separator or a bracket.
    """
    text = msgspec.json.encode(event)
    values = sum(map(text.count, (b",", b":", b"[")))
    unescaped = len(text.translate(None, _PRINTABLE))
    return HEADER + len(text) + 6 * (values + unescaped) <= max_bytes


class Measure(Frozen, frozen=True):
    """What the size of an event is made of.

    :param facet: the size of a facet, by its key and its value
    :param rest: that of an event without facets
    :param of_text: whether text is a part of it, and not only columns and edges
    """

    facet: Callable[[str, Any], int]
    rest: Callable[[Event], int]
    of_text: bool


BYTES = Measure(_size_of_facet, lambda event: HEADER + size_of(event), of_text=True)


class Place(NamedTuple):
    """Where a facet stands: ``inputs[2].inputFacets["subset"]``; 0 and "" for run and job."""

    group: str
    number: int
    facets: str
    key: str


class MeasuredEvent:
    """An event, from which facets can be taken."""

    def __init__(self, event: Event, measure: Measure = BYTES) -> None:
        self._event = event
        self._measure = measure
        self._facets = dict(_facets(event))
        self._sizes = {place: self._sized(place, facet) for place, facet in self._facets.items()}
        self.size = measure.rest(self._with({})) + sum(self._sizes.values())
        """How large all of it is by now."""

    def places(self, *keys: str, group: str = "") -> list[Place]:
        """Give the places of facets with these keys, or of all, on one side of the job or any."""
        return [
            place
            for place in self._facets
            if (not keys or place.key in keys) and (not group or place.group == group)
        ]

    def largest_first(self, places: Iterable[Place]) -> list[Place]:
        """Sort places by the size of what stands there."""
        return sorted(places, key=lambda place: (-self._sizes[place], place))

    def facet(self, place: Place) -> Any:
        """Give what is left of a facet; None if nothing is."""
        return self._facets.get(place)

    def dataset(self, place: Place) -> DatasetName | None:
        """Name the dataset that a facet is of."""
        if place.group not in _OF_DATASETS:
            return None
        return name_of(self._event[place.group][place.number])

    def reduce(self, place: Place, reduced: Callable[[Any], Reduced]) -> int:
        """Put what is left of a facet into its place, and count what went."""
        left, count = reduced(self._facets[place])
        if not count:
            return 0
        self.size -= self._sizes.pop(place)
        if left is None:
            del self._facets[place]
        else:
            self._facets[place] = left
            self._sizes[place] = self._sized(place, left)
            self.size += self._sizes[place]
        return count

    def _sized(self, place: Place, facet: Any) -> int:
        return self._measure.facet(place.key, facet)

    def event(self) -> Event:
        """Give the event with the facets that are left."""
        return self._with(self._facets)

    def _with(self, kept: Mapping[Place, Any]) -> Event:
        left: dict[tuple[str, int, str], Facets] = {}
        for place, facet in kept.items():
            left.setdefault(place[:3], {})[place.key] = facet
        sides = {
            group: [
                {**d, **{of: left.get((group, n, of), {}) for of in kinds if of in d}}
                for n, d in enumerate(self._event[group])
            ]
            for group, kinds in _OF_DATASETS.items()
        }
        return replaced(
            self._event,
            **sides,
            run_facets=left.get(("run", 0, ""), {}),
            job_facets=left.get(("job", 0, ""), {}),
        )


_OF_DATASETS = {"inputs": ("facets", "inputFacets"), "outputs": ("facets", "outputFacets")}


def _facets(event: Event) -> Iterator[tuple[Place, Any]]:
    for group, kinds in _OF_DATASETS.items():
        for number, dataset in enumerate(event[group]):
            for of in kinds:
                for key, facet in dataset.get(of, {}).items():
                    yield Place(group, number, of, key), facet
    for group in ("run", "job"):
        for key, facet in event[group]["facets"].items():
            yield Place(group, 0, "", key), facet
