"""A spark-submit that is a script of ours, and an operator run as Airflow's task runner would."""

from __future__ import annotations

import json
import os
import stat
import sys
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tests.conftest import golden

if TYPE_CHECKING:
    import pytest

# Dumps what it was given, and follows its script: writes recorded events where the listener would,
# runs the script's own code (which knows `location`, `observations` and `conf`), and ends.
FAKE_SPARK_SUBMIT = """#!{python}
import json, os, pathlib, sys, time
conf = dict(a.split("=", 1) for f, a in zip(sys.argv, sys.argv[1:]) if f == "--conf")
files = {{}}
properties = os.path.join(os.environ.get("SPARK_CONF_DIR", ""), "spark-defaults.conf")
for flag, value in zip(sys.argv, sys.argv[1:]):
    if flag == "--properties-file":
        path = pathlib.Path(value)
        properties = value
        files[value] = [oct(path.stat().st_mode & 0o777), path.read_text(errors="replace")]
script = json.loads(pathlib.Path({script!r}).read_text())
pathlib.Path({dump!r}).write_text(json.dumps({{
    "pid": os.getpid(), "ppid": os.getppid(),
    "argv": sys.argv[1:], "conf": conf, "env": dict(os.environ), "files": files}}))
if os.path.isfile(properties):
    import javaproperties
    conf = {{**javaproperties.loads(pathlib.Path(properties).read_text(errors="replace")), **conf}}
if "spark.sparklineage.deliver" in conf:  # the driver has a file system of its own
    container = pathlib.Path({container!r} + str(os.getpid()))
    for key in conf:
        if conf[key].endswith(("/events.ndjson", "/observations.ndjson")):
            conf[key] = str(container / conf[key].lstrip("/"))
            pathlib.Path(conf[key]).parent.mkdir(parents=True, exist_ok=True)
    sys.path.insert(0, {root!r})
prefix = "spark.openlineage.transport."
location = conf.get(prefix + "location") or conf.get(prefix + "transports.sparklineage.location")
if location and script.get("events"):
    text = pathlib.Path(script["events"]).read_bytes()
    run_id = conf["spark.openlineage.applicationRunId"]
    text = text.replace(script["recorded_as"].encode(), run_id.encode())
    pathlib.Path(location).write_bytes(text[: script.get("bytes")])
observations = conf.get("spark.sparklineage.observations")
if observations and "observations" in script:
    pathlib.Path(observations).write_text(
        "".join(json.dumps(o) + chr(10) for o in script["observations"]))
if observations and script.get("observed"):
    pathlib.Path(observations).write_bytes(pathlib.Path(script["observed"]).read_bytes())
exec(script.get("code", ""))
print("the job's own output")
time.sleep(script.get("sleep", 0))
while script.get("until") and not pathlib.Path(script["until"]).exists():
    time.sleep(0.1)
sys.exit(script.get("exit", 0))
"""


class FakeTaskInstance(SimpleNamespace):
    """What the OpenLineage macros ask of a task instance, and its XComs."""

    def xcom_push(self, key, value):
        # As Airflow's database does: what comes back is JSON.
        self.xcoms[key] = json.loads(json.dumps(value))

    stats_tags: dict[str, str] = {}  # noqa: RUF012  (a double, made once a test)

    def get_template_context(self):
        return {"ti": self, "dag_run": self.dag_run}


class FakeSparkSubmit:
    """The double: follows a script, and keeps what it was given."""

    def __init__(self, folder: Path) -> None:
        self.script = folder / "script.json"
        self._dump = folder / "dump.json"
        self.home = folder / "spark"
        self.jar = folder / "openlineage-spark_2.13-1.53.0.jar"
        with zipfile.ZipFile(self.jar, "w") as archive:
            archive.writestr("io/openlineage/spark/agent/OpenLineageSparkListener.class", b"")
        (self.home / "jars").mkdir(parents=True)
        (self.home / "jars" / "spark-core_2.13-4.0.1.jar").touch()
        (self.home / "conf").mkdir()
        binary = folder / "bin" / "spark-submit"
        binary.parent.mkdir()
        program = FAKE_SPARK_SUBMIT.format(
            python=sys.executable,
            script=str(self.script),
            dump=str(self._dump),
            container=str(folder / "container-"),
            root=str(Path(__file__).parents[1]),
        )
        binary.write_text(program)
        binary.chmod(binary.stat().st_mode | stat.S_IXUSR)
        self.path = str(binary.parent)
        self.does()

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let it be found, with a listener, and captures next to it."""
        monkeypatch.setenv("PATH", f"{self.path}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.setenv("SPARK_HOME", str(self.home))
        monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__LISTENER_JAR", str(self.jar))
        captures = self.home.parent / "captures"
        monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION", str(captures))
        monkeypatch.delenv("SPARK_SUBMIT_OPTS", raising=False)

    def does(self, events: str | None = None, **script) -> None:
        """Set for the double whose events to write (and ``exit``, ``sleep``, ``bytes``).

        It ends when the file ``until`` is there.
        """
        if events is not None:
            path = golden(events)
            first = json.loads(path.read_text().splitlines()[0])
            script |= {"events": str(path), "recorded_as": first["run"]["runId"]}
        self.script.write_text(json.dumps(script))

    def forgets(self) -> None:
        """Forget that it ran."""
        self._dump.unlink(missing_ok=True)

    @property
    def ran(self) -> bool:
        return self._dump.exists()

    @property
    def given(self):
        return SimpleNamespace(**json.loads(self._dump.read_text()))


def task_context() -> dict[str, Any]:
    """Make the template context of a task instance, as far as the operator and macros look."""
    dag_run = SimpleNamespace(
        logical_date=datetime(2024, 5, 6, tzinfo=UTC),
        run_after=datetime(2024, 5, 7, tzinfo=UTC),
        conf={},
        clear_number=0,
    )
    ti = FakeTaskInstance(
        dag_id="shop",
        task_id="revenue",
        run_id="manual",
        try_number=1,
        map_index=-1,
        dag_run=dag_run,
        xcoms={},
    )
    return {"ti": ti, "dag_run": dag_run}


def execute(operator: Any, context: dict[str, Any]) -> Any:
    """Execute an operator as the task runner does."""
    from airflow.sdk.bases.operator import ExecutorSafeguard

    token = ExecutorSafeguard.tracker.set(operator)
    try:
        return operator.execute(context)
    finally:
        ExecutorSafeguard.tracker.reset(token)


def argument(given, flag):
    """Give what spark-submit was given for a flag; None if it was not given the flag."""
    argv = given.argv
    return argv[argv.index(flag) + 1] if flag in argv else None


def injected(given):
    """Whether spark-submit was given the listener's properties."""
    return any(key.startswith("spark.openlineage.parent") for key in given.conf)


def degradations(task):
    """Give what the event of a task that has ended says to be missing: code to message."""
    facet = task.get_openlineage_facets_on_complete(None).run_facets["sparkLineage_capture"]
    return {d["code"]: d["message"] for d in facet.degradations}
