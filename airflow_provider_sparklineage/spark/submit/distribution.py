"""The Spark that a ``spark-submit`` belongs to, found from its files: no JVM is started."""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import javaproperties

from airflow_provider_sparklineage.model.exceptions import ListenerError
from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

# The characters that Utils.trimExceptCRLF trims from a value: a line end can be on purpose, as a
# delimiter.
_TRIMMED = "".join(chr(code) for code in range(0x21) if chr(code) not in "\r\n")

_CORE_JAR = re.compile(r"spark-core_(?P<scala>\d\.\d+)-(?P<spark>\d+\.\d+\.\d+.*)\.jar")
_SCALA_JAR = re.compile(r"scala-library-(?P<scala>\d\.\d+)\..*\.jar")
_RELEASE = re.compile(r"Spark (?P<spark>\d+\.\d+\.\d+\S*)")
_DECLARED = re.compile(
    r"(?P<spark>\d+\.\d+(?:\.\d+\S*?)?)(?:[-_ ]scala-?(?P<scala>\d\.\d+))?", re.IGNORECASE
)


class SparkDistribution(Frozen, frozen=True):
    """A Spark installation on this machine.

    :param home: ``SPARK_HOME``; None if ``spark-submit`` is a script that does not show it
    :param version: of Spark, e.g. ``4.0.1``
    :param scala: Scala's binary version, e.g. ``2.13``
    """

    home: Path | None
    version: str
    scala: str

    @property
    def own_jars(self) -> tuple[str, ...]:
        """Names of the jars that every application of this Spark has on its class path."""
        return tuple(sorted(_jar_names(self.home))) if self.home is not None else ()

    def defaults(self, env: Mapping[str, str]) -> dict[str, str]:
        """Properties of ``spark-defaults.conf``, see :func:`defaults`."""
        return defaults(self.home, env)


def defaults(home: Path | None, env: Mapping[str, str]) -> dict[str, str]:
    """Read the properties of ``spark-defaults.conf``, which Spark reads if it has no other file.

    :raise ListenerError: if the folder of the file is not known
    :raise OSError: if the file exists and cannot be read
    :raise ValueError: if it is no properties file
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
    """Find the distribution that a spark-submit started with this environment would run.

    The order is that of Spark's own ``find-spark-home``: ``SPARK_HOME``, then the pip package
    next to the script, then the folder above ``bin``.

    :return: None if there is no such command, or its files do not show a version
    """
    if env.get("SPARK_HOME"):
        return _at(Path(env["SPARK_HOME"]))
    binary = shutil.which(spark_binary, path=env.get("PATH"))
    if binary is None:
        return None
    # The link itself first: it may be a virtual environment's script next to site-packages.
    for folder in (Path(binary).parent, Path(binary).resolve().parent):
        candidates = [folder.parent, *folder.parent.glob("lib/python3*/site-packages/pyspark")]
        for home in candidates:
            if (found := _at(home)) is not None:
                return found
    return None


def _at(home: Path) -> SparkDistribution | None:
    """Read both versions from the core's jar, else from ``RELEASE`` and Scala's jar; else None."""
    names = _jar_names(home)
    for name in names:
        if match := _CORE_JAR.fullmatch(name):
            return SparkDistribution(home, match["spark"], match["scala"])
    release = home / "RELEASE"
    try:
        versions = _RELEASE.match(release.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None
    for name in names:
        if versions and (match := _SCALA_JAR.fullmatch(name)):
            return SparkDistribution(home, versions["spark"], match["scala"])
    return None


def _jar_names(home: Path) -> list[str]:
    """List the jars of a distribution; [] if its folder cannot be read."""
    with suppress(OSError), os.scandir(home / "jars") as entries:
        # With up to 300 entries, pathlib would take longer: it makes a path of each.
        return [entry.name for entry in entries if entry.name.endswith(".jar")]
    return []


def declared(text: str) -> tuple[str, str]:
    """Read a declared version of Spark: ``4.0.1``, or with its Scala ``3.5.6-scala2.13``.

    Without a declared Scala, it is the Scala of Spark's own downloads and of PySpark: 2.12 up to
    Spark 3, then 2.13.

    :return: version of Spark, and of Scala
    :raise ValueError: if the text has another form
    """
    match = _DECLARED.fullmatch(text.strip())
    if match is None:
        msg = f"{text!r} is no version of Spark, such as 4.0.1 or 3.5.6-scala2.13"
        raise ValueError(msg)
    return match["spark"], match["scala"] or ("2.12" if match["spark"] < "4" else "2.13")


def read_properties(path: Path) -> dict[str, str]:
    """Read a Java properties file as Spark does (values trimmed); {} if there is no such file.

    :raise OSError: if the file exists and cannot be read
    :raise ValueError: if it is no properties file
    """
    if not (path.is_file() or path.is_dir()):  # a folder is an error, a pipe would be waited for
        return {}
    # As org.apache.spark.util.Utils.getPropertiesFromFile, whose reader replaces bytes that are no
    # UTF-8.
    with path.open(encoding="utf-8", errors="replace") as file:
        loaded: dict[str, str] = javaproperties.load(file)
    return {key: value.strip(_TRIMMED) for key, value in loaded.items()}


def write_properties(path: Path, properties: Mapping[str, str]) -> None:
    """Write a Java properties file that only this user can read.

    :raise OSError: if it cannot be written
    """
    path.touch(mode=0o600)
    with path.open("w", encoding="utf-8") as file:
        javaproperties.dump(dict(properties), file)


def environment(extra: Mapping[str, object] | None) -> dict[str, str]:
    """Give the environment of spark-submit: this process's, with the operator's ``env_vars``."""
    return {**os.environ, **{key: str(value) for key, value in (extra or {}).items()}}
