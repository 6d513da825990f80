"""Small worlds as texts, a run a line, for tests of a rule each.

::

    a  10-11 | overwrite d1 dt=1
    b  12-20 task=t index=0 | read d1 dt=1 | read p1 all | append d2 dt=1+dt=2
    c  30-31 other job=m | read d2 unknown | unknown p2 unknown

A run has an id, minutes of its start and end, and what it read and wrote. The name of a table says
its dimensions: ``d`` days, ``r`` days and regions, ``p`` none. A run is a task instance of its own,
unless it says ``task`` (and ``dag_run``, ``index``, ``namespace``), or that it is of an ``other``
producer. ``state=FAIL`` did not succeed.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.history.ledger import Access, Cell, Instance, Ledger, Run, Table

START = datetime(2024, 3, 1, tzinfo=UTC)
_DIMS = {"d": ("dt",), "r": ("dt", "region"), "p": ()}


def world_of(text: str) -> Ledger:
    """Make the world of some lines."""
    runs = [_run(line) for line in text.strip().splitlines()]
    tables = {access.table: None for run in runs for access in (*run.reads, *run.writes)}
    ledger = Ledger(list(tables), runs)
    ledger.happen()
    return ledger


def table_of(name: str) -> Table:
    return Table(name, _DIMS[name[0]])


def cell_of(text: str) -> Cell | None:
    """Read ``dt=1/region=eu``; a dash is no cell."""
    if text == "-":
        return None
    pairs = (part.partition("=") for part in text.split("/"))
    return tuple(sorted((name, value) for name, _, value in pairs))


def _run(line: str) -> Run:
    head, *accesses = (part.strip() for part in line.split("|"))
    name, times, *words = head.split()
    started, ended = times.split("-")
    options = dict(word.split("=") for word in words if "=" in word)
    task, dag_run = options.get("task", name), options.get("dag_run", "1")
    instance = Instance("dag", task, dag_run, START, int(options.get("index", "-1")))
    found = [_access(*access.split()) for access in accesses]
    return Run(
        name,
        options.get("job", f"dag.{task}"),
        START + timedelta(minutes=float(started)),
        START + timedelta(minutes=float(ended)),
        tuple(one for one in found if not one.mode),
        tuple(one for one in found if one.mode),
        state=options.get("state", "COMPLETE"),
        instance=None if "other" in words else instance,
        namespace=options.get("namespace", "world"),
    )


def _access(how: str, table: str, part: str) -> Access:
    mode = "" if how == "read" else how
    if "=" not in part:
        return Access(table_of(table), part, mode=mode)
    cells = tuple(one for text in part.split("+") if (one := cell_of(text)) is not None)
    return Access(table_of(table), "cells", cells, mode)
