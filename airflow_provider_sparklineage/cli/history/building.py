"""``history build``, ``history show`` and ``history compact``: the store itself."""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from airflow_provider_sparklineage.cli import show
from airflow_provider_sparklineage.cli.commands import Argument, Command, Group
from airflow_provider_sparklineage.cli.history import arguments
from airflow_provider_sparklineage.cli.history.reading import opened, store_url
from airflow_provider_sparklineage.cli.history.tables import (
    Column,
    print_table,
    time_text,
)
from airflow_provider_sparklineage.cli.output import (
    logging_to_stderr,
    note,
    say,
    say_json,
    say_json_lines,
)
from airflow_provider_sparklineage.cli.progress import progress
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.exceptions import UnusableInputError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from airflow_provider_sparklineage.history.engines.building import Built


def _build(args: argparse.Namespace) -> int:
    from airflow_provider_sparklineage.history.sources import source_of
    from airflow_provider_sparklineage.history.store import Store

    url = store_url(args)
    sources = [source_of(text) for text in args.source or [_archive()]]
    with progress("Reading events", None) as reached:
        built = Store.create(url).build(sources, progress=reached)
    _report(args, built, url)
    return 1 if args.strict and built.skipped else 0


def _archive() -> str:
    """Give the archive that is in force.

    :raise UnusableInputError: if there is none
    """
    fix = "Name what has events: sparklineage history build SOURCE…"
    with logging_to_stderr():
        try:
            from airflow_provider_sparklineage.hooks.sources import archive_url
        except ImportError:
            problem = "Without Airflow there is no configuration that has the archive."
            raise UnusableInputError(problem, fix) from None
        url = archive_url()
    if not url:
        problem = "No archive is configured."
        raise UnusableInputError(problem, fix)
    return url


def _compact(args: argparse.Namespace) -> int:
    from airflow_provider_sparklineage.history.steps import STEPS
    from airflow_provider_sparklineage.history.store import Store

    url = store_url(args)
    keep = None if args.keep is None else timedelta(days=args.keep)
    with progress("Compacting", len(STEPS)) as reached:
        built = Store.open(url).compact(keep, progress=reached)
    _report(args, built, url)
    return 0


def _report(args: argparse.Namespace, built: Built, url: str) -> None:
    """Print what a build did; what it skipped is a note, as it is no part of the tables."""
    skipped = {str(reason): count for reason, count in built.skipped.items()}
    if args.json:
        document = {"store": url, "events": built.events, "new": built.new, "skipped": skipped}
        say_json({**document, "rows": dict(built.rows), "seconds": round(built.seconds, 3)})
        return
    if built.events:
        say(f"{built.events:,} events were read in {built.seconds:.1f} s, {built.new:,} are new.")
    # Two tables are there a second time, in another order.
    rows = [f"{name} {count:,}" for name, count in built.rows.items() if "_by_" not in name]
    say(f"{url} has {', '.join(rows)}.")
    for reason, count in skipped.items():
        note(f"note: skipped: {reason.replace('_', ' ')}: {count:,}")


_DATASETS = """
SELECT namespace, name,
    CAST(count(DISTINCT cell) AS BIGINT) AS partitions,
    CAST(count(DISTINCT run_id) FILTER (WHERE side = 'write') AS BIGINT) AS written_by,
    CAST(count(DISTINCT run_id) FILTER (WHERE side = 'read') AS BIGINT) AS read_by,
    max(accessed_at) FILTER (WHERE side = 'write') AS last_written
FROM accesses GROUP BY namespace, name ORDER BY namespace, name
"""
_RUNS = """
SELECT CAST(count(*) AS BIGINT) AS runs, CAST(count(DISTINCT (namespace, job)) AS BIGINT) AS jobs,
    min(ended) AS first, max(ended) AS last FROM runs
"""


def _show(args: argparse.Namespace) -> int:
    from airflow_provider_sparklineage.history.queries.answers import at_utc_if_known

    with opened(args) as history:
        found = history.rows(_DATASETS)
        [runs] = history.rows(_RUNS)
    for row in found:
        row["last_written"] = at_utc_if_known(row["last_written"])
    datasets: list[dict[str, Any]] = msgspec.to_builtins(found)
    for row in datasets:
        row["dataset"] = {"namespace": row.pop("namespace"), "name": row.pop("name")}
    if args.json:
        say_json_lines(datasets)
        return 0
    out = show.console(sys.stdout)
    what = f"{runs['runs']:,} runs of {runs['jobs']:,} jobs"
    if runs["first"]:
        what += f", from {time_text(runs['first'])} to {time_text(runs['last'])} UTC"
    out.print(show.escape(f"{store_url(args)}: {what}"), soft_wrap=True)
    print_table(_columns(), datasets, sys.stdout)
    return 0


def _columns() -> Sequence[Column]:
    return (
        Column("dataset", lambda row: str(DatasetName(**row["dataset"])), "cyan"),
        Column("partitions", lambda row: f"{row['partitions']:,}" if row["partitions"] else ""),
        Column("written by", lambda row: _runs(row["written_by"])),
        Column("read by", lambda row: _runs(row["read_by"])),
        Column("last written (UTC)", lambda row: time_text(row["last_written"])),
    )


def _runs(count: int) -> str:
    return "" if not count else "1 run" if count == 1 else f"{count:,} runs"


_ONE_JSON = Argument(arguments.JSON.flags, {"action": "store_true", "help": "print it as JSON"})
GROUP = Group(
    "history",
    "Build the tables of what many runs did, and show what is in them",
    (
        Command(
            "build",
            "Add events to the history: what is new in the archive, or in what is named",
            _build,
            (
                Argument(
                    ("source",),
                    {
                        "nargs": "*",
                        "metavar": "SOURCE",
                        "help": "archive folders or their URLs, capture bundles, files of "
                        "OpenLineage events of any producer (JSON, NDJSON), other stores; without "
                        "one, the archive of Airflow's configuration",
                    },
                ),
                arguments.STORE,
                _ONE_JSON,
                Argument(
                    arguments.STRICT.flags,
                    {"action": "store_true", "help": "exit with 1 if anything was skipped"},
                ),
            ),
        ),
        Command(
            "show",
            "Show what is in the history: its datasets, their partitions and runs",
            _show,
            (arguments.STORE, arguments.JSON),
        ),
        Command(
            "compact",
            "Write the facts of all builds into one file, and forget what is old if that is asked",
            _compact,
            (
                Argument(
                    ("--keep",),
                    {
                        "type": float,
                        "metavar": "DAYS",
                        "help": "forget events that are older; without it nothing is forgotten",
                    },
                ),
                arguments.STORE,
                _ONE_JSON,
            ),
        ),
    ),
)
