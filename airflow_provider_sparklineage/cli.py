"""The ``sparklineage`` command; the same commands are under ``airflow sparklineage``.

Nothing here imports Airflow, but `explain` for its macros, and :func:`airflow_commands`, which
Airflow itself calls and in which `explain` takes a task instead of templates. Exit codes:
0 done, 1 done with notes under ``--strict`` or not done, 2 unusable input.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sparklineage.exceptions import (
    RulesError,
    SparkLineageError,
    UnusableInputError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from airflow.cli.cli_config import CLICommand

    from airflow_provider_sparklineage.operators.dry_run import Run


class Argument(NamedTuple):
    """An argument, in the words that argparse and Airflow's ``Arg`` share."""

    flags: tuple[str, ...]
    settings: dict[str, Any]


class Command(NamedTuple):
    """A command of ``sparklineage``."""

    name: str
    help: str
    run: Callable[[argparse.Namespace], int]
    arguments: tuple[Argument, ...]


# --- merge, show ----------------------------------------------------------------------------------


def _merge(args: argparse.Namespace) -> int:
    from airflow_provider_sparklineage.inputs import materialised, merged_events, open_bundle
    from airflow_provider_sparklineage.lineage.task import merged_event, task_lineage

    with materialised(args.input) as paths:
        if merged_events(paths):
            msg = "The input holds merged events already; see them with `sparklineage show`."
            raise UnusableInputError(msg)
        with open_bundle(paths, application=args.application) as bundle:
            event = merged_event(bundle, task_lineage(bundle))
    if args.job_namespace:
        event["job"]["namespace"] = args.job_namespace
    if args.job_name:
        event["job"]["name"] = args.job_name
    print(json.dumps(event, sort_keys=True, indent=2, ensure_ascii=False))
    return _notes(event, strict=args.strict)


def _notes(event: dict[str, Any], *, strict: bool) -> int:
    from airflow_provider_sparklineage import show

    missing = show.degradations(event)
    for entry in missing:
        print(f"note: {entry['code']}: {entry['message']}", file=sys.stderr)
    if more := show.unlisted_degradations(event):
        print(f"note: {more} more are not listed in the event", file=sys.stderr)
    return 1 if strict and missing else 0


def _show(args: argparse.Namespace) -> int:
    from airflow_provider_sparklineage import show

    events = _events(args)
    for event in events:
        show.print_event(event, sys.stdout)
    missing = any(show.degradations(event) for event in events)
    return 1 if args.strict and missing else 0


def _columns(args: argparse.Namespace) -> int:
    from airflow_provider_sparklineage.lineage import paths
    from airflow_provider_sparklineage.show_paths import print_paths

    if args.upstream and args.downstream:
        msg = "Give --upstream or --downstream, not both."
        raise UnusableInputError(msg)
    graph = paths.graph(_events(args))
    column = graph.find(args.column)
    direction = paths.Direction.DOWNSTREAM if args.downstream else paths.Direction.UPSTREAM
    hops = graph.hops(column, direction)
    if args.json:
        document = paths.document(column, direction, hops)
        print(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        print_paths(column, direction, hops, sys.stdout)
    return 0


def _events(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Give the merged events of the input: of each bundle, and those in the files or of them."""
    from airflow_provider_sparklineage.inputs import materialised, merged_events, open_bundle
    from airflow_provider_sparklineage.lineage.task import merged_event, task_lineage

    def merged(of: list[str]) -> dict[str, Any]:
        with open_bundle(of, application=args.application) as bundle:
            return merged_event(bundle, task_lineage(bundle))

    with materialised(args.input) as paths:
        events = [merged([path]) for path in paths if Path(path).is_dir()]
        files = [path for path in paths if not Path(path).is_dir()]
        if files:
            events += merged_events(files) or [merged(files)]
    return events


# --- explain --------------------------------------------------------------------------------------


def _explain_texts(args: argparse.Namespace) -> int:
    from airflow_provider_sparklineage import explain, rules
    from airflow_provider_sparklineage.datasets import Naming
    from airflow_provider_sparklineage.expectations import derivation
    from airflow_provider_sparklineage.operators import dry_run
    from airflow_provider_sparklineage.representation import DEFAULT_LIMITS

    known = rules.load(args.rules) if args.rules else rules.NO_RULES
    run = _run_of(args)
    texts = [
        traced
        for number, text in enumerate(args.text)
        for traced in dry_run.trace_text(text, number, run)
    ]
    found = derivation.from_arguments(texts, Naming(), known)
    return _print_explanation(args, explain.explanation("", texts, found, DEFAULT_LIMITS))


def _explain_task(args: argparse.Namespace) -> int:
    from airflow_provider_sparklineage import explain, rules, settings
    from airflow_provider_sparklineage.operators import dry_run
    from airflow_provider_sparklineage.operators.spark_submit import option

    resolved = settings.resolve(option)
    known = rules.load(args.rules) if args.rules else resolved.partitioning
    task = dry_run.explain_task(args.dag_id, args.task_id, _run_of(args), known)
    document = explain.explanation(
        task.subject,
        task.texts,
        task.declared.expectations,
        resolved.limits,
        task.declared.problems,
    )
    return _print_explanation(args, document)


def _run_of(args: argparse.Namespace) -> Run:
    from airflow_provider_sparklineage.operators import dry_run

    ends = [args.data_interval_start, args.data_interval_end]
    if any(ends) and not all(ends):
        msg = "Give --data-interval-start and --data-interval-end together."
        raise UnusableInputError(msg)
    if any(ends) and not args.logical_date:
        msg = "A run with a data interval has a logical date; give --logical-date as well."
        raise UnusableInputError(msg)
    if not args.logical_date and not args.partition_key:
        msg = "Give --logical-date, or --partition-key for the run of a partition."
        raise UnusableInputError(msg)
    interval = tuple(dry_run.moment(end) for end in ends) if all(ends) else None
    return dry_run.Run(
        dry_run.moment(args.logical_date) if args.logical_date else None,
        interval,  # type: ignore[arg-type]  # two of them
        args.partition_key,
        dry_run.moment(args.partition_date) if args.partition_date else None,
        getattr(args, "map_index", -1),
    )


def _print_explanation(args: argparse.Namespace, document: dict[str, Any]) -> int:
    from airflow_provider_sparklineage import explain

    if args.json:
        print(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        explain.print_explanation(document, sys.stdout)
    return 1 if document["problems"] else 0


# --- schema, fetch-listener -----------------------------------------------------------------------


def _schema(args: argparse.Namespace) -> int:
    from importlib import resources

    folder = resources.files("airflow_provider_sparklineage") / "schemas"
    names = sorted(
        f.name.removesuffix(".json") for f in folder.iterdir() if f.name.endswith(".json")
    )
    if args.name is None:
        print("\n".join(names))
        return 0
    if args.name not in names:
        msg = f"There is no schema {args.name}; there are: {', '.join(names)}."
        raise UnusableInputError(msg)
    print((folder / f"{args.name}.json").read_text(encoding="utf-8"), end="")
    return 0


def _fetch_listener(args: argparse.Namespace) -> int:
    from airflow_provider_sparklineage.exceptions import ListenerError
    from airflow_provider_sparklineage.spark import distribution, listener

    found = distribution.find(args.spark_binary, os.environ)
    if found is None:
        msg = f"No Spark is found for {args.spark_binary}; put it on PATH, or set SPARK_HOME."
        raise ListenerError(msg)
    if not listener.cached(found.scala).is_file():
        name = listener.artifact(found.scala)
        print(f"Fetching {name} {listener.VERSION} for Spark {found.version} …", file=sys.stderr)
    print(listener.fetch(found))
    return 0


# --- the program ----------------------------------------------------------------------------------

_INPUT = Argument(
    ("input",),
    {
        "nargs": "+",
        "metavar": "BUNDLE_OR_FILE",
        "help": (
            "a capture bundle (directory), or files of captured Spark events "
            "(NDJSON or JSON, - for stdin)"
        ),
    },
)
_EVENTS_INPUT = Argument(
    ("input",),
    {
        "nargs": "+",
        "metavar": "BUNDLE_OR_FILE",
        "help": (
            "capture bundles (directories), and files of captured Spark events of one application "
            "or of merged events, of which the last of each job counts (NDJSON or JSON, - for "
            "stdin)"
        ),
    },
)
_APPLICATION = Argument(
    ("--application",),
    {
        "metavar": "RUN_ID",
        "help": "OpenLineage run id of the application, if the files hold several",
    },
)
_STRICT = Argument(
    ("--strict",),
    {"action": "store_true", "help": "exit with 1 if anything is missing from the lineage"},
)

_RUN = (
    Argument(
        ("--logical-date",),
        {"metavar": "TIME", "help": "logical date of the run, e.g. 2024-05-06; UTC without a zone"},
    ),
    Argument(
        ("--data-interval-start",),
        {"metavar": "TIME", "help": "start of the data interval; by default the logical date"},
    ),
    Argument(
        ("--data-interval-end",),
        {"metavar": "TIME", "help": "end of the data interval; by default the logical date"},
    ),
    Argument(("--partition-key",), {"metavar": "KEY", "help": "key of the run of a partition"}),
    Argument(("--partition-date",), {"metavar": "TIME", "help": "date of the run of a partition"}),
    Argument(("--rules",), {"metavar": "FILE", "help": "YAML file of partitioning rules to go by"}),
    Argument(("--json",), {"action": "store_true", "help": "print the explanation as JSON"}),
)

_EXPLAIN = Command(
    "explain",
    "Show which datasets and partitions templates mean for a run, and what made each value",
    _explain_texts,
    (
        Argument(
            ("text",),
            {
                "nargs": "+",
                "metavar": "TEMPLATE",
                "help": (
                    "path, URI or argument, e.g. 's3a://lake/revenue/dt={{ ds }}'; put -- before "
                    "those that begin with a dash"
                ),
            },
        ),
        *_RUN,
    ),
)
_EXPLAIN_TASK = Command(
    "explain",
    "Show which datasets and partitions a task is meant to touch in a run, before it runs",
    _explain_task,
    (
        Argument(("dag_id",), {"metavar": "DAG_ID", "help": "id of the DAG"}),
        Argument(("task_id",), {"metavar": "TASK_ID", "help": "id of the task"}),
        Argument(
            ("--map-index",),
            {"type": int, "default": -1, "metavar": "N", "help": "which instance of a mapped task"},
        ),
        *_RUN,
    ),
)

COMMANDS = (
    Command(
        "merge",
        "Merge captured Spark events into one OpenLineage RunEvent",
        _merge,
        (
            _INPUT,
            Argument(
                ("--job-namespace",),
                {"metavar": "NS", "help": "namespace of the merged event's job"},
            ),
            Argument(
                ("--job-name",), {"metavar": "NAME", "help": "name of the merged event's job"}
            ),
            _APPLICATION,
            _STRICT,
        ),
    ),
    Command(
        "show",
        "Show what a task read and wrote, column by column, and what is missing",
        _show,
        (
            _EVENTS_INPUT,
            _APPLICATION,
            _STRICT,
        ),
    ),
    Command(
        "columns",
        "Show which columns a column is made of, or which are made of it, from task to task",
        _columns,
        (
            _EVENTS_INPUT,
            Argument(
                ("--column",),
                {
                    "required": True,
                    "metavar": "DATASET:COLUMN",
                    "help": (
                        "the column, e.g. s3://lake/revenue:amount, or the end of its name, "
                        "e.g. revenue:amount"
                    ),
                },
            ),
            Argument(
                ("--upstream",),
                {"action": "store_true", "help": "show what it is made of; the default"},
            ),
            Argument(
                ("--downstream",), {"action": "store_true", "help": "show what is made of it"}
            ),
            Argument(("--json",), {"action": "store_true", "help": "print the path as JSON"}),
            _APPLICATION,
        ),
    ),
    _EXPLAIN,
    Command(
        "schema",
        "Print a JSON Schema of what this package writes; without a name, list them",
        _schema,
        (Argument(("name",), {"nargs": "?", "metavar": "NAME", "help": "name of the schema"}),),
    ),
    Command(
        "fetch-listener",
        "Bring the OpenLineage listener jar for this machine's Spark into the cache and print "
        "its path",
        _fetch_listener,
        (
            Argument(
                ("--spark-binary",),
                {
                    "default": "spark-submit",
                    "metavar": "NAME",
                    "help": "as in the Spark connection",
                },
            ),
        ),
    ),
)


def _guarded(run: Callable[[argparse.Namespace], int], args: argparse.Namespace) -> int:
    try:
        return run(args)
    except (UnusableInputError, RulesError) as error:
        print(f"sparklineage: {error}", file=sys.stderr)
        return 2
    except SparkLineageError as error:
        print(f"sparklineage: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader (head, less) has gone; Python must not complain about it again at exit.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the ``sparklineage`` command."""
    parser = argparse.ArgumentParser(
        prog="sparklineage",
        description="Lineage of Spark jobs run by Airflow, from what was captured.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        sub = commands.add_parser(command.name, help=command.help, description=command.help)
        for argument in command.arguments:
            sub.add_argument(*argument.flags, **argument.settings)
        sub.set_defaults(run=command.run)
    args = parser.parse_args(argv)
    return _guarded(args.run, args)


def airflow_commands() -> list[CLICommand]:
    """Give the same commands to Airflow's command line (``cli`` of the provider info)."""
    from airflow.cli.cli_config import ActionCommand, Arg, GroupCommand

    def action(command: Command) -> ActionCommand:
        def run(args: argparse.Namespace) -> None:
            code = _guarded(command.run, args)
            if code:
                raise SystemExit(code)

        arguments = [
            Arg(flags=a.flags, **a.settings)  # type: ignore[no-untyped-call]
            for a in command.arguments
        ]
        return ActionCommand(name=command.name, help=command.help, func=run, args=arguments)

    return [
        GroupCommand(
            name="sparklineage",
            help="Lineage of Spark jobs",
            subcommands=tuple(
                action(_EXPLAIN_TASK if command is _EXPLAIN else command) for command in COMMANDS
            ),
        )
    ]


if __name__ == "__main__":
    sys.exit(main())
