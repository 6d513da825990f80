"""Jars that tests need and no Python package brings, from where Spark itself takes any.

They are resolved once and kept next to the fetched listeners, outside of the checkout.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from airflow_provider_sparklineage.spark.submit import commands, fetching

LIMIT_S = 900
"""100 MB by a slow mirror."""


class JarsError(Exception):
    """Raised when jars cannot be had; says why, and what to do."""


def jars(*coordinates: str, without: tuple[str, ...] = (), spark_submit: str = "") -> list[Path]:
    """Give the jars of Maven coordinates and of all that they need, fetched if they are not kept.

    Of several processes one fetches and the others wait for it.

    :param without: what is left out with all that only it needs, as ``group:artifact``
    :param spark_submit: the command; the one of this environment if it is empty
    :raise JarsError: if they cannot be had
    """
    name = hashlib.sha256("\n".join((*coordinates, *without)).encode()).hexdigest()[:16]
    kept = fetching.cache_folder() / "tests" / name
    kept.parent.mkdir(parents=True, exist_ok=True)
    with (kept.parent / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            print(f"Fetching {coordinates[0]} and what it needs …", file=sys.__stderr__)
            spark_submit = spark_submit or str(Path(sys.executable).with_name("spark-submit"))
            with tempfile.TemporaryDirectory(prefix=".fetch-", dir=kept.parent) as work:
                _resolve(coordinates, without, spark_submit, Path(work))
                (Path(work) / "ivy" / "jars").rename(kept)
    return sorted(kept.glob("*.jar"))


def _resolve(
    coordinates: tuple[str, ...], without: tuple[str, ...], spark_submit: str, work: Path
) -> None:
    (work / "nothing.py").touch()
    environment = {k: v for k, v in os.environ.items() if k not in ("SPARK_REMOTE", "MASTER")}
    # Else a Maven repository at home comes first, where poms may be without their jars.
    options = f"{environment.get('SPARK_SUBMIT_OPTS', '')} -Duser.home={work}"
    environment |= {"PYSPARK_PYTHON": sys.executable, "SPARK_SUBMIT_OPTS": options}
    command = [spark_submit, "--master", "local[1]", "--deploy-mode", "client"]
    command += ["--conf", f"spark.jars.ivy={work / 'ivy'}"]
    if without:
        command += ["--exclude-packages", ",".join(without)]
    command += ["--packages", ",".join(coordinates), str(work / "nothing.py")]
    try:
        _, output = commands.run(command, environment, LIMIT_S, _show_progress)
    except subprocess.TimeoutExpired as error:
        output = f"{error.output}\nno end within {LIMIT_S} s"
    if not list(work.glob("ivy/jars/*.jar")):
        printed = "\n".join(output.splitlines()[-30:])
        message = (
            f"{', '.join(coordinates)} could not be fetched. Check that this machine reaches a "
            f"Maven repository, or name a mirror by spark.jars.ivySettings.\n{printed}"
        )
        raise JarsError(message)


def _show_progress(line: str) -> None:
    if line.strip().startswith("downloading"):
        print(f"  {line.split()[1].rpartition('/')[2]}", file=sys.__stderr__)
