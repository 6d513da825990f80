"""Try all faults, print what came of them, and write ``docs/reliability.md``: ``make faults``.

Arguments are pytest's: with ``-k "the listener"`` some of them are tried again, and the page is
written with what the last run knows of the others. ``--spoiled 0`` spoils no inputs again.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.faults import ALL
from tests.faults.page import PAGE, page
from tests.faults.registry import faults
from tests.mutations.__main__ import tried
from tests.mutations.kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping

RESULTS = PAGE.parents[1] / "build" / "faults.json"
SPOILED = 10_000
"""Inputs of each kind that are spoiled; each is read in one of the ways in which it can be."""


class _Rows:
    """Collects the rows of all tests, those of xdist's workers too."""

    def __init__(self) -> None:
        self.found: dict[str, dict[str, Any]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            rows = (value for name, value in report.user_properties if name == "fault")
            self.found |= {row["fault"]: row for row in rows}


def main(arguments: list[str]) -> int:
    """Run, and give the exit code: 0 if all was survived."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--spoiled", type=int, default=SPOILED, help="inputs of each kind")
    own, arguments = parser.parse_known_args(arguments)
    collected = _Rows()
    os.environ[ALL] = "1"
    folder = str(Path(__file__).parent)
    options = ["-q", "-n", "2", "--tb=line", "-p", "no:cacheprovider"]
    status = pytest.main([*options, folder, *arguments], plugins=[collected])
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    rows = known | collected.found
    rows = {fault.name: rows[fault.name] for fault in faults() if fault.name in rows}
    for row in collected.found.values():
        print(_line(row))
    spoiled = known.get(_INPUTS, {})
    _keep({**rows, _INPUTS: spoiled})
    spoiled |= _spoiled(own.spoiled)
    _keep({**rows, _INPUTS: spoiled})
    untried = [fault.name for fault in faults() if fault.name not in rows]
    failed = [row for row in rows.values() if row["problems"]]
    print(f"{len(rows)} faults, {len(failed)} not survived, {len(untried)} not tried")
    unread = [name for name in KINDS if spoiled.get(name, {"problems": 1})["problems"]]
    print(f"spoiled inputs: {', '.join(unread) or 'none'} not survived or not tried")
    if untried or failed or unread:
        return 1
    PAGE.write_text(page(rows, spoiled))
    return int(status)


_INPUTS = "spoiled inputs"


def _keep(results: Mapping[str, Any]) -> None:
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")


def _spoiled(count: int) -> dict[str, dict[str, int]]:
    """Spoil inputs of each kind; give how many there were, and how many gave a traceback."""
    if not count:
        return {}
    found = {}
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        results = {pool.submit(tried, name, range(count), ways=1): name for name in KINDS}
        print(f"spoiling {count} inputs of each of {len(results)} kinds …", flush=True)
        for done in as_completed(results):
            name, result = results[done], done.result()
            found[name] = {"inputs": result.inputs, "problems": len(result.problems)}
            print(f"  {name}: {found[name]['problems']} not survived", flush=True)
    return {name: found[name] for name in KINDS}


def _line(row: Mapping[str, Any]) -> str:
    declared = ", ".join(row["declared"]) or ("in the log" if row["warned"] else "nothing is lost")
    left = ", ".join(row["left"]) or "nothing left"
    verdict = f"  NOT SURVIVED: {'; '.join(row['problems'])}" if row["problems"] else ""
    return f"{row['fault']}: {row['outcome']}; {declared}; {row['seconds']:.2f} s; {left}{verdict}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
