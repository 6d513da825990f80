"""The demo, run once for all pictures: its events, and its Airflow with one day more."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.cli import demo

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "demo"
PLACE = demo.Place(FOLDER)
DAG_ID = demo.FLIGHTS
DAY = demo.DAYS[-1]
NEXT_DAY = DAY + timedelta(days=1)
"""A day that the demo does not run; its tasks are seen while they run."""

TIMEOUT_S = 1800
_NOW = datetime(2013, 1, 9, 6, tzinfo=UTC)
_BETWEEN_EVENTS = timedelta(seconds=10)
_EVENT_TIME = re.compile(r'("eventTime": *")[^"]*')
_TIME_IN_TEXT = re.compile(r"\b20\d\d-\d\d-\d\d \d\d:\d\d UTC")
_APPLICATION = re.compile(r"\blocal-\d{10,}\b")


def run() -> None:
    """Run the demo from nothing; it prints its progress."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    command = [sys.executable, "-m", "airflow_provider_sparklineage.cli", "demo", str(FOLDER)]
    subprocess.run(command, check=True, timeout=TIMEOUT_S, cwd=ROOT)


def environment() -> dict[str, str]:
    """Name the demo's Airflow, for more processes of it."""
    return demo.isolated(os.environ, PLACE) | {"PYTHONPATH": str(ROOT)}


@contextmanager
def next_day() -> Iterator[None]:
    """Let the DAG run for one day more, while somebody looks at it."""
    command = [sys.executable, "-m", "tests.pictures.demo"]
    with (FOLDER / "next_day.log").open("wb") as log:
        process = subprocess.Popen(
            command, env=environment(), cwd=ROOT, stdout=log, stderr=subprocess.STDOUT
        )
    try:
        yield
    finally:
        process.terminate()
        process.wait(TIMEOUT_S)


def events() -> list[dict[str, Any]]:
    """Give all events that Airflow has sent for the demo's days, in their order."""
    with PLACE.events.open() as lines:
        sent = [json.loads(equal_everywhere(line)) for line in lines]
    of_days = [event for event in sent if _day(event) <= f"{DAY:%Y-%m-%d}"]
    for number, event in enumerate(of_days):
        event["eventTime"] = (_NOW + number * _BETWEEN_EVENTS).isoformat()
    return of_days


def last_event(task_id: str) -> dict[str, Any]:
    """Give what a task has reported at its end, for the last of the demo's days."""
    return [e for e in events() if e["job"]["name"] == f"{DAG_ID}.{task_id}"][-1]


def _day(event: Mapping[str, Any]) -> str:
    day: str = event["run"]["facets"]["nominalTime"]["nominalStartTime"][:10]
    return day


def equal_everywhere(text: str) -> str:
    """Replace what would be different in the next run, or on another machine."""
    text = _APPLICATION.sub("local-1", text.replace(PLACE.tables, "/lake"))
    text = _TIME_IN_TEXT.sub(f"{_NOW:%Y-%m-%d %H:%M} UTC", text)
    return _EVENT_TIME.sub(rf"\g<1>{_NOW.isoformat()}", text)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, demo.interrupt)
    try:
        demo.run_day(demo.load_dag(PLACE, DAG_ID), NEXT_DAY, PLACE)
    finally:
        demo.stop_children()
