"""Try all faults, print what came of them, and write ``docs/reliability.md``: ``make faults``.

Arguments are pytest's: with ``-k "the listener"`` some of them are tried again, and the page is
written with what the last run knows of the others.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.faults.page import PAGE, page
from tests.faults.registry import faults

if TYPE_CHECKING:
    from collections.abc import Mapping

RESULTS = PAGE.parents[1] / "build" / "faults.json"


class _Rows:
    """Collects the rows of all tests, those of xdist's workers too."""

    def __init__(self) -> None:
        self.found: dict[str, dict[str, Any]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            rows = (value for name, value in report.user_properties if name == "fault")
            self.found |= {row["fault"]: row for row in rows}


def main(arguments: list[str]) -> int:
    """Run, and give the exit code: 0 if every fault was survived."""
    collected = _Rows()
    folder = str(Path(__file__).parent)
    options = ["-q", "-n", "2", "--tb=line", "-p", "no:cacheprovider"]
    status = pytest.main([*options, folder, *arguments], plugins=[collected])
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    rows = known | collected.found
    rows = {fault.name: rows[fault.name] for fault in faults() if fault.name in rows}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n")
    for row in collected.found.values():
        print(_line(row))
    untried = [fault.name for fault in faults() if fault.name not in rows]
    failed = [row for row in rows.values() if row["problems"]]
    print(f"{len(rows)} faults, {len(failed)} not survived, {len(untried)} not tried")
    if untried or failed:
        return 1
    PAGE.write_text(page(rows))
    return int(status)


def _line(row: Mapping[str, Any]) -> str:
    declared = ", ".join(row["declared"]) or ("in the log" if row["warned"] else "nothing is lost")
    left = ", ".join(row["left"]) or "nothing left"
    verdict = f"  NOT SURVIVED: {'; '.join(row['problems'])}" if row["problems"] else ""
    return f"{row['fault']}: {row['outcome']}; {declared}; {row['seconds']:.2f} s; {left}{verdict}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
