"""The OpenLineage JSON Schemas as one validator; they are beside the checkout, not in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from referencing import Registry, Resource

SPEC = Path(__file__).parents[2] / "shared" / "openlineage-spec"
OURS = Path(__file__).parents[1] / "airflow_provider_sparklineage" / "schemas"


def _resources() -> dict[str, dict[str, Any]]:
    documents = {}
    for path in [SPEC / "OpenLineage.json", *sorted((SPEC / "facets").glob("*.json"))]:
        document = json.loads(path.read_text())
        documents[document["$id"]] = document
    return documents


def require_spec() -> None:
    if not SPEC.is_dir():
        pytest.skip("the OpenLineage JSON Schemas are not beside this checkout")


def validate_event(event: dict[str, Any]) -> None:
    """Validate a RunEvent and each of its facets; skips the test where the schemas are absent."""
    require_spec()
    documents = _resources()
    registry: Registry[Any] = Registry().with_resources(
        (uri, Resource.from_contents(document)) for uri, document in documents.items()
    )
    core = next(uri for uri in documents if uri.endswith("/OpenLineage.json"))
    _validate(event, {"$ref": f"{core}#/$defs/RunEvent"}, registry)
    for facet in _facets(event):
        schema_url = facet["_schemaURL"]
        if schema_url.startswith("urn:airflow-provider-sparklineage:"):
            ours = {
                json.loads(p.read_text())["$id"]: json.loads(p.read_text())
                for p in OURS.glob("*.json")
            }
            _validate(facet, ours[schema_url], registry)
            continue
        file = next((u for u in documents if u.endswith(f"/{_file(schema_url)}")), None)
        if file is None:
            continue  # Spark's own facets (catalog extensions) have no schema in the specification
        definition = schema_url.rpartition("/")[2] if "#" in schema_url else None
        reference = f"{file}#/$defs/{definition}" if definition else file
        _validate(facet, {"$ref": reference}, registry)


def _file(schema_url: str) -> str:
    return schema_url.partition("#")[0].rpartition("/")[2]


def _validate(instance: Any, schema: dict[str, Any], registry: Any) -> None:
    validator = jsonschema.Draft202012Validator(
        schema, registry=registry, format_checker=jsonschema.FormatChecker()
    )
    validator.validate(instance)


def _facets(event: dict[str, Any]):
    yield from (event["run"].get("facets") or {}).values()
    yield from (event["job"].get("facets") or {}).values()
    for side, key in (("inputs", "inputFacets"), ("outputs", "outputFacets")):
        for dataset in event.get(side) or ():
            yield from (dataset.get("facets") or {}).values()
            yield from (dataset.get(key) or {}).values()
