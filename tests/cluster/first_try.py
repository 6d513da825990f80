"""A worker to be killed: ``python -m tests.cluster.first_try FOLDER APPLICATION …``."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from tests import spark_submit_double
from tests.cluster.submitting import Submitter, TaskStateStore


def main(folder: str, application: str, *arguments: str) -> None:
    """Execute the first try of a durable task, with what its FOLDER says."""
    given = json.loads((Path(folder) / "first.json").read_text())
    os.environ.update(given["environment"])  # the tests' own is made when they are imported
    submitter = Submitter(given["conf"])
    task = submitter.operator(application, *arguments, durable=True, yarn_track_via_rm_api=True)
    context = spark_submit_double.task_context()
    context["task_state_store"] = TaskStateStore(Path(folder) / "store.json")
    submitter.execute(task, context)


if __name__ == "__main__":
    main(*sys.argv[1:])
