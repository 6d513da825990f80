"""The example DAGs of Airflow's Spark provider, unchanged, out of its source distribution."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import tarfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

PROVIDER = "apache-airflow-providers-apache-spark"
DAGS = ("example_spark_operator", "example_pyspark")
CONNECTIONS = ("spark-default", "jdbc-default", "spark_sql_default", "spark_connect", "spark-local")
"""That they name."""

FETCH_TIMEOUT_S = 60

# They end with what Airflow's own tests run them by, which no package has.
TEST_RUN = "def get_test_run(dag):\n    return None\n"


class NotFetchedError(Exception):
    """Raised with pip's reason when the examples cannot be had."""


def fetch(folder: Path) -> list[Path]:
    """Download those of the provider that is installed; what they import is in the folder, too."""
    version = importlib.metadata.version(PROVIDER)
    command = [
        *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"),
        *("--retries", "1", "--timeout", "10", "--no-deps", "--no-binary", PROVIDER),
        *("--dest", str(folder), f"{PROVIDER}=={version}"),
    ]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=FETCH_TIMEOUT_S
        )
    except subprocess.TimeoutExpired as error:
        raise NotFetchedError(str(error)) from error
    if done.returncode != 0:
        raise NotFetchedError(done.stderr.strip().rpartition("\n")[2])
    module = folder / "tests_common" / "test_utils" / "system_tests.py"
    module.parent.mkdir(parents=True)
    module.write_text(TEST_RUN)
    [archive] = folder.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        members = [m for m in packed.getmembers() if "/tests/system/" in m.name]
        packed.extractall(folder, members, filter="data")
    found = sorted(folder.glob("*/tests/system/**/example_*.py"))
    if not found:
        message = f"{archive.name} has none."
        raise NotFetchedError(message)
    return found
