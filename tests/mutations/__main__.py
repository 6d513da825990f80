"""Try thousands of spoiled inputs of each kind: ``python -m tests.mutations --count 10000``."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.mutations.kinds import KINDS, Result, try_one
from tests.mutations.spoiling import spoiled


def tried(name: str, seeds: range, *, ways: int = 99, is_verbose: bool = False) -> Result:
    """Try one input for each seed.

    :param ways: in how many ways it is read, of all that there are
    """
    kind, result = KINDS[name], Result()
    with tempfile.TemporaryDirectory(prefix="sparklineage-mutations-") as folder:
        started = time.monotonic()
        for seed in seeds[:: kind.every]:
            chance = random.Random(f"{name} {seed}")
            original = chance.choice(kind.originals())
            text = spoiled(original[kind.of], chance)
            runs = chance.sample(kind.runs, min(ways, len(kind.runs)))
            result.inputs += 1
            result.runs += len(runs)
            for problem in try_one(kind, runs, text, original, Path(folder)):
                result.problems.setdefault(problem, []).append(seed)
            if is_verbose and result.inputs % 500 == 0:
                speed = result.inputs / (time.monotonic() - started)
                line = f"\r{name}: {result.inputs} of {len(seeds)}, {speed:.0f} a second "
                print(line, end="", file=sys.stderr, flush=True)
    if is_verbose:
        print(file=sys.stderr)
    return result


def main() -> int:
    """Print a table of what came of them; the exit code is 1 if one was not survived."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}")
    parser.add_argument("--count", type=int, default=10_000, help="inputs of each kind")
    parser.add_argument("--seed", type=int, default=0, help="of the first input")
    parser.add_argument("--ways", type=int, default=99, help="in which each is read, if not all")
    args = parser.parse_args()
    found = False
    for name in args.kinds or KINDS:
        seeds = range(args.seed, args.seed + args.count)
        result = tried(name, seeds, ways=args.ways, is_verbose=True)
        problems = sum(map(len, result.problems.values()))
        print(f"{name:15} {result.inputs:7} inputs {result.runs:8} runs {problems:6} not survived")
        for problem, seeds in sorted(result.problems.items(), key=lambda p: -len(p[1])):
            print(f"    {len(seeds):5}  {problem}  (seed {seeds[0]})")
        found = found or bool(problems)
    return int(found)


if __name__ == "__main__":
    sys.exit(main())
