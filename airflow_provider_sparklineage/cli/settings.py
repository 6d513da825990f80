"""``settings``: shows each setting of a task, its value and its source."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.cli import commands
from airflow_provider_sparklineage.event.steps import texts
from airflow_provider_sparklineage.hooks import sources
from airflow_provider_sparklineage.model.credentials import HIDDEN
from airflow_provider_sparklineage.model.exceptions import SettingsError
from airflow_provider_sparklineage.operators.masking import masked, masked_message
from airflow_provider_sparklineage.settings.resolution import OptionValue, option_values
from airflow_provider_sparklineage.spark.capture.bundle import CaptureLocation

if TYPE_CHECKING:
    import argparse


def show_settings(args: argparse.Namespace) -> int:
    """Print all settings; return 1 if one of them cannot be read, else 0."""
    with commands.logging_to_stderr():  # Airflow logs e.g. an extra that is no JSON
        connection = sources.connection(args.conn_id)
        values = option_values(*sources.for_settings(connection))
        rows = [_row(value) for value in values.values()]
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


def _row(option_value: OptionValue) -> dict[str, Any]:
    problem = ""
    value = option_value.value
    try:
        read = option_value.read()
        if value == "" and isinstance(read, CaptureLocation):  # the default, made for this machine
            value = str(read)
    except SettingsError as error:
        problem = masked_message(str(error))
    # A value from a connection's extra can be a list or an object.
    shown = texts.masked(texts.without_credentials(value), masked)
    return {
        "name": option_value.option.name,
        "value": HIDDEN if option_value.is_secret and value else shown,
        "source": str(option_value.source),
        "problem": problem,
    }


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text or "-"
