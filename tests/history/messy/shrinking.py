"""The least world in which a difference remains, as a text for people."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.model.exceptions import HistoryError
from tests.history.built import Tables
from tests.history.messy.comparing import differences
from tests.history.messy.worlds import is_exact, world

if TYPE_CHECKING:
    from datetime import datetime

    from tests.history.ledger import Access, Ledger, Run
    from tests.history.messy.comparing import Difference


def explained(seed: int, difference: Difference) -> str:
    """Give the least world in which a difference of a seed remains, and what differs there."""
    ledger = least(world(seed), difference, is_exact=is_exact(seed))
    remaining = _remaining(ledger, difference, is_exact=is_exact(seed))
    return "\n".join([f"seed {seed}", *(map(str, remaining)), *listed(ledger)])


def least(ledger: Ledger, difference: Difference, *, is_exact: bool) -> Ledger:
    """Drop runs, many at once and then one by one, while a difference of this kind remains."""
    size = max(1, len(ledger.runs) // 2)
    while True:
        before = len(ledger.runs)
        for first in reversed(range(0, before, size)):
            dropped = [run.id for run in ledger.runs[first : first + size]]
            smaller = ledger.without(*dropped)
            if _remaining(smaller, difference, is_exact=is_exact):
                ledger = smaller
        if size == 1 and len(ledger.runs) == before:
            return ledger
        size = max(1, size // 2)


def _remaining(ledger: Ledger, difference: Difference, *, is_exact: bool) -> list[Difference]:
    if not ledger.runs:
        return []
    with tempfile.TemporaryDirectory() as folder:
        tables = Tables(ledger, Path(folder), 0)
        try:
            found = differences(ledger, tables, [difference.question], is_exact=is_exact)
        except HistoryError:  # nobody reads or writes the table of the question any more
            return []
        finally:
            tables.close()
    return [one for one in found if one.kind == difference.kind]


def listed(ledger: Ledger) -> list[str]:
    """List the runs of a world in the order of their starts, a line each."""
    return [_line(run) for run in sorted(ledger.runs, key=lambda one: (one.started, one.ended))]


def _line(run: Run) -> str:
    one = run.instance
    index = f"[{one.map_index}]" if one and one.map_index >= 0 else ""
    dag_run = f" in {one.dag_run_id}" if one else ""
    times = f"{_time(run.started)} - {_time(run.ended)}"
    done = [f"reads {_part(each)}" for each in run.reads]
    done += [f"{each.mode}s {_part(each)}" for each in run.claimed()] or [run.state]
    return f"{run.id} {run.namespace}: {run.job}{index}{dag_run}, {times}: {', '.join(done)}"


def _part(access: Access) -> str:
    parts = " + ".join(access.table.text(cell) for cell in access.cells) or access.extent
    return f"{access.table.namespace}/{access.table.name} {parts}"


def _time(time: datetime) -> str:
    return f"{time:%d %H:%M:%S}"
