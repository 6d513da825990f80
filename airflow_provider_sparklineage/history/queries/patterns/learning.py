"""Learning: the rule that observed pairs of partitions follow, of what happened alone.

A rule is judged by the runs: one *follows* if it found what is expected, of what was there. What
nobody had written when the run began is not missing, so the first days of a window follow it too;
they count a little less, because a wider window would explain them as well.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.history.queries.patterns.axes import Axes
from airflow_provider_sparklineage.history.queries.patterns.candidates import candidates
from airflow_provider_sparklineage.history.queries.patterns.deciding import axes_of, counted
from airflow_provider_sparklineage.history.queries.patterns.judging import (
    SHOWN,
    Known,
    Observed,
    Pair,
    deviation,
    judged,
)
from airflow_provider_sparklineage.history.queries.patterns.pattern import Deviations, Learned
from airflow_provider_sparklineage.history.queries.patterns.relation import (
    NONE,
    WHOLE,
    Link,
    Points,
    Relation,
)
from airflow_provider_sparklineage.history.queries.patterns.rules import Every, Rule, Span
from airflow_provider_sparklineage.history.queries.patterns.units import NUMBER, TEXT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from airflow_provider_sparklineage.history.queries.patterns.axes import Axis

_TRIED = 50_000  # points, found by the runs that candidates are tried on
_RUNS = (10, 300)  # fewest and most of these runs


def learn(pairs: Sequence[Pair], known: Mapping[str, datetime] | None = None) -> Learned:
    """Find the relation that most of the pairs follow.

    :param known: cells of the found side, and since when they are there; what a pair found is
        known since then too
    """
    parts = [pair for pair in pairs if pair.found is not None]
    given = axes_of(dict.fromkeys(cell for pair in pairs for cell in pair.given))
    if len(parts) * 2 < len(pairs):
        return _whole(given, pairs)
    found = axes_of(dict.fromkeys(cell for pair in parts for cell in pair.found or ()))
    best = _learned(given, found, parts, known or {})
    for variant in _variants(best, parts):
        other = _learned(*variant, parts, known or {})
        best = max(best, other, key=lambda one: (_explained(one), one.support))
    whole: Deviations = {pair.run_id: ((), ("*",)) for pair in pairs if pair.found is None}
    return Learned(best.relation, best.support, len(pairs), best.exceptions | whole)


def _whole(given: Axes, pairs: Sequence[Pair]) -> Learned:
    relation = Relation(given, Axes(frozenset(), ()), special=WHOLE)
    others: Deviations = {
        p.run_id: ((), tuple(islice(p.found, SHOWN))) for p in pairs if p.found is not None
    }
    return Learned(relation, len(pairs) - len(others), len(pairs), others)


def _explained(learned: Learned) -> int:
    """Count the axes that follow from another one."""
    rules = [link.rule for link in learned.relation.links]
    return sum(rule.kind not in ("every", "constant") for rule in rules)


def _variants(learned: Learned, pairs: Sequence[Pair]) -> Iterator[tuple[Axes, Axes]]:
    """Give the axes with numbers taken for counts from 1970 on, if nothing else explains them."""
    given, found = learned.relation.given, learned.relation.found
    if _explained(learned) == len(found.axes):
        return
    for n, axis in enumerate(found.axes):
        for other in _counted(found, n, axis, (cell for p in pairs for cell in p.found or ())):
            yield given, other
    for n, axis in enumerate(given.axes):
        for other in _counted(given, n, axis, (cell for p in pairs for cell in p.given)):
            yield other, found


def _counted(axes: Axes, n: int, axis: Axis, cells: Iterable[str]) -> Iterator[Axes]:
    if axis.unit != NUMBER:
        return
    points = (axes.read(cell) for cell in islice(cells, 1_000))
    values = [int(point[n]) for point in points if point is not None]
    for other in counted(axis, values):
        yield Axes(axes.labels, (*axes.axes[:n], other, *axes.axes[n + 1 :]))


def _learned(
    given: Axes, found: Axes, pairs: Sequence[Pair], known: Mapping[str, datetime]
) -> Learned:
    runs = _runs(given, found, pairs)
    since = _since(found, runs, known)
    sample = _sample(runs)
    links = tuple(_best(n, given, found, sample, since) for n in range(len(found.axes)))
    relation = Relation(given, found, links)
    there = Known(since, relation.kept)
    follow = {run.pair.run_id for run in runs if judged(relation, run, there)}
    if len(follow) * 2 <= len(pairs):
        return Learned(Relation(given, found, special=NONE), 0, len(pairs), {})
    read = {run.pair.run_id: run for run in runs}
    exceptions = {
        pair.run_id: deviation(relation, read.get(pair.run_id), pair, there)
        for pair in pairs
        if pair.run_id not in follow
    }
    return Learned(relation, len(follow), len(pairs), exceptions)


def _runs(given: Axes, found: Axes, pairs: Iterable[Pair]) -> list[Observed]:
    """Read the cells of each run; runs with none that are on the axes are left out."""
    points: dict[tuple[bool, str], Points | None] = {}

    def read(axes: Axes, cells: Iterable[str]) -> Iterator[Points]:
        for cell in cells:
            key = (axes is given, cell)
            if key not in points:
                points[key] = axes.read(cell)
            if (one := points[key]) is not None:
                yield one

    each = (
        Observed(pair, list(read(given, pair.given)), set(read(found, pair.found or ())))
        for pair in pairs
    )
    return [run for run in each if run.given and run.found]


def _since(
    found: Axes, runs: Iterable[Observed], known: Mapping[str, datetime]
) -> dict[Points, datetime | None]:
    since: dict[Points, datetime | None] = {}
    for cell, at in known.items():
        points = found.read(cell)
        if points is not None:
            since[points] = at
    for run in runs:
        for points in run.found:
            before = since.get(points, run.pair.at)
            since[points] = min(before, run.pair.at) if before and run.pair.at else None
    return since


def _sample(runs: list[Observed]) -> list[Observed]:
    """Take runs from all over, as many as have not too many points."""
    size = sum(len(run.found) + len(run.given) for run in runs) / max(1, len(runs))
    count = min(_RUNS[1], max(_RUNS[0], int(_TRIED / max(1, size))))
    step = max(1, -(-len(runs) // count))
    return runs[::step]


def _best(
    n: int,
    given: Axes,
    found: Axes,
    runs: Sequence[Observed],
    since: Mapping[Points, datetime | None],
) -> Link:
    """Choose the rule of one found axis: what most follow, and of several the simplest."""
    one = Axes(frozenset(), (found.axes[n],))
    alone = [run._replace(found={(points[n],) for points in run.found}) for run in runs]
    there = Known(_earliest(n, since), (0,))
    best: tuple[tuple[float, ...], Link] | None = None
    for axis, other in enumerate(given.axes):
        points = [({p[axis] for p in run.given}, {p[0] for p in run.found}) for run in alone]
        for rule in candidates(other, found.axes[n], points):
            link = Link(axis, rule)
            relation = Relation(given, one, (link,))
            marks = [judged(relation, run, there) for run in alone]
            if sum(map(bool, marks)) * 2 <= len(marks):
                continue
            key = (-sum(marks), rule.order, other.labels != one.axes[0].labels, *_size(rule))
            best = min(best or (key, link), (key, link), key=lambda pair: pair[0])
    return best[1] if best else Link(0, Every(TEXT, found.axes[n].unit))


def _earliest(n: int, since: Mapping[Points, datetime | None]) -> dict[Points, datetime | None]:
    first: dict[Points, datetime | None] = {}
    for points, at in since.items():
        key = (points[n],)
        before = first.get(key, at)
        first[key] = min(before, at) if before and at else None
    return first


def _size(rule: Rule) -> tuple[int, int]:
    """Give how wide a span is, and how far away: of two that explain the same, the least."""
    if not isinstance(rule, Span):
        return 0, 0
    return rule.last.shift - rule.first.shift, abs(rule.last.shift)
