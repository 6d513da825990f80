"""Metadata change proposals (MCPs) as plain JSON: one aspect of one entity each.

The shapes are those of DataHub's Avro schemas in the JSON that its server takes: a value of a union
stands below the name of its record (``{"com.linkedin.schema.NumberType": {}}``), and what is not
known is absent. That the SDK reads each aspect as its class, and that it is valid, is tested.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

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
