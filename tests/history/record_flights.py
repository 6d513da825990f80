"""Record a month of the flights example: ``python -m tests.history.record_flights``.

A real Airflow with its scheduler runs the example for the first thirty days of January 2013, one
after the other. Then somebody clears ``prepare_flights`` of one day, which writes that day's
flights anew, and ``impact --clear`` what was built from them. What the archive has after each of
the three is written to ``tests/golden/history``: a line is a file of the archive. It takes a
quarter of an hour.
"""

from __future__ import annotations

import gzip
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.history.flights import DAYS, REWRITTEN, Flights

if TYPE_CHECKING:
    from collections.abc import Iterable

FOLDER = Path(__file__).parents[1] / "golden" / "history"


def main() -> None:
    """Record the three parts."""
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    with tempfile.TemporaryDirectory(prefix="flights-") as folder:
        month = Flights(Path(folder))
        try:
            month.start()
            _record(month)
        finally:
            month.stop()


def _record(month: Flights) -> None:
    known: list[bytes] = []
    for name, act in (
        ("month", lambda: month.run(DAYS)),
        ("rewritten", lambda: month.clear_task("prepare_flights", REWRITTEN)),
        ("cleared", lambda: _clear_what_is_stale(month)),
    ):
        act()
        new = [line for line in month.lines() if line not in known]
        _write(FOLDER / f"flights_{name}.ndjson.gz", new, month)
        known += new
        print(f"{name}: {len(new)} events", flush=True)


def _clear_what_is_stale(month: Flights) -> None:
    rewritten = ("flights", "--partition", f"flight_date={REWRITTEN}")
    for words in (
        ("history", "build"),
        ("stale",),
        ("impact", *rewritten, "--plan", "--clear", "--yes"),
        ("history", "build"),
        ("stale", "--strict"),
    ):
        done = month.ask(*words)
        print(f"$ sparklineage {' '.join(words)}\n{done.stdout}{done.stderr}", flush=True)
        done.check_returncode()


def _write(file: Path, lines: Iterable[bytes], month: Flights) -> None:
    file.parent.mkdir(exist_ok=True)
    content = b"".join(line + b"\n" for line in lines)
    for varies, name in ((str(month.home), b"/flights"), (month.url, b"http://airflow:8080")):
        content = content.replace(varies.encode(), name)
    # Without the time, so that the same content is the same file.
    file.write_bytes(gzip.compress(content, mtime=0))


if __name__ == "__main__":
    main()
