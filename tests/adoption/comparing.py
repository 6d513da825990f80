"""Runs that are compared: each in an Airflow of its own, and without what is of a run alone."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

TIMEOUT_S = 300  # on a machine that has other work

VOLATILE = {
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}": "UUID",
    r"20[2-9]\d-\d\d-\d\d[T_ ]\d\d(:|%3A)\d\d((:|%3A)\d\d)?(\.\d+)?"
    r"(Z|\+00:00|%2B00%3A00| UTC)?": "NOW",
    r"local-\d{13}": "APPLICATION",
    r'"duration": [\d.]+|"tasksDuration": \{[^}]*\}': '"took": 0',
}


class Home:
    """An Airflow with a database, in which nothing runs by itself.

    :param database: one that is copied; None makes it
    """

    def __init__(self, folder: Path, database: Path | None) -> None:
        folder.mkdir()
        self.folder = folder
        self.log = folder / "log"
        self.database = folder / "airflow.db"
        transport = {"type": "file", "log_file_path": str(folder / "events"), "append": True}
        foreign = ("AIRFLOW_", "SPARK_HOME")
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(foreign)}
        self.environment = inherited | {
            "AIRFLOW_HOME": str(folder),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            # A busy machine needs longer than the default to send an event, which is lost then.
            "AIRFLOW__OPENLINEAGE__EXECUTION_TIMEOUT": "60",
            "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(transport),
            "AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION": str(folder / "captures"),
        }
        if database is None:
            command = [sys.executable, "-m", "airflow", "db", "migrate"]
            subprocess.run(
                command, env=self.environment, capture_output=True, check=True, timeout=TIMEOUT_S
            )
        else:
            shutil.copy(database, self.database)

    @property
    def events(self) -> str:
        """What Airflow sent, an event a line."""
        return (self.folder / "events").read_text()


def without_run(text: str, texts: dict[str, str]) -> str:
    """Replace what differs from run to run: ids, times, and these texts."""
    for old, new in texts.items():
        text = text.replace(old, new)
    for pattern, name in VOLATILE.items():
        text = re.sub(pattern, name, text)
    return text
