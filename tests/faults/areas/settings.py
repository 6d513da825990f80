"""Settings that cannot be read, wherever they stand."""

from __future__ import annotations

import json

from tests.faults.registry import Area

AREA = Area(
    "Settings",
    "The task runs without lineage, and the event names the setting and what it must be. A "
    "setting of one feature costs that feature.",
)
fault = AREA.fault
VAULT = OSError("the vault is sealed")

IMPOSSIBLE = {
    "observe": "perhaps",
    "strict": "very",
    "backend": "datahub2",
    "web_url": "marquez:3000",
    "fetch_listener": "maybe",
    "spark_version": "four",
    "existing_transport": "both",
    "capture_location": "relative/path",
    "capture_location_shared": "2",
    "max_partitions": "-1",
    "max_event_bytes": "1.5",
    "redact_literals": "some",
    "partitioning": "[{dataset: 7}]",
    "emit_bare_partitions_facet": "?",
    "column_lineage": "expanded",
    "intermediate_datasets": "forget",
    "emit_lineage_facet": "--",
    "relay_spark_events": "now",
    "archive_url": "no-url",
    "keep_captures": "few",
    "capture_retention": "a week",
    "collect_timeout": "soon",
}


def _set(option, value):
    return lambda bench: bench.set(option, value)


for option, value in IMPOSSIBLE.items():
    fault(f"`{option}` is `{value}` in the configuration", "injection_failed")(_set(option, value))


def _connect(extra):
    return lambda bench: bench.connect(extra=json.dumps(extra))


for option in ("observe", "collect_timeout", "partitioning", "capture_location"):
    fault(f"`{option}` is impossible in the connection's extra", "injection_failed")(
        _connect({option: IMPOSSIBLE[option]})
    )


def _argue(option):
    def given(bench):
        bench.lineage[option] = IMPOSSIBLE[option]

    return given


for option in ("observe", "relay_spark_events"):
    fault(f"`{option}` is impossible as an argument", "injection_failed")(_argue(option))


@fault("The connection that the task names does not exist", "injection_failed")
def _(bench):
    bench.lineage["lineage_conn_id"] = "nowhere"


@fault("The connection is of another type", "injection_failed")
def _(bench):
    bench.connect(conn_type="postgres", host="db")


@fault("The extra of the connection is no JSON", "injection_failed")
def _(bench):
    bench.connect(extra="{observe: ")


@fault("The secrets backend raises when it is asked for the connection", "injection_failed")
def _(bench):
    from airflow.providers.common.compat.sdk import BaseHook

    known = BaseHook.get_connection

    def get_connection(conn_id):
        if conn_id.startswith("sparklineage"):
            raise VAULT
        return known(conn_id)

    bench.patch(".hooks.sources.BaseHook.get_connection", staticmethod(get_connection))


@fault("A percent sign in airflow.cfg makes an option unreadable", "injection_failed")
def _(bench):
    bench.configure("partitioning", '[{dataset: "/lake/*", dimensions: [{format: "%Y"}]}]')
