"""An ``airflow standalone`` with a task that fails once and then waits to be let go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.spark_submit_double import FakeSparkSubmit
from tests.standalone import Standalone

if TYPE_CHECKING:
    from pathlib import Path

DAG_ID, TASK_ID = "live", "revenue"

# Its first try fails; the second one runs until its gate is there.
DAG = """
import shutil
from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG

from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator

with DAG(
    {dag_id!r},
    schedule="@once",
    start_date=datetime(2024, 5, 6, tzinfo=UTC),
):
    SparkLineageSubmitOperator(
        task_id={task_id!r},
        application="staging_chain.py",
        writes=["/lake/revenue/dt=2024-05-06"],
        retries=1,
        retry_delay=timedelta(0),
        on_retry_callback=lambda _context: shutil.copy({second!r}, {script!r}),
    )
"""


class Live(Standalone):
    """Has the task, and the gate that it waits at.

    :param folder: its home, with logs
    """

    def __init__(self, folder: Path, passwords: dict[str, str]) -> None:
        self._gate = folder / "gate"
        self._archive = folder / "archive"
        fake = FakeSparkSubmit(folder)
        fake.does("staging_chain", until=str(self._gate))
        second = fake.script.rename(folder / "second.json")
        fake.does("staging_chain", exit=1)
        (folder / "dags").mkdir()
        files = {"second": str(second), "script": str(fake.script)}
        text = DAG.format(dag_id=DAG_ID, task_id=TASK_ID, **files)
        (folder / "dags" / "live.py").write_text(text)
        super().__init__(folder, passwords, fake, {"SPARK_HOME": str(fake.home)})

    def begin(self, user: str, timeout_s: float) -> None:
        """Let the DAG run, once Airflow knows it."""
        path, body = f"/api/v2/dags/{DAG_ID}", {"is_paused": False}
        self.until(lambda: self.patch(path, body, self.token(user)) == 200, timeout_s)

    def task_instance(self, timeout_s: float) -> str:
        """URL of its task instance, when the first try of that has ended."""
        [document] = self.until(self._first_tries, timeout_s)
        run_id = document.relative_to(self._archive).parts[1]
        return f"{self.url}/dags/{DAG_ID}/runs/{run_id}/tasks/{TASK_ID}"

    def _first_tries(self) -> list[Path]:
        return list(self._archive.glob(f"{DAG_ID}/*/{TASK_ID}/-1/1.json"))

    def release(self) -> None:
        """Let the task that waits go on to its end."""
        self._gate.touch()

    def end(self) -> None:
        """End all of its processes, the task that waits first."""
        self.release()
        super().end()
