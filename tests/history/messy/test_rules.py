"""Each rule of the history in a world of a few runs: by the oracle, and by the engine."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tests.history.built import Tables
from tests.history.messy.comparing import Question, differences
from tests.history.messy.oracle import Oracle, Version
from tests.history.messy.small import cell_of, table_of, world_of

_CHAIN = """
a 1-2 | overwrite d1 dt=1
b 3-4 | read d1 dt=1 | overwrite d2 dt=1
c 5-6 | read d2 dt=1 | overwrite d3 dt=1
"""


class Case(NamedTuple):
    """A rule in a small world.

    :param asked: ``trace d1 dt=1``, ``impact d1 -``, ``stale`` or ``plan`` (of what is stale)
    :param expected: of trace ``depth table cell run``, of impact ``table cell run``, of stale the
        same with ``direct`` and ``certain`` behind it, of a plan ``first < second``
    """

    name: str
    world: str
    asked: str
    expected: set[str]


READS = (
    Case("a read gets what was there", _CHAIN, "trace d2 dt=1", {"0 d2 dt=1 b", "1 d1 dt=1 a"}),
    Case(
        "over any number of runs",
        _CHAIN,
        "trace d3 -",
        {"0 d3 dt=1 c", "1 d2 dt=1 b", "2 d1 dt=1 a"},
    ),
    Case(
        "a write at the start of a read comes first",
        "a 1-3 | overwrite d1 dt=1\nb 3-4 | read d1 dt=1 | overwrite d2 dt=1",
        "trace d2 -",
        {"0 d2 dt=1 b", "1 d1 dt=1 a"},
    ),
    Case(
        "a run that takes no time reads before",
        "a 1-3 | overwrite d1 dt=1\nb 3-3 | read d1 dt=1 | overwrite d2 dt=1",
        "trace d2 -",
        {"0 d2 dt=1 b", "1 d1 dt=1 nobody"},
    ),
    Case(
        "a clock that is a second behind",
        "a 1-3.02 | overwrite d1 dt=1\nb 3-4 | read d1 dt=1 | overwrite d2 dt=1",
        "trace d2 -",
        {"0 d2 dt=1 b", "1 d1 dt=1 nobody"},
    ),
    Case(
        "a failed run wrote nothing",
        "a 1-2 state=FAIL | overwrite d1 unknown\nb 3-4 | read d1 dt=1 | overwrite d2 dt=1",
        "trace d2 -",
        {"0 d2 dt=1 b", "1 d1 dt=1 nobody"},
    ),
    Case(
        "each version at its least depth",
        f"{_CHAIN}d 7-8 | read d1 dt=1 | read d3 dt=1 | overwrite p1 all",
        "trace p1 -",
        {"0 p1 - d", "1 d1 dt=1 a", "1 d3 dt=1 c", "2 d2 dt=1 b"},
    ),
    Case(
        "yesterday of its own table",
        "a 1-2 | overwrite d1 dt=1\nb 3-4 | read d1 dt=1 | overwrite d1 dt=2",
        "trace d1 dt=2",
        {"0 d1 dt=2 b", "1 d1 dt=1 a"},
    ),
    Case(
        "all of its own table",
        "a 1-2 | overwrite p1 all\nb 3-4 | read p1 all | overwrite p1 all",
        "trace p1 -",
        {"0 p1 - b", "1 p1 - a"},
    ),
)

WRITES = (
    Case(
        "overwriting a cell",
        "a 1-2 | overwrite d1 dt=1+dt=2\nb 3-4 | overwrite d1 dt=1",
        "trace d1 -",
        {"0 d1 dt=1 b", "0 d1 dt=2 a"},
    ),
    Case(
        "overwriting all",
        "a 1-2 | overwrite d1 dt=1\nb 1-2 other | unknown d1 unknown\nc 3-4 | create d1 all",
        "trace d1 -",
        {"0 d1 - c"},
    ),
    Case(
        "appending",
        "a 1-2 | overwrite d1 dt=1\nb 3-4 | append d1 dt=1",
        "trace d1 dt=1",
        {"0 d1 dt=1 a", "0 d1 dt=1 b"},
    ),
    *(
        Case(
            f"{mode} leaves nothing, of a cell",
            f"a 1-2 | overwrite d1 dt=1+dt=2\nb 3-4 | {mode} d1 dt=1",
            "trace d1 -",
            {"0 d1 dt=2 a"},
        )
        for mode in ("drop", "truncate", "removed")
    ),
    *(
        Case(
            f"{mode} leaves nothing, of all",
            f"a 1-2 | overwrite p1 all\nb 3-4 | {mode} p1 all",
            "trace p1 -",
            set(),
        )
        for mode in ("drop", "truncate", "removed")
    ),
    Case(
        "removed, and written again",
        "a 1-2 | overwrite d1 dt=1\nb 3-4 | removed d1 dt=1\nc 5-6 | append d1 dt=1",
        "trace d1 -",
        {"0 d1 dt=1 c"},
    ),
    Case(
        "a coarser cell ends the finer ones in it",
        "a 1-2 | append r1 dt=1/region=eu+dt=2/region=eu\nb 3-4 | overwrite r1 dt=1",
        "trace r1 -",
        {"0 r1 dt=1 b", "0 r1 dt=2/region=eu a"},
    ),
    Case(
        "a finer cell leaves the rest of a coarser one",
        "a 1-2 | overwrite r1 dt=1\nb 3-4 | overwrite r1 dt=1/region=eu",
        "trace r1 dt=1",
        {"0 r1 dt=1 a", "0 r1 dt=1/region=eu b"},
    ),
    Case(
        "and nothing of it in the finer cell, now",
        "a 1-2 | overwrite r1 dt=1\nb 3-4 | overwrite r1 dt=1/region=eu",
        "trace r1 dt=1/region=eu",
        {"0 r1 dt=1/region=eu b"},
    ),
    Case(
        "and nothing of it in the finer cell, then",
        "a 1-2 | overwrite r1 dt=1\nb 3-4 | overwrite r1 dt=1/region=eu\n"
        "c 5-6 | read r1 dt=1/region=eu | overwrite p1 all\nd 7-8 | overwrite r1 dt=1",
        "trace p1 -",
        {"0 p1 - c", "1 r1 dt=1/region=eu b"},
    ),
    Case(
        "of one run nothing ends another",
        "a 1-2 | overwrite r1 dt=1/region=eu+dt=1/region=us\n"
        "b 3-4 | overwrite r1 dt=1/region=eu | removed r1 dt=1",
        "trace r1 -",
        {"0 r1 dt=1/region=eu b"},
    ),
    Case(
        "others end nothing",
        "a 1-2 | overwrite d1 dt=1\nb 3-4 other | unknown d1 unknown",
        "trace d1 -",
        {"0 d1 dt=1 a", "0 d1 - b"},
    ),
    Case(
        "what others wrote has the cell that is asked for",
        "a 1-2 other | unknown d1 unknown\nb 3-4 | read d1 dt=7 | overwrite d2 dt=7",
        "trace d2 -",
        {"0 d2 dt=7 b", "1 d1 dt=7 a"},
    ),
    Case(
        "but not where all of the cell was replaced",
        "a 1-2 | overwrite d1 all\nb 3-4 | overwrite d1 dt=1",
        "trace d1 dt=1",
        {"0 d1 dt=1 b"},
    ),
)

CELLS = (
    Case(
        "of two dimensions one",
        "a 1-2 | overwrite r1 dt=1/region=eu+dt=1/region=us+dt=2/region=eu\n"
        "b 3-4 | read r1 dt=1 | overwrite d2 dt=1",
        "trace d2 -",
        {"0 d2 dt=1 b", "1 r1 dt=1/region=eu a", "1 r1 dt=1/region=us a"},
    ),
    Case(
        "the other of two dimensions",
        "a 1-2 | overwrite r1 dt=1\nb 3-4 | read r1 region=eu | overwrite d2 dt=1",
        "trace d2 -",
        {"0 d2 dt=1 b", "1 r1 dt=1 a"},
    ),
    Case(
        "fan-out and fan-in of a mapped task",
        "a 1-2 | overwrite d1 dt=1\n"
        "b 3-4 task=m index=0 | read d1 dt=1 | overwrite r1 dt=1/region=eu\n"
        "c 3-5 task=m index=1 | read d1 dt=1 | overwrite r1 dt=1/region=us\n"
        "d 6-7 | read r1 dt=1 | overwrite d2 dt=1",
        "trace d2 -",
        {"0 d2 dt=1 d", "1 r1 dt=1/region=eu b", "1 r1 dt=1/region=us c", "2 d1 dt=1 a"},
    ),
)

IMPACTS = (
    Case("over any number of runs", _CHAIN, "impact d1 dt=1", {"d2 dt=1 b", "d3 dt=1 c"}),
    Case(
        "also of what was replaced",
        f"{_CHAIN}d 7-8 | overwrite d1 dt=1\ne 9-10 | overwrite d2 dt=1",
        "impact d1 dt=1",
        {"d3 dt=1 c"},
    ),
    Case("not what is gone", f"{_CHAIN}d 7-8 | removed d3 dt=1", "impact d2 dt=1", set()),
    Case(
        "all that a run wrote",
        "a 1-2 | overwrite d1 dt=1\nb 3-4 | read d1 dt=1 | overwrite d2 dt=1 | append p1 all",
        "impact d1 dt=1",
        {"d2 dt=1 b", "p1 - b"},
    ),
    Case(
        "not the subject itself",
        "a 1-2 | overwrite d1 dt=1\nb 3-4 | read d1 dt=1 | overwrite d1 dt=2\n"
        "c 5-6 | read d1 dt=2 | overwrite d1 dt=1",
        "impact d1 dt=1",
        {"d1 dt=2 b"},
    ),
    Case(
        "not a part of the subject",
        "a 1-2 | overwrite d1 dt=1\nb 3-4 | read d1 dt=1 | overwrite d1 dt=2",
        "impact d1 -",
        set(),
    ),
    Case(
        "of a cell that nobody wrote",
        "a 1-2 | read d1 dt=1 | overwrite d2 dt=1\nb 1-2 | read d1 all | overwrite d2 dt=2\n"
        "c 1-2 | read d1 dt=3 | overwrite d2 dt=3",
        "impact d1 dt=1",
        {"d2 dt=1 a", "d2 dt=2 b"},
    ),
    Case(
        "a map index that was not affected",
        "a 1-2 | overwrite d1 dt=1+dt=2\n"
        "b 3-4 task=m index=0 | read d1 dt=1 | overwrite r1 dt=1/region=eu\n"
        "c 3-5 task=m index=1 | read d1 dt=2 | overwrite r1 dt=1/region=us",
        "impact d1 dt=1",
        {"r1 dt=1/region=eu b"},
    ),
)

_READER = "a 1-2 | overwrite d1 dt=1\nb 3-6 | read d1 dt=1 | overwrite d2 dt=1\n"
_WHOLE = "a 1-2 | overwrite d1 dt=1\nb 3-6 | read d1 all | overwrite d2 dt=1\n"
_DBT = (
    "a 1-2 other job=m1 | unknown d1 unknown\n"
    "b 3-4 other job=m2 | read d1 unknown | unknown d2 unknown\n"
)
_TOTAL = (
    "a 1-2 | overwrite d1 dt=1\nb 3-4 {} | read d1 dt=1 | append p1 all\n"
    "c 5-6 | read p1 all | overwrite p1 all\nd 7-8 | overwrite d1 dt=1\n"
)
_B = "d2 dt=1 b direct certain"

STALE = (
    *(
        Case(f"a later {mode}", f"{_READER}c 7-8 | {mode} d1 dt=1", "stale", {_B})
        for mode in ("overwrite", "create", "append", "drop", "truncate", "removed")
    ),
    Case("a change of all", f"{_READER}c 7-8 | overwrite d1 all", "stale", {_B}),
    Case("another cell", f"{_READER}c 7-8 | overwrite d1 dt=2", "stale", set()),
    Case("a failed change", f"{_READER}c 7-8 state=FAIL | overwrite d1 unknown", "stale", set()),
    Case(
        "a cell that was written late",
        "b 3-6 | read d1 dt=1 | overwrite d2 dt=1\nc 7-8 | overwrite d1 dt=1",
        "stale",
        {_B},
    ),
    Case(
        "a change at the start was read",
        f"{_READER}c 1-3 | overwrite d1 dt=1",
        "stale",
        set(),
    ),
    Case(
        "a writer that began before and ended within",
        f"{_READER}c 1-4 | overwrite d1 dt=1",
        "stale",
        {"d2 dt=1 b direct"},
    ),
    Case("a change within", f"{_READER}c 4-5 | append d1 dt=1", "stale", {"d2 dt=1 b direct"}),
    Case("a change at the end", f"{_READER}c 4-6 | append d1 dt=1", "stale", {_B}),
    Case(
        "a second that clocks differ by",
        "a 1-3.02 | overwrite d1 dt=1\nb 3-6 | read d1 dt=1 | overwrite d2 dt=1",
        "stale",
        {"d2 dt=1 b direct"},
    ),
    Case("its own change", "b 3-6 | read d1 dt=1 | overwrite d1 dt=1", "stale", set()),
    Case("of all: a new cell is growth", f"{_WHOLE}c 7-8 | overwrite d1 dt=2", "stale", set()),
    Case("of all: a cell that was there", f"{_WHOLE}c 7-8 | append d1 dt=1", "stale", {_B}),
    Case("of all: a removed cell", f"{_WHOLE}c 7-8 | removed d1 dt=1", "stale", {_B}),
    Case("of all: all was dropped", f"{_WHOLE}c 7-8 | drop d1 all", "stale", {_B}),
    Case(
        "of all: all of nothing",
        "b 3-6 | read d1 all | overwrite d2 dt=1\nc 7-8 | overwrite d1 all",
        "stale",
        set(),
    ),
    Case(
        "of all: a coarser cell of one that was there",
        "a 1-2 | overwrite r1 dt=1/region=eu\nb 3-6 | read r1 all | overwrite d2 dt=1\n"
        "c 7-8 | overwrite r1 dt=1",
        "stale",
        {_B},
    ),
    Case(
        "of all: a finer cell of one that was there",
        "a 1-2 | overwrite r1 dt=1\nb 3-6 | read r1 all | overwrite d2 dt=1\n"
        "c 7-8 | overwrite r1 dt=1/region=eu",
        "stale",
        {_B},
    ),
    Case(
        "of all: a cell, where all was there",
        "a 1-2 | overwrite d1 all\nb 3-6 | read d1 all | overwrite d2 dt=1\n"
        "c 7-8 | overwrite d1 dt=1",
        "stale",
        {"d2 dt=1 b direct"},
    ),
    Case(
        "of all: appends to a table without partitions",
        "a 1-2 | overwrite p1 all\nb 3-6 | read p1 all | overwrite d2 dt=1\nc 7-8 | append p1 all",
        "stale",
        set(),
    ),
    Case("of all: others' writes", f"{_WHOLE}c 7-8 other | unknown d1 unknown", "stale", set()),
    Case(
        "of cells: others' writes",
        f"{_READER}c 7-8 other | unknown d1 unknown",
        "stale",
        {"d2 dt=1 b direct"},
    ),
    Case(
        "others: a model that was built again",
        f"{_DBT}c 5-6 other job=m1 | unknown d1 unknown",
        "stale",
        {"d2 - b direct"},
    ),
    Case(
        "others: both built again",
        f"{_DBT}c 5-6 other job=m1 | unknown d1 unknown\n"
        "d 7-8 other job=m2 | read d1 unknown | unknown d2 unknown",
        "stale",
        set(),
    ),
    Case(
        "others: a job of the same name elsewhere",
        f"{_DBT}c 5-6 other job=m1 | unknown d1 unknown\n"
        "d 7-8 other job=m2 namespace=second | read d1 unknown | unknown d2 unknown",
        "stale",
        {"d2 - b direct"},
    ),
    Case(
        "others: a cell that was there",
        "a 1-2 | overwrite d1 dt=1\nb 3-4 other job=m | read d1 unknown | unknown p1 unknown\n"
        "c 5-6 | overwrite d1 dt=1+dt=2",
        "stale",
        {"p1 - b direct certain"},
    ),
    Case(
        "others: a new cell",
        "a 1-2 | overwrite d1 dt=1\nb 3-4 other job=m | read d1 unknown | unknown p1 unknown\n"
        "c 5-6 | overwrite d1 dt=2",
        "stale",
        set(),
    ),
    Case(
        "others: the latest of each job into a table",
        "a 1-2 | overwrite d1 dt=1\nb 3-4 other job=m | read d1 unknown | unknown p1 unknown\n"
        "c 5-6 other job=m | read d1 unknown | unknown p1 unknown\n"
        "d 5-6 other job=n | read d1 unknown | unknown p1 unknown\ne 7-8 | overwrite d1 dt=1",
        "stale",
        {"p1 - c direct certain", "p1 - d direct certain"},
    ),
    Case(
        "made of something stale that is there",
        f"{_CHAIN}d 7-8 | overwrite d1 dt=1",
        "stale",
        {"d2 dt=1 b direct certain", "d3 dt=1 c"},
    ),
    Case(
        "made of something stale that was made again",
        f"{_CHAIN}d 7-8 | overwrite d1 dt=1\ne 9-10 task=b | read d1 dt=1 | overwrite d2 dt=1",
        "stale",
        {"d3 dt=1 c direct certain"},
    ),
    Case(
        "of its own table, which it replaced",
        _TOTAL.format("task=t"),
        "stale",
        {"p1 - c"},
    ),
    Case(
        "of its own table, whose writer ran again",
        _TOTAL.format("task=t") + "e 9-10 task=t | read d1 dt=1 | append p1 all",
        "stale",
        set(),
    ),
    Case(
        "of its own table, and another index of the writer ran again",
        _TOTAL.format("task=t index=0") + "e 9-10 task=t index=1 | read d1 dt=1 | append p1 all",
        "stale",
        {"p1 - c"},
    ),
    Case(
        "of its own table, and the writer of another Airflow ran again",
        _TOTAL.format("task=t") + "e 9-10 task=t namespace=second | read d1 dt=1 | append p1 all",
        "stale",
        {"p1 - c"},
    ),
    Case(
        "of its own table, that another producer wrote",
        "a 1-2 | overwrite d1 dt=1\nb 3-4 other job=m | read d1 unknown | unknown p1 unknown\n"
        "c 5-6 | read p1 all | overwrite p1 all\nd 7-8 | overwrite d1 dt=1\n"
        "e 9-10 other job=m | read d1 unknown | unknown p2 unknown",
        "stale",
        {"p1 - c"},
    ),
)

PLANS = (
    Case(
        "in order",
        f"{_CHAIN}d 7-8 | overwrite d1 dt=1",
        "plan",
        {"world/dag/b/1/-1", "world/dag/c/1/-1", "world/dag/b/1/-1 < world/dag/c/1/-1"},
    ),
    Case(
        "each index of a mapped task",
        "a 1-2 | overwrite d1 dt=1\n"
        "b 3-4 task=m index=0 | read d1 dt=1 | overwrite r1 dt=1/region=eu\n"
        "c 3-5 task=m index=1 | read d1 dt=1 | overwrite r1 dt=1/region=us\n"
        "d 6-7 | overwrite d1 dt=1",
        "plan",
        {"world/dag/m/1/0", "world/dag/m/1/1"},
    ),
    Case(
        "two Airflows with the same task instance",
        "a 1-2 | overwrite d1 dt=1\nb 3-4 task=t | read d1 dt=1 | overwrite d2 dt=1\n"
        "c 3-5 task=t namespace=second | read d1 dt=1 | overwrite d3 dt=1\n"
        "d 6-7 | overwrite d1 dt=1",
        "plan",
        {"world/dag/t/1/-1", "second/dag/t/1/-1"},
    ),
    Case(
        "others by hand",
        f"{_DBT}c 5-6 | read d2 all | overwrite p1 all\nd 7-8 other job=m1 | unknown d1 unknown",
        "plan",
        {"b", "world/dag/c/1/-1", "b < world/dag/c/1/-1"},
    ),
    Case(
        "a circle has no order",
        "a 1-2 task=t | read d3 dt=1 | append d1 dt=1\n"
        "b 3-4 task=u | read d1 all | append d2 dt=1\n"
        "c 5-6 task=t | read d2 all | read d3 dt=1 | append d1 dt=1\n"
        "d 7-8 | append d3 dt=1",
        "plan",
        {"world/dag/t/1/-1", "world/dag/u/1/-1"},
    ),
)

CASES = (*READS, *WRITES, *CELLS, *IMPACTS, *STALE, *PLANS)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_oracle_knows_each_rule(case):
    assert _answer(Oracle(world_of(case.world)), *case.asked.split()) == case.expected


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_engine_knows_each_rule(case, tmp_path):
    ledger = world_of(case.world)
    what, *of = case.asked.split()
    asked = [Question(what, table_of(of[0]), cell_of(of[1]))] if of else []
    tables = Tables(ledger, tmp_path, 0)
    is_exact = all(run.instance is not None for run in ledger.runs)
    found = differences(ledger, tables, [Question("stale"), *asked], is_exact=is_exact)
    tables.close()
    assert found == [], "\n".join(map(str, found))


def _answer(oracle: Oracle, what: str, *of: str) -> set[str]:
    match what, of:
        case "trace", (table, cell):
            hops = oracle.trace(table_of(table), cell_of(cell))
            return {f"{hop.depth} {_text(hop.version)}" for hop in hops}
        case "impact", (table, cell):
            return {_text(one) for one in oracle.impact(table_of(table), cell_of(cell))}
        case "stale", ():
            return {
                " ".join(
                    [_text(one.version), *["direct"] * one.is_direct, *["certain"] * one.is_certain]
                )
                for one in oracle.stale()
            }
    plan = oracle.planned(one.version for one in oracle.stale())
    names = {key: key if isinstance(key, str) else "/".join(map(str, key)) for key in plan.latest}
    before = {f"{names[one]} < {names[key]}" for key in names for one in plan.before[key]}
    return {*names.values(), *before}


def _text(one: Version) -> str:
    part = "-" if one.cell is None else one.table.text(one.cell)
    return f"{one.table.name} {part} {one.run or 'nobody'}"
