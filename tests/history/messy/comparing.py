"""The engine's answers about a messy world against the oracle's."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sparklineage.history.queries.impact import impact
from airflow_provider_sparklineage.history.queries.stale import plan_of, stale
from airflow_provider_sparklineage.history.queries.trace import trace
from airflow_provider_sparklineage.model.datasets import DatasetName
from tests.history.messy.oracle import Hop, Oracle, Version

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_sparklineage.history.queries import answers
    from airflow_provider_sparklineage.history.queries.sql import Rows
    from tests.history.ledger import Cell, Ledger, Table
    from tests.history.messy.oracle import Key, Plan

_NOT_THERE = "is not there"
"""What the reasons say of partitions that are due: they were never written, so nobody ran."""


class Question(NamedTuple):
    """What is asked: trace, impact or stale, of a table and a cell or all of it."""

    what: str
    table: Table | None = None
    cell: Cell | None = None

    @property
    def partition(self) -> str | None:
        return None if self.table is None or self.cell is None else self.table.text(self.cell)

    def __str__(self) -> str:
        if self.table is None:
            return self.what
        return f"{self.what} {_named(self.table)} {self.partition or ''}".strip()


class Difference(NamedTuple):
    """A part of an answer that differs.

    :param kind: which part, and how: lost, added or wrong
    """

    question: Question
    kind: str
    what: str

    def __str__(self) -> str:
        return f"{self.question}: {self.kind}: {self.what}"


def questions(ledger: Ledger, seed: int, count: int = 5) -> list[Question]:
    """Ask what is stale, and some traces and impacts of cells and tables that a world has."""
    chance = random.Random(seed)
    asked: list[tuple[Table, Cell | None]] = [(table, None) for table in ledger.tables]
    accesses = [one for run in ledger.runs for one in (*run.reads, *run.writes)]
    cells = {(one.table, each) for one in accesses for each in one.cells}
    cells |= {(table, (pair,)) for table, each in cells for pair in each}  # a day, or a region
    asked += sorted(cells, key=lambda one: (one[0].namespace, one[0].name, one[1]))
    return [
        Question("stale"),
        *(Question(what, *chance.choice(asked)) for what in ("trace", "impact") * count),
    ]


def differences(
    ledger: Ledger, history: Rows, asked: Iterable[Question], *, is_exact: bool
) -> list[Difference]:
    """Answer questions about a world, and give all that the oracle says otherwise.

    :param is_exact: whether to compare what is certain
    """
    oracle = Oracle(ledger)
    return [each for one in asked for each in _differences(oracle, history, one, is_exact=is_exact)]


def _differences(
    oracle: Oracle, history: Rows, asked: Question, *, is_exact: bool
) -> list[Difference]:
    if asked.table is None:
        found = stale(history)
        return of_stale(oracle, found, plan_of(history, found), asked, is_exact=is_exact)
    name = DatasetName(asked.table.namespace, asked.table.name)
    if asked.what == "trace":
        return of_trace(oracle, trace(history, name, asked.partition), asked)
    return of_impact(oracle, impact(history, name, asked.partition), asked)


def of_trace(oracle: Oracle, hops: Iterable[answers.Hop], asked: Question) -> list[Difference]:
    assert asked.table is not None
    tables = _tables(oracle)
    found = {Hop(hop.depth, _version(tables, hop)) for hop in hops}
    expected = oracle.trace(asked.table, asked.cell)
    return _sets(asked, "hops", map(_hop, expected), map(_hop, found))


def of_impact(oracle: Oracle, answer: answers.Impact, asked: Question) -> list[Difference]:
    assert asked.table is not None
    tables = _tables(oracle)
    found = {_version(tables, hop) for hop in answer.hops}
    expected = oracle.impact(asked.table, asked.cell)
    wrong = _sets(asked, "versions", map(_text, expected), map(_text, found))
    plan = _plan(oracle, answer.plan, oracle.planned(expected), asked)
    return wrong + plan


def of_stale(
    oracle: Oracle,
    versions: Iterable[answers.Stale],
    plan: answers.Plan,
    asked: Question,
    *,
    is_exact: bool,
) -> list[Difference]:
    tables = _tables(oracle)
    found = {_version(tables, one): one for one in versions}
    expected = {one.version: one for one in oracle.stale()}
    wrong = _sets(asked, "versions", map(_text, expected), map(_text, found))
    for version in sorted(expected.keys() & found.keys(), key=_text):
        one, known = found[version], expected[version]
        if one.is_direct != known.is_direct:
            text = f"{_text(version)}: expected {known.is_direct}"
            wrong.append(Difference(asked, "wrong is_direct", text))
        elif is_exact and known.is_direct and one.is_certain != known.is_certain:
            text = f"{_text(version)}: expected {known.is_certain}"
            wrong.append(Difference(asked, "wrong is_certain", text))
    wrong += _plan(oracle, plan, oracle.planned(expected), asked)
    return wrong + _certain_steps(oracle, versions, plan, asked)


def _certain_steps(
    oracle: Oracle, versions: Iterable[answers.Stale], plan: answers.Plan, asked: Question
) -> list[Difference]:
    """Compare steps with the versions: certain if all are, uncertain if none is."""
    certain: dict[Any, set[bool]] = {}
    for one in versions:
        run = oracle.runs[one.run.run_id]
        if run.instance is not None:
            certain.setdefault((run.namespace, run.instance), set()).add(one.is_certain)
    wrong = []
    for step in plan.steps:
        if not step.run_id:
            continue
        run = oracle.runs[step.run_id]
        known = certain.get((run.namespace, run.instance), set())
        if len(known) == 1 and step.is_certain not in known:
            wrong.append(Difference(asked, "wrong is_certain of steps", _step(step_key(step))))
    return wrong


def _plan(oracle: Oracle, plan: answers.Plan, expected: Plan, asked: Question) -> list[Difference]:
    steps = {step_key(step): step for step in plan.steps}
    due = {key for key, step in steps.items() if _is_due(step)} if asked.table else set()
    instances = map(_step, expected.instances)
    wrong = _sets(asked, "steps", instances, map(_step, steps.keys() - (due - expected.instances)))
    if len(steps) < len(plan.steps):
        wrong.append(Difference(asked, "steps: twice", str(len(plan.steps) - len(steps))))
    by_hand = {one.run_id for one in plan.by_hand}
    wrong += _sets(asked, "by_hand", expected.by_hand, by_hand)
    waves: dict[Key | str, int] = {key: step.wave for key, step in steps.items()}
    waves |= {one.run_id: one.wave for one in plan.by_hand}
    for key, before in expected.before.items():
        for one in before & waves.keys():
            if key in waves and waves[one] >= waves[key]:
                text = f"{_step(one)} (wave {waves[one]}) before {_step(key)} (wave {waves[key]})"
                wrong.append(Difference(asked, "order of steps", text))
    return wrong


def step_key(step: answers.Step) -> Key:
    return step.namespace, step.dag_id, step.task_id, step.dag_run_id, step.map_index


def _is_due(step: answers.Step) -> bool:
    return any(_NOT_THERE in reason.text for reason in step.reasons)


def _sets(
    asked: Question, of: str, expected: Iterable[str], found: Iterable[str]
) -> list[Difference]:
    one, other = set(expected), set(found)
    lost = [Difference(asked, f"{of}: lost", text) for text in sorted(one - other)]
    return lost + [Difference(asked, f"{of}: added", text) for text in sorted(other - one)]


def _tables(oracle: Oracle) -> dict[tuple[str, str], Table]:
    return {(table.namespace, table.name): table for table in oracle.ledger.tables}


def _version(tables: dict[tuple[str, str], Table], one: answers.Hop | answers.Stale) -> Version:
    values = one.partition
    cell = None if values is None else tuple(sorted(values.items()))
    table = tables[one.dataset.namespace, one.dataset.name]
    return Version(table, cell, one.run.run_id if one.run else None)


# --- texts ----------------------------------------------------------------------------------------


def _hop(hop: Hop) -> str:
    return f"{hop.depth} {_text(hop.version)}"


def _text(one: Version) -> str:
    part = one.table.text(one.cell) if one.cell else "-"
    return f"{_named(one.table)} {part} of {one.run or 'nobody'}"


def _step(key: Key | str) -> str:
    return key if isinstance(key, str) else "/".join(map(str, key))


def _named(table: Table) -> str:
    return f"{table.namespace}/{table.name}"
