"""``docs/reliability.md``: what was tried, and what came of it, for users."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.faults.registry import Lane, areas, faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"

_INTRODUCTION = """\
<!-- Written by `make faults`. -->
# What happens when something goes wrong

Lineage never fails your task, and never keeps it waiting beyond its bounds; what is lost is in the
event. This page has what was tried to break that: {count} faults, each made to happen while a task
runs. `make faults` tries all of them again, and writes this page.

{lanes}

How to read the tables:

- **the task**: how it ends, which is how Airflow's own operator ends under the same fault. Where it
  ends in another way, that is what a switch of yours asks for, and the row names the switch.
- **declared as**: the codes in the event's `sparkLineage_capture.degradations`; each comes with a
  sentence on what happened and what to do ([all codes](limits.md)). *Nothing is lost* means that
  the event has the same datasets, partitions and columns as without the fault. *In the log*: there
  is no event to have it, and the task's log has a warning.
- **seconds more** than Airflow's own operator takes under the same fault, rounded up. A limit of
  time that a fault uses up is shortened to try it, and the page has the time of the real one.
- **left behind**: what outlives the task. A capture bundle of a try that failed or whose lineage
  is incomplete is kept for you to look at, and deleted after `capture_retention` days.
"""

_LANES = {
    Lane.DOUBLE: "with a spark-submit that is a script, which writes what a recorded job reported",
    Lane.SPARK: "with a real Spark",
    Lane.SCHEDULER: "with a real scheduler and its workers",
}
_BOUNDS = (1, 3, 10, 35)
"""Seconds are rounded up to one of these, so that the page stays the same from run to run."""


_SPOILED = """\
## Spoiled files

Bundles, recorded events, merged events and rules with bytes, lines and values changed at random,
read by the task and by every command. Each gives output, or one line with the file, the line and
what is wrong with it.

| kind | spoiled inputs | tracebacks |
|---|---|---|"""


def page(rows: Mapping[str, Mapping[str, Any]], spoiled: Mapping[str, Mapping[str, int]]) -> str:
    """Write the page of all rows, by the names of their faults, and of the spoiled inputs."""
    kinds = (f"| {k} | {r['inputs']:,} | {r['problems'] or 'none'} |" for k, r in spoiled.items())
    return "\n".join([*_lines(rows), _SPOILED, *kinds, ""])


def _lines(rows: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    lanes = [f"- {len(faults(lane))} {how};" for lane, how in _LANES.items() if faults(lane)]
    listed = "\n".join(lanes).removesuffix(";") + "."
    yield _INTRODUCTION.format(count=len(faults()), lanes=listed)
    for area in areas():
        yield f"## {area.title}\n\n{area.about}\n"
        yield "| fault | the task | declared as | seconds more | left behind |"
        yield "|---|---|---|---|---|"
        for fault in area.faults:
            row = rows[fault.name]
            where = "" if fault.lane is Lane.DOUBLE else f" ({fault.lane})"
            outcome = row["outcome"] + (f", by {fault.differs}" if fault.differs else "")
            cells = (
                f"{fault.name}{where}",
                outcome,
                _declared(row),
                _seconds(row["seconds"]),
                ", ".join(row["left"]) or "nothing",
            )
            yield f"| {' | '.join(map(_cell, cells))} |"
        yield ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _declared(row: Mapping[str, Any]) -> str:
    codes = ", ".join(f"`{code}`" for code in row["declared"])
    return codes or ("in the log" if row["warned"] else "nothing is lost")


def _seconds(seconds: float) -> str:
    return next((f"< {bound}" for bound in _BOUNDS if seconds < bound), f"{seconds:.0f}")
