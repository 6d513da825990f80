"""Metadata change proposals (MCPs) as plain JSON: one aspect of one entity each.

The aspects have the shapes of DataHub's Avro schemas, in the JSON that DataHub's server accepts: a
value of a union stands below the name of the value's record
(``{"com.linkedin.schema.NumberType": {}}``), and an unknown value is absent. Tests show that the
SDK reads each aspect as an object of its class, and that this object is valid.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sparklineage.model.credentials import scrub

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from airflow_provider_sparklineage.event.model import Value


Json = dict[str, Any]


class Proposal(NamedTuple):
    """A request to DataHub to store or patch one aspect.

    :param urn: the entity's URN; the third part of the URN is the entity's type
    :param aspect_name: the name of the aspect, e.g. ``schemaMetadata``
    :param aspect: the fields of the SDK's class for that name; for a patch, the fields of
        ``com.linkedin.metadata.aspect.patch.GenericJsonPatch``, or the operations of RFC 6902
    :param is_patch: whether the stored aspect is patched; if not, it is replaced as a whole
    :param only_if_absent: whether a stored aspect is left unchanged: the proposal then has a header
        that makes GMS drop the proposal if the aspect exists (``CreateIfNotExistsValidator``)
    :param keeps: the key of the aspect of which :func:`with_stored` keeps what is stored; empty if
        the stored aspect need not be known
    """

    urn: str
    aspect_name: str
    aspect: Json | list[Json]
    is_patch: bool = False
    only_if_absent: bool = False
    keeps: str = ""

    @property
    def entity_type(self) -> str:
        """Give the type of the entity, as the URN has it."""
        return self.urn.split(":", 3)[2]

    @property
    def change_type(self) -> str:
        """Give DataHub's ``ChangeType``: PATCH, CREATE or UPSERT."""
        if self.is_patch:
            return "PATCH"
        return "CREATE" if self.only_if_absent else "UPSERT"

    @property
    def headers(self) -> dict[str, str]:
        """Give the headers of the proposal itself; they are not headers of the HTTP request."""
        return {"If-None-Match": "*"} if self.only_if_absent else {}

    @property
    def content_type(self) -> str:
        """Give the media type of the aspect."""
        return "application/json-patch+json" if self.is_patch else "application/json"

    def document(self) -> Json:
        """Give the proposal in the form of DataHub's files, which ``datahub ingest`` reads."""
        return self.request() if self.is_patch else self._with_aspect({"json": self.aspect})

    def request(self) -> Json:
        """Give the proposal in the form in which it is sent to DataHub's server."""
        return self._with_aspect({"value": self.text(), "contentType": self.content_type})

    def _with_aspect(self, aspect: Json) -> Json:
        document: Json = {
            "entityType": self.entity_type,
            "entityUrn": self.urn,
            "changeType": self.change_type,
            "aspectName": self.aspect_name,
            "aspect": aspect,
        }
        return document | {"headers": self.headers} if self.headers else document

    def text(self) -> str:
        """Give the aspect as the JSON text that DataHub's server accepts."""
        return json.dumps(self.aspect)


# Patches add to an aspect, so that entries of other writers stay in it. The server applies a patch
# to the stored aspect (``AspectTemplateEngine``; it turns lists into maps by the keys of their
# entries), so that a patch that is sent again changes nothing.


def add(*path: str, value: Any) -> Json:
    """Give the operation that adds a value, or replaces the value at the same path.

    :param path: the keys from the aspect down to the value, not escaped; this function escapes
        ``~`` and ``/`` by RFC 6901
    """
    return {"op": "add", "path": f"/{'/'.join(map(escaped, path))}", "value": value}


def remove(*path: str) -> Json:
    """Give the operation that removes a value; DataHub ignores it if the value is absent.

    :param path: as for :func:`add`
    """
    return {"op": "remove", "path": f"/{'/'.join(map(escaped, path))}"}


def escaped(key: str) -> str:
    """Escape a key for a path of a patch (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")


def keyed(name: str, keys: Sequence[str], operations: list[Json]) -> Json:
    """Give a patch of a list whose entries are identified by some of their fields.

    The form is DataHub's ``GenericJsonPatch``.

    :param name: the name of the list in the aspect
    :param keys: the fields that identify an entry, in the order of the operations' paths
    :param operations: the operations on the entries (:func:`add`, :func:`remove`)
    """
    return {"arrayPrimaryKeys": {name: list(keys)}, "patch": operations}


def job_edges(names: Iterable[str], operations: list[Json]) -> Json:
    """Give a patch of a job's lists of edges.

    The patch names the lists of datasets as well: DataHub requires these lists, and makes empty
    ones where there is no aspect yet.

    :param names: the names of the lists of edges in ``dataJobInputOutput``
    :param operations: the operations on the edges (:func:`add`, :func:`remove`)
    """
    keys: dict[str, list[str]] = {"inputDatasets": [], "outputDatasets": []}
    keys |= {name: ["destinationUrn"] for name in names}
    return {"arrayPrimaryKeys": keys, "patch": operations}


ACTOR = "urn:li:corpuser:datahub"
"""DataHub's user for changes that no person makes; DataHub's own connectors use this user, too."""

_OWN_TYPES = frozenset({"COPY", "TRANSFORMED"})  # of edges between tables


def with_stored(proposal: Proposal, aspect: Json) -> Proposal:
    """Give the proposal that keeps what :attr:`Proposal.keeps` names of the stored aspect.

    - Of an aspect that is replaced, the value of the key stays, e.g. the time at which a run began.
    - Of a list that is patched, the entries of others stay, e.g. the edge of a view: only their
      properties are changed. No patch can do this by itself, because the type of an entry is
      required, and an operation on it replaces the type that is stored.

    :param aspect: the stored aspect, as DataHub's server gives it; {} if there is none
    """
    kept = aspect.get(proposal.keeps)
    if isinstance(proposal.aspect, dict) and not proposal.is_patch and isinstance(kept, dict):
        return proposal._replace(aspect={**proposal.aspect, proposal.keeps: kept})
    if isinstance(proposal.aspect, dict) and proposal.is_patch and isinstance(kept, list):
        entries = [entry for entry in kept if isinstance(entry, dict) and not _is_own(entry)]
        others = tuple(
            f"/{proposal.keeps}/{escaped(str(entry.get('dataset')))}/" for entry in entries
        )
        operations = [
            one
            for one in proposal.aspect["patch"]
            if not one["path"].startswith(others) or "/properties/" in one["path"]
        ]
        return proposal._replace(aspect={**proposal.aspect, "patch": operations})
    return proposal


def _is_own(entry: Json) -> bool:
    """Whether this package may have stored an edge between tables."""
    stamps = [entry[key] for key in ("auditStamp", "created") if key in entry]
    actors = {stamp.get("actor") for stamp in stamps if isinstance(stamp, dict)}
    return entry.get("type") in _OWN_TYPES and actors <= {ACTOR}


# The functions below make texts that DataHub can store. Custom properties and descriptions, which
# users read, have no credentials.

MAX_TEXT = 1000
"""The most characters of a custom property, or of a description of a condition."""
MAX_NAME = 200
"""The most characters of a property's name."""


def stored(text: str, limit: int = MAX_TEXT) -> str:
    """Give a text in a form that databases can store.

    A text of more than ``limit`` characters is cut and ends in a checksum, so that the results of
    two different texts differ.
    """
    if not text.isascii() or "\0" in text:  # rare
        # UTF-8 cannot have half of a surrogate pair, and databases refuse NUL in a text.
        text = text.encode(errors="replace").decode().replace("\0", "\N{SYMBOL FOR NULL}")
    if len(text) <= limit:
        return text
    checksum = sha256(text.encode()).hexdigest()[:16]
    return f"{text[: limit - len(checksum) - 1]}…{checksum}"


def plain(text: str, limit: int = MAX_TEXT) -> str:
    """Give a text as :func:`stored` gives it, and without credentials.

    Producers copy SQL, descriptions and addresses as users wrote them, even with passwords.
    """
    return scrub(stored(text, limit))


def shown(values: Mapping[str, Value], keys: Iterable[str] | None = None) -> dict[str, str]:
    """Convert values to texts, by key; leave out empty texts.

    :param keys: the keys that are read; None for all. A key without a value is ignored
    """
    texts = ((key, value_of(values.get(key))) for key in (values if keys is None else keys))
    return {key: text for key, text in texts if text}


def value_of(value: Value) -> str:
    """Convert a value to text without credentials; empty for None.

    The result is also empty for the texts ``[]`` and ``{}``: Airflow's facets have lists as texts.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return number_text(value)
    return "" if value in (None, "[]", "{}") else plain(value)


def number_text(value: float) -> str:
    """Convert a number to text; empty if it has more digits than Python converts."""
    try:
        return stored(str(value))
    except ValueError:
        return ""


def name_of_property(name: str) -> str:
    """Shorten the name of a property that comes from an event to ``MAX_NAME`` characters."""
    return stored(name, MAX_NAME)
