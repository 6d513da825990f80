"""Run the queries on each format, and print how much of what the events report is right."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.truth import opened
from tests.truth.queries import load
from tests.truth.running import FORMATS, Options, run
from tests.truth.verdict import verdict

RESULTS = Path(__file__).parents[2] / "build" / "truth.json"


def main() -> int:
    """Run, and give the exit code: 0 if all is right."""
    parser = argparse.ArgumentParser(prog="python -m tests.truth", description=__doc__)
    parser.add_argument("formats", nargs="*", metavar="format", help=", ".join(FORMATS))
    parser.add_argument("--queries", nargs="+", default=(), help="some of them: q01 q05")
    parser.add_argument(
        "--shared", action="store_true", help="let all queries read the same tables"
    )
    parser.add_argument("--way", default="", help="in which all results are written")
    parser.add_argument("--scale", type=float, default=0.02, help="scale factor of the data")
    parser.add_argument("--keep", type=Path, help="an empty folder, in which all is left")
    chosen = parser.parse_args()
    if unknown := set(chosen.formats) - FORMATS.keys():
        parser.error(f"no such format: {', '.join(sorted(unknown))}")
    if reason := opened.why_not():
        print(f"which files are opened is not looked at: {reason}")
    options = Options(chosen.scale, chosen.way, chosen.shared, trace=not reason)
    work = chosen.keep or Path(tempfile.mkdtemp(prefix="truth-"))
    queries, verdicts = load(chosen.queries), []
    try:
        for kind in chosen.formats or FORMATS:
            begun = time.monotonic()
            print(f"{kind}: {len(queries)} queries …", flush=True)
            ran = run(kind, queries, work / kind, options)
            verdicts.append(verdict(ran, queries))
            for line in verdicts[-1].wrong:
                print(f"  {line}")
            print(f"{verdicts[-1]} ({time.monotonic() - begun:.0f} s)", flush=True)
    finally:
        if not chosen.keep:
            shutil.rmtree(work)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({v.kind: v.as_dict() for v in verdicts}, indent=1) + "\n")
    return 0 if all(v.is_right for v in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
