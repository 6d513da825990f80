"""Column lineage as data: decoded from the listener's facet, combined, composed and expanded.

An *edge*: one input column influences one output column (``ColumnLineage.fields``) or all
of them (``ColumnLineage.dataset``), each with a list of transformations.

===================  ===========================================================================
:mod:`.edges`        the values, their union, and the forms ``compact`` and ``legacy``
:mod:`.decoding`     every form in which listeners report them, 1.12 to 1.53
:mod:`.plans`        column lineage out of Spark's own plan of a write
:mod:`.reported`     the two for one write: as reported, and corrected by the plan
:mod:`.composition`  A→tmp and tmp→B give A→B, within the memory that there is
===================  ===========================================================================
"""

from __future__ import annotations

from airflow_provider_sparklineage.lineage.columns.composition import (
    ColumnRoom,
    Provenance,
    combine,
    compose,
    sources_of,
    without_sources_in,
)
from airflow_provider_sparklineage.lineage.columns.decoding import (
    decode,
    is_incomplete,
    metadata_columns_removed,
    unsure_identities,
)
from airflow_provider_sparklineage.lineage.columns.edges import (
    DIRECT,
    DIRECT_SUBTYPES,
    INDIRECT,
    INDIRECT_SUBTYPES,
    MAX_LEGACY_EDGES,
    ROW_SUBTYPES,
    Column,
    ColumnLineage,
    Edges,
    Transformation,
    Transformations,
    changed,
    compact,
    each_once,
    expand,
    legacy,
    lists,
    mapped,
    union,
    unite_into,
)

__all__ = [
    "DIRECT",
    "DIRECT_SUBTYPES",
    "INDIRECT",
    "INDIRECT_SUBTYPES",
    "MAX_LEGACY_EDGES",
    "ROW_SUBTYPES",
    "Column",
    "ColumnLineage",
    "ColumnRoom",
    "Edges",
    "Provenance",
    "Transformation",
    "Transformations",
    "changed",
    "combine",
    "compact",
    "compose",
    "decode",
    "each_once",
    "expand",
    "is_incomplete",
    "legacy",
    "lists",
    "mapped",
    "metadata_columns_removed",
    "sources_of",
    "union",
    "unite_into",
    "unsure_identities",
    "without_sources_in",
]
