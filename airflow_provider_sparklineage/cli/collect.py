"""``airflow sparklineage collect``: the lineage of a job that went on without its task."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.cli.commands import Argument, Command, logging_to_stderr, say

if TYPE_CHECKING:
    import argparse


_TIMEOUT_S = 600.0  # a person waits, and a bundle may be large
_ARCHIVE_S = 120.0


def _collect(args: argparse.Namespace) -> int:
    with logging_to_stderr():
        from airflow_provider_sparklineage.cli import collector
        from airflow_provider_sparklineage.event.archive import Archive, archive_of
        from airflow_provider_sparklineage.hooks import sources
        from airflow_provider_sparklineage.operators.attempt.timing import Deadline
        from airflow_provider_sparklineage.settings import resolution

        resolved = resolution.resolve(*sources.for_settings(sources.connection(args.conn_id)))
        deadline = Deadline()
        deadline.begin(_TIMEOUT_S)
        collector.mask_connections()
        asked = collector.Asked(args.run, args.dag or "", args.task or "")
        found = collector.find_bundles(resolved.capture_location, asked, deadline.budget)
        with tempfile.TemporaryDirectory(prefix="sparklineage-") as work:
            # Without an archive the events are in one while they are sent: its order is theirs.
            own = Archive(f"file://{work}/archive", is_default=True)
            archive = archive_of(resolved, _ARCHIVE_S) or own
            collecting = collector.Collector(resolved, archive, deadline.budget)
            events = collecting.events(found, Path(work), now=args.now, again=args.again)
            if args.dry_run:
                collecting.plan(events)
            elif events:
                collecting.collect(events)
    if not found:
        say("There is nothing to collect.")
    for line in collecting.lines:
        say(line)
    return 0 if collecting.is_done else 1


COMMAND = Command(
    "collect",
    "Collect the lineage of jobs whose tasks did not wait for it, or could not, and send it",
    _collect,
    (
        Argument(
            ("run",),
            {
                "metavar": "RUN",
                "nargs": "?",
                "default": "",
                "help": "id of a DAG run, or the URL or folder of one capture bundle; without it, "
                "all commands with a spark-submit of their own whose lineage is not collected yet",
            },
        ),
        Argument(("--dag",), {"metavar": "DAG", "help": "of that DAG alone"}),
        Argument(("--task",), {"metavar": "TASK", "help": "of that task alone"}),
        Argument(
            ("--now",),
            {
                "action": "store_true",
                "help": "also of jobs that have not reported their end, because they were killed",
            },
        ),
        Argument(
            ("--again",),
            {"action": "store_true", "help": "also what was collected already"},
        ),
        Argument(
            ("--dry-run",),
            {"action": "store_true", "help": "list what would be sent, and change nothing"},
        ),
        Argument(
            ("--conn-id",),
            {
                "default": "sparklineage_default",
                "metavar": "ID",
                "help": "the operator's lineage_conn_id, which may have the capture location",
            },
        ),
    ),
)
