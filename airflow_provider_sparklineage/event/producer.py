"""What this package calls itself in OpenLineage."""

from __future__ import annotations

from functools import cache
from importlib import metadata

DISTRIBUTION = "airflow-provider-sparklineage"
SCHEMA_BASE = f"urn:{DISTRIBUTION}:facet"
"""Where our facets' schemas live; a URN until the project has a public home."""


@cache
def version() -> str:
    """Give this package's version."""
    return metadata.version(DISTRIBUTION)


def producer() -> str:
    """Name the ``producer`` of what this package makes."""
    return f"urn:{DISTRIBUTION}:{version()}"
