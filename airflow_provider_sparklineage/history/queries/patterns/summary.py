"""Relations as they are printed, axis by axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.history.queries.patterns.pattern import RuleOfAxis
from airflow_provider_sparklineage.history.queries.patterns.rules import (
    Constant,
    Months,
    Offsets,
    Rule,
    Span,
)

if TYPE_CHECKING:
    from airflow_provider_sparklineage.history.queries.patterns.axes import Axis
    from airflow_provider_sparklineage.history.queries.patterns.relation import Link, Relation

_VALUES = 20  # of a constant, that are printed


def rules_of(relation: Relation) -> tuple[RuleOfAxis, ...]:
    """Give the rule of each found axis; none for the whole dataset, or where none is known."""
    links = zip(relation.found.axes, relation.links, strict=False)
    return tuple(_rule(relation, axis, link) for axis, link in links)


def _rule(relation: Relation, axis: Axis, link: Link) -> RuleOfAxis:
    says_of = link.rule.kind not in ("constant", "every")
    of = relation.given.axes[link.axis].labels if says_of else ()
    return RuleOfAxis(axis.labels, of, link.rule.kind, axis.unit, **_details(axis, link.rule))


def _details(axis: Axis, rule: Rule) -> dict[str, Any]:
    if isinstance(rule, Span):
        first, last = rule.first, rule.last
        return {
            "first": first.shift,
            "last": last.shift,
            "first_of": first.anchor,
            "last_of": last.anchor,
        }
    if isinstance(rule, Offsets):
        return {"offsets": rule.offsets}
    if isinstance(rule, Months):
        return {"offsets": (rule.months,)}
    if isinstance(rule, Constant):
        values = ("/".join(axis.write(point).values()) for point in rule.points[:_VALUES])
        return {"values": tuple(values)}
    return {}
