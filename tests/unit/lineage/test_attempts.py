"""A driver that the cluster started again: what only an earlier attempt did is marked."""

from __future__ import annotations

import io
import json
from datetime import datetime, timedelta

import pytest
from rich.text import Text

from airflow_provider_sparklineage.cli import show
from airflow_provider_sparklineage.event.pipeline import merged_event
from airflow_provider_sparklineage.event.stored import readable
from airflow_provider_sparklineage.lineage.bundle import task_lineage
from airflow_provider_sparklineage.spark.capture import bundle as capture
from airflow_provider_sparklineage.spark.capture.bundle import DriverAttempt, Manifest
from tests.conftest import golden
from tests.openlineage_spec import validate_event

CASE = "staging_chain"
EVENTS = golden(CASE).read_bytes()
FIRST = json.loads(EVENTS.splitlines()[0])
BEGUN = datetime.fromisoformat(FIRST["eventTime"])
STAGING, REVENUE = "/lake/staging/enriched_orders", "/lake/revenue"


def started(*outputs):
    """Give the time at which the first action that writes one of these datasets began."""
    for line in EVENTS.splitlines():
        event = json.loads(line)
        if {d["name"] for d in event["outputs"]} & {*outputs}:
            return datetime.fromisoformat(event["eventTime"])
    raise AssertionError(outputs)


@pytest.fixture
def merged(tmp_path):
    """Merge the recorded job as one with these attempts: pairs of number and start."""

    def merged(*attempts):
        manifest = Manifest(
            FIRST["run"]["runId"],
            outcome="COMPLETE",
            attempts=tuple(DriverAttempt(*one) for one in attempts),
        )
        bundle = capture.create(tmp_path / "captures", manifest)
        bundle.events_path.write_bytes(EVENTS)
        event = merged_event(bundle, task_lineage(bundle))
        validate_event(event)
        return event

    return merged


def facet(event):
    return event["run"]["facets"]["sparkLineage_capture"]


def marks(event):
    return {d["dataset"]["name"]: d.get("attempt") for d in facet(event)["datasets"]}


def test_without_attempts_there_is_no_mark(merged):
    event = merged()
    assert "attempts" not in facet(event)
    assert {*marks(event).values()} == {None}


def test_what_only_an_earlier_attempt_did_has_its_number(merged):
    event = merged((1, BEGUN), (2, started(REVENUE)))
    assert facet(event)["attempts"] == 2
    found = marks(event)
    assert found[STAGING] == 1
    assert found[REVENUE] is None


def test_the_number_is_that_of_the_last_that_did_it(merged):
    late = started(REVENUE) + timedelta(days=1)
    found = marks(merged((1, BEGUN), (2, started(REVENUE)), (5, late)))
    assert found[STAGING] == 1
    assert found[REVENUE] == 2


def test_what_was_done_before_any_known_attempt_is_that_of_the_first(merged):
    found = marks(merged((2, BEGUN + timedelta(days=1))))
    assert {*found.values()} == {None}
    assert facet(merged((2, BEGUN)))["attempts"] == 2


def test_show_tells_how_often_the_driver_was_started(merged):
    out = io.StringIO()
    event = merged((1, BEGUN), (2, started(REVENUE)))
    show.print_event(readable(event).event, out)
    text = Text.from_ansi(out.getvalue()).plain
    assert "The cluster started the driver 2 times." in text
    assert "last by attempt 1" in text
