"""Run queries and jobs on each format, and print how much of what the events report is right."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests import record_events
from tests.spark import submissions
from tests.truth import opened
from tests.truth.jobs import load as load_jobs
from tests.truth.queries import load
from tests.truth.running import FORMATS, Options, run
from tests.truth.running_jobs import run_jobs
from tests.truth.verdict import verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tests.truth.running_jobs import JobsVerdict
    from tests.truth.verdict import Verdict

RESULTS = Path(__file__).parents[2] / "build" / "truth.json"


def main() -> int:
    """Run, and give the exit code: 0 if all is right."""
    parser = _parser()
    chosen = parser.parse_args()
    if unknown := set(chosen.formats) - FORMATS.keys():
        parser.error(f"no such format: {', '.join(sorted(unknown))}")
    spark = record_events.Spark.of(chosen.spark_submit)
    if reason := opened.why_not():
        print(f"which files are opened is not looked at: {reason}")
    try:
        jobs = load_jobs(chosen.jobs or ())
    except KeyError as error:
        parser.error(f"no such job: {error}")
    options = Options(chosen.scale, chosen.way, chosen.shared, trace=not reason)
    work = chosen.keep or Path(tempfile.mkdtemp(prefix="truth-"))
    queries = [] if chosen.jobs else load(chosen.queries)
    verdicts: dict[str, Verdict | JobsVerdict] = {}

    def report(name: str, verdict: Callable[[], Verdict | JobsVerdict]) -> None:
        begun = time.monotonic()
        print(f"{name} …", flush=True)
        found = verdicts[name] = verdict()
        for line in found.wrong:
            print(f"  {line}")
        figures, *more = str(found).splitlines()
        print(f"{figures} ({time.monotonic() - begun:.0f} s)", *more, sep="\n", flush=True)

    try:
        for kind in _possible(chosen.formats or FORMATS, spark):
            at = work / kind
            if queries:
                report(kind, lambda: verdict(run(spark, kind, queries, at, options), queries))  # noqa: B023
            if not chosen.queries:
                report(f"{kind}, jobs", lambda: run_jobs(spark, kind, jobs, at / "jobs"))  # noqa: B023
    finally:
        if not chosen.keep:
            shutil.rmtree(work)
    RESULTS.parent.mkdir(exist_ok=True)
    results = {name: found.as_dict() for name, found in verdicts.items()}
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    return 1 if any(v.wrong for v in verdicts.values()) else 0


def _possible(formats: Iterable[str], spark: record_events.Spark) -> Iterator[str]:
    """Leave out, and print, formats whose connectors have no release for a Spark."""
    for kind in formats:
        if set(FORMATS[kind]) <= set(submissions.available(spark)):
            yield kind
        else:
            print(f"{kind}: there is no release for Spark {spark.line}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.truth", description=__doc__)
    parser.add_argument("formats", nargs="*", metavar="format", help=", ".join(FORMATS))
    parser.add_argument("--queries", nargs="+", default=(), help="some of them: q01 q05")
    parser.add_argument("--jobs", nargs="+", help="some of the jobs, and no queries")
    parser.add_argument(
        "--shared", action="store_true", help="let all queries read the same tables"
    )
    parser.add_argument("--way", default="", help="in which all results are written")
    parser.add_argument("--scale", type=float, default=0.02, help="scale factor of the data")
    parser.add_argument(
        "--spark-submit",
        type=Path,
        default=Path(sys.executable).with_name("spark-submit"),
        help="that of another environment, for its Spark",
    )
    parser.add_argument("--keep", type=Path, help="an empty folder, in which all is left")
    return parser


if __name__ == "__main__":
    sys.exit(main())
