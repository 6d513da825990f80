"""The demo, run once for all pictures: its events, and its Airflow."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from dags_examples import run_demo

ROOT = Path(__file__).parents[2]
FOLDER = run_demo.DEMO
DAG_ID = "example_report_flight_delays"
DAY = run_demo.DAYS[-1]
TIMEOUT_S = 1800
_NOW = datetime(2013, 1, 9, 6, tzinfo=UTC)
_BETWEEN_EVENTS = timedelta(seconds=10)
_EVENT_TIME = re.compile(r'("eventTime": *")[^"]*')
_TIME_IN_TEXT = re.compile(r"\b20\d\d-\d\d-\d\d \d\d:\d\d UTC")
_APPLICATION = re.compile(r"\blocal-\d{10,}\b")


def run() -> None:
    """Run the demo from nothing; it prints its progress."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    subprocess.run([sys.executable, run_demo.__file__], check=True, timeout=TIMEOUT_S, cwd=ROOT)


def environment() -> dict[str, str]:
    """Name the demo's Airflow, for more processes of it."""
    return run_demo.isolated(dict(os.environ)) | {"PYTHONPATH": str(ROOT)}


def events() -> list[dict[str, Any]]:
    """Give all events that Airflow has sent, in their order."""
    with run_demo.EVENTS.open() as lines:
        sent = [json.loads(equal_everywhere(line)) for line in lines]
    for number, event in enumerate(sent):
        event["eventTime"] = (_NOW + number * _BETWEEN_EVENTS).isoformat()
    return sent


def last_event(task_id: str) -> dict[str, Any]:
    """Give what a task has reported at its end."""
    return [e for e in events() if e["job"]["name"] == f"{DAG_ID}.{task_id}"][-1]


def equal_everywhere(text: str) -> str:
    """Replace what would be different in the next run, or on another machine."""
    text = _APPLICATION.sub("local-1", text.replace(str(run_demo.LAKE), "/lake"))
    text = _TIME_IN_TEXT.sub(f"{_NOW:%Y-%m-%d %H:%M} UTC", text)
    return _EVENT_TIME.sub(rf"\g<1>{_NOW.isoformat()}", text)
