"""SQL predicates to conditions, and back.

===================  =============================================================
:mod:`.reading`      predicates and statements to conditions
:mod:`.literals`     the literals in them to values
:mod:`.spelling`     conditions to predicates
===================  =============================================================
"""

from __future__ import annotations

from airflow_provider_sparklineage.model.predicates.reading import (
    condition,
    parsed,
    static_partition,
    where,
)
from airflow_provider_sparklineage.model.predicates.spelling import to_sql

__all__ = ["condition", "parsed", "static_partition", "to_sql", "where"]
