"""The OpenLineage JSON Schemas as one validator; they are next to the checkout, not in it."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from referencing import Registry, Resource

SPEC = Path(__file__).parents[2] / "shared" / "openlineage-spec"
OURS = Path(__file__).parents[1] / "airflow_provider_sparklineage" / "event" / "schemas"


@cache
def _resources() -> dict[str, dict[str, Any]]:
    documents = {}
    for path in [SPEC / "OpenLineage.json", *sorted((SPEC / "facets").glob("*.json"))]:
        document = json.loads(path.read_text())
        documents[document["$id"]] = document
    return documents


def require_spec() -> None:
    if not SPEC.is_dir():
        pytest.skip("the OpenLineage JSON Schemas are not next to this checkout")


def validate_event(event: dict[str, Any]) -> None:
    """Validate a RunEvent and each of its facets; skips the test where the schemas are absent."""
    require_spec()
    _validator("OpenLineage.json#/$defs/RunEvent").validate(_with_bare_facets(event))
    for facet in _facets(event):
        text = msgspec.json.encode(facet, order="sorted")
        if text in _VALID:
            continue
        _VALID.add(text)  # if it is not, its test has failed by then
        schema_url = facet["_schemaURL"]
        if schema_url.startswith("urn:airflow-provider-sparklineage:"):
            _validator(schema_url).validate(facet)
            continue
        file = schema_url.partition("#")[0].rpartition("/")[2]
        if not any(uri.endswith(f"/{file}") for uri in _resources()):
            continue  # Spark's own facets (catalog extensions) have no schema in the specification
        definition = f"#/$defs/{schema_url.rpartition('/')[2]}" if "#" in schema_url else ""
        _validator(f"{file}{definition}").validate(facet)


_VALID: set[bytes] = set()
"""Facets that were looked at: events of one application under three Sparks have most in common."""


def _with_bare_facets(value: Any, key: str = "") -> Any:
    """Leave of facets what the schema of an event has an opinion on."""
    if key in ("facets", "inputFacets", "outputFacets") and isinstance(value, dict):
        return {
            name: {k: v for k, v in facet.items() if k.startswith("_")}
            for name, facet in value.items()
        }
    if isinstance(value, dict):
        return {k: _with_bare_facets(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [_with_bare_facets(item) for item in value]
    return value


@cache
def _validator(of: str) -> jsonschema.Draft202012Validator:
    """Make the validator of a facet of ours, by its URN, or of a definition in a file."""
    documents = _resources()
    registry: Registry[Any] = Registry().with_resources(
        (uri, Resource.from_contents(document)) for uri, document in documents.items()
    )
    if of.startswith("urn:"):
        ours = (json.loads(path.read_text()) for path in OURS.glob("*.json"))
        schema = next(document for document in ours if document["$id"] == of)
    else:
        file, _, definition = of.partition("#")
        uri = next(uri for uri in documents if uri.endswith(f"/{file}"))
        schema = {"$ref": f"{uri}#{definition}" if definition else uri}
    return jsonschema.Draft202012Validator(
        schema, registry=registry, format_checker=jsonschema.FormatChecker()
    )


def _facets(event: dict[str, Any]):
    yield from (event["run"].get("facets") or {}).values()
    yield from (event["job"].get("facets") or {}).values()
    for side, key in (("inputs", "inputFacets"), ("outputs", "outputFacets")):
        for dataset in event.get(side) or ():
            yield from (dataset.get("facets") or {}).values()
            yield from (dataset.get(key) or {}).values()
