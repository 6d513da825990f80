"""The form of a ``sparklineage`` connection in Airflow's pages, made of the table of options."""

from __future__ import annotations

from typing import Any

from airflow_provider_sparklineage.settings.connection import CONN_TYPE
from airflow_provider_sparklineage.settings.options import OPTIONS, Option


def connection_type() -> dict[str, Any]:
    """Give the entry of ``connection-types`` in the provider info."""
    fields = {option.name: _field(option) for option in OPTIONS if option.in_connection}
    return {
        "connection-type": CONN_TYPE,
        "hook-class-name": "airflow_provider_sparklineage.hooks.sparklineage.SparkLineageHook",
        "hook-name": "Spark Lineage",
        "ui-field-behaviour": {
            "hidden-fields": ["login"],
            "relabeling": {
                "host": "Backend's API host",
                "schema": "http or https",
                "password": "API key",
            },
            "placeholders": {"host": "marquez", "port": "5000", "schema": "http"},
        },
        "conn-fields": {"transport": _TRANSPORT, **fields},
    }


_TRANSPORT = {
    "label": "Transport",
    "description": (
        "How Airflow sends lineage, if [openlineage] config_conn_id names this connection, e.g. "
        '{"type": "http", "url": "http://marquez:5000"}.'
    ),
    "schema": {"type": ["object", "null"]},
}


def _field(option: Option) -> dict[str, Any]:
    """Describe a field that can be left empty, so that the configuration decides."""
    choices = ("True", "False") if option.kind.type == "boolean" else option.kind.choices
    # A switch has no third state, and a form's default would be saved as if somebody had set it.
    schema: dict[str, Any] = {"type": ["string", "null"], "enum": list(choices)}
    if not choices:
        schema = {"type": [option.kind.type, "null"]}
        if option.kind.type in ("integer", "number"):
            schema["minimum"] = 0
    if option.sensitive:
        schema["format"] = "password"
    default = f" By default {option.default}." if option.default else ""
    return {
        "label": option.name.replace("_", " ").capitalize().replace(" url", " URL"),
        "description": f"{option.description.replace('`', '')}{default}",
        "schema": schema,
    }
