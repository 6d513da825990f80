"""``airflow sparklineage resend``: events of the archive, sent through Airflow's own transport."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.cli.commands import Argument, Command, logging_to_stderr, say
from airflow_provider_sparklineage.model.exceptions import UnusableInputError

if TYPE_CHECKING:
    import argparse


_TIMEOUT_S = 120.0  # a person waits, and an archive may be large
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


def _resend(args: argparse.Namespace) -> int:
    since = _since(args.since, datetime.now(UTC))
    with logging_to_stderr():
        from airflow_provider_sparklineage.cli import sender
        from airflow_provider_sparklineage.event.archive import archive_of
        from airflow_provider_sparklineage.hooks import sources
        from airflow_provider_sparklineage.settings import resolution

        resolved = resolution.resolve(*sources.for_settings(sources.connection(args.conn_id)))
        archive = archive_of(resolved, _TIMEOUT_S)
        if archive is None:
            problem = "There is no archive, so nothing can be sent again."
            raise UnusableInputError(problem, "See [sparklineage] archive_url.")
        asked = sender.Asked(args.dag_id or "", args.task_id or "", args.run_id or "", since)
        chosen = sender.choose(archive, asked)
        if args.dry_run or not chosen.events:
            lines, is_done = sender.planned(chosen), True
        else:
            result = sender.Sender(archive, resolved.leaving).send(chosen)
            lines, is_done = [sender.summary(len(result.sent), len(chosen.events))], result.is_done
    for line in lines:
        say(line)
    return 0 if is_done and not chosen.skipped else 1


def _since(text: str | None, now: datetime) -> datetime | None:
    if text is None:
        return None
    found = re.fullmatch(r"(\d{1,6})([mhd])", text.strip())
    if not found:
        problem = f"--since {text} is no time."
        raise UnusableInputError(problem, "Write it as 30m, 2h or 7d.")
    return now - timedelta(**{_UNITS[found[2]]: int(found[1])})


COMMAND = Command(
    "resend",
    "Send events of the archive again, through Airflow's own transport; without arguments those "
    "that are known not to have been sent",
    _resend,
    (
        Argument(("dag_id",), {"nargs": "?", "metavar": "DAG", "help": "all events of a DAG"}),
        Argument(("task_id",), {"nargs": "?", "metavar": "TASK", "help": "of one task of it"}),
        Argument(("run_id",), {"nargs": "?", "metavar": "RUN", "help": "of one DAG run"}),
        Argument(
            ("--since",),
            {"metavar": "TIME", "help": "events of the last 30m, 2h or 7d, of the DAG if given"},
        ),
        Argument(("--dry-run",), {"action": "store_true", "help": "list them, and send nothing"}),
        Argument(
            ("--conn-id",),
            {
                "default": "sparklineage_default",
                "metavar": "ID",
                "help": "the operator's lineage_conn_id, for what its backend needs",
            },
        ),
    ),
)
