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

    :param labels: the dimensions that follow
    :param of: the dimensions that they follow from
    :param kind: as that of :class:`Pattern`
    :param unit: ``day``, ``month``, …, ``number`` or ``text``
    :param first: of a span: how many units of ``first_of`` it begins after the given partition;
        without a ``first_of`` it always begins at ``first``, numbered in ``unit``
    :param last: the same of its end
    :param offsets: of an irregular set, or of one offset of months
    :param values: of a constant
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
    """A run, as queries name it."""

    run_id: str
    job: str
    ended: datetime | None = None
    state: str = "COMPLETE"


class Deviation(msgspec.Struct, frozen=True):
    """A run that does not follow.

    :param missing: partitions that it should have, up to 20
    :param unexpected: partitions that it should not have, up to 20
    """

    run: Run
    missing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()


class Pattern(msgspec.Struct, frozen=True):
    """The rule by which the partitions that a task reads follow from those that it writes.

    :param output: the dataset that is written
    :param input: the dataset that is read
    :param job: the task, ``dag_id.task_id``
    :param kind: ``same``, ``offset``, ``window``, ``offsets``, ``period`` (the month of a day),
        ``parts`` (the days of a month), ``months``, ``span``, ``constant``, ``every``, ``whole`` or
        ``none``
    :param relation: the rule for people, ``dt = dt - 1 day``
    :param support: runs that follow
    :param seen: runs that wrote and read partitions
    :param unclear: runs of which it is not known what they read: conditions, unknown parts
    :param confidence: the least share of runs that the rule holds for, at 95 % (Wilson's interval):
        0.2 after one run, 0.9 after 30
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
