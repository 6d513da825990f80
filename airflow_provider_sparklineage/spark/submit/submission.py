"""A spark-submit call as data: the arguments that injection reads and replaces.

A value of the user can stand in four places, and Spark merges none of them: a flag beats
``--conf``, which beats the properties file, which replaces ``spark-defaults.conf``
(``org.apache.spark.deploy.SparkSubmitArguments.mergeDefaultSparkProperties``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import field
from msgspec.structs import replace

from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


class Submission(Frozen, frozen=True):
    """The arguments of a SparkSubmitOperator that injection reads and replaces.

    :param application: what is submitted; only a ``.py`` file has a Python driver to observe
    :param file_properties: what the properties file, or else ``spark-defaults.conf``, has
    :param new_file: what a properties file must have that replaces that one, because something
        in it may be a secret and so must not become an argument; None if that file stays
    """

    conf: Mapping[str, str] = field(default_factory=dict)
    jars: str | None = None
    packages: str | None = None
    driver_class_path: str | None = None
    py_files: str | None = None
    application: str = ""
    env_vars: Mapping[str, str] = field(default_factory=dict)
    file_properties: Mapping[str, str] = field(default_factory=dict)
    new_file: Mapping[str, str] | None = None

    @property
    def in_file(self) -> Mapping[str, str]:
        """What the properties file has that the job will be submitted with."""
        return self.file_properties if self.new_file is None else self.new_file

    def value(self, key: str) -> str | None:
        """Find the value of a property that Spark would take: ``--conf`` before the file."""
        value = self.conf.get(key, self.in_file.get(key))
        return None if value is None else str(value)

    def keys(self) -> set[str]:
        """All properties that have a value."""
        return {*self.conf, *self.in_file}

    def listed_jars(self) -> list[str]:
        """Jars that Spark would take: of the flag, else of ``spark.jars``, which it replaces."""
        return listed(self.jars or self.value("spark.jars"))

    def listed_packages(self) -> list[str]:
        """Maven coordinates that Spark would resolve."""
        return listed(self.packages or self.value("spark.jars.packages"))

    def class_path(self) -> str | None:
        """Class path that the driver's JVM would start with."""
        return self.driver_class_path or self.value("spark.driver.extraClassPath")

    def with_conf(self, values: Mapping[str, str]) -> Submission:
        """Set properties by ``--conf``."""
        return replace(self, conf={**self.conf, **values})

    def without_conf(self, *keys: str) -> Submission:
        """Leave out arguments ``--conf`` of these properties."""
        return replace(self, conf={k: v for k, v in self.conf.items() if k not in keys})

    def with_file(self, values: Mapping[str, str], without: Collection[str]) -> Submission:
        """Set properties in the file, and leave others out of it."""
        kept = {key: value for key, value in self.in_file.items() if key not in without}
        new = {**kept, **values}
        return self if new == self.in_file else replace(self, new_file=new)

    def all_in_file(self) -> Submission:
        """Give everything by the file, which any argument of the same name beats."""
        flags = {
            "spark.jars": self.jars,
            "spark.jars.packages": self.packages,
            "spark.submit.pyFiles": self.py_files,
            "spark.driver.extraClassPath": self.driver_class_path,
        }
        given = {key: value for key, value in flags.items() if value}
        file = {**self.in_file, **{k: str(v) for k, v in self.conf.items()}, **given}
        return Submission(
            application=self.application,
            env_vars=self.env_vars,
            file_properties=self.file_properties,
            new_file=file,
        )


def listed(text: str | None) -> list[str]:
    """Take a list of Spark's apart: commas between, blanks around."""
    return [item.strip() for item in (text or "").split(",") if item.strip()]
