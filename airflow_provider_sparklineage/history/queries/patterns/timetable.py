"""Airflow's timetable from learned rules, as Python that can be pasted into a DAG.

A run of a DAG that is scheduled on partitioned assets starts when the partitions are there that the
*mapper* of each asset names. Where the rule is a calendar that one of Airflow's mappers says, the
text has that mapper; else it has ``PartitionRule``, whose file the command prints as well.

A partition key has the values of the dimensions, sorted by name and joined by ``|``: the history
does not know the order of a table's columns, in which ``record_asset_partitions=True`` joins them.
A comment at each mapper names the keys, and the format that a producer needs for several values.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from airflow_provider_sparklineage.history.queries.patterns.axes import (
    TEXT,
    Columns,
    Counts,
    Numbers,
    Refined,
    Step,
    Times,
)
from airflow_provider_sparklineage.history.queries.patterns.observed import (
    DATES,
    known_of,
    learned_of,
    writes_of,
)
from airflow_provider_sparklineage.history.queries.patterns.rules import (
    NONE,
    WHOLE,
    Constant,
    Every,
    Months,
    Offsets,
    Span,
)
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.texts import escape_control_characters, some

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from airflow_provider_sparklineage.history.queries.patterns.axes import Axes, Axis
    from airflow_provider_sparklineage.history.queries.patterns.observed import Pattern
    from airflow_provider_sparklineage.history.queries.patterns.rules import Link, Points, Relation
    from airflow_provider_sparklineage.history.queries.sql import Rows


class Unsaid(msgspec.Struct, frozen=True):
    """An input whose rule no mapper of Airflow can say.

    :param input: the dataset, as in the pattern
    :param reason: a sentence that tells why
    """

    input: str
    reason: str


class Timetable(msgspec.Struct, frozen=True):
    """The timetable of a task's DAG.

    :param namespace: OpenLineage's namespace of the task's job
    :param job: the task, ``dag_id.task_id``
    :param code: Python with the timetable; empty if no input has a mapper
    :param needs_plugin: whether the code needs the file of ``PartitionRule``
    :param unsaid: the inputs that the timetable leaves out
    """

    namespace: str
    job: str
    code: str
    needs_plugin: bool
    unsaid: tuple[Unsaid, ...] = ()


class Mapper(NamedTuple):
    """A mapper of an asset, as Python.

    :param code: the expression
    :param most_absent: most partitions that a run of the past did without, although its rule names
        them and earlier and later ones were there
    :param unstarted: canonical texts of partitions that were written although no partition that
        their rule names was there; Airflow starts no run for them
    """

    code: str
    most_absent: int = 0
    unstarted: tuple[str, ...] = ()


class UnsaidError(Exception):
    """Raised when no mapper says a rule; its text is the reason."""


PLUGIN = "PartitionRule"
_MOST_NAMED = 3  # most partitions that a comment names
_MOST_VALUES = 20  # most values of a text that a mapper lists; more are no fixed set
_INDENT = "\n        "  # of a mapper within the timetable
_PARTS = {"day": "hour", "month": "day", "year": "month"}
"""For each period that a window of Airflow has, the unit of the parts that the window gives."""


def timetables(history: Rows, dataset: DatasetName) -> list[Timetable]:
    """Write the timetable for each task that wrote a dataset.

    :param history: an opened store of the history
    """
    writes = writes_of(history, [dataset])
    learned = learned_of(history, writes)[dataset]
    known = known_of(history, {DatasetName(p.input.namespace, p.input.name) for p, _ in learned})
    by_task = defaultdict(list)
    for pattern, of_pattern in learned:
        by_task[pattern.namespace, pattern.job].append((pattern, of_pattern.relation))
    result = []
    for (namespace, job), rules in by_task.items():
        task = [
            w
            for w in writes[dataset].values()
            if (w.task.namespace, w.task.job) == (namespace, job)
        ]
        written = dict.fromkeys(cell for write in task for cell in write.cells or ())
        mappers, unsaid = [], []
        for pattern, relation in rules:
            name = DatasetName(pattern.input.namespace, pattern.input.name)
            try:
                mappers.append((pattern, relation, mapper_of(relation, written, known[name])))
            except UnsaidError as error:
                unsaid.append(Unsaid(str(name), str(error)))
        code = _code(dataset, job, mappers) if mappers else ""
        result.append(Timetable(namespace, job, code, PLUGIN in code, tuple(unsaid)))
    return result


def _code(
    dataset: DatasetName, job: str, mappers: Sequence[tuple[Pattern, Relation, Mapper]]
) -> str:
    names = sorted({word for _, _, mapper in mappers for word in _names(mapper.code)} - {PLUGIN})
    imports = ", ".join(["Asset", "PartitionedAssetTimetable", *names])
    given = next(relation.given for _, relation, _ in mappers)
    lines = [
        _comment(f"The runs of {job} write {_keys(given)} of {dataset}."),
        *_format(given, "If the task records partitions on its outlet, it needs"),
        f"from airflow.sdk import {imports}",
        *(
            [f"from partition_rule import {PLUGIN}"]
            if any(PLUGIN in m.code for *_, m in mappers)
            else []
        ),
        "",
        "schedule = PartitionedAssetTimetable(",
        "    assets=" + " & ".join(_asset(pattern) for pattern, *_ in mappers) + ",",
        "    partition_mapper_config={",
    ]
    for pattern, relation, mapper in mappers:
        runs = f"{pattern.support} of {pattern.seen} runs"
        rule = f"{relation.described()} ({runs}); the keys are {_keys(relation.found)}"
        comments = [_comment(rule), *_format(relation.found, "the asset's producer needs")]
        if mapper.most_absent:
            comments.append(f"# up to {mapper.most_absent} of these partitions never came")
        if mapper.unstarted:
            cells = some(mapper.unstarted, _MOST_NAMED)
            comments.append(_comment(f"no run starts for {cells}: none of their partitions came"))
        lines += [f"        {comment}" for comment in comments]
        lines.append(f"        {_asset(pattern)}: {mapper.code},")
    return "\n".join([*lines, "    },", ")", ""])


def _comment(text: str) -> str:
    """Write a comment in one line, whatever the names of the data have in them."""
    return f"# {escape_control_characters(text)}"


def _names(code: str) -> Iterable[str]:
    """List the classes that an expression calls; none of its texts looks like a call."""
    calls = (node.func for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call))
    return [func.id for func in calls if isinstance(func, ast.Name)]


def _keys(axes: Axes) -> str:
    return "|".join(f"{{{label}}}" for label in sorted(axes.labels))


def _format(axes: Axes, who: str) -> list[str]:
    """Name the format of the keys in a comment, if they have several values."""
    if len(axes.labels) < 2:
        return []
    return [_comment(f"{who} record_asset_partitions={_keys(axes)!r}")]


def _asset(pattern: Pattern) -> str:
    namespace, name = pattern.input.namespace, pattern.input.name
    if "://" not in namespace:  # `file` is such a namespace
        return f"Asset({f'{namespace}://{name}'!r})"
    path = name.lstrip("/")
    return f"Asset({f'{namespace}/{path}'!r})"


# --- the mapper of a relation ---------------------------------------------------------------------


def mapper_of(relation: Relation, written: Collection[str], known: Collection[str]) -> Mapper:
    """Write the mapper of an input as Python.

    :param relation: the rule from the partitions written to those read
    :param written: canonical texts of the partitions that runs wrote
    :param known: canonical texts of all partitions of the input
    :raise UnsaidError: if no mapper can say the rule
    """
    _refuse(relation)
    given = _points(relation.given, written)
    found = _points(relation.found, known)
    steps = [
        Step.of(axis.unit, {at[n] for at in given}) for n, axis in enumerate(relation.given.axes)
    ]
    found_steps = [
        Step.of(axis.unit, {at[n] for at in found}) for n, axis in enumerate(relation.found.axes)
    ]
    absent, without = _absent(relation, given, set(found), found_steps)
    code = "" if absent else _shipped(relation, steps, given)
    code = code or _partition_rule(relation, steps, found_steps, given, absent)
    return Mapper(code, absent, tuple(map(relation.given.write, without)))


def _refuse(relation: Relation) -> None:
    """Refuse relations that no mapper can say.

    :raise UnsaidError: with the reason
    """
    if relation.special == WHOLE or not relation.links:
        if relation.special == NONE:
            msg = "no rule is known by which its partitions follow."
        else:
            msg = "the whole dataset is read, and a mapper waits for partitions that it can name."
        raise UnsaidError(msg)
    if relation.given.labels <= {*DATES, "run"}:
        msg = (
            "its partitions follow from the dates of the run, and a run that assets start has "
            "none; a task that writes partitions has a rule from these."
        )
        raise UnsaidError(msg)
    for axis, link in zip(relation.found.axes, relation.links, strict=True):
        label = "/".join(axis.labels)
        if isinstance(link.rule, Every):
            msg = f"every value of {label} is read, and a mapper must name each that it waits for."
            raise UnsaidError(msg)
        if isinstance(link.rule, Span) and not (link.rule.first.anchor and link.rule.last.anchor):
            msg = (
                f"{relation.described()} has a fixed end, so that a partition is read by runs "
                "without number, and a mapper must name each run."
            )
            raise UnsaidError(msg)


def _points(axes: Axes, cells: Iterable[str]) -> list[Points]:
    return [points for cell in cells if (points := axes.read(cell)) is not None]


def _absent(
    relation: Relation, given: Sequence[Points], found: set[Points], steps: Sequence[Step]
) -> tuple[int, list[Points]]:
    """Count the partitions that a run's rule names and that never came, of the run with most.

    Airflow starts no run of whose partitions none comes, whatever the mapper allows to be missing.

    :return: the number without such runs, and the points of these
    :raise UnsaidError: if a run would wait for nothing were so many allowed to be missing
    """
    absences, without = [], []
    for points, each in _between(relation, given, found, steps):
        size = prod(map(len, each))
        absent = sum(at not in found for at in product(*each))
        if absent < size:
            absences.append((absent, size))
        elif size:
            without.append(points)
    most = max((absent for absent, _ in absences), default=0)
    if most and most >= (least := min(size for _, size in absences)):
        msg = (
            f"up to {most} of the partitions that a run reads by the rule never came, and some "
            f"runs read no more than {least}: a mapper that lets {most} be missing would not wait "
            "for these runs' partitions."
        )
        raise UnsaidError(msg)
    return most, without


def _between(
    relation: Relation, given: Sequence[Points], found: set[Points], steps: Sequence[Step]
) -> Iterable[tuple[Points, list[list[Any]]]]:
    """Give the runs whose partitions all lie between the first and the last that are known.

    Before and after these nothing is known.

    :return: pairs of the points of a run, and the points that it reads on each axis
    """
    if not found:
        return
    ends: list[tuple[Any, Any]] = [  # the points of an axis are all numbers or all texts
        (min(at[n] for at in found), max(at[n] for at in found)) for n in range(len(steps))
    ]
    for points in given:
        each = [
            [at for at in link.rule.following(points[link.axis]) if step.has(at)]
            for link, step in zip(relation.links, steps, strict=True)
        ]
        sides = zip(each, ends, strict=True)
        if all(low <= at <= high for side, (low, high) in sides for at in side):
            yield points, each


# --- mappers of Airflow ---------------------------------------------------------------------------


def _shipped(relation: Relation, steps: Sequence[Step], given: Sequence[Points]) -> str:
    """Write the rule with mappers of Airflow; "" if these do not say it."""
    if same := _same(relation):
        return same
    if len(relation.links) != 1 or len(relation.given.axes) != 1:
        return ""
    (axis,), (to,), (link,) = relation.given.axes, relation.found.axes, relation.links
    if isinstance(link.rule, Constant):
        return _fixed(axis, to, link.rule, given)
    is_plain = isinstance(axis, Times) and isinstance(to, Times)
    if not is_plain or not isinstance(link.rule, Span) or "%G" in axis.form + to.form:  # type: ignore[attr-defined]
        return ""
    return _calendar(axis, to, link.rule, steps[0])  # type: ignore[arg-type]


def _same(relation: Relation) -> str:
    """Write a rule by which each run reads the one partition that has the same points."""
    ways = []
    for n, (axis, link) in enumerate(zip(relation.found.axes, relation.links, strict=True)):
        of = relation.given.axes[link.axis]
        if link.rule.kind != "same" or link.axis != n or len(axis.labels) > 1 or len(of.labels) > 1:
            return ""
        is_alike = (axis.unit, *_written(axis)) == (of.unit, *_written(of))
        way = "IdentityMapper()" if is_alike else _reformatted(axis, of)
        if not way:
            return ""
        ways.append(
            (
                sorted(relation.found.labels).index(axis.labels[0]),
                sorted(relation.given.labels).index(of.labels[0]),
                way,
            )
        )
    if len(ways) != len(relation.given.axes) or any(place != to for place, to, _ in ways):
        return ""
    each = [way for _, _, way in sorted(ways)]
    if all(way == "IdentityMapper()" for way in each):
        return each[0]
    return each[0] if len(each) == 1 else f"ProductMapper({', '.join(each)})"


def _reformatted(axis: Axis, of: Axis) -> str:
    if axis.unit not in ("hour", "day", "month", "year"):
        return ""
    if type(axis) is not Times or type(of) is not Times:
        return ""
    return _start_of(axis.unit, axis.form, of.form)


def _start_of(unit: str, form: str, output: str) -> str:
    return f"StartOf{unit.title()}Mapper(input_format={form!r}, output_format={output!r})"


def _fixed(axis: Axis, to: Axis, rule: Constant, given: Sequence[Points]) -> str:
    if axis.unit != TEXT or to.unit != TEXT or len({at[0] for at in given}) != 1:
        return ""
    upstream = f"FixedKeyMapper({given[0][0]!r})"
    return (
        f"RollupMapper(upstream_mapper={upstream}, window=SegmentWindow({sorted(rule.points)!r}))"
    )


def _calendar(axis: Times, to: Times, rule: Span, step: Step) -> str:
    """Write a rule by which a day, week, month or year is all of its parts, or is part of one."""
    bounds = (rule.first.anchor, rule.first.shift, rule.last.anchor, rule.last.shift)
    period = ""
    if rule.kind == "parts" and bounds[1::2] == (0, 0) and step.size in (0, 1):
        period = axis.unit
    elif axis.unit == to.unit == "day" and (step.calendar, step.size) == ("month", 1):
        period = "month" if bounds == ("month", 0, "month", 0) else ""
    elif axis.unit == to.unit == "day" and (step.size, step.origin) == (7, 0):  # Mondays
        period = "week" if bounds in (("day", 0, "day", 6), ("week", 0, "week", 0)) else ""
    if period and (period == "week" or _PARTS.get(period) == to.unit):
        upstream = _start_of(period, to.form, axis.form)
        return f"RollupMapper(upstream_mapper={upstream}, window={period.title()}Window())"
    is_each = step.size in (0, 1) and step.calendar == axis.unit
    if (
        rule.kind == "period"
        and bounds[1::2] == (0, 0)
        and is_each
        and _PARTS.get(to.unit) == axis.unit
    ):
        return (
            f"FanOutMapper(upstream_mapper={_start_of(to.unit, to.form, to.form)}, "
            f"window={to.unit.title()}Window(), "
            f"downstream_mapper={_start_of(axis.unit, axis.form, axis.form)})"
        )
    return ""


# --- the mapper of our own file -------------------------------------------------------------------


def _partition_rule(
    relation: Relation,
    steps: Sequence[Step],
    found_steps: Sequence[Step],
    given: Sequence[Points],
    absent: int,
) -> str:
    links = [link for link in relation.links if not isinstance(link.rule, Constant)]
    downstream = []
    for n, (axis, step) in enumerate(zip(relation.given.axes, steps, strict=True)):
        more = _step(step)
        if all(link.axis != n for link in links):
            more = {"values": _few(relation, axis, {at[n] for at in given})}
        downstream.append(_axis(relation.given, n, more))
    upstream = [
        _axis(relation.found, n, _rule(relation, link, n, _step(step)))
        for n, (link, step) in enumerate(zip(relation.links, found_steps, strict=True))
    ]
    arguments = [f"downstream={downstream!r}", f"upstream={upstream!r}"]
    arguments += [f"wait_policy=MinimumCount({-absent})"] if absent else []
    return f"{PLUGIN}({''.join(f'{_INDENT}    {one},' for one in arguments)}{_INDENT})"


def _few(relation: Relation, axis: Axis, points: Collection[Any]) -> list[str]:
    if len(points) > _MOST_VALUES:
        msg = (
            f"its partitions do not follow from {'/'.join(axis.labels)} ({relation.described()}), "
            "so that each is read by runs without number, and a mapper must name each run."
        )
        raise UnsaidError(msg)
    return sorted(_text(axis, point) for point in points)


def _text(axis: Axis, point: Any) -> str:
    return "|".join(axis.write(point)[label] for label in axis.labels)


def _axis(axes: Axes, n: int, more: dict[str, Any]) -> dict[str, Any]:
    axis = axes.axes[n]
    result: dict[str, Any] = {"unit": axis.unit}
    if any(_written(axis)):
        result["format"] = _written(axis)[0]
    order = sorted(axes.labels)
    places = [order.index(label) for label in axis.labels]
    if places != [n]:
        result["at"] = places
    return result | more


def _written(axis: Axis) -> tuple[str | int]:
    """Give the format of an axis as ``PartitionRule`` reads it; 0 or "" if it has none."""
    if isinstance(axis, Counts):
        return ("epoch",)
    if isinstance(axis, Numbers):
        return (axis.width,)
    if isinstance(axis, Columns):
        letters = zip("YmdH", axis.widths, strict=False)
        return (
            "|".join(
                f"%{letter}" if letter == "Y" or width > 1 else f"%-{letter}"
                for letter, width in letters
            ),
        )
    if isinstance(axis, Refined):
        letter = "H" if axis.unit == "hour" else "d"
        return (f"{axis.form}|%{letter}" if axis.width > 1 else f"{axis.form}|%-{letter}",)
    return (axis.form if isinstance(axis, Times) else "",)


def _step(step: Step) -> dict[str, Any]:
    if not step.size or (step.size == 1 and step.calendar == step.unit):
        return {}
    return {"step": [step.size, step.calendar, step.origin]}


def _rule(relation: Relation, link: Link, n: int, step: dict[str, Any]) -> dict[str, Any]:
    rule, of = link.rule, ({"of": link.axis} if link.axis else {})
    axis = relation.found.axes[n]
    if isinstance(rule, Constant):
        return {"values": [_text(axis, point) for point in rule.points]}
    if isinstance(rule, Months):
        return {**of, **step, "months": rule.months}
    if isinstance(rule, Offsets):
        return {
            **of,
            **step,
            "spans": [[[rule.found, at], [rule.found, at]] for at in rule.offsets],
        }
    if isinstance(rule, Span):
        first, last = rule.first, rule.last
        return {**of, **step, "spans": [[[first.anchor, first.shift], [last.anchor, last.shift]]]}
    return of
