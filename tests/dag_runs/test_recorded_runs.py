"""What Airflow's provider sends of DAG runs, compared with the events that unit tests convert.

``SPARKLINEAGE_RECORD=1`` writes ``tests/golden/airflow/dag_runs.ndjson`` anew from the run at hand.
"""

from __future__ import annotations

import json
import os

import pytest

from tests.conftest import GOLDEN
from tests.dag_runs.scheduler import Airflow
from tests.spark_submit_double import FakeSparkSubmit

pytestmark = [pytest.mark.airflow, pytest.mark.long]

RECORDED = GOLDEN / "airflow" / "dag_runs.ndjson"
DAG, CONSUMER = "team.daily_revenue", "bad"

# A name with a dot, owners, tags and texts; a group, mapped tasks, one that sends no events, one
# that is tried twice, one that is skipped; and a DAG that an asset triggers, and that fails.
DAGS = """
from datetime import UTC, datetime, timedelta

from airflow.exceptions import AirflowSkipException
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, Asset, task, task_group

revenue = Asset("file:///lake/revenue")
start = {"start_date": datetime(2024, 5, 7, tzinfo=UTC), "is_paused_upon_creation": False}
tried_twice = {"owner": "ada,team:data", "retries": 1, "retry_delay": timedelta(seconds=1)}
texts = {"description": "Revenue of a day", "doc_md": "# Revenue\\nof a day, by *country*."}
tags = ["finance", "tier:1"]

more = {"tags": tags, "default_args": tried_twice, **texts, **start}

with DAG("team.daily_revenue", schedule="@once", **more):

    @task(doc_md="Reads the orders.")
    def read():
        return [1, 2]

    @task_group
    def load():
        @task(map_index_template="{{ task.op_kwargs['n'] }}")
        def part(n):
            return n

        @task(outlets=[revenue])
        def flaky(ti=None):
            if ti.try_number == 1:
                raise ValueError("no such table: password=hunter2")

        part.expand(n=read()) >> EmptyOperator(task_id="joined") >> flaky()

    @task(retries=0)
    def skipped():
        raise AirflowSkipException("nothing to do")

    load() >> skipped()

with DAG("bad", schedule=[revenue], **start):

    @task
    def fails():
        raise ValueError("broken")

    fails()
"""


@pytest.fixture
def sent(tmp_path):
    """Run the DAGs; give the events, without what varies with the machine."""
    (tmp_path / "none").mkdir()
    (tmp_path / "dags").mkdir()
    (tmp_path / "dags" / "all.py").write_text(DAGS)
    airflow = Airflow(tmp_path, {}, FakeSparkSubmit(tmp_path / "none").jar)
    try:
        airflow.start()
        airflow.until(lambda: all(ended(airflow, dag) for dag in (DAG, CONSUMER)))
    finally:
        airflow.stop()
    return [cleaned(line, airflow) for line in lines(airflow)]


def lines(airflow):
    file = airflow.home / "events"
    text = file.read_text() if file.exists() else ""
    return [line for line in text.splitlines(keepends=True) if line.endswith("\n")]


def ended(airflow, dag_id):
    return any(key(json.loads(line))[0] == dag_id for line in lines(airflow) if is_end(line))


def is_end(line):
    return json.loads(line)["eventType"] in ("COMPLETE", "FAIL")


def key(event):
    return event["job"]["name"], event["eventType"]


def cleaned(line, airflow):
    text = line.replace(airflow.url, "http://airflow:8080").replace(str(airflow.home), "")
    event = json.loads(text)
    facets = event["run"]["facets"]
    facets.pop("unknownSourceAttribute", None)  # the task's attributes, once more
    facets.get("errorMessage", {}).pop("stackTrace", None)
    return event


def shapes(events):
    """Give which events there are, and all keys of each: what the conversion could meet."""
    return {(*key(event), path) for event in events for path in paths(event)}


def paths(value, above=""):
    if isinstance(value, dict):
        for name, part in value.items():
            yield f"{above}/{name}"
            yield from paths(part, f"{above}/{name}")


def test_airflow_sends_what_unit_tests_convert(sent):
    if os.environ.get("SPARKLINEAGE_RECORD"):
        RECORDED.write_text("".join(json.dumps(event, sort_keys=True) + "\n" for event in sent))
    recorded = [json.loads(line) for line in RECORDED.read_text().splitlines()]

    assert shapes(sent) == shapes(recorded)
