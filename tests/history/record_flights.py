"""Record a month of the flights example: ``python -m tests.history.record_flights``.

A real Airflow with its scheduler runs the example for the first thirty days of January 2013, one
after the other. Then somebody clears ``prepare_flights`` of one day, which writes that day's
flights anew, and what was built from them is cleared last. What the archive has after each of the
three is written to ``tests/golden/history``: a line is a file of the archive. It takes a quarter of
an hour.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import sys
import tempfile
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.spark.submit import listener_selection
from tests.dag_runs.scheduler import Airflow

if TYPE_CHECKING:
    from collections.abc import Iterable

EXAMPLES = Path(__file__).parents[2] / "dags_examples"
FOLDER = Path(__file__).parents[1] / "golden" / "history"
DAG = "example_report_flight_delays"
DAYS = [date(2013, 1, 1) + timedelta(days) for days in range(30)]
REWRITTEN = date(2013, 1, 15)
_LONGEST_S = 1800


class Month(Airflow):
    """An Airflow that runs the example.

    :param home: a folder; the lake and the archive are in it
    """

    def __init__(self, home: Path) -> None:
        listener = listener_selection.fetch_for(
            listener_selection.spark_of("spark-submit"), "spark-submit"
        )
        super().__init__(home, {}, listener)
        self.archive = home / "archive"
        self._environment |= {
            "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
            "AIRFLOW__OPENLINEAGE__NAMESPACE": "flights",
            "AIRFLOW__SPARKLINEAGE__ARCHIVE_URL": self.archive.as_uri(),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        }

    def run(self, days: Iterable[date]) -> None:
        """Run the DAG for days, in their order."""
        for day in days:
            self._until_posted(
                f"/api/v2/dags/{DAG}/dagRuns",
                {
                    "logical_date": f"{day}T00:00:00Z",
                    "dag_run_id": str(day),
                    "conf": {"lake": str(self.home / "lake")},
                },
            )
            self._await_runs([day])

    def clear_tasks(self, tasks: Iterable[tuple[str, date]]) -> None:
        """Clear task instances alone, those of one task at a time, and wait for them."""
        by_task: dict[str, list[date]] = {}
        for task, day in tasks:
            by_task.setdefault(task, []).append(day)
        for task, days in by_task.items():
            for day in days:
                body = {
                    "dry_run": False,
                    "dag_run_id": str(day),
                    "task_ids": [task],
                    "only_failed": False,
                }
                self._until_posted(f"/api/v2/dags/{DAG}/clearTaskInstances", body)
                self._await_runs([day])

    def lines(self) -> list[bytes]:
        """Give the files of the archive, in the order of their events."""
        files = [file.read_bytes() for file in self.archive.rglob("*.json")]
        return sorted(files, key=lambda content: json.loads(content)["eventTime"])

    def _until_posted(self, path: str, body: object) -> None:
        self.until(lambda: self._ask("POST", path, self._token, body)[0] == 200, _LONGEST_S)

    def _await_runs(self, days: Iterable[date]) -> None:
        for day in days:
            path = f"/api/v2/dags/{DAG}/dagRuns/{day}"
            state = self.until(lambda path=path: self._ended(path), _LONGEST_S)
            assert state == "success", f"{day} ended as {state}\n{self._log_tails()[-5000:]}"

    def _ended(self, path: str) -> str:
        state = self.get(path, self._token)[1].get("state")
        return state if state in ("success", "failed") else ""


def main() -> None:
    """Record the three parts."""
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    with tempfile.TemporaryDirectory(prefix="flights-") as folder:
        home = Path(folder)
        shutil.copytree(EXAMPLES, home / "dags")
        month = Month(home)
        month.start()
        try:
            _record(month)
        finally:
            month.stop()


def _record(month: Month) -> None:
    known: list[bytes] = []
    reports = [("weekly_report", REWRITTEN + timedelta(days)) for days in range(7)]
    for name, act in (
        ("month", lambda: month.run(DAYS)),
        ("rewritten", lambda: month.clear_tasks([("prepare_flights", REWRITTEN)])),
        ("cleared", lambda: month.clear_tasks([("daily_delays", REWRITTEN), *reports])),
    ):
        act()
        new = [line for line in month.lines() if line not in known]
        _write(FOLDER / f"flights_{name}.ndjson.gz", new, month)
        known += new
        print(f"{name}: {len(new)} events", flush=True)


def _write(file: Path, lines: Iterable[bytes], month: Month) -> None:
    file.parent.mkdir(exist_ok=True)
    content = b"".join(line + b"\n" for line in lines)
    for varies, name in ((str(month.home), b"/flights"), (month.url, b"http://airflow:8080")):
        content = content.replace(varies.encode(), name)
    # Without the time, so that the same content is the same file.
    file.write_bytes(gzip.compress(content, mtime=0))


if __name__ == "__main__":
    main()
