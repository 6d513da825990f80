"""Transports as OpenLineage's client is configured with them."""

from __future__ import annotations

import pytest

from airflow_provider_sparklineage.settings.connection import types_of

HTTP, KAFKA = {"type": "http", "url": "http://marquez:5000"}, {"type": "kafka"}


@pytest.mark.parametrize(
    ("transport", "types"),
    [
        (HTTP, ["http"]),
        ({}, [None]),
        ({"type": "composite", "transports": [HTTP, KAFKA]}, ["http", "kafka"]),
        ({"type": "composite", "transports": {"a": KAFKA, "b": HTTP}}, ["kafka", "http"]),
        (
            {"type": "composite", "transports": [{"type": "composite", "transports": [HTTP]}]},
            ["http"],
        ),
        ({"type": "composite", "transports": ["http"]}, [None]),
        ({"type": "composite"}, ["composite"]),
        ({"type": "transform", "transport": HTTP}, ["transform"]),
    ],
    ids=["one", "none", "list", "names", "nested", "no transport", "empty", "changes the event"],
)
def test_the_types_are_those_that_send(transport, types):
    assert list(types_of(transport)) == types
