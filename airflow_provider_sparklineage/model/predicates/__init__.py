"""SQL predicates and statements to conditions.

===================  =============================================================
:mod:`.reading`      predicates and statements to conditions
:mod:`.comparisons`  predicates of the simplest form, for which sqlglot is not needed
:mod:`.literals`     the literals in them to values
:mod:`.projections`  what a statement selects that comes from no column
===================  =============================================================
"""

from __future__ import annotations

from airflow_provider_sparklineage.model.predicates.reading import (
    condition,
    parsed,
    static_partition,
    where,
)

__all__ = ["condition", "parsed", "static_partition", "where"]
