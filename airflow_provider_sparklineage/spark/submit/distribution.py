"""Finds the Spark of a ``spark-submit`` and reads ``spark-defaults.conf``, without a JVM."""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import javaproperties

from airflow_provider_sparklineage.model.exceptions import ListenerError
from airflow_provider_sparklineage.model.files import open_regular
from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

# The characters that Utils.trimExceptCRLF trims from a value. Line ends are not trimmed, because a
# value may be a line end, for example as a delimiter.
_TRIMMED = "".join(chr(code) for code in range(0x21) if chr(code) not in "\r\n")

_CORE_JAR = re.compile(r"spark-core_(?P<scala>\d\.\d+)-(?P<spark>\d+\.\d+\.\d+.*)\.jar")
_SCALA_JAR = re.compile(r"scala-library-(?P<scala>\d\.\d+)\..*\.jar")
_RELEASE_BYTES = 4096
_RELEASE = re.compile(r"Spark (?P<spark>\d+\.\d+\.\d+\S*)")
_DECLARED = re.compile(
    r"(?P<spark>\d+\.\d+(?:\.\d+\S*?)?)(?:[-_ ]scala-?(?P<scala>\d\.\d+))?", re.IGNORECASE
)


class SparkDistribution(Frozen, frozen=True):
    """A Spark installation on this machine.

    :param home: the folder ``SPARK_HOME``; None if it is not known, because ``spark-submit`` is a
        script in another folder
    :param version: the version of Spark, e.g. ``4.0.1``
    :param scala: the binary version of Scala, e.g. ``2.13``
    """

    home: Path | None
    version: str
    scala: str

    @property
    def own_jars(self) -> list[Path]:
        """The paths of the jars that each application of this Spark has on its class path.

        The list is empty if the folder of the jars is not known, or cannot be read.
        """
        if self.home is None:
            return []
        return [self.home / "jars" / name for name in sorted(_jar_names(self.home))]

    def submit_command(self, spark_binary: str) -> str:
        """Give the path of ``spark-submit`` in SPARK_HOME if it exists, else the command on PATH.

        The command on PATH may belong to another Spark.

        :param spark_binary: the command on PATH
        """
        own = self.home and self.home / "bin" / "spark-submit"
        return str(own) if own and own.is_file() else spark_binary


def defaults(home: Path | None, env: Mapping[str, str]) -> dict[str, str]:
    """Read the properties of ``spark-defaults.conf``, which Spark uses if it gets no other file.

    :param home: the folder ``SPARK_HOME``; None if it is not known
    :param env: the environment of spark-submit
    :return: the values by property; {} if there is no such file
    :raise ListenerError: if the folder of the file is not known
    :raise OSError: if the file exists but cannot be read
    :raise ValueError: if the file is not a properties file
    """
    folder = env.get("SPARK_CONF_DIR") or (home and home / "conf")
    if not folder:
        problem = (
            "Which spark-defaults.conf spark-submit reads is not known, and its properties must "
            "not be overridden."
        )
        fix = "Set SPARK_HOME or SPARK_CONF_DIR on the worker, or give the task a properties_file."
        raise ListenerError(problem, fix)
    return read_properties(Path(folder) / "spark-defaults.conf")


def find(spark_binary: str, env: Mapping[str, str]) -> SparkDistribution | None:
    """Find the distribution that a spark-submit would run in this environment.

    As in Spark's own script ``find-spark-home``, the distribution is the folder in ``SPARK_HOME``.
    If the variable is not set, it is the folder above the script's ``bin`` or, if that folder is no
    distribution, the pip package ``pyspark`` inside it.

    :param spark_binary: the command, a path or a name on PATH
    :param env: the environment of spark-submit
    :return: None if there is no such command, or if the files of the distribution show no version
    """
    if env.get("SPARK_HOME"):
        return _at(Path(env["SPARK_HOME"]))
    binary = shutil.which(spark_binary, path=env.get("PATH"))
    if binary is None:
        return None
    # The folder of a link is tried before the folder of its target: the link may be a script of a
    # virtual environment, next to site-packages.
    for folder in (Path(binary).parent, Path(binary).resolve().parent):
        candidates = [folder.parent, *folder.parent.glob("lib/python3*/site-packages/pyspark")]
        for home in candidates:
            if (distribution := _at(home)) is not None:
                return distribution
    return None


def _at(home: Path) -> SparkDistribution | None:
    """Read the versions of Spark and Scala from the files of a distribution.

    The name of the jar ``spark-core`` has both versions. Without this jar, the file ``RELEASE`` has
    the version of Spark, and the name of the jar ``scala-library`` the version of Scala.

    :return: None if the files do not show both versions
    """
    names = _jar_names(home)
    for name in names:
        if match := _CORE_JAR.fullmatch(name):
            return SparkDistribution(home, match["spark"], match["scala"])
    release = home / "RELEASE"
    try:
        with open_regular(release) as file:
            versions = _RELEASE.match(file.read(_RELEASE_BYTES).decode(errors="replace"))
    except OSError:
        return None
    for name in names:
        if versions and (match := _SCALA_JAR.fullmatch(name)):
            return SparkDistribution(home, versions["spark"], match["scala"])
    return None


def _jar_names(home: Path) -> list[str]:
    """List the names of a distribution's jars; [] if the folder of the jars cannot be read."""
    with suppress(OSError), os.scandir(home / "jars") as entries:
        # With up to 300 entries, pathlib would take longer, because it makes a path of each entry.
        return [entry.name for entry in entries if entry.name.endswith(".jar")]
    return []


def declared(text: str) -> tuple[str, str]:
    """Read a declared version of Spark (``4.0.1``), or of Spark and Scala (``3.5.6-scala2.13``).

    If the text does not declare a version of Scala, the result has the version that Spark's own
    downloads and PySpark have: 2.12 up to Spark 3, and 2.13 from Spark 4 on.

    :return: the version of Spark, and the version of Scala
    :raise ValueError: if the text has another form
    """
    match = _DECLARED.fullmatch(text.strip())
    if match is None:
        msg = f"{text!r} is no version of Spark, such as 4.0.1 or 3.5.6-scala2.13"
        raise ValueError(msg)
    is_old = int(match["spark"].partition(".")[0]) < 4
    return match["spark"], match["scala"] or ("2.12" if is_old else "2.13")


def read_properties(path: Path) -> dict[str, str]:
    """Read a Java properties file as Spark does, with trimmed values; {} if there is no such file.

    :raise OSError: if the file exists but cannot be read
    :raise ValueError: if the file is not a properties file
    """
    if not (path.is_file() or path.is_dir()):  # reading from a pipe could wait forever
        return {}
    # Like org.apache.spark.util.Utils.getPropertiesFromFile, whose reader replaces bytes that are
    # not UTF-8.
    with path.open(encoding="utf-8", errors="replace") as file:
        loaded: dict[str, str] = javaproperties.load(file)
    return {key: value.strip(_TRIMMED) for key, value in loaded.items()}


def write_properties(path: Path, properties: Mapping[str, str]) -> None:
    """Write a Java properties file that only this user can read.

    :raise OSError: if the file cannot be written
    """
    path.touch(mode=0o600)
    with path.open("w", encoding="utf-8") as file:
        javaproperties.dump(dict(properties), file)


def environment(extra: Mapping[str, object] | None) -> dict[str, str]:
    """Give the environment of spark-submit: this process's environment, changed by ``env_vars``.

    :param extra: the operator's ``env_vars``; None if it has none
    """
    return {**os.environ, **{key: str(value) for key, value in (extra or {}).items()}}
