"""The form of a ``sparklineage`` connection in Airflow's pages, made of the table of options."""

from __future__ import annotations

from typing import Any

from airflow_provider_sparklineage.settings.connection import CONN_TYPE
from airflow_provider_sparklineage.settings.options import OPTIONS, Option
from airflow_provider_sparklineage.settings.transports import DATAHUB_TRANSPORT

_FIRST = ("web_url",)
"""Options at the top of the form's extra fields: what most people set."""


def connection_type() -> dict[str, Any]:
    """Give the entry of ``connection-types`` in the provider info."""
    fields = {option.name: _field(option) for option in OPTIONS if option.in_connection}
    first = {name: fields.pop(name) for name in _FIRST}
    return {
        "connection-type": CONN_TYPE,
        "hook-class-name": "airflow_provider_sparklineage.hooks.sparklineage.SparkLineageHook",
        "hook-name": "Spark Lineage",
        "ui-field-behaviour": {
            # A host that is a URL needs no port and no schema; those of a connection stay.
            "hidden-fields": ["login", "port", "schema"],
            "relabeling": {"host": "API URL", "password": "API key"},
            # That they are examples has to be in them: they look like values.
            "placeholders": {
                "host": "e.g. http://marquez:5000, or http://gms:8080",
                "password": "only if the API wants one",
            },
        },
        "conn-fields": {**first, "transport": _TRANSPORT, **fields},
    }


_TRANSPORT = {
    "label": "Transport",
    "description": (
        "How Airflow sends lineage. It is needed if [openlineage] config_conn_id names this "
        'connection, because Airflow looks for the URL nowhere else: {"type": "http", "url": "…"}, '
        f'for DataHub {{"type": "{DATAHUB_TRANSPORT}", "server": "…"}}, '
        'and with an API key also "auth": {"type": "airflow_connection_api_key"}.'
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
