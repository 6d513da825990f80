"""Long texts are truncated, once nothing in them is secret: half a secret would not be recognised.

- the deprecated ``transformationDescription`` of a column, of which Marquez has 255 characters
- templates of the partition check, around what a value was made by
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.event.document import COLUMNS_KEY, replaced
from airflow_provider_sparklineage.event.partition_facets import CHECK_KEY
from airflow_provider_sparklineage.model.texts import truncated

if TYPE_CHECKING:
    from airflow_provider_sparklineage.event.document import Event, Facets

MAX_DESCRIPTION = 255
"""Marquez stores the deprecated field in a varchar(255)."""
MAX_TEMPLATE = 500
"""Characters of a template that are kept."""


def shortened(event: Event) -> Event:
    """Truncate the event's long texts."""
    return replaced(
        event,
        outputs=[_output(d) for d in event["outputs"]],
        run_facets=_run_facets(event["run"]["facets"]),
    )


def _output(output: dict[str, Any]) -> dict[str, Any]:
    facet = output["facets"].get(COLUMNS_KEY)
    if facet is None:
        return output
    short = {
        column: field | {"transformationDescription": truncated(text, MAX_DESCRIPTION)}
        for column, field in facet["fields"].items()
        if len(text := field["transformationDescription"]) > MAX_DESCRIPTION
    }
    if not short:
        return output
    facets = output["facets"] | {COLUMNS_KEY: facet | {"fields": facet["fields"] | short}}
    return output | {"facets": facets}


def _run_facets(facets: Facets) -> Facets:
    check = facets.get(CHECK_KEY)
    if check is None:
        return facets
    short = {
        side: [with_short_templates(entry) for entry in check[side]] for side in ("reads", "writes")
    }
    if all(short[side] == check[side] for side in short):
        return facets
    return facets | {CHECK_KEY: check | short}


def with_short_templates(entry: dict[str, Any]) -> dict[str, Any]:
    """Truncate the templates of an entry of the partition check."""
    sources = entry.get("from", ())
    if all(len(source["template"]) <= MAX_TEMPLATE for source in sources):
        return entry
    return entry | {"from": [source | {"template": _excerpt(source)} for source in sources]}


def _excerpt(source: dict[str, Any]) -> str:
    """Leave of a long template what stands around the value's expression, or the value itself."""
    template: str = source["template"]
    if len(template) <= MAX_TEMPLATE:
        return template
    found = (template.find(text) for text in (*source.get("expressions", ()), source["value"]))
    at = next((place for place in found if place >= 0), 0)
    start = max(0, min(at - MAX_TEMPLATE // 2, len(template) - MAX_TEMPLATE))
    end = start + MAX_TEMPLATE
    return f"{'…' if start else ''}{template[start:end]}{'…' if end < len(template) else ''}"
