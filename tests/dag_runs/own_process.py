"""A DAG file that is run as a script, in an Airflow of its own: with this package in it, or not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parents[2]
_NAME = "airflow_provider_sparklineage"
_START = """
import runpy, sys
from pathlib import Path
from airflow.configuration import AIRFLOW_HOME
if not Path(AIRFLOW_HOME, "airflow.db").exists():
    from airflow.utils.db import initdb
    initdb()
runpy.run_path(sys.argv[1], run_name="__main__")
"""


class OwnAirflow:
    """Packages, folders and a database for Airflow; a run in it starts from nothing.

    :param folder: an empty one
    """

    def __init__(self, folder: Path) -> None:
        self.dags = folder / "dags"
        self.dags.mkdir(parents=True)
        self._folder = folder
        self._others = folder / "others"  # than this package
        self._others.mkdir()
        for entry in Path(sysconfig.get_path("purelib")).iterdir():
            if "sparklineage" not in entry.name:
                (self._others / entry.name).symlink_to(entry)
        self._ours = folder / "ours"
        self._install(self._ours)
        self._runs = 0

    def _install(self, folder: Path) -> None:
        """Install the package as it is in this work tree, whatever is installed in the tests'."""
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        info = folder / f"{_NAME}-{project['version']}.dist-info"
        info.mkdir(parents=True)
        named = f"Name: {project['name']}\nVersion: {project['version']}\n"
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\n{named}")
        groups = "".join(
            f"[{group}]\n" + "".join(f"{name} = {path}\n" for name, path in entries.items())
            for group, entries in project["entry-points"].items()
        )
        (info / "entry_points.txt").write_text(groups)
        (folder / _NAME).symlink_to(ROOT / _NAME)

    def run(
        self,
        dag_file: Path,
        *,
        installed: bool = True,
        environment: Mapping[str, str] | None = None,
    ) -> OwnRun:
        """Run a DAG file as ``python dags/it.py`` does; raises if that fails.

        :param environment: more of it than this process has
        """
        self._runs += 1
        home = self._folder / f"home{self._runs}"
        events = home / "openlineage.ndjson"
        home.mkdir()
        path = [self._others, *([self._ours] if installed else [])]
        transport = {"type": "file", "log_file_path": str(events), "append": True}
        given = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, path)),
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(self.dags),
            "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(transport),
            **(environment or {}),
        }
        # Without `site`, which would add the tests' own packages, this one among them.
        command = [sys.executable, "-S", "-c", _START, str(dag_file)]
        done = subprocess.run(
            command, env=given, capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]
        return OwnRun(done.stdout + done.stderr, events)


class OwnRun:
    """What a run left behind."""

    def __init__(self, output: str, events: Path) -> None:
        self.output = output
        self._events = events

    def events(self, job: str) -> list[dict[str, Any]]:
        """Give the OpenLineage events of a job, in their order."""
        every = map(json.loads, self._events.read_text().splitlines())
        return [event for event in every if event["job"]["name"] == job]

    def result(self) -> Any:
        """Give what the DAG file has printed, a JSON object; Airflow prints its log around it."""
        [line] = [line for line in self.output.splitlines() if line.startswith("{")]
        return json.loads(line)
