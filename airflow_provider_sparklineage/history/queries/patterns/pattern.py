"""The types of a learned pattern as the command prints it, and the confidence of a pattern."""

from __future__ import annotations

from datetime import datetime
from math import sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from airflow_provider_sparklineage.history.queries.answers import Dataset
from airflow_provider_sparklineage.history.queries.patterns.rules import (
    Constant,
    Months,
    Offsets,
    Rule,
    Span,
)

if TYPE_CHECKING:
    from airflow_provider_sparklineage.history.queries.patterns.axes import Axis
    from airflow_provider_sparklineage.history.queries.patterns.rules import Link, Relation


class RuleOfAxis(msgspec.Struct, frozen=True, omit_defaults=True):
    """The rule of one or several dimensions.

    :param labels: the dimensions whose values follow
    :param of: the dimensions from whose values they follow
    :param kind: the kind of the rule, as in the pattern
    :param unit: ``day``, ``month``, …, ``number`` or ``text``
    :param first: of a span: number of units ``first_of`` from the written partition to its
        beginning; without a ``first_of`` it always begins at ``first``, numbered in ``unit``
    :param last: of a span: the same for its end
    :param first_of: the unit of ``first``
    :param last_of: the unit of ``last``
    :param offsets: of an irregular set: its offsets; of a shift by months: the number of months
    :param values: of a constant: its values
    """

    labels: tuple[str, ...]
    of: tuple[str, ...]
    kind: str
    unit: str
    first: int | None = None
    last: int | None = None
    first_of: str = ""
    last_of: str = ""
    offsets: tuple[int, ...] = ()
    values: tuple[str, ...] = ()


class Run(msgspec.Struct, frozen=True):
    """A run, and its state when it ended."""

    run_id: str
    job: str
    ended: datetime | None = None
    state: str = "COMPLETE"


class Deviation(msgspec.Struct, frozen=True):
    """A run that does not follow the pattern.

    :param missing: partitions that the run should have read, up to 20
    :param unexpected: partitions that the run should not have read, up to 20
    """

    run: Run
    missing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()


class Pattern(msgspec.Struct, frozen=True):
    """The rule by which the partitions that a task reads follow from those that it writes.

    :param output: the dataset that the task writes
    :param input: the dataset that the task reads
    :param namespace: OpenLineage's namespace of the task's job
    :param job: the task, ``dag_id.task_id``
    :param kind: ``same``, ``offset``, ``window``, ``offsets``, ``period`` (the month of a day),
        ``parts`` (the days of a month), ``months``, ``span``, ``constant``, ``every``, ``whole`` or
        ``none``
    :param relation: the rule for people, ``dt = dt - 1 day``
    :param rules: the rule of each dimension that is read
    :param support: number of runs that follow the rule
    :param seen: number of runs whose written and read partitions are known
    :param unclear: number of runs whose read partitions are not known: conditions, unknown parts
    :param confidence: the least share of runs for which the rule holds, at 95 % (Wilson's
        interval): 0.2 after one run, 0.9 after 30
    :param exceptions: the runs that do not follow the rule
    """

    output: Dataset
    input: Dataset
    namespace: str
    job: str
    kind: str
    relation: str
    rules: tuple[RuleOfAxis, ...]
    support: int
    seen: int
    unclear: int
    confidence: float
    exceptions: tuple[Deviation, ...] = ()


Deviations = dict[str, tuple[tuple[str, ...], tuple[str, ...]]]
"""The missing and the unexpected cells of runs, by run_id; ``*`` is the whole dataset."""


class Learned(NamedTuple):
    """A relation, with the numbers of runs that follow it and do not.

    :param support: number of runs that follow the relation
    :param seen: number of all runs
    :param exceptions: the runs that do not follow the relation
    """

    relation: Relation
    support: int
    seen: int
    exceptions: Deviations

    @property
    def confidence(self) -> float:
        """The lower end of Wilson's 95 % interval for the share of runs that follow."""
        return least_share(self.support, self.seen)


def least_share(good: int, of: int, z: float = 1.96) -> float:
    """Give the lower end of Wilson's interval for a share; 0 if there are no cases.

    :param good: number of good cases
    :param of: number of all cases
    :param z: quantile of the normal distribution; 1.96 for 95 %
    """
    if not of:
        return 0.0
    share = good / of
    middle = share + z * z / (2 * of)
    spread = z * sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    return round(max(0.0, (middle - spread) / (1 + z * z / of)), 3)


_PRINTED_VALUES = 20  # most values of a constant that are printed


def rules_of(relation: Relation) -> tuple[RuleOfAxis, ...]:
    """Give the rule of each found axis; () for the whole dataset, or if no rule is known."""
    links = zip(relation.found.axes, relation.links, strict=False)
    return tuple(_rule_of_axis(relation, axis, link) for axis, link in links)


def _rule_of_axis(relation: Relation, axis: Axis, link: Link) -> RuleOfAxis:
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
        values = ("/".join(axis.write(point).values()) for point in rule.points[:_PRINTED_VALUES])
        return {"values": tuple(values)}
    return {}
