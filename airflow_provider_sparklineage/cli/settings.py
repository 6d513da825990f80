"""``airflow sparklineage settings``: every setting, its value, and where it comes from."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.cli.commands import Argument, Command, note, say, say_json

if TYPE_CHECKING:
    import argparse

    from airflow_provider_sparklineage.settings.resolution import Given


def _settings(args: argparse.Namespace) -> int:
    from airflow_provider_sparklineage.hooks import sources
    from airflow_provider_sparklineage.settings.resolution import given

    connection = sources.connection(args.conn_id)
    found = given(*sources.for_settings(connection))
    rows = [_row(one) for one in found]
    if args.json:
        say_json(rows)
    else:
        width = max(len(row["name"]) for row in rows)
        for row in rows:
            say(f"{row['name']:{width}}  {_shown(row['value'])}  ({row['source']})")
    problems = [row["problem"] for row in rows if row["problem"]]
    for problem in problems:
        note(f"sparklineage: {problem}")
    return 1 if problems else 0


def _row(found: Given) -> dict[str, Any]:
    from airflow_provider_sparklineage.event.steps import texts
    from airflow_provider_sparklineage.event.steps.texts import without_credentials
    from airflow_provider_sparklineage.model.credentials import HIDDEN
    from airflow_provider_sparklineage.model.exceptions import SettingsError
    from airflow_provider_sparklineage.operators.masking import masked, masked_message
    from airflow_provider_sparklineage.spark.capture.bundle import CaptureLocation

    problem = ""
    value = found.value
    try:
        read = found.read()
        if value == "" and isinstance(read, CaptureLocation):  # what is made of this machine
            value = str(read)
    except SettingsError as error:
        problem = masked_message(str(error))
    # Of a connection's extra it may be a list or an object.
    shown = texts.masked(without_credentials(value), masked)
    return {
        "name": found.option.name,
        "value": HIDDEN if found.is_secret and value else shown,
        "source": str(found.source),
        "problem": problem,
    }


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text or "-"


COMMAND = Command(
    "settings",
    "Show every setting, its value, and whether connection, configuration or default decides it",
    _settings,
    (
        Argument(
            ("--conn-id",),
            {
                "default": "sparklineage_default",
                "metavar": "ID",
                "help": "the operator's lineage_conn_id; sparklineage_default need not be there",
            },
        ),
        Argument(("--json",), {"action": "store_true", "help": "print the settings as JSON"}),
    ),
)
