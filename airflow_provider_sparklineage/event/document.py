"""The merged RunEvent as plain JSON, which all that handles the event takes and gives.

A document is made of dicts, lists, texts, numbers and booleans. It has no nulls: what is not known
is absent. ``run.facets``, ``job.facets``, ``inputs`` and ``outputs`` are always there; the header
(:class:`Header`) is not yet, where the document is only for Airflow's hooks on START.

Nobody changes a document, or anything in it: a step gives a new one, which shares with the one that
it was given all that stays as it is, and it gives that one back where nothing changes. That goes
for :func:`replaced`, which changes the parts of an event, for :class:`Walk`, which changes its
texts and numbers wherever they stand, and for :class:`MeasuredEvent`, which takes facets out of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from airflow_provider_sparklineage.event.model import name_of
from airflow_provider_sparklineage.model.producer import producer
from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from airflow_provider_sparklineage.model.datasets import DatasetName
    from airflow_provider_sparklineage.model.terms import Outcome


# --- the document ---------------------------------------------------------------------------------


Event = dict[str, Any]
Facets = dict[str, Any]
Step = Callable[[Event], Event]
"""What is done with an event after it was made; see :mod:`.pipeline`."""

_SCHEMA = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"


class Written:
    """An event with its JSON, which is made once for all who keep it."""

    def __init__(self, event: Event) -> None:
        self.event = event

    @cached_property
    def text(self) -> bytes:
        """The event as Airflow writes it into its database."""
        return json.dumps(self.event).encode()


class Header(NamedTuple):
    """Whose event it is.

    :param run_id: a UUID
    :param event_time: in ISO 8601, with a time zone
    """

    run_id: str
    job_namespace: str
    job_name: str
    event_time: str


def empty(header: Header | None, outcome: Outcome) -> Event:
    """Make an event that has no datasets and no facets (yet).

    :param header: None for Airflow's hooks, which fill it in themselves
    """
    event: Event = {
        "run": {"facets": {}},
        "job": {"facets": {}},
        "inputs": [],
        "outputs": [],
    }
    if header is None:
        return event
    return {
        "eventTime": header.event_time,
        "producer": producer(),
        "schemaURL": _SCHEMA,
        "run": {"runId": header.run_id, "facets": {}},
        "job": {"namespace": header.job_namespace, "name": header.job_name, "facets": {}},
        "eventType": str(outcome),
        "inputs": [],
        "outputs": [],
    }


def replaced(
    event: Event,
    *,
    inputs: list[Any] | None = None,
    outputs: list[Any] | None = None,
    run_facets: Facets | None = None,
    job_facets: Facets | None = None,
) -> Event:
    """Give an event with other datasets or facets; None leaves what it has.

    :return: the same object, if it has the very same ones already
    """
    changes: Event = {}
    for side, datasets in (("inputs", inputs), ("outputs", outputs)):
        if datasets is not None and not _are_same(datasets, event[side]):
            changes[side] = datasets
    for of, facets in (("run", run_facets), ("job", job_facets)):
        if facets is not None and not same(facets, event[of]["facets"]):
            changes[of] = {**event[of], "facets": facets}
    return {**event, **changes} if changes else event


def same(first: dict[str, Any], second: dict[str, Any]) -> bool:
    """Whether two have the same keys, and the very same values."""
    return len(first) == len(second) and all(
        key in second and second[key] is value for key, value in first.items()
    )


def _are_same(first: list[Any], second: list[Any]) -> bool:
    return len(first) == len(second) and all(a is b for a, b in zip(first, second, strict=True))


# --- texts and numbers ----------------------------------------------------------------------------


IDENTITIES = frozenset(
    {
        "_producer",
        "_schemaURL",
        "producer",
        "schemaURL",
        "runId",
        "eventTime",
        "eventType",
        "namespace",
        "name",
        "field",
        "fields",
        "type",
        "subtype",
        "transformationType",
        "comparison",
        "operator",
        "transform",
        "kind",
        "code",
        "column",
    }
)
"""Keys of what is no text for people: names of datasets and columns, words of the specification,
and what else identifies an event."""


class Walk:
    """Changes texts, numbers and keys of a value; what holds nothing to change is given back."""

    def text(self, text: str, key: str, /) -> str:
        """Change a text.

        :param key: what it stands under; ``""`` in a list that stands under nothing, and for what
            stands under a name of the user's
        """
        raise NotImplementedError

    def number(self, number: float) -> float | None:
        """Change a number that is no integer; None leaves it out."""
        return number

    def key(self, key: str) -> str:
        """Change a key."""
        return key

    def value(self, value: Any, key: str = "") -> Any:
        """Change a value and all that it holds; None if nothing is left of it."""
        if isinstance(value, str):
            text = self.text(value, key)
            return value if text == value else text  # a cache may give an equal one of another
        if isinstance(value, float):
            return self.number(value)
        if isinstance(value, dict):
            return self._object(value, key)
        if isinstance(value, list):
            return self._list(value, key)
        return value

    def _object(self, value: dict[str, Any], key: str) -> dict[str, Any]:
        # The keys of dimensions are columns, whatever they are called.
        theirs = key == "dimensions"
        entries = {}
        for k, before in value.items():
            after = self.value(before, "" if theirs else k)
            if after is not None or before is None:
                entries[self.key(k)] = after
        return value if same(entries, value) else entries

    def _list(self, value: list[Any], key: str) -> list[Any]:
        items = []
        is_same = True
        for before in value:
            after = self.value(before, key)
            is_same = is_same and after is before
            if after is before or (after is not None and after != {}):
                items.append(after)
        return value if is_same else items


def without_nulls(value: Any) -> Any:
    """Leave nulls out of a value, and empty objects out of its lists, as OpenLineage's client does.

    It does so when it sends an event, so that what it would leave out is in no other copy either.
    """
    if isinstance(value, dict):
        return {k: without_nulls(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        items = [without_nulls(item) for item in value if item is not None]
        return [item for item in items if item != {}]
    return value


def is_unchanged(value: object, change: Callable[[str], str]) -> bool:
    """Whether no text in a value would be changed; False also where only a walk can find out.

    To change all of its texts at once, each on a line of its own, is far cheaper than to walk,
    which is seldom needed. Most of them come again with each dataset and each edge.
    """
    text = msgspec.json.encode(value)
    if b"\\" in text:
        return False
    texts: dict[bytes, None] = {}
    while text:
        pieces = text.split(b'"', _AT_ONCE)
        text = pieces.pop() if len(pieces) > _AT_ONCE else b""
        texts.update(dict.fromkeys(pieces[1::2]))  # nothing is escaped: every other one is a text
    lines = b"\n".join(texts).decode()
    return change(lines) == lines


_AT_ONCE = 200_000
"""Pieces of a text: each takes more memory than its characters. An even number."""


# --- how large it is, facet by facet --------------------------------------------------------------
#
# A size is in bytes or in columns (:class:`Measure`). Bytes are those of the JSON that
# OpenLineage's client sends: ASCII, a space after each separator.


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


Reduced = tuple[dict[str, Any] | None, int]
"""What is left of a facet (None: nothing), and how much went."""


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
