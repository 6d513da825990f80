"""``impact`` and ``stale``: what is wrong, and what to run again in which order."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import msgspec

from airflow_provider_sparklineage.cli import show
from airflow_provider_sparklineage.cli.commands import Argument, Command
from airflow_provider_sparklineage.cli.history import arguments, plans
from airflow_provider_sparklineage.cli.history.hops import print_hops
from airflow_provider_sparklineage.cli.history.reading import opened
from airflow_provider_sparklineage.cli.history.tables import (
    Column,
    certainty_text,
    job_text,
    labels,
    partition_text,
    print_table,
    time_text,
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
    with opened(args) as history:
        dataset = dataset_of(history, args.dataset)
        found = impact(history, dataset, args.partition, args.column, arguments.time_of(args.as_of))
    hops = msgspec.to_builtins(found.hops)
    if not (args.plan or args.json):
        print_hops(hops, sys.stdout, empty="Nothing is known that was made of it.")
    return _answer(args, hops, found.plan)


def _stale(args: argparse.Namespace) -> int:
    from airflow_provider_sparklineage.history.queries.datasets import dataset_of
    from airflow_provider_sparklineage.history.queries.stale import plan_of, stale

    _check(args)
    with opened(args) as history:
        found = stale(history, dataset_of(history, args.dataset) if args.dataset else None)
        plan = plan_of(history, found)
    rows = msgspec.to_builtins(found)
    if not (args.plan or args.json):
        print_stale(rows, sys.stdout)
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
        plans.print_plan(plan, sys.stdout)
    if not args.clear:
        return 0
    from airflow_provider_sparklineage.cli.history.clearing import clear

    return clear(plan.steps, yes=args.yes)


def print_stale(rows: Sequence[Document], file: IO[str]) -> None:
    """Print a line for each version that is stale, with what changed."""
    out = show.console(file)
    if not rows:
        out.print("Nothing is stale.")
        return
    name = labels([*rows, *(row["cause"] for row in rows)], "dataset")
    columns = (
        Column("dataset", lambda row: name(row["dataset"]), "cyan"),
        Column("partition", lambda row: partition_text(row["partition"])),
        Column("made by", lambda row: job_text(row["run"])),
        Column("at (UTC)", lambda row: time_text(row["run"]["ended"])),
        Column("since then", lambda row: _cause(row, name(row["cause"]["dataset"]))),
        Column("note", certainty_text, "yellow"),
    )
    print_table(columns, rows, file)
    out.print()


_DONE = {"overwrite": "was rewritten", "append": "was added to", "create": "was made anew"}
_DONE |= {"drop": "was dropped", "truncate": "was emptied"}


def _cause(row: Document, dataset: str) -> str:
    """Say what changed, when, and that what was read is stale itself, if that is how."""
    cause = row["cause"]
    done = _DONE.get(cause["how"], "was written")
    what = f"{dataset} {partition_text(cause['partition'])} {done} {time_text(cause['at'])}"
    return what if row["is_direct"] else f"what it read is stale: {what}"


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
        *_PLAN,
        arguments.STORE,
        arguments.JSON,
    ),
)
STALE = Command(
    "stale",
    "List partitions made of data that has changed since, why, and what to run again",
    _stale,
    (arguments.ANY_DATASET, *_PLAN, arguments.STORE, arguments.JSON, arguments.STRICT),
)
