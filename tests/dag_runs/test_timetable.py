"""Under a real scheduler: a timetable that is pasted from ``patterns --mapper`` starts its runs."""

from __future__ import annotations

import time
from datetime import date, timedelta
from pathlib import Path

import pytest

pytest.importorskip("duckdb", reason="the extra history has it")
pytest.importorskip("airflow.partition_mappers.window", reason="Airflow 3.3 has it")

from airflow_provider_sparklineage.history.queries.patterns.timetable import timetables
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.plugins import partition_rule
from tests.dag_runs.scheduler import Airflow
from tests.unit.history.queries.answers import Answers

pytestmark = [pytest.mark.airflow, pytest.mark.long]  # it starts an Airflow of its own

DAYS = [date(2024, 5, 1) + timedelta(n) for n in range(13)]  # 5 May and 12 May are Sundays
DAG = """

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, Asset, PartitionedAssetTimetable

with DAG({dag_id!r}, schedule=schedule, is_paused_upon_creation=False):
    EmptyOperator(task_id="task")
"""


def learned(written):
    """Give the code for a task that reads the six days before as well.

    :param written: whether a day is written
    """
    answers = Answers()
    days = [date(2024, 1, 1) + timedelta(n) for n in range(90)]
    for n, day in enumerate(days):
        if n >= 6 and written(day):
            answers.run(n, [f"dt={d}" for d in days[n - 6 : n + 1]], [f"dt={day}"])
    [timetable] = timetables(answers, DatasetName("ns", "revenue"))
    assert timetable.needs_plugin
    assert timetable.unsaid == ()
    return timetable.code


def test_a_run_starts_when_the_partitions_of_its_rule_are_there_and_not_before(tmp_path):
    (tmp_path / "dags").mkdir()
    (tmp_path / "plugins").mkdir()
    plugin = Path(partition_rule.__file__)
    (tmp_path / "plugins" / plugin.name).write_text(plugin.read_text())
    codes = {
        "rolling": learned(lambda _: True),
        "weekly": learned(lambda day: day.weekday() == 6),
        # Its runs tell that the scheduler has seen an event.
        "each_day": "from airflow.sdk import Asset, PartitionedAssetTimetable\n"
        'schedule = PartitionedAssetTimetable(assets=Asset("ns://orders"))\n',
    }
    for dag_id, code in codes.items():
        (tmp_path / "dags" / f"{dag_id}.py").write_text(code + DAG.format(dag_id=dag_id))
    airflow = Airflow(tmp_path, {}, tmp_path / "no.jar")
    try:
        airflow.start()
        _emit_and_compare(airflow, codes)
    finally:
        airflow.stop()


def _emit_and_compare(airflow, codes):
    token = airflow.token("admin")

    def keys(dag_id):
        status, answer = airflow.get(f"/api/v2/dags/{dag_id}/dagRuns?limit=100", token)
        return sorted(run["partition_key"] for run in answer["dag_runs"]) if status == 200 else None

    def asset():
        found = airflow.get("/api/v2/assets", token)[1].get("assets", ())
        return next((one["id"] for one in found if len(one["scheduled_dags"]) == len(codes)), None)

    asset_id = airflow.until(asset)
    for n, day in enumerate(DAYS):
        body = {"asset_id": asset_id, "partition_key": str(day)}
        assert airflow.post("/api/v2/assets/events", body, token) == 200
        there = [str(one) for one in DAYS[: n + 1]]
        airflow.until(lambda there=there: keys("each_day") == there)
        expected = there[6:]
        airflow.until(lambda expected=expected: keys("rolling") == expected, 30)
        airflow.until(lambda is_over=n >= 11: bool(keys("weekly")) == is_over, 30)
        time.sleep(2)  # the scheduler looks for more each second
        assert keys("rolling") == expected
        assert keys("weekly") == [str(DAYS[11])][: n >= 11]
