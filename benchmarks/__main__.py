"""Measure the speed goals, print one line each, and write ``docs/performance.md``: ``make bench``.

With names (``make bench ARGS='merging composition'``) only these are measured, and nothing is
written: the page is of one run. What takes long has to be named (``history_spark``). A missed goal
is reported, and is no error: chance can miss one.
"""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from multiprocessing import get_context

from benchmarks import report
from benchmarks.results import Result, printed

MODULES = {
    "merging": "Merging",
    "composition": "Columns",
    "partitions": "Partitions",
    "tracing": "Templates",
    "submitting": "Before the job",
    "publishing": "After the job",
    "collecting": "After a job in a cluster",
    "whole_task": "A whole task",
    "dag_files": "DAG files",
    "adopting": "Adopted tasks in DAG files",
    "services": "Other ways to start Spark",
    "observer": "In the driver",
    "draining": "At the end of the driver",
    "delivery": "From a driver in a cluster",
    "datahub": "To DataHub",
    "page": "The page",
    "building": "Building the history",
    "history": "Questions to the history",
    "history_page": "The page of the history",
    "schedules": "Schedules against the history",
}
"""Titles of what the modules of this package measure."""

LONG = {
    "history_merging": "Merging into a large history",
    "history_spark": "Building the history on Spark",
}
"""Of what takes half an hour, and is measured only if it is named."""

_QUIET = 0.5


def main(arguments: list[str]) -> None:
    """Measure all, or what is named."""
    titles = MODULES | LONG
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(titles))
    names = parser.parse_args(arguments).names
    if unknown := set(names) - titles.keys():
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}. There are: {[*titles]}")
    load = os.getloadavg()[0]
    if load > _QUIET:
        print(f"The machine is busy (load {load:.1f}): wait until it is quiet, or figures are off.")
    found = {}
    for name in names or MODULES:
        print(f"{titles[name]} ({name})", flush=True)
        # Each in a process of its own: what one frees there, another would use, uncounted.
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            found[titles[name]] = pool.submit(printed, name).result()
    missed = [
        r.name for each in found.values() for r in each if isinstance(r, Result) and r.is_missed
    ]
    print(f"{len(missed)} goals missed{': ' if missed else ''}{'; '.join(missed)}")
    if not names:
        report.write(found, datetime.now(UTC).date())
        print(f"written: {report.PAGE}")


if __name__ == "__main__":
    main(sys.argv[1:])
