"""Metadata change proposals (MCPs) as plain JSON: one aspect of one entity each.

The shapes are those of DataHub's Avro schemas in the JSON that its server takes: a value of a union
stands below the name of its record (``{"com.linkedin.schema.NumberType": {}}``), and an unknown
value is absent. Tests show that the SDK reads each aspect as its class, and that it is valid.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sparklineage.datahub.lenient import MAX_TEXT, text
from airflow_provider_sparklineage.model.credentials import scrub

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


Json = dict[str, Any]


class Proposal(NamedTuple):
    """What DataHub is asked to store.

    :param urn: of the entity; its third part is the entity's type
    :param aspect_name: e.g. ``schemaMetadata``
    :param aspect: of the class that the SDK has for that name; of a patch, what
        ``com.linkedin.metadata.aspect.patch.GenericJsonPatch`` has, or the operations of RFC 6902
    :param is_patch: whether the aspect is changed; else all of it is put in the place of what is
        stored
    :param only_if_absent: whether what is stored stays as it is. GMS drops a proposal to create an
        aspect that is there, if it is asked by a header (``CreateIfNotExistsValidator``)
    """

    urn: str
    aspect_name: str
    aspect: Json | list[Json]
    is_patch: bool = False
    only_if_absent: bool = False

    @property
    def entity_type(self) -> str:
        """Give the type of the entity, as the URN has it."""
        return self.urn.split(":", 3)[2]

    @property
    def change_type(self) -> str:
        """Give what is done, in DataHub's word."""
        if self.is_patch:
            return "PATCH"
        return "CREATE" if self.only_if_absent else "UPSERT"

    @property
    def headers(self) -> dict[str, str]:
        """Give the headers of the proposal: they are a part of it, not of a request."""
        return {"If-None-Match": "*"} if self.only_if_absent else {}

    @property
    def content_type(self) -> str:
        """Give the media type of the aspect."""
        return "application/json-patch+json" if self.is_patch else "application/json"

    def document(self) -> Json:
        """Give the proposal as DataHub's files have it: ``datahub ingest`` reads that."""
        aspect: Json = {"json": self.aspect}
        if self.is_patch:
            aspect = {"value": self.text(), "contentType": self.content_type}
        document: Json = {
            "entityType": self.entity_type,
            "entityUrn": self.urn,
            "changeType": self.change_type,
            "aspectName": self.aspect_name,
            "aspect": aspect,
        }
        return document | {"headers": self.headers} if self.headers else document

    def text(self) -> str:
        """Give the aspect as its server takes it."""
        return json.dumps(self.aspect)


# Patches add to an aspect, so that entries that others have written there stay. The server applies
# them to the aspect as it is stored (``AspectTemplateEngine``; of lists it makes maps by the keys
# of their entries), so that the same patch again changes nothing.


def add(*path: str, value: Any) -> Json:
    """Give the operation that adds a value, or puts it in the place of the one that is there.

    :param path: keys from the aspect down, as they are; RFC 6901 writes ``~`` and ``/`` otherwise
    """
    return {"op": "add", "path": f"/{'/'.join(map(escaped, path))}", "value": value}


def remove(*path: str) -> Json:
    """Give the operation that removes a value; nothing happens if it is not there."""
    return {"op": "remove", "path": f"/{'/'.join(map(escaped, path))}"}


def escaped(key: str) -> str:
    """Give a key as a path has it."""
    return key.replace("~", "~0").replace("/", "~1")


def keyed(name: str, keys: Sequence[str], operations: list[Json]) -> Json:
    """Give a patch of a list, whose entries are named by some of their values (GenericJsonPatch).

    :param name: of the list
    :param keys: what names an entry, in the order of the operations' paths
    """
    return {"arrayPrimaryKeys": {name: list(keys)}, "patch": operations}


# Texts for people have no credentials. Custom properties are such texts by name.

MAX_NAME = 200
"""Characters of a property's name."""


def plain(value: Any, limit: int = MAX_TEXT) -> str:
    """Give a text for people: bounded, and without credentials; empty for anything else.

    Producers write SQL, descriptions and addresses as their users did, with passwords.
    """
    return scrub(text(value, limit))


def shown(document: Mapping[str, Any], keys: Iterable[str]) -> dict[str, str]:
    """Give those of an object's texts, numbers and booleans that it has."""
    found = ((key, value_of(document.get(key))) for key in keys)
    return {key: value for key, value in found if value}


def value_of(value: Any) -> str:
    """Write a value without credentials; empty for a list, an object, and what is not there.

    Airflow's facets have lists as texts, so that an empty one is ``[]``.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return number_text(value)
    return "" if value in ("[]", "{}") else plain(value)


def number_text(value: float) -> str:
    """Write a number; empty for one that is longer than Python writes any."""
    try:
        return text(str(value))
    except ValueError:
        return ""


def name_of_property(name: str) -> str:
    """Bound a name that somebody else gives."""
    return text(name, MAX_NAME)
