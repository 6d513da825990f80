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
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.spark.submit import commands, distribution, fetching

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

LIMIT_S = 900
"""100 MB by a slow mirror."""


class JarsError(Exception):
    """Raised when jars cannot be had; says why, and what to do."""


def jars(*coordinates: str, without: tuple[str, ...] = (), spark_submit: str = "") -> list[Path]:
    """Give the jars of Maven coordinates and of all that they need, fetched if they are not kept.

    Of several processes one fetches and the others wait for it.

    :param without: what is left out with all that only it needs, as ``group:artifact``; ``*`` is
        any text
    :param spark_submit: the command; the one of this environment if it is empty
    :raise JarsError: if they cannot be had
    """
    spark_submit = spark_submit or str(Path(sys.executable).with_name("spark-submit"))
    return _kept(
        (*coordinates, *without),
        lambda work: _resolve(coordinates, without, spark_submit, work),
    )


def jar(coordinates: str) -> Path:
    """Give one jar without what it needs, also if Spark leaves it out of what it resolves.

    Spark does so with Scala's library, of which a server for another Scala needs its own.

    :param coordinates: as ``group:artifact:version``
    :raise JarsError: if it cannot be had
    """
    [found] = _kept((coordinates, "alone"), lambda work: _retrieve(coordinates, work))
    return found


def _kept(key: tuple[str, ...], fetch: Callable[[Path], None]) -> list[Path]:
    """Give the jars of a key, which are fetched into ``ivy/jars`` of a folder if they are not kept.

    :param key: begins with the coordinates that are named as being fetched
    """
    name = hashlib.sha256("\n".join(key).encode()).hexdigest()[:16]
    kept = fetching.cache_folder() / "tests" / name
    kept.parent.mkdir(parents=True, exist_ok=True)
    with (kept.parent / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            print(f"Fetching {key[0]} and what it needs …", file=sys.__stderr__)
            with tempfile.TemporaryDirectory(prefix=".fetch-", dir=kept.parent) as work:
                fetch(Path(work))
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
    _run(command, environment, coordinates, work)


def _retrieve(coordinates: str, work: Path) -> None:
    """Fetch one jar by Spark's own Ivy."""
    java, spark = commands.find_java(os.environ), distribution.find("spark-submit", os.environ)
    if java is None or spark is None or spark.home is None:
        message = f"{coordinates} cannot be fetched without a Java and a Spark."
        raise JarsError(message)
    [ivy] = (spark.home / "jars").glob("ivy-*.jar")
    kept = f"{work}/ivy/jars/[organisation]_[artifact]-[revision].[ext]"
    command = [str(java), "-jar", str(ivy), "-cache", str(work / "ivy" / "cache")]
    command += ["-dependency", *coordinates.split(":"), "-confs", "master", "-retrieve", kept]
    _run(command, dict(os.environ), (coordinates,), work)


def _run(
    command: list[str], environment: Mapping[str, str], coordinates: tuple[str, ...], work: Path
) -> None:
    """Run what puts jars into ``ivy/jars``.

    :raise JarsError: if there are none afterwards
    """
    try:
        _, output = commands.run(command, dict(environment), LIMIT_S, _show_progress)
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
