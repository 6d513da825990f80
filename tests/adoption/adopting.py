"""An ``airflow standalone`` whose DAGs know nothing of lineage, and that adopts their operators."""

from __future__ import annotations

import json
import shutil
import urllib.parse
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.conftest import golden
from tests.spark_submit_double import FakeSparkSubmit
from tests.standalone import START_TIMEOUT_S, Standalone

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE = Path(__file__).parent
DAY = "2024-05-06"
RUN = "run"
TASKS_TIMEOUT_S = 600  # of all tasks of all shapes on a machine that has other work
DAGS = (
    *("factory", "default_args", "mapped", "groups", "dynamic_eu", "dynamic_us", "subclass"),
    *("plugin", "trigger_rule", "retries", "execution_timeout", "pool", "assets"),
    *("own_policy", "declared", "pyspark_task", "switched"),
)
WEB_URL = "http://marquez.example:3000"

_USER = "admin"
ENDED = {"success", "failed", "upstream_failed", "skipped", "removed"}

STOCK_CLASS = "airflow.providers.apache.spark.operators.spark_submit.SparkSubmitOperator"

ALL_BUT_SWITCHED = "- {dag_id: switched, exclude: true}"
ALL = "- {dag_id: none of these, exclude: true}"

NOT_NOTED = ["WITHOUT_US", "AIRFLOW__SPARKLINEAGE__ADOPT", "__AIRFLOW_SUPERVISOR_FD"]

# What the double does when it has written what was recorded: it notes what it was given, in a file
# for each job, and follows the name of the application.
CODE = """
applications = [word for word in sys.argv if word.endswith(".py")]
job = pathlib.Path(applications[-1]).stem if applications else "no application"
notes = pathlib.Path({notes!r})
# All that a job is given but for how a test has set Airflow up.
env = {{name: value for name, value in os.environ.items() if name not in {not_noted!r}}}
with (notes / job).open("a") as note:
    note.write(json.dumps({{"argv": sys.argv[1:], "conf": conf, "env": env}}) + chr(10))
tries = len((notes / job).read_text().splitlines())
if job.endswith("_fails") or job.endswith("_fails_once") and tries == 1:
    sys.exit(1)
if job.endswith("_hangs"):
    time.sleep(120)
"""


class SubmitDouble(FakeSparkSubmit):
    """A spark-submit that knows by the name of the application what to do, and notes it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._notes = folder / "submissions"
        self._notes.mkdir()
        # A Spark that is found by its spark-submit: tasks that are drivers have PySpark's own.
        (folder / "jars").symlink_to(self.home / "jars")
        shutil.copy(Path(self.path) / "spark-submit", Path(self.path) / "spark-sql")
        observed = golden("staging_chain").parent / "observed" / "staging_chain.ndjson"
        code = CODE.format(notes=str(self._notes), not_noted=NOT_NOTED)
        self.does("staging_chain", observed=str(observed), code=code)

    def notes(self, job: str) -> list[dict[str, Any]]:
        """Give what was given for a job, in the order of its tries."""
        return [json.loads(line) for line in (self._notes / job).read_text().splitlines()]

    def notes_taken(self) -> str:
        """Give what was given for all jobs, and forget it."""
        files = sorted(self._notes.iterdir())
        text = "".join(file.read_text() for file in files)
        for file in files:
            file.unlink()
        return text


class Adopting(Standalone):
    """Has the DAGs of ``dags``, a user's plugin and policy, and rules that can be changed.

    :param folder: its home
    :param more_dags: files that are among the DAGs
    :param environment: added to that of all of its processes
    """

    def __init__(self, folder: Path, more_dags: Sequence[Path], **environment: str) -> None:
        self.spark_submit = SubmitDouble(folder)
        shutil.copytree(HERE / "dags", folder / "dags")
        shutil.copytree(HERE / "plugins", folder / "plugins")
        for file in more_dags:
            shutil.copy(file, folder / "dags")
        self._rules = folder / "rules.yaml"
        self.adopts(ALL_BUT_SWITCHED)
        self._token = ""
        self._runs: Counter[str] = Counter()
        super().__init__(
            folder,
            {_USER: _USER},
            self.spark_submit,
            {
                "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
                "AIRFLOW__CORE__PARALLELISM": "3",
                # A file is parsed when it is new, has changed, or a test asks for it.
                "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "3600",
                # A busy machine needs longer than the default to send an event, which is lost then.
                "AIRFLOW__OPENLINEAGE__EXECUTION_TIMEOUT": "60",
                "AIRFLOW__SPARKLINEAGE__ADOPT": str(self._rules),
                "AIRFLOW__SPARKLINEAGE__DECLARATIONS": str(HERE / "declarations.yaml"),
                "AIRFLOW__SPARKLINEAGE__WEB_URL": WEB_URL,
                **environment,
            },
            (HERE / "user_policy.py").read_text(),
        )

    def adopts(self, rules: str) -> None:
        """Change which operators are adopted."""
        self._rules.write_text(rules)

    # --- what a person does -----------------------------------------------------------------------

    def begin(self) -> None:
        """Log in, and make the pool that a task needs."""
        self.await_answer()
        self._token = self.token(_USER)
        pool = {"name": "cluster", "slots": 2, "include_deferred": False}
        assert self._ask("POST", "/api/v2/pools", self._token, pool)[0] == 201

    def trigger(self, dag_id: str, run_id: str = RUN) -> None:
        """Begin a run of a DAG, once Airflow knows the DAG."""
        self._runs[dag_id] += 1
        path = f"/api/v2/dags/{dag_id}/dagRuns"
        # No two runs of a DAG have one logical date: the hour is another one.
        body = {"dag_run_id": run_id, "logical_date": f"{DAY}T{self._runs[dag_id]:02}:00:00Z"}
        answer = (0, {})

        def is_begun() -> bool:
            nonlocal answer
            answer = self._ask("POST", path, self._token, body)
            return answer[0] not in (404, 500)  # not known yet, or its SQLite is locked

        self.until(is_begun, START_TIMEOUT_S)
        assert answer[0] == 200, answer

    def reparse(self, dag_id: str) -> None:
        """Let Airflow parse a DAG's file, and wait for that."""
        before = self.asked(f"dags/{dag_id}")
        status, _ = self._ask("PUT", f"/api/v2/parseDagFile/{before['file_token']}", self._token)
        assert status == 201
        self.until(
            lambda: self.asked(f"dags/{dag_id}")["last_parsed_time"] != before["last_parsed_time"],
            TASKS_TIMEOUT_S,
        )

    # --- what a person sees -----------------------------------------------------------------------

    def asked(self, path: str) -> dict[str, Any]:
        """Give what Airflow's API answers."""
        status, answer = self.get(f"/api/v2/{path}", self._token)
        assert status == 200, (path, answer)
        return answer

    def states(self, dag_id: str, run_id: str = RUN) -> dict[tuple[str, int], str]:
        """Wait until a run has ended; give the states of its tasks by id and map index."""
        path = f"dags/{dag_id}/dagRuns/{run_id}"
        self.until(lambda: self.asked(path)["state"] in ENDED, TASKS_TIMEOUT_S)
        instances = self.asked(f"{path}/taskInstances")["task_instances"]
        return {(ti["task_id"], ti["map_index"]): ti["state"] for ti in instances}

    def instance(self, dag_id: str, task_id: str, map_index: int = -1) -> dict[str, Any]:
        """Give a task instance."""
        index = f"/{map_index}" if map_index >= 0 else ""
        return self.asked(f"dags/{dag_id}/dagRuns/{RUN}/taskInstances/{task_id}{index}")

    def links(self, dag_id: str, task_id: str, map_index: int = -1) -> dict[str, str | None]:
        """Give the URLs that are buttons on a task instance's page."""
        path = f"dags/{dag_id}/dagRuns/{RUN}/taskInstances/{task_id}/links"
        urls: dict[str, str | None] = self.asked(f"{path}?map_index={map_index}")["extra_links"]
        return urls

    def xcom(self, dag_id: str, task_id: str, key: str, map_index: int = -1) -> Any:
        """Give the value of an XCom."""
        path = f"dags/{dag_id}/dagRuns/{RUN}/taskInstances/{task_id}/xcomEntries/{key}"
        return self.asked(f"{path}?map_index={map_index}")["value"]

    def tab(self, dag_id: str, task_id: str, map_index: int = -1) -> dict[str, Any]:
        """Give what the tab shows."""
        query = {"run_id": RUN, "task_id": task_id, "map_index": map_index}
        path = f"/sparklineage/api/dags/{dag_id}/lineage?{urllib.parse.urlencode(query)}"
        status, answer = self.get(path, self._token)
        assert status == 200, answer
        return answer

    def versions(self, dag_id: str) -> int:
        """Give how many versions of a DAG there are."""
        count: int = self.asked(f"dags/{dag_id}/dagVersions")["total_entries"]
        return count

    # --- what there is for programs ---------------------------------------------------------------

    def ends(self, dag_id: str, task_id: str, count: int = 1) -> list[dict[str, Any]]:
        """Wait for so many events of the ends of a task's tries, and give them in their order."""

        def sent() -> list[dict[str, Any]]:
            file = self.folder / "events"
            text = file.read_text() if file.exists() else ""
            every = [json.loads(line) for line in text.splitlines(True) if line.endswith("\n")]
            found = [
                event
                for event in every
                if event["job"]["name"] == f"{dag_id}.{task_id}"
                and event["eventType"] in {"COMPLETE", "FAIL"}
            ]
            return found if len(found) >= count else []

        found: list[dict[str, Any]] = self.until(sent, 60)
        return found
