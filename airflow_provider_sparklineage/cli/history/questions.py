"""Asks the history; prints answers as tables or JSON: ``trace``, ``impact``, ``stale`` and more.

Each command opens the store, asks, and prints rows: a table for people, and with ``--json`` one
object a line. ``impact`` and ``stale`` have a plan as well: the runs to run again, in order. With
``--clear`` Airflow runs them again (:mod:`.clearing`).
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

import airflow_provider_sparklineage
from airflow_provider_sparklineage.cli import commands, show
from airflow_provider_sparklineage.cli.history import tables
from airflow_provider_sparklineage.cli.history.clearing import clear
from airflow_provider_sparklineage.cli.history.store import opened
from airflow_provider_sparklineage.history.queries.datasets import dataset_of, names_in
from airflow_provider_sparklineage.history.queries.drift import compare
from airflow_provider_sparklineage.history.queries.gaps import completeness, is_expected
from airflow_provider_sparklineage.history.queries.impact import impact
from airflow_provider_sparklineage.history.queries.patterns import observed
from airflow_provider_sparklineage.history.queries.patterns.timetable import timetables
from airflow_provider_sparklineage.history.queries.stale import frequent_causes, plan_of, stale
from airflow_provider_sparklineage.history.queries.trace import trace
from airflow_provider_sparklineage.history.queries.unjudged import of_stale, of_trace
from airflow_provider_sparklineage.history.queries.walk import size_of
from airflow_provider_sparklineage.model.exceptions import TooManyError
from airflow_provider_sparklineage.model.texts import some

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Sequence
    from typing import IO

    from airflow_provider_sparklineage.history.queries.answers import Plan, Unjudged
    from airflow_provider_sparklineage.history.queries.walk import Size


def time_of(text: str | None) -> datetime | None:
    """Read a time from the command line, as an aware time in UTC; None if ``text`` is None.

    :raise UnusableInputError: if the text is not a time
    """
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text.strip())
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):  # in UTC, the first and last hours may have no year
        fix = "Write it as 2024-10-16 or 2024-10-16T08:00."
        commands.refuse(f"--as-of {text} is no time.", fix)


# --- trace, gaps, drift and patterns --------------------------------------------------------------


def answer_trace(args: argparse.Namespace) -> int:
    """Print the partitions and columns from which data was made; return the exit code."""
    as_of = time_of(args.as_of)
    with (
        opened(args) as history,
        commands.progress("Partitions that it was made of", None) as reached,
    ):
        dataset = dataset_of(history, args.dataset)
        answer = trace(
            history,
            dataset,
            args.partition,
            args.column,
            as_of,
            args.depth,
            reached,
            is_direct=args.direct,
        )
        unjudged = of_trace(history, dataset, answer)
        names = names_in(history)
    hops = msgspec.to_builtins(answer)

    def for_people() -> None:
        empty = _empty_trace(args, is_written=not unjudged)
        tables.print_hops(hops, sys.stdout, names=names, empty=empty, is_all=args.all)

    _print_lines(args, hops, for_people, unjudged)
    return 0


def _empty_trace(args: argparse.Namespace, *, is_written: bool) -> str:
    if args.events:
        return "None of these runs is known to have written it."
    if not is_written:
        return ""
    return "Nothing of it was there then." if args.as_of else "Nothing of it is there any more."


def answer_gaps(args: argparse.Namespace) -> int:
    """Print the partitions that runs should have written and did not; return the exit code."""
    with opened(args) as history, commands.progress("Comparing runs", None):
        dataset = dataset_of(history, args.dataset)
        answer = completeness(history, dataset)
        empty = _COMPLETE if is_expected(history, dataset) else _UNPARTITIONED
    rows: list[tables.Document] = msgspec.to_builtins(answer.gaps)

    def for_people() -> None:
        if rows:
            print_gaps(rows, sys.stdout, is_all=args.all)
        else:
            show.console(sys.stdout).print(empty)

    _print_lines(args, rows, for_people, answer.unjudged)
    return 1 if rows and args.strict else 0


_COMPLETE = "No partition is missing, as far as runs are known."
_UNPARTITIONED = "No run is known that wrote partitions of it, so that none can be expected."


def print_gaps(rows: Sequence[tables.Document], file: IO[str], *, is_all: bool = False) -> None:
    """Print gaps: many of them in a line for each DAG run, or for each reason if that is many, too.

    :param is_all: whether each gap has a line of its own, however many there are
    """

    def of_task(row: tables.Document) -> tuple[Any, ...]:
        return row["namespace"], row["job"], row["reason"]

    def of_run(row: tables.Document) -> tuple[Any, ...]:
        return *of_task(row), row["dag_run_id"], row["logical_date"]

    lines = tables.grouped(rows, of_run, is_all=is_all)
    if len(lines) > tables.MOST_LINES:
        lines = tables.grouped(rows, of_task, is_all=is_all)
    columns = (
        tables.Column("partition", tables.partitions_text, "cyan"),
        tables.Column(
            "DAG",
            lambda row: row["dag_id"] or "",
            heading=lambda row: row["dag_id"] or "",
            below_heading=lambda _: "",
        ),
        tables.Column("DAG run", _dag_runs_text),
        tables.namespace_column(rows),
        tables.Column(
            "logical date (UTC)",
            lambda row: tables.times_text(row, _logical_date),
            detail=2,
        ),
        tables.Column("why", lambda row: row["reason"].replace("_", " "), detail=1),
    )
    tables.print_table(columns, lines, file, of=len(rows))


def _dag_runs_text(row: tables.Document) -> str:
    return tables.ends_text(one["dag_run_id"] or "" for one in tables.rows_of(row))


def _logical_date(row: tables.Document) -> str:
    return tables.time_text(row["logical_date"])


def answer_drift(args: argparse.Namespace) -> int:
    """Print the changes from each run of a task to the next; return the exit code."""
    with opened(args) as history, commands.progress("Comparing runs", None):
        answer = compare(history, args.task)
        columns = _drift_columns(names_in(history), are_many=answer.tasks > 1)
    empty = "Each run did the same as the one before it."
    return _listed(args, answer.changes, columns, empty, answer.unjudged)


def _drift_columns(names: tables.Names, *, are_many: bool) -> Sequence[tables.Column]:
    """Give the columns of the differences between runs.

    :param are_many: whether tasks of several namespaces have the name
    """
    return (
        tables.Column("run ended (UTC)", lambda row: tables.time_text(row["run"]["ended"])),
        tables.Column("what", lambda row: row["kind"].replace("_", " ")),
        tables.Column("dataset", lambda row: tables.dataset_text(row["dataset"], names), "cyan"),
        tables.Column("column", lambda row: row["column"] or ""),
        tables.Column("change", lambda row: row["change"], detail=1),
        tables.Column("namespace", lambda row: row["namespace"] if are_many else ""),
    )


def answer_patterns(args: argparse.Namespace) -> int:
    """Print the rules by which tasks choose the partitions that they read; return the exit code."""
    if args.mapper:
        return _answer_mappers(args)
    with opened(args) as history, commands.progress("Comparing runs", None):
        dataset = dataset_of(history, args.dataset)
        learned = observed.patterns(history, dataset)
        unruled = observed.without_pattern(history, dataset, learned)
        names = names_in(history)
    empty = "" if unruled else "No run is known that read its sources."
    code = _listed(args, learned, _pattern_columns(names, msgspec.to_builtins(learned)), empty)
    if unruled and not args.json:
        read = show.escape(some([names.get(one, str(one)) for one in unruled], _MAX_UNRULED))
        show.console(sys.stdout).print(f"Read by conditions, so that no rule is known: {read}.")
    return code


def _answer_mappers(args: argparse.Namespace) -> int:
    """Print Airflow's timetables from the rules; return the exit code."""
    with opened(args) as history, commands.progress("Comparing runs", None):
        answer = timetables(history, dataset_of(history, args.dataset))
    if args.json:
        commands.say_json_lines(msgspec.to_builtins(answer))
        return 0
    if not answer:
        show.console(sys.stdout).print("No run is known that read its sources.")
    for one in answer:
        for unsaid in one.unsaid:
            commands.say(f"# {unsaid.input}: {unsaid.reason}")
        for line in one.code.splitlines():
            commands.say(line)
        commands.say("")
    if any(one.needs_plugin for one in answer):
        commands.say(f"# --- the file plugins/{_PLUGIN.name} ---")
        for line in _PLUGIN.read_text(encoding="utf-8").splitlines():
            commands.say(line)
    return 0


# Only read: it imports Airflow, which this command does not need.
_PLUGIN = Path(airflow_provider_sparklineage.__file__).parent / "plugins" / "partition_rule.py"
_MAX_UNRULED = 10


def _pattern_columns(
    names: tables.Names, rows: Sequence[tables.Document]
) -> Sequence[tables.Column]:
    return (
        tables.Column(
            "job",
            lambda row: row["job"] or "",
            heading=lambda row: row["job"] or "",
            below_heading=lambda _: "",
        ),
        tables.Column("reads", lambda row: tables.dataset_text(row["input"], names), "cyan"),
        tables.Column("rule", lambda row: row["relation"], detail=1),
        tables.Column("runs", lambda row: f"{row['support']} of {row['seen']}"),
        tables.namespace_column(rows),
        tables.Column("exceptions", _exceptions, "yellow", detail=1),
    )


_MAX_EXCEPTIONS = 3


def _exceptions(row: tables.Document) -> str:
    """Name the latest runs that break a pattern, and say how each of them breaks it."""
    runs = row["exceptions"][-_MAX_EXCEPTIONS:]
    more = len(row["exceptions"]) - len(runs)
    return "; ".join([*map(_exception, runs), *([f"and {more} earlier"] if more else [])])


def _exception(one: tables.Document) -> str:
    parts = [
        f"{what} {some(cells, _MAX_EXCEPTIONS)}"
        for what, cells in (("without", one["missing"]), ("also", one["unexpected"]))
        if cells
    ]
    return f"{tables.time_text(one['run']['ended'])} {', '.join(parts)}"


def _listed(
    args: argparse.Namespace,
    answer: Sequence[msgspec.Struct],
    columns: Sequence[tables.Column],
    empty: str,
    unjudged: Sequence[Unjudged] = (),
) -> int:
    rows: list[tables.Document] = msgspec.to_builtins(answer)

    def for_people() -> None:
        if rows:
            tables.print_table(columns, rows, sys.stdout)
        elif empty:
            show.console(sys.stdout).print(empty)

    _print_lines(args, rows, for_people, unjudged)
    return 1 if rows and getattr(args, "strict", False) else 0


def _print_lines(
    args: argparse.Namespace,
    rows: Iterable[tables.Document],
    for_people: Callable[[], None],
    unjudged: Sequence[Unjudged],
) -> None:
    """Print an answer, and what it cannot judge; under ``--unjudged`` print the latter alone.

    Under ``--json`` stdout has objects of one kind only, so that sentences go to stderr.

    :param for_people: a function that prints the answer without ``--json``
    """
    is_alone = getattr(args, "unjudged", False)
    if args.json and is_alone:
        commands.say_json_lines(msgspec.to_builtins(unjudged))
    elif args.json:
        commands.say_json_lines(rows)
        for one in unjudged:
            commands.note(f"note: not judged: {one.text}")
    else:
        if not is_alone:
            for_people()
        tables.print_unjudged(unjudged, sys.stdout, empty="All was judged." if is_alone else "")


# --- impact and stale, which have a plan ----------------------------------------------------------


def answer_impact(args: argparse.Namespace) -> int:
    """Print the data made from a partition or column, and the plan; return the exit code."""
    as_of = time_of(args.as_of)
    with opened(args) as history, commands.progress("Partitions made of it", None) as reached:
        dataset = dataset_of(history, args.dataset)
        answer = impact(
            history, dataset, args.partition, args.column, as_of, args.depth, progress=reached
        )
        size, names = size_of(history, answer.hops), names_in(history)
    hops = msgspec.to_builtins(answer.hops)

    def for_people() -> None:
        empty = "Nothing is known that was made of it."
        shown = {"is_all": args.all, "has_plan": True, "size": size}
        tables.print_hops(hops, sys.stdout, names=names, empty=empty, **shown)

    return _print_answer(args, hops, for_people, answer.plan, answer.unjudged, names)


_TOO_MANY_STALE = (
    "Name one dataset (sparklineage stale DATASET), or leave out changes of those that make most "
    "runs stale (--ignore DATASET): {}."
)


def answer_stale(args: argparse.Namespace) -> int:
    """Print the stale partitions, and the plan to make them again; return the exit code.

    A partition is stale if data from which it was made has changed since then.
    """
    with opened(args) as history, commands.progress("Stale runs", None) as reached:
        dataset = dataset_of(history, args.dataset) if args.dataset is not None else None
        ignored = [dataset_of(history, name) for name in args.ignore]
        try:
            versions = stale(history, dataset, reached, ignored)
        except TooManyError as error:
            if dataset is not None:
                raise
            names = names_in(history)
            causes = ", ".join(
                names.get(one, str(one)) for one in frequent_causes(history, ignored)
            )
            raise TooManyError(error.problem, _TOO_MANY_STALE.format(causes)) from error
        plan = plan_of(history, versions)
        unjudged = of_stale(history, dataset)
        size, names = size_of(history, versions), names_in(history)
    rows = msgspec.to_builtins(versions)

    def for_people() -> None:
        print_stale(rows, sys.stdout, names=names, is_all=args.all, size=size)

    code = _print_answer(args, rows, for_people, plan, unjudged, names)
    return 1 if args.strict and rows else code


def _print_answer(
    args: argparse.Namespace,
    rows: Sequence[tables.Document],
    for_people: Callable[[], None],
    plan: Plan,
    unjudged: Sequence[Unjudged],
    names: tables.Names,
) -> int:
    """Print the answer of ``impact`` or ``stale``, and clear the plan's runs under ``--clear``.

    Under ``--plan`` the plan is printed in place of the rows; without ``--json`` it follows them.

    :param for_people: a function that prints the rows without ``--json``
    :return: the exit code
    """

    def with_plan() -> None:
        if not args.plan:
            for_people()
        if rows or args.plan:
            tables.print_plan(plan, sys.stdout, names=names, is_all=args.all)

    documents = tables.plan_documents(plan) if args.plan else rows
    _print_lines(args, documents, with_plan, unjudged)
    if not args.clear:
        return 0
    runs = {row["run"]["run_id"] for row in rows if row["run"]}
    return clear(plan, runs, yes=args.yes)


def print_stale(
    rows: Sequence[tables.Document],
    file: IO[str],
    *,
    names: tables.Names,
    is_all: bool = False,
    size: Size | None = None,
) -> None:
    """Print stale versions, each with the change that made it stale.

    :param names: the names of the store's datasets
    :param is_all: whether each version has a line of its own, however many there are; if not,
        versions of a dataset with the same job, cause and note share a line
    :param size: how large they are, if it is to be printed
    """
    out = show.console(file)
    if not rows:
        out.print("Nothing is stale.")
        return

    def name(dataset: tables.Document) -> str:
        return tables.dataset_text(dataset, names)

    def since(row: tables.Document) -> str:
        return tables.causes_text(row, name(row["cause"]["dataset"]))

    def version(row: tables.Document) -> tuple[Any, ...]:
        return name(row["dataset"]), tables.job_text(row["run"]), tables.certainty_text(row)

    def of_cause(row: tables.Document) -> tuple[Any, ...]:
        return *version(row), since(row)

    def of_source(row: tables.Document) -> tuple[Any, ...]:
        cause = row["cause"]
        return *version(row), row["is_direct"], name(cause["dataset"]), tables.how_changed(cause)

    # The plan below has a line for each run.
    lines = tables.grouped(rows, of_cause, is_all=is_all, most=0)
    if len(lines) > tables.MOST_LINES:
        lines = tables.grouped(rows, of_source, is_all=is_all)
    columns = (
        tables.Column("dataset", lambda row: name(row["dataset"]), "cyan"),
        tables.Column("partition", tables.partitions_text),
        tables.Column("since then", since, detail=1),
        tables.Column("note", tables.certainty_text, "yellow", detail=1),
    )
    tables.print_table(columns, lines, file, of=len(rows))
    if size:
        tables.print_size(size, file)
    out.print()
