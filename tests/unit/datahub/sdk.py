"""DataHub's own SDK as the judge of what is converted: its classes, its Avro schemas, its files."""

from __future__ import annotations

import json
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus

import pytest

from airflow_provider_sparklineage.datahub.naming import MAX_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_sparklineage.datahub.proposals import Proposal

REASON = "acryl-datahub is not in this environment: it comes with the extra [datahub]"


def require_sdk() -> None:
    pytest.importorskip("datahub.metadata", reason=REASON)


@cache
def load() -> None:
    """Load the classes and Avro schemas, which takes seconds: no request should wait for it."""
    require_sdk()
    assert aspect_class("status").from_obj({"removed": False}).validate()


def checked(proposals: Iterable[Proposal]) -> list[Proposal]:
    """Give proposals that the SDK takes, each the same after its classes and its file have had it.

    An aspect is read as its class, judged by the Avro schema and written again, and must be what it
    was: so no key of it was ignored. A patch has to be one of an aspect that the SDK knows.
    """
    require_sdk()
    given = list(proposals)
    for one in given:
        _check_urn(one.urn)
        _check_urns(one.aspect)
        assert json.loads(one.text()) == one.aspect, "what is no JSON"
        if one.is_patch:
            _check_patch(one)
        else:
            _check_aspect(one)
    _check_file(given)
    return given


def check_sent(document: dict[str, Any]) -> None:
    """Judge a proposal as it stands in a request: its aspect is text, a patch or one of its class.

    :raise Exception: if it is none
    """
    require_sdk()
    from airflow_provider_sparklineage.datahub.proposals import Proposal

    aspect = document["aspect"]
    assert aspect["value"].isascii(), "GMS takes a character for a byte"
    one = Proposal(
        document["entityUrn"],
        document["aspectName"],
        json.loads(aspect["value"]),
        is_patch=document["changeType"] == "PATCH",
        only_if_absent=document["changeType"] == "CREATE",
    )
    assert (one.entity_type, one.change_type) == (document["entityType"], document["changeType"])
    assert one.headers == document.get("headers", {})
    assert one.content_type == aspect["contentType"]
    _check_urn(one.urn)
    (_check_patch if one.is_patch else _check_aspect)(one)


def is_aspect(name: str) -> bool:
    require_sdk()
    from datahub.metadata.schema_classes import ASPECT_NAME_MAP

    return name in ASPECT_NAME_MAP


def aspect_class(name: str) -> Any:
    from datahub.metadata.schema_classes import ASPECT_NAME_MAP

    return ASPECT_NAME_MAP[name]


def _check_urn(text: str) -> None:
    from datahub.utilities.urns.urn import Urn, guess_entity_type

    urn = Urn.from_string(text)
    assert urn.urn() == text
    assert guess_entity_type(text) == urn.entity_type
    # What the server refuses, in whichever place of an aspect: `UrnValidationUtil`.
    assert text == text.strip()
    assert "␟" not in text
    encoded = quote_plus(text, safe="*").replace("~", "%7E")
    assert len(encoded) <= MAX_BYTES or urn.entity_type == "schemaField", f"too long: {text}"


_TEXTS = frozenset(
    (
        "description",
        "fieldPath",
        "messageId",
        "label",
        "name",
        "nativeDataType",
        "qualifiedName",
        "schemaName",
        "value",
    )
)
"""Keys whose texts may begin as URNs do; ``value`` is that of a property."""


def _check_urns(value: Any) -> None:
    """Judge all URNs in an aspect, or in the operations of a patch."""
    if isinstance(value, dict):
        texts = {key for key, one in value.items() if key in _TEXTS and isinstance(one, str)}
        value = [one for key, one in value.items() if key not in texts | {"customProperties"}]
    if isinstance(value, list):
        for one in value:
            _check_urns(one)
    elif isinstance(value, str) and value.startswith("urn:li:"):
        _check_urn(value)


def _check_aspect(one: Proposal) -> None:
    from datahub.emitter.serialization_helper import post_json_transform, pre_json_transform

    aspect = aspect_class(one.aspect_name).from_obj(post_json_transform(one.aspect))
    assert aspect.validate(), f"{one.aspect_name} of {one.urn} is against its schema"
    if one.aspect_name == "schemaMetadata":
        paths = [field.fieldPath for field in aspect.fields]
        assert all(paths), "GMS refuses a field without a path (FieldPathValidator)"
        assert len(set(paths)) == len(paths), "GMS refuses two fields of one path"
    again = json.loads(json.dumps(pre_json_transform(aspect.to_obj())))
    assert _without_nulls(again) == _without_nulls(_defaulted(one.aspect, again)), one


def _check_patch(one: Proposal) -> None:
    aspect_class(one.aspect_name)
    operations = one.aspect["patch"] if isinstance(one.aspect, dict) else one.aspect
    assert operations
    for operation in operations:
        assert operation["op"] in ("add", "remove")
        assert operation["path"].startswith("/")


def _check_file(proposals: list[Proposal]) -> None:
    """Read the proposals from a file as `datahub ingest` does, and write them by its sink."""
    from datahub.ingestion.sink.file import write_metadata_file
    from datahub.ingestion.source.file import read_metadata_file

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "proposals.json")
        file.write_text(json.dumps([one.document() for one in proposals]))
        found = list(read_metadata_file(file))
        assert len(found) == len(proposals)
        assert [mcp.headers or {} for mcp in found] == [one.headers for one in proposals]
        write_metadata_file(file, found)
        again = list(read_metadata_file(file))
    assert [(mcp.entityUrn, mcp.aspectName, mcp.changeType) for mcp in again] == [
        (one.urn, one.aspect_name, one.change_type) for one in proposals
    ]


def _defaulted(given: Any, full: Any) -> Any:
    """Give what was given with what the SDK adds where nothing was: defaults of the schema."""
    if isinstance(given, dict) and isinstance(full, dict):
        merged = {key: _defaulted(value, full.get(key)) for key, value in given.items()}
        return {key: value for key, value in full.items() if key not in given} | merged
    if isinstance(given, list) and isinstance(full, list) and len(given) == len(full):
        return [_defaulted(a, b) for a, b in zip(given, full, strict=True)]
    return given


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(one) for key, one in value.items() if one is not None}
    if isinstance(value, list):
        return [_without_nulls(one) for one in value]
    return value
