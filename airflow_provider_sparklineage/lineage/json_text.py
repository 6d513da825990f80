"""Parts of an event as one JSON text: a cheap look at all of it, before a thorough one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from airflow_provider_sparklineage.lineage.parts import OpenLineageParts


def json_text(said: OpenLineageParts) -> bytes:
    """Write the parts in UTF-8, without spaces; fields that are None are null.

    What begins with an underscore in a facet of OpenLineage's client is not in it: ``_producer``
    and ``_schemaURL``.
    """
    return msgspec.json.encode((said.inputs, said.outputs, said.run_facets, said.job_facets))
