"""A job that is a jar, compiled for the Spark that runs it."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from typing import TYPE_CHECKING

import pytest

from tests import record_events

if TYPE_CHECKING:
    from pathlib import Path

MAIN_CLASS = "TotalsJob"


def compiled(spark: record_events.Spark, folder: Path) -> Path:
    """Compile the job and pack it."""
    javac = shutil.which("javac")
    if javac is None:
        pytest.skip("compiling a job needs a JDK")
    source = record_events.APPLICATIONS / f"{MAIN_CLASS}.java"
    classes = f"{spark.distribution.home}/jars/*"
    command = [javac, "--release", "17", "-d", str(folder), "-cp", classes, str(source)]
    subprocess.run(command, check=True, capture_output=True)
    jar = folder / "totals.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        archive.write(folder / f"{MAIN_CLASS}.class", f"{MAIN_CLASS}.class")
    return jar
