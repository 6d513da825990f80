"""The merged RunEvent as plain JSON, the form in which all steps take and give it.

A document consists of dicts, lists, texts, numbers and booleans. It has no nulls: the key of an
unknown value is absent. ``run.facets``, ``job.facets``, ``inputs`` and ``outputs`` are always
there; the header (:class:`Header`) is absent if the document is only for Airflow's hooks on START.

No function changes a document or an object in it. A step gives a new document, which shares all
unchanged objects with the given one; if nothing changes, the step gives the same document. The same
holds for :func:`replaced`, which changes the parts of an event, and for :class:`Walk`, which
changes all texts and numbers of an event, wherever they stand.
"""

from __future__ import annotations

import json
import uuid
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from airflow_provider_sparklineage.model.producer import producer
from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_sparklineage.lineage.application.accumulation import SparkApplication
    from airflow_provider_sparklineage.model.terms import Outcome
    from airflow_provider_sparklineage.spark.capture.bundle import Manifest


# --- the document ---------------------------------------------------------------------------------


Event = dict[str, Any]
Facets = dict[str, Any]

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
    """Give run, job and time of an event.

    Run and job are those of the manifest; if it has no job, the job is the Spark application's,
    else ``unknown``. The time is the end of the try, else the application's last event, else the
    start of the try, else the epoch.

    :param application: the Spark application of the try; None if it is not known
    """
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
    :param outcome: the type of the event; not used if ``header`` is None
    """
    if header is None:
        return {"run": {"facets": {}}, "job": {"facets": {}}, "inputs": [], "outputs": []}
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
        if datasets is not None and list(map(id, datasets)) != list(map(id, event[side])):
            changes[side] = datasets
    for of, facets in (("run", run_facets), ("job", job_facets)):
        if facets is not None and not same(facets, event[of]["facets"]):
            changes[of] = {**event[of], "facets": facets}
    return {**event, **changes} if changes else event


GROUPS = ("inputs", "outputs", "run", "job")
"""Keys of the parts of an event that have facets; the first two are lists of datasets."""
FACET_KINDS = ("facets", "inputFacets", "outputFacets")
"""Keys of facets in these parts."""


def with_facets(event: Event, change: Callable[[Facets], Facets]) -> Event:
    """Give an event in which the facets of each dataset, of the run and of the job are changed.

    :param change: gives the new facets for a dict of facets by key, e.g. the ``inputFacets`` of one
        dataset
    """

    def changed(owner: dict[str, Any]) -> dict[str, Any]:
        return owner | {kind: change(owner[kind]) for kind in FACET_KINDS if kind in owner}

    owners = ((group, event[group]) for group in GROUPS)
    return event | {
        group: list(map(changed, owner)) if isinstance(owner, list) else changed(owner)
        for group, owner in owners
    }


def same(first: dict[str, Any], second: dict[str, Any]) -> bool:
    """Whether two dicts have equal keys, and the same objects as values."""
    return len(first) == len(second) and all(
        key in second and second[key] is value for key, value in first.items()
    )


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


class Walk(Frozen, frozen=True):
    """Changes texts, numbers and keys of a value; gives the same object if nothing changes.

    :param text: gives the new text for a text. Its second argument is the key of the text, or of
        the list that contains it; ``""`` if there is no key, or if the key is the name of a column
    :param number: gives the new number for a number that is not an integer; None removes it
    :param key: gives the new key for a key
    """

    text: Callable[[str, str], str]
    number: Callable[[float], float | None] = float  # changes nothing, as str below
    key: Callable[[str], str] = str

    def value(self, value: Any, key: str = "") -> Any:
        """Change a value with all values in it; None if nothing of it remains.

        :param key: the key of the value, for texts; see :class:`Walk`
        """
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

    The client does so when it sends an event; the event in XCom and archive should not differ from
    the sent one.
    """
    if isinstance(value, dict):
        return {k: without_nulls(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        items = [without_nulls(item) for item in value if item is not None]
        return [item for item in items if item != {}]
    return value


def is_unchanged(value: object, change: Callable[[str], str]) -> bool:
    """Whether it is certain that no text in a value would be changed.

    All different texts are changed at once, as the lines of one text: that is far cheaper than a
    :class:`Walk`, because most texts are repeated in each dataset and each edge. A value with texts
    that need escapes in JSON is not searched, and the result is False.

    :param change: gives the new text for a text
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
"""Number of pieces that are split off in one round, to save memory: a piece takes more memory than
its characters. The number is even, so that the texts are at the odd places in each round."""


# --- whether an event is small --------------------------------------------------------------------


HEADER = 1024
"""Bytes that are counted for the event's run, job, time and producer, which may still be absent."""
_PRINTABLE = bytes(range(0x20, 0x7F))


def is_surely_within(event: Event, max_bytes: int) -> bool:
    """Whether an event is certainly within ``max_bytes``, by an upper bound of the event's size.

    The size is that in the JSON of OpenLineage's client. The client's JSON is longer than that of
    the fast encoder used here: the client escapes more characters, writes spaces after separators,
    and writes some numbers with more digits. Six bytes more for each such place are always enough.
    """
    try:
        text = msgspec.json.encode(event)
    except UnicodeEncodeError:  # an archived event may have half of a surrogate pair
        return HEADER + len(json.dumps(event)) <= max_bytes
    values = sum(map(text.count, (b",", b":", b"[")))
    unescaped = len(text.translate(None, _PRINTABLE))
    return HEADER + len(text) + 6 * (values + unescaped) <= max_bytes
