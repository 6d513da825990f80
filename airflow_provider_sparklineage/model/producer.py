"""The identity of this package in facets and events: its distribution, version and producer."""

from __future__ import annotations

from functools import cache
from importlib import metadata
from typing import Any

DISTRIBUTION = "airflow-provider-sparklineage"
SCHEMA_BASE = f"urn:{DISTRIBUTION}:facet"
"""The base of the URIs of our facets' schemas; it is a URN until the project has a public home."""


@cache
def version() -> str:
    """Give this package's version."""
    return metadata.version(DISTRIBUTION)


def producer() -> str:
    """Give the URN that is the ``producer`` of facets and events of this package."""
    return f"urn:{DISTRIBUTION}:{version()}"


def facet(schema: str, **body: Any) -> dict[str, Any]:
    """Make a facet of this package.

    :param schema: the facet's ``_schemaURL``
    :param body: the facet's other keys; keys with the value None are left out
    """
    return {"_producer": producer(), "_schemaURL": schema, **present(body)}


def present(entry: dict[str, Any]) -> dict[str, Any]:
    """Give an entry of an event without the keys whose value is None; an event has no nulls."""
    return {key: value for key, value in entry.items() if value is not None}
