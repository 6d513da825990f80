"""Commands that only ``airflow sparklineage`` has, because they need Airflow.

``settings`` shows each setting and its source. ``adoption`` shows the tasks that are adopted.
``resend`` sends events that did not arrive. ``collect`` collects the lineage of drivers that ended
after their tasks. The arguments and exit codes are in this module, so that help imports no Airflow;
the work is done in :mod:`.adoption_survey`, :mod:`.sender` and :mod:`.collector`.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.cli import commands
from airflow_provider_sparklineage.model.exceptions import SettingsError, UnusableInputError

if TYPE_CHECKING:
    import argparse

    from airflow_provider_sparklineage.settings.resolution import Given


# --- settings -------------------------------------------------------------------------------------


def _settings(args: argparse.Namespace) -> int:
    from airflow_provider_sparklineage.hooks import sources
    from airflow_provider_sparklineage.settings.resolution import given

    connection = sources.connection(args.conn_id)
    found = given(*sources.for_settings(connection))
    rows = [_row(one) for one in found]
    if args.json:
        commands.say_json(rows)
    else:
        width = max(len(row["name"]) for row in rows)
        for row in rows:
            commands.say(f"{row['name']:{width}}  {_shown(row['value'])}  ({row['source']})")
    problems = [row["problem"] for row in rows if row["problem"]]
    for problem in problems:
        commands.note(f"sparklineage: {problem}")
    return 1 if problems else 0


def _row(found: Given) -> dict[str, Any]:
    from airflow_provider_sparklineage.event.steps import texts
    from airflow_provider_sparklineage.model.credentials import HIDDEN
    from airflow_provider_sparklineage.operators.masking import masked, masked_message
    from airflow_provider_sparklineage.spark.capture.bundle import CaptureLocation

    problem = ""
    value = found.value
    try:
        read = found.read()
        if value == "" and isinstance(read, CaptureLocation):  # the default, made for this machine
            value = str(read)
    except SettingsError as error:
        problem = masked_message(str(error))
    # A value from a connection's extra can be a list or an object.
    shown = texts.masked(texts.without_credentials(value), masked)
    return {
        "name": found.option.name,
        "value": HIDDEN if found.is_secret and value else shown,
        "source": str(found.source),
        "problem": problem,
    }


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text or "-"


SETTINGS = commands.Command(
    "settings",
    "Show every setting, its value, and whether connection, configuration or default decides it",
    _settings,
    (
        commands.conn_id("; sparklineage_default need not be there"),
        commands.Argument(
            ("--json",), {"action": "store_true", "help": "print the settings as JSON"}
        ),
    ),
)


# --- adoption -------------------------------------------------------------------------------------


def _adoption(args: argparse.Namespace) -> int:
    with commands.logging_to_stderr():
        from msgspec.structs import replace

        from airflow_provider_sparklineage.cli import adoption_survey
        from airflow_provider_sparklineage.hooks.sources import configuration
        from airflow_provider_sparklineage.settings import resolution
        from airflow_provider_sparklineage.settings.checks import Status

        source = configuration("adopt", "declarations")
        adopt, declared = (resolution.value(name, source) for name in ("adopt", "declarations"))
        rules = adoption_survey.Rules.of(args.adopt or adopt, declared)
        with commands.progress("Parsing DAG files", None) as done:
            parsed = adoption_survey.parse_dags(args.dags_folder, done)
        if args.dag_id and args.dag_id not in {dag.dag_id for dag in parsed.dags}:
            problem = f"No DAG file that can be imported has a DAG {args.dag_id}."
            raise UnusableInputError(problem)
        found = adoption_survey.survey(parsed.dags, rules)
        problems = [*rules.problems, *found.problems, *parsed.problems]
        rows = [row for row in found.rows if args.dag_id in (None, row.dag_id)]
        found = replace(found, rows=rows, problems=problems)
    if args.output == "json":
        commands.say_json(adoption_survey.survey_document(found))
    else:
        adoption_survey.print_survey(found, sys.stdout)
        if adopt in ("", "off") and not args.adopt:
            commands.note(
                "Adoption is off. What it would do: airflow sparklineage adoption --adopt all"
            )
    return 1 if any(check.status is Status.FAILED for check in found.problems) else 0


ADOPTION = commands.Command(
    "adoption",
    "List the tasks of Spark operators: which get lineage without a change of their DAG, which do "
    "not and why, and what is wrong with the rules",
    _adoption,
    (
        commands.Argument(
            ("--adopt",),
            {
                "metavar": "RULES",
                "help": "instead of [sparklineage] adopt: off, all, a YAML file, or rules",
            },
        ),
        commands.Argument(
            ("--dags-folder",),
            {
                "metavar": "PATH",
                "help": "a folder of DAG files, or one file, instead of Airflow's own",
            },
        ),
        commands.Argument(
            ("--dag-id",), {"metavar": "DAG", "help": "list the tasks of that DAG alone"}
        ),
        commands.Argument(
            ("--output",),
            {"choices": ("table", "json"), "default": "table", "help": "table by default"},
        ),
    ),
)


# --- resend ---------------------------------------------------------------------------------------


_RESEND_S = 120.0  # a person waits, and an archive may be large
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


def _resend(args: argparse.Namespace) -> int:
    since = _since(args.since, datetime.now(UTC))
    with commands.logging_to_stderr():
        from airflow_provider_sparklineage.cli import sender
        from airflow_provider_sparklineage.event.archive import archive_of
        from airflow_provider_sparklineage.hooks import sources
        from airflow_provider_sparklineage.settings import resolution

        resolved = resolution.resolve(*sources.for_settings(sources.connection(args.conn_id)))
        archive = archive_of(resolved, _RESEND_S)
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
        commands.say(line)
    return 0 if is_done and not chosen.skipped else 1


def _since(text: str | None, now: datetime) -> datetime | None:
    if text is None:
        return None
    found = re.fullmatch(r"(\d{1,6})([mhd])", text.strip())
    if not found:
        problem = f"--since {text} is no time."
        raise UnusableInputError(problem, "Write it as 30m, 2h or 7d.")
    return now - timedelta(**{_UNITS[found[2]]: int(found[1])})


RESEND = commands.Command(
    "resend",
    "Send events of the archive again, through Airflow's own transport; without arguments those "
    "that are known not to have been sent",
    _resend,
    (
        commands.Argument(
            ("dag_id",), {"nargs": "?", "metavar": "DAG", "help": "all events of a DAG"}
        ),
        commands.Argument(
            ("task_id",), {"nargs": "?", "metavar": "TASK", "help": "of one task of it"}
        ),
        commands.Argument(("run_id",), {"nargs": "?", "metavar": "RUN", "help": "of one DAG run"}),
        commands.Argument(
            ("--since",),
            {"metavar": "TIME", "help": "events of the last 30m, 2h or 7d, of the DAG if given"},
        ),
        commands.Argument(
            ("--dry-run",), {"action": "store_true", "help": "list them, and send nothing"}
        ),
        commands.conn_id(", for what its backend needs"),
    ),
)


# --- collect --------------------------------------------------------------------------------------


_COLLECT_S = 600.0  # a person waits, and a bundle may be large
_ARCHIVE_S = 120.0


def _collect(args: argparse.Namespace) -> int:
    with commands.logging_to_stderr():
        from airflow_provider_sparklineage.cli import collector
        from airflow_provider_sparklineage.event.archive import Archive, archive_of
        from airflow_provider_sparklineage.hooks import sources
        from airflow_provider_sparklineage.operators.attempt.timing import Deadline
        from airflow_provider_sparklineage.settings import resolution

        resolved = resolution.resolve(*sources.for_settings(sources.connection(args.conn_id)))
        deadline = Deadline()
        deadline.begin(_COLLECT_S)
        collector.mask_connections()
        asked = collector.Asked(args.run, args.dag or "", args.task or "")
        found = collector.find_bundles(resolved.capture_location, asked, deadline.budget)
        with tempfile.TemporaryDirectory(prefix="sparklineage-") as work:
            # If no archive is configured, a temporary archive holds the events while they are sent,
            # because the sender reads events from an archive, by their names in it.
            own = Archive(f"file://{work}/archive", is_default=True)
            archive = archive_of(resolved, _ARCHIVE_S) or own
            collecting = collector.Collector(resolved, archive, deadline.budget)
            events = collecting.events(found, Path(work), now=args.now, again=args.again)
            if args.dry_run:
                collecting.plan(events)
            elif events:
                collecting.collect(events)
    if not found:
        commands.say("There is nothing to collect.")
    for line in collecting.lines:
        commands.say(line)
    return 0 if collecting.is_done else 1


COLLECT = commands.Command(
    "collect",
    "Collect the lineage of jobs whose tasks did not wait for it, or could not, and send it",
    _collect,
    (
        commands.Argument(
            ("run",),
            {
                "metavar": "RUN",
                "nargs": "?",
                "default": "",
                "help": "id of a DAG run, or the URL or folder of one capture bundle; without it, "
                "all commands with a spark-submit of their own whose lineage is not collected yet",
            },
        ),
        commands.Argument(("--dag",), {"metavar": "DAG", "help": "of that DAG alone"}),
        commands.Argument(("--task",), {"metavar": "TASK", "help": "of that task alone"}),
        commands.Argument(
            ("--now",),
            {
                "action": "store_true",
                "help": "also of jobs that have not reported their end, because they were killed",
            },
        ),
        commands.Argument(
            ("--again",),
            {"action": "store_true", "help": "also what was collected already"},
        ),
        commands.Argument(
            ("--dry-run",),
            {"action": "store_true", "help": "list what would be sent, and change nothing"},
        ),
        commands.conn_id(", which may have the capture location"),
    ),
)
