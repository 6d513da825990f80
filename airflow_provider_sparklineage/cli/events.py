"""Commands on what was captured and merged: ``show`` and ``columns``, and :mod:`.merge`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.cli import merge
from airflow_provider_sparklineage.cli.commands import Argument, Command
from airflow_provider_sparklineage.cli.merge import APPLICATION, STRICT
from airflow_provider_sparklineage.cli.output import note, say_json
from airflow_provider_sparklineage.cli.remote_inputs import downloaded
from airflow_provider_sparklineage.model.exceptions import DocumentError, UnusableInputError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence


def _show(args: argparse.Namespace) -> int:
    from airflow_provider_sparklineage.cli import show
    from airflow_provider_sparklineage.event import reading

    events = _events(args)
    if args.html:
        _write_page(Path(args.html), events)
    else:
        for event in events:
            show.print_event(event, sys.stdout)
    missing = any(reading.degradations(event) for event in events)
    return 1 if args.strict and missing else 0


def _write_page(file: Path, events: list[dict[str, Any]]) -> None:
    from airflow_provider_sparklineage.plugins import page

    try:
        file.write_text(page.self_contained(events), encoding="utf-8")
    except OSError as error:
        msg = f"{file} cannot be written: {error.strerror or error}."
        raise UnusableInputError(msg) from error
    print(file)  # as it is: a script takes it for a path


def _columns(args: argparse.Namespace) -> int:
    from airflow_provider_sparklineage.cli.columns import paths
    from airflow_provider_sparklineage.cli.columns.text import print_paths

    if args.upstream and args.downstream:
        msg = "Give --upstream or --downstream, not both."
        raise UnusableInputError(msg)
    graph = paths.graph(_events(args))
    column = graph.find(args.column)
    direction = paths.Direction.DOWNSTREAM if args.downstream else paths.Direction.UPSTREAM
    hops = graph.hops(column, direction)
    if args.json:
        document = paths.document(column, direction, hops)
        say_json(document)
    else:
        print_paths(column, direction, hops, sys.stdout)
    return 0


def _events(args: argparse.Namespace) -> list[dict[str, Any]]:
    return events_of(args.input, args.application)


def events_of(inputs: Sequence[str], application: str | None = None) -> list[dict[str, Any]]:
    """Give the merged events of the input: of each bundle, and those in the files or of them.

    :raise UnusableInputError: if there is no event in it
    """
    from airflow_provider_sparklineage.event.from_bundle import merged_event, task_lineage
    from airflow_provider_sparklineage.event.shape import readable
    from airflow_provider_sparklineage.spark.capture.event_files import (
        materialised,
        merged_events,
        open_bundle,
    )

    def merged(of: list[str]) -> dict[str, Any]:
        with open_bundle(of, application=application) as bundle:
            return merged_event(bundle, task_lineage(bundle))

    def checked(place: str, event: dict[str, Any]) -> dict[str, Any]:
        try:
            return readable(event)
        except DocumentError as error:
            problem = f"{place}: {error.problem}"
            raise UnusableInputError(problem, error.fix) from error

    with downloaded(inputs) as here, materialised(here) as paths:
        events = [merged([path]) for path in paths if Path(path).is_dir()]
        files = [path for path in paths if not Path(path).is_dir()]
        if files:
            found = merged_events(files)
            for line in found.malformed if found.events else ():
                note(f"note: left out: {line}")
            events += [checked(place, event) for place, event in found.events] or [merged(files)]
    return events


_EVENTS_INPUT = Argument(
    ("input",),
    {
        "nargs": "+",
        "metavar": "BUNDLE_OR_FILE",
        "help": (
            "capture bundles (directories, or URLs where drivers in a cluster delivered them), and "
            "files of captured Spark events of one application or of merged events, of which the "
            "last of each job counts (NDJSON or JSON, - for stdin)"
        ),
    },
)
COMMANDS = (
    merge.COMMAND,
    Command(
        "show",
        "Show what a task read and wrote, column by column, and what is missing",
        _show,
        (
            _EVENTS_INPUT,
            Argument(
                ("--html",),
                {
                    "metavar": "FILE",
                    "help": "write a page of it, as Airflow's tab shows it, instead of printing it",
                },
            ),
            APPLICATION,
            STRICT,
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
            APPLICATION,
        ),
    ),
)
