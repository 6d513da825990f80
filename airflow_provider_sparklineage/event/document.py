"""The merged RunEvent as plain JSON, the form in which all steps take and give it.

A document consists of dicts, lists, texts, numbers and booleans. It has no nulls: the key of an
unknown value is absent. ``run.facets``, ``job.facets``, ``inputs`` and ``outputs`` are always
there; the header (:class:`Header`) is absent if the document is only for Airflow's hooks on START.

No function changes a document or an object in it. A step gives a new document, which shares all
unchanged objects with the given one; if nothing changes, the step gives the same document. The same
holds for :func:`replaced`, which changes the parts of an event, for :class:`Walk`, which changes
its texts and numbers wherever they stand, and for :class:`MeasuredEvent`, which removes facets.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from airflow_provider_sparklineage.event.model import name_of
from airflow_provider_sparklineage.model.producer import producer
from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from airflow_provider_sparklineage.lineage.application.accumulation import SparkApplication
    from airflow_provider_sparklineage.model.datasets import DatasetName
    from airflow_provider_sparklineage.model.terms import Outcome
    from airflow_provider_sparklineage.spark.capture.bundle import Manifest


# --- the document ---------------------------------------------------------------------------------


Event = dict[str, Any]
Facets = dict[str, Any]
Step = Callable[[Event], Event]
"""A change of an event after it was made; see :mod:`.pipeline`."""

_SCHEMA = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"


class Written:
    """An event with its JSON, which is made once for the XCom and the archive."""

    def __init__(self, event: Event) -> None:
        self.event = event

    @cached_property
    def text(self) -> bytes:
        """The event as Airflow writes it into its database."""
        return json.dumps(self.event).encode()


class Header(NamedTuple):
    """The run, the job and the time of an event.

    :param run_id: UUID of the run
    :param event_time: time in ISO 8601, with a time zone
    """

    run_id: str
    job_namespace: str
    job_name: str
    event_time: str


def header(manifest: Manifest, application: SparkApplication | None) -> Header:
    """Give run, job and time of an event: the manifest's, else the application's."""
    time = manifest.ended or (application and application.last_event) or manifest.started
    job = manifest.job
    return Header(
        _uuid(manifest.run_id or manifest.application_run_id),
        job.namespace if job else (application and application.namespace) or "default",
        job.name if job else (application and application.job_name) or "unknown",
        time.isoformat() if time else "1970-01-01T00:00:00+00:00",
    )


def _uuid(run_id: str) -> str:
    """Give a run id as a UUID, which OpenLineage requires; make one of any other text."""
    try:
        return str(uuid.UUID(run_id))
    except ValueError:
        return str(uuid.uuid5(uuid.NAMESPACE_URL, run_id))


def empty(header: Header | None, outcome: Outcome) -> Event:
    """Make an event without datasets and facets.

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
    """Give an event with other datasets or facets; those for which None is given stay.

    :return: the same object if the event already has the same objects
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
    """Whether two dicts have equal keys, and the same objects as values."""
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
"""Keys of values that are not human-readable texts: names of datasets and columns, words of the
specification, and further values that identify an event."""


class Walk:
    """Changes texts, numbers and keys of a value; gives the same object if nothing changes."""

    def text(self, text: str, key: str, /) -> str:
        """Change a text.

        :param key: the key of the text, or of the list that contains it; ``""`` if there is no key,
            or if the key is a name of the user's
        """
        raise NotImplementedError

    def number(self, number: float) -> float | None:
        """Change a number that is not an integer; None removes it."""
        return number

    def key(self, key: str) -> str:
        """Change a key."""
        return key

    def value(self, value: Any, key: str = "") -> Any:
        """Change a value with all values in it; None if nothing of it remains."""
        if isinstance(value, str):
            text = self.text(value, key)
            return value if text == value else text  # a cache may give an equal, but other object
        if isinstance(value, float):
            return self.number(value)
        if isinstance(value, dict):
            return self._object(value, key)
        if isinstance(value, list):
            return self._list(value, key)
        return value

    def _object(self, value: dict[str, Any], key: str) -> dict[str, Any]:
        # The keys of dimensions are names of columns; one of them may be spelt like a key of ours.
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

    The client does so when it sends an event; the copies that are kept should not differ from that.
    """
    if isinstance(value, dict):
        return {k: without_nulls(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        items = [without_nulls(item) for item in value if item is not None]
        return [item for item in items if item != {}]
    return value


def is_unchanged(value: object, change: Callable[[str], str]) -> bool:
    """Whether no text in a value would be changed; False also if only a walk can find that out.

    One change of all different texts at once, each on a line of its own, is far cheaper than a
    walk, and a walk is seldom needed. Most texts are repeated in each dataset and each edge.
    """
    text = msgspec.json.encode(value)
    if b"\\" in text:
        return False
    texts: dict[bytes, None] = {}
    while text:
        pieces = text.split(b'"', _AT_ONCE)
        text = pieces.pop() if len(pieces) > _AT_ONCE else b""
        texts.update(dict.fromkeys(pieces[1::2]))  # no escapes: every other piece is a text
    lines = b"\n".join(texts).decode()
    return change(lines) == lines


_AT_ONCE = 200_000
"""Pieces that are split off at once, because each takes more memory than its characters. The number
must be even, so that the texts are at the odd places in each round."""


# --- the size of an event, facet by facet ---------------------------------------------------------
#
# A size is in bytes or in columns (:class:`Measure`). Bytes are those of the JSON that
# OpenLineage's client sends: ASCII, a space after each separator.


HEADER = 1024
"""Bytes that are counted for the event's run, job, time and producer, which may still be absent."""
_SEPARATORS = len(": ") + len(", ")


def size_of(value: Any) -> int:
    """Give the number of bytes of a value in JSON, as OpenLineage's client writes it.

    The client's encoder, Python's own, is slow. The text of a fast encoder mostly differs from it
    by spaces only, which are counted here. The slow one is used if the value has a character to
    escape, a null, or a number that is not an integer.
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
    """Whether an event surely has at most ``max_bytes``: a cheap upper bound of its size fits.

    The bound adds six bytes for each byte that the fast encoder does not escape, and for each
    separator and bracket: at most so much longer are a number and the space before it.
    """
    text = msgspec.json.encode(event)
    values = sum(map(text.count, (b",", b":", b"[")))
    unescaped = len(text.translate(None, _PRINTABLE))
    return HEADER + len(text) + 6 * (values + unescaped) <= max_bytes


Reduced = tuple[dict[str, Any] | None, int]
"""The rest of a facet (None if nothing is left), and the number of removed parts."""


class Measure(Frozen, frozen=True):
    """The way to measure the size of an event.

    :param facet: gives the size of a facet from its key and its value
    :param rest: gives the size of an event without facets
    :param of_text: whether texts count, and not only columns and edges
    """

    facet: Callable[[str, Any], int]
    rest: Callable[[Event], int]
    of_text: bool


BYTES = Measure(_size_of_facet, lambda event: HEADER + size_of(event), of_text=True)


class Place(NamedTuple):
    """The place of a facet in an event, e.g. ``inputs[2].inputFacets["subset"]``.

    :param group: ``inputs``, ``outputs``, ``run`` or ``job``
    :param number: index of the dataset; 0 for run and job
    :param facets: key of the dataset's facets; "" for run and job
    :param key: key of the facet
    """

    group: str
    number: int
    facets: str
    key: str


class MeasuredEvent:
    """An event with the sizes of its facets, from which facets can be removed."""

    def __init__(self, event: Event, measure: Measure = BYTES) -> None:
        self._event = event
        self._measure = measure
        self._facets = dict(_facets(event))
        self._sizes = {place: self._sized(place, facet) for place, facet in self._facets.items()}
        self.size = measure.rest(self._with({})) + sum(self._sizes.values())
        """The present size of the event."""

    def places(self, *keys: str, group: str = "") -> list[Place]:
        """Give the places of the facets with these keys in this group.

        :param keys: if there are none, facets with any key
        :param group: if empty, facets of all groups
        """
        return [
            place
            for place in self._facets
            if (not keys or place.key in keys) and (not group or place.group == group)
        ]

    def largest_first(self, places: Iterable[Place]) -> list[Place]:
        """Sort places by the sizes of their facets, in descending order."""
        return sorted(places, key=lambda place: (-self._sizes[place], place))

    def facet(self, place: Place) -> Any:
        """Give the rest of a facet; None if it was removed."""
        return self._facets.get(place)

    def dataset(self, place: Place) -> DatasetName | None:
        """Give the name of a facet's dataset; None for a facet of the run or the job."""
        if place.group not in _OF_DATASETS:
            return None
        return name_of(self._event[place.group][place.number])

    def reduce(self, place: Place, reduced: Callable[[Any], Reduced]) -> int:
        """Replace a facet by its rest, and give the number of removed parts."""
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
        """Give the event with the remaining facets."""
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
