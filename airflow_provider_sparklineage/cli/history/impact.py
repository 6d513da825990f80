"""``impact`` and ``stale``: what is wrong, and what to run again in which order."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import msgspec

from airflow_provider_sparklineage.cli import show
from airflow_provider_sparklineage.cli.commands import Argument, Command
from airflow_provider_sparklineage.cli.history import arguments, plans
from airflow_provider_sparklineage.cli.history.causes import cause_text
from airflow_provider_sparklineage.cli.history.grouping import (
    grouped,
    more_text,
    partitions_text,
)
from airflow_provider_sparklineage.cli.history.hops import print_hops
from airflow_provider_sparklineage.cli.history.reading import counted, opened
from airflow_provider_sparklineage.cli.history.tables import (
    Column,
    certainty_text,
    job_text,
    labels,
    print_table,
)
from airflow_provider_sparklineage.cli.output import say_json_lines
from airflow_provider_sparklineage.model.exceptions import UnusableInputError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from typing import IO

    from airflow_provider_sparklineage.cli.history.tables import Document
    from airflow_provider_sparklineage.history.queries.answers import Plan


def _impact(args: argparse.Namespace) -> int:
    from airflow_provider_sparklineage.history.queries.datasets import dataset_of
    from airflow_provider_sparklineage.history.queries.impact import impact

    _check(args)
    as_of = arguments.time_of(args.as_of)
    with opened(args) as history, counted("Partitions made of it") as progress:
        dataset = dataset_of(history, args.dataset)
        found = impact(
            history, dataset, args.partition, args.column, as_of, args.depth, progress=progress
        )
    hops = msgspec.to_builtins(found.hops)
    if not (args.plan or args.json):
        empty = "Nothing is known that was made of it."
        print_hops(hops, sys.stdout, empty=empty, is_all=args.all, has_plan=True)
    return _answer(args, hops, found.plan)


def _stale(args: argparse.Namespace) -> int:
    from airflow_provider_sparklineage.history.queries.datasets import dataset_of
    from airflow_provider_sparklineage.history.queries.stale import plan_of, stale

    _check(args)
    with opened(args) as history, counted("Stale runs") as progress:
        dataset = dataset_of(history, args.dataset) if args.dataset is not None else None
        ignored = [dataset_of(history, name) for name in args.ignore]
        found = stale(history, dataset, progress, ignored)
        plan = plan_of(history, found)
    rows = msgspec.to_builtins(found)
    if not (args.plan or args.json):
        print_stale(rows, sys.stdout, is_all=args.all)
    code = _answer(args, rows, plan)
    return 1 if args.strict and rows and not args.clear else code


def _check(args: argparse.Namespace) -> None:
    if args.json and args.clear:
        msg = "Give --json or --clear, not both."
        raise UnusableInputError(msg)


def _answer(args: argparse.Namespace, rows: Sequence[Document], plan: Plan) -> int:
    """Print for programs what was asked for, or the plan for people, and clear it."""
    if args.json:
        say_json_lines(plans.documents(plan) if args.plan else rows)
        return 0
    if rows or args.plan:
        plans.print_plan(plan, sys.stdout, is_all=args.all)
    if not args.clear:
        return 0
    from airflow_provider_sparklineage.cli.history.clearing import clear

    return clear(plan.steps, yes=args.yes)


def print_stale(rows: Sequence[Document], file: IO[str], *, is_all: bool = False) -> None:
    """Print what is stale with what changed: a line for each version, or for each cause.

    :param is_all: whether there is a line for each, however many there are
    """
    out = show.console(file)
    if not rows:
        out.print("Nothing is stale.")
        return
    name = labels([*rows, *(row["cause"] for row in rows)], "dataset")

    def since(row: Document) -> str:
        return cause_text(row, name(row["cause"]["dataset"]))

    def common(row: Document) -> tuple[str, ...]:
        return name(row["dataset"]), job_text(row["run"]), since(row), certainty_text(row)

    # The plan below has a line for each run.
    lines = grouped(rows, common, is_all=is_all, most=0)
    columns = (
        Column("dataset", lambda row: name(row["dataset"]), "cyan"),
        Column("partition", partitions_text),
        Column("since then", since),
        Column("note", certainty_text, "yellow"),
    )
    print_table(columns, lines, file)
    if more := more_text(rows, lines):
        out.print(more)
    out.print()


_PLAN = (
    Argument(("--plan",), {"action": "store_true", "help": "print the rerun plan alone"}),
    Argument(
        ("--clear",),
        {
            "action": "store_true",
            "help": "run what the plan lists again, wave by wave: Airflow clears it, after a "
            "question; only where Airflow has its database",
        },
    ),
    Argument(("--yes",), {"action": "store_true", "help": "clear without the question"}),
)
IMPACT = Command(
    "impact",
    "Show all that was made of a partition or a column, and what to run again, in which order",
    _impact,
    (
        arguments.DATASET,
        arguments.PARTITION,
        arguments.COLUMN,
        arguments.AS_OF,
        arguments.DEPTH,
        *_PLAN,
        arguments.ALL,
        arguments.STORE,
        arguments.JSON,
    ),
)
STALE = Command(
    "stale",
    "List partitions made of data that has changed since, why, and what to run again",
    _stale,
    (
        arguments.ANY_DATASET,
        arguments.IGNORE,
        *_PLAN,
        arguments.ALL,
        arguments.STORE,
        arguments.JSON,
        arguments.STRICT,
    ),
)
