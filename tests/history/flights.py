"""An Airflow that runs the flights example with its scheduler and a real Spark."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.spark.submit import listener_selection
from tests.dag_runs.scheduler import Airflow

if TYPE_CHECKING:
    from collections.abc import Iterable

EXAMPLES = Path(__file__).parents[2] / "dags_examples"
DAG = "example_report_flight_delays"
DAYS = [date(2013, 1, 1) + timedelta(days) for days in range(30)]
REWRITTEN = date(2013, 1, 15)
# Of a month of runs, one after the other, on a busy machine; a task takes ten seconds.
_LONGEST_S = 1800


class Flights(Airflow):
    """An Airflow that runs the example; its lake, archive and history are in its home.

    :param home: a folder that is made
    """

    def __init__(self, home: Path) -> None:
        shutil.copytree(EXAMPLES / "spark_jobs", home / "dags" / "spark_jobs")
        shutil.copy(EXAMPLES / f"{DAG}.py", home / "dags")
        listener = listener_selection.fetch_for(
            listener_selection.spark_of("spark-submit"), "spark-submit"
        )
        super().__init__(home, {}, listener)
        self.lake = home / "lake"
        self.archive = home / "archive"
        self.environment = self._environment
        self.environment |= {
            "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
            "AIRFLOW__OPENLINEAGE__NAMESPACE": "flights",
            "AIRFLOW__SPARKLINEAGE__ARCHIVE_URL": self.archive.as_uri(),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        }

    def run(self, days: Iterable[date]) -> None:
        """Run the DAG for days, in their order."""
        for day in days:
            self._until_posted(f"/api/v2/dags/{DAG}/dagRuns", self._run_of(day))
            self._await_success(day)

    def has_run(self, ended: Iterable[tuple[str, date, datetime, datetime]]) -> None:
        """Have runs of the DAG in Airflow's database that this Airflow did not make.

        :param ended: task, day, start and end of their task instances, which have succeeded
        """
        self._pause(is_paused=True)  # or the scheduler would begin with them
        ended = list(ended)
        for day in dict.fromkeys(day for _, day, _, _ in ended):
            self._until_posted(f"/api/v2/dags/{DAG}/dagRuns", self._run_of(day))
        with closing(sqlite3.connect(self.home / "airflow.db", timeout=60)) as database:
            database.executemany(
                "UPDATE task_instance SET state = 'success', try_number = 1, start_date = ?,"
                " end_date = ? WHERE task_id = ? AND run_id = ?",
                [(_sql(start), _sql(end), task, str(day)) for task, day, start, end in ended],
            )
            database.execute("UPDATE dag_run SET state = 'success'")
            database.commit()
        self._pause(is_paused=False)

    def clear_task(self, task: str, day: date) -> None:
        """Clear a task of a day alone, as a person does in the page, and wait for it."""
        body = {
            "dry_run": False,
            "dag_run_id": str(day),
            "task_ids": [task],
            "only_failed": False,
        }
        self._until_posted(f"/api/v2/dags/{DAG}/clearTaskInstances", body)
        self._await_success(day)

    def ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run ``airflow sparklineage …`` to its end."""
        command = self._command("sparklineage", *words)
        return subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=False
        )

    def is_up_to_date(self) -> bool:
        """Ask for the state of the history, as the page does; give whether nothing waits."""
        status, state = self.get("/sparklineage/api/history/state", self._token)
        assert status == 200, state
        return bool(state["generation"]) and not state["waiting"] and not state["is_merging"]

    def tries(self) -> dict[tuple[str, str], int]:
        """Give how often each task of each run was tried."""
        path = f"/api/v2/dags/{DAG}/dagRuns/~/taskInstances?limit=1000"
        found = self.get(path, self._token)[1]["task_instances"]
        return {(ti["task_id"], ti["dag_run_id"]): ti["try_number"] for ti in found}

    def lines(self) -> list[bytes]:
        """Give the files of the archive, in the order of their events."""
        files = [file.read_bytes() for file in self.archive.rglob("*.json")]
        return sorted(files, key=lambda content: json.loads(content)["eventTime"])

    def _run_of(self, day: date) -> dict[str, object]:
        run = {"logical_date": f"{day}T00:00:00Z", "dag_run_id": str(day)}
        return run | {"conf": {"lake": str(self.lake)}}

    def _pause(self, *, is_paused: bool) -> None:
        path, body = f"/api/v2/dags/{DAG}", {"is_paused": is_paused}
        self.until(lambda: self.patch(path, body, self._token) == 200)

    def _until_posted(self, path: str, body: object) -> None:
        self.until(lambda: self._ask("POST", path, self._token, body)[0] == 200, _LONGEST_S)

    def _await_success(self, day: date) -> None:
        path = f"/api/v2/dags/{DAG}/dagRuns/{day}"

        def ended() -> str:
            state = self.get(path, self._token)[1].get("state")
            return state if state in ("success", "failed") else ""

        state = self.until(ended, _LONGEST_S)
        assert state == "success", f"{day} ended as {state}\n{self._log_tails()[-5000:]}"


def _sql(time: datetime) -> str:
    """Give a time as Airflow keeps it in SQLite."""
    return time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
