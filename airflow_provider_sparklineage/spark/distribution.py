"""Which Spark a ``spark-submit`` belongs to, found from its files: no JVM is started."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import javaproperties

if TYPE_CHECKING:
    from collections.abc import Mapping

# What Utils.trimExceptCRLF cuts off a value: a line end can be meant, as a delimiter.
_TRIMMED = "".join(chr(code) for code in range(0x21) if chr(code) not in "\r\n")

_CORE_JAR = re.compile(r"spark-core_(?P<scala>\d\.\d+)-(?P<spark>\d+\.\d+\.\d+.*)\.jar")


@dataclass(frozen=True)
class SparkDistribution:
    """A Spark installation on this machine.

    :param home: ``SPARK_HOME``
    :param version: of Spark, e.g. ``4.0.1``
    :param scala: Scala's binary version, e.g. ``2.13``
    """

    home: Path
    version: str
    scala: str

    @property
    def jars(self) -> Path:
        """Folder of the jars that every application of this Spark has on its class path."""
        return self.home / "jars"

    def defaults(self, env: Mapping[str, str]) -> dict[str, str]:
        """Properties of ``spark-defaults.conf``, which is read if there is no other file."""
        folder = Path(env.get("SPARK_CONF_DIR") or self.home / "conf")
        return read_properties(folder / "spark-defaults.conf")


def find(spark_binary: str, env: Mapping[str, str]) -> SparkDistribution | None:
    """Find the distribution that a spark-submit started with this environment would run.

    The order is that of Spark's own ``find-spark-home``: ``SPARK_HOME``, then the pip package
    beside the script, then the folder above ``bin``.
    """
    if env.get("SPARK_HOME"):
        return _at(Path(env["SPARK_HOME"]))
    binary = shutil.which(spark_binary, path=env.get("PATH"))
    if binary is None:
        return None
    # The link itself first: a virtual environment's script beside its own site-packages.
    for folder in (Path(binary).parent, Path(binary).resolve().parent):
        candidates = [folder.parent, *folder.parent.glob("lib/python3*/site-packages/pyspark")]
        for home in candidates:
            if (found := _at(home)) is not None:
                return found
    return None


def _at(home: Path) -> SparkDistribution | None:
    for jar in home.glob("jars/spark-core_*.jar"):
        if match := _CORE_JAR.fullmatch(jar.name):
            return SparkDistribution(home, match["spark"], match["scala"])
    return None


def read_properties(path: Path) -> dict[str, str]:
    """Read a Java properties file as Spark does (values trimmed); a missing one is empty.

    :raise OSError: if it is there and cannot be read
    :raise ValueError: if it is no properties file
    """
    if not path.exists():
        return {}
    with path.open(encoding="utf-8") as file:  # org.apache.spark.util.Utils.getPropertiesFromFile
        loaded: dict[str, str] = javaproperties.load(file)
    return {key: value.strip(_TRIMMED) for key, value in loaded.items()}


def environment(extra: Mapping[str, object] | None) -> dict[str, str]:
    """Give the environment of spark-submit: this process's, with the operator's ``env_vars``."""
    return {**os.environ, **{key: str(value) for key, value in (extra or {}).items()}}
