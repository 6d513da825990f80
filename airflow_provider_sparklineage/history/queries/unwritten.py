"""Partitions that were never written, and that are made from partitions which are written again.

If a partition was never written, no run has read other data for it, and so no link leads to it. Two
learned rules together find it. The pattern of a task tells which output partitions are made from a
partition that the task reads. :mod:`.gaps` tells which partitions are due and not there, and which
DAG run should have written each. An output partition that is due is in the plan.

Both rules are learned from the runs since a year before the partition, because in a history of many
years learning takes long, and a task that runs again follows the rule of its later runs.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.history import bounds
from airflow_provider_sparklineage.history.queries import answers, sql
from airflow_provider_sparklineage.history.queries.gaps import Gap, completeness_of
from airflow_provider_sparklineage.history.queries.patterns.axes import UNITS, axes_of
from airflow_provider_sparklineage.history.queries.patterns.inverse import InverseRelation
from airflow_provider_sparklineage.history.queries.patterns.observed import (
    Writes,
    known_of,
    learned_of,
)
from airflow_provider_sparklineage.history.queries.recorded import Recorded
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.timestamps import start_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


class Part(NamedTuple):
    """A partition of a dataset.

    :param cell: canonical text of the partition: ``dt=2024-10-15/region=eu``
    """

    dataset: DatasetName
    cell: str


class Unwritten(NamedTuple):
    """A partition that is due and not there.

    :param output: the partition
    :param gap: the same partition, with the task that should have written it
    :param follows: the partition from which this one is made; None if no partition leads to it
    :param wave: the number of the wave (the group of task instances that are cleared together) in
        which it can be written, as in :class:`~.answers.Step`
    """

    output: Part
    gap: Gap
    follows: Part | None
    wave: int


class Found(NamedTuple):
    """The answer of :func:`unwritten`.

    :param left_out: datasets that were not looked at, as the time of the question was nearly over
    """

    unwritten: list[Unwritten]
    left_out: list[DatasetName]


def unwritten(history: sql.Rows, parts: Mapping[Part, int], since: datetime | None) -> Found:
    """Find the missing partitions that can be made from some partitions, also in several steps.

    In the next step, the partitions that were found count as partitions from which others can be
    made.

    :param history: an opened store of the history
    :param parts: the partitions at the beginning, each with the number of the first wave (the group
        of task instances that are cleared together) that can read it
    :param since: time from which on runs count, see :func:`since_of`; None for all
    """
    outputs = _Outputs(history, since)
    planned: dict[Part, Unwritten] = {}
    waiting = dict(parts)
    last = max(parts.values(), default=0)
    while waiting:
        outputs.look({part.dataset for part in waiting})
        new: dict[Part, int] = {}
        open_gaps: dict[DatasetName, set[str]] = {}
        # The latest wave decides. So it comes first, and a partition that it leads to is not looked
        # for again: many parts may lead to the same partitions.
        for part, wave in sorted(waiting.items(), key=itemgetter(1), reverse=True):
            bounds.check()
            for name, due in outputs.due_of(part.dataset):
                remaining = open_gaps.setdefault(name, {gap.cell for gap in due})
                for gap in outputs.following(name, part) if remaining else ():
                    if gap.cell not in remaining:
                        continue
                    remaining.discard(gap.cell)
                    output = Part(name, gap.cell)
                    before = planned.get(output)
                    if before is None or before.wave < wave <= last + len(planned):
                        planned[output] = Unwritten(output, gap, part, wave)
                        new[output] = wave + 1
        waiting = new
    return Found(list(planned.values()), outputs.left_out)


_BEFORE = timedelta(days=400)  # more than a year, so that yearly dates are among them
_FIRST_WRITTEN = """
SELECT min(valid_from) AS at FROM changes
WHERE namespace = $namespace AND name = $name AND cell = $cell
"""


def since_of(history: sql.Rows, part: Part, starts: Iterable[datetime | None]) -> datetime | None:
    """Give the time from which on runs count for what was never made of a partition.

    It is 400 days before the first write, the first read and the partition's own date.

    :param history: an opened store of the history
    :param starts: the starts of the runs that read the partition
    :return: None if that is before the year 1, or if nothing is known
    """
    parameters = {**part.dataset._asdict(), "cell": part.cell}
    written = [row["at"] for row in history.rows(_FIRST_WRITTEN, parameters)]
    known = [at for at in (*written, *starts, *_dates_of(part.cell)) if at is not None]
    try:
        return min(known) - _BEFORE if known else None
    except OverflowError:
        return None


def _dates_of(cell: str) -> Iterator[datetime]:
    axes = axes_of([cell])
    points = axes.read(cell) or ()
    for axis, point in zip(axes.axes, points, strict=True) if points else ():
        if axis.unit in UNITS:
            yield start_of(axis.unit, int(point))


# Without the changes before the time from which on runs count, a partition may look missing.
_THERE = f"""
WITH f AS ({sql.table_of(*sql.DATASET, "cell")})
SELECT DISTINCT c.namespace, c.name, c.cell FROM changes AS c
JOIN f ON f.namespace = c.namespace AND f.name = c.name AND f.cell = c.cell
WHERE c.valid_to IS NULL AND c.mode NOT IN ('drop', 'truncate')
"""
_OUTPUTS = """
WITH f AS ({datasets}), readers AS (
    SELECT DISTINCT b.namespace, b.name, b.reader_run_id FROM bindings AS b
    JOIN f ON f.namespace = b.namespace AND f.name = b.name WHERE {read}
)
SELECT DISTINCT r.namespace, r.name, c.namespace AS out_namespace, c.name AS out_name
FROM readers AS r JOIN changes_by_run AS c ON c.run_id = r.reader_run_id
WHERE NOT (c.namespace = r.namespace AND c.name = r.name) AND {written}
ORDER BY ALL
"""
_AT_ONCE = 50  # datasets that one query is about; then it is seen whether there is time for more
_TO_BE_LEFT = 0.5  # share of the time at the beginning


class _Outputs:
    """The datasets made from others: their missing partitions, and the rules that lead to these.

    :param since: time from which on runs count; None for all
    """

    def __init__(self, history: sql.Rows, since: datetime | None) -> None:
        self._history, self._since = history, since
        self._made_of: dict[DatasetName, list[DatasetName]] = {}
        self._due: dict[DatasetName, list[Gap]] = {}
        self._writes: dict[DatasetName, Mapping[str, Writes]] = {}
        self._known: dict[DatasetName, Mapping[str, datetime]] = {}
        self._rules: dict[tuple[DatasetName, DatasetName], list[tuple[InverseRelation, list[Gap]]]]
        self._rules = defaultdict(list)
        self.left_out: list[DatasetName] = []
        self._is_late = bounds.late_at(_TO_BE_LEFT)

    def due_of(self, source: DatasetName) -> Iterator[tuple[DatasetName, list[Gap]]]:
        """Yield the datasets made of ``source`` with the missing partitions of each."""
        return ((name, due) for name in self._made_of[source] if (due := self._due.get(name)))

    def following(self, output: DatasetName, part: Part) -> Iterator[Gap]:
        """Yield the missing partitions of ``output`` that would be made from ``part``.

        The learned pattern of a task tells which partitions it makes from those that it reads.
        """
        for inverse, due in self._rules[output, part.dataset]:
            yield from (due[number] for number in inverse.leading_to(part.cell))

    def look(self, sources: Iterable[DatasetName]) -> None:
        """Find what is made of further datasets, what of it is missing, and by which rules."""
        new = sorted(set(sources) - self._made_of.keys())
        if not new:
            return
        self._made_of |= {name: [] for name in new}
        query = _OUTPUTS.format(
            datasets=sql.table_of(*sql.DATASET),
            read=sql.since("b.read_at", self._since),
            written=sql.since("c.valid_from", self._since),
        )
        for row in self._history.rows(query, sql.lists(sql.DATASET, new)):
            output = DatasetName(row["out_namespace"], row["out_name"])
            self._made_of[DatasetName(row["namespace"], row["name"])].append(output)
        outputs = dict.fromkeys(output for name in new for output in self._made_of[name])
        unknown = [one for one in outputs if one not in self._due]
        for begin in range(0, len(unknown), _AT_ONCE):
            self._find_due(unknown[begin : begin + _AT_ONCE])
        self._learn([one for one in outputs if self._due.get(one)], {*new})

    def _find_due(self, outputs: list[DatasetName]) -> None:
        if self._is_late():
            self.left_out += outputs
            return
        recorded = Recorded(self._history, outputs, self._since)
        due = {}
        for name in outputs:
            if self._is_late():
                self.left_out.append(name)
                continue
            gaps = completeness_of(recorded.of(name)).gaps
            due[name] = [gap for gap in gaps if gap.is_planned]
        if self._since is not None:
            due = self._without_those_there(due)
        self._due |= due
        missing = [name for name, gaps in due.items() if gaps]
        self._writes |= {name: recorded.writes[name] for name in missing}
        self._known |= known_of(self._history, missing, self._since)

    def _without_those_there(
        self, due: Mapping[DatasetName, list[Gap]]
    ) -> dict[DatasetName, list[Gap]]:
        parts = [(*name, gap.cell) for name, gaps in due.items() for gap in gaps]
        rows = self._history.rows(_THERE, sql.lists((*sql.DATASET, "cell"), parts)) if parts else ()
        there = {(row["namespace"], row["name"], row["cell"]) for row in rows}
        return {
            name: [gap for gap in gaps if (*name, gap.cell) not in there]
            for name, gaps in due.items()
        }

    def _learn(self, outputs: list[DatasetName], sources: set[DatasetName]) -> None:
        for begin in range(0, len(outputs), _AT_ONCE):
            some = outputs[begin : begin + _AT_ONCE]
            if self._is_late():
                self.left_out += some
                continue
            writes = {name: self._writes[name] for name in some}
            for name, learned in learned_of(self._history, writes, sources, self._since).items():
                for pattern, one in learned:
                    task = (pattern.namespace, pattern.job)
                    due = [gap for gap in self._due[name] if (gap.namespace, gap.job) == task]
                    values = [answers.values_of(gap.cell) or {} for gap in due]
                    inverse = InverseRelation(one.relation, values, self._known[name])
                    source = DatasetName(pattern.input.namespace, pattern.input.name)
                    self._rules[name, source].append((inverse, due))
