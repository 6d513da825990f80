"""The doctor's trial with a real Spark and the real listener."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.long]


def test_the_trial_finds_its_full_lineage(spark, tmp_path):
    folder = str(Path(sys.executable).parent)
    env = os.environ | {
        "PATH": os.pathsep.join([folder, os.environ["PATH"]]),
        "AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION": str(tmp_path / "captures"),
    }
    command = [sys.executable, "-m", "airflow_provider_sparklineage.cli", "doctor", "--json"]
    done = subprocess.run(
        [*command, "--spark-submit"], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    trial = json.loads(done.stdout)["checks"][-1]
    assert (trial["name"], trial["status"]) == ("trial", "ok"), trial
    assert list((tmp_path / "captures").iterdir()) == []
