"""A spark-submit call as data: the arguments that injection reads and replaces.

A value of the user can stand in four places, and Spark merges none of them: a flag beats
``--conf``, which beats the properties file, which replaces ``spark-defaults.conf``
(``org.apache.spark.deploy.SparkSubmitArguments.mergeDefaultSparkProperties``).

Where spark-submit stands in a command of the user's own, :func:`read_command_line` reads what the
command's text shows of the call, and :func:`shell_arguments` writes what is put into it.
"""

from __future__ import annotations

import re
import shlex
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import field
from msgspec.structs import replace

from airflow_provider_sparklineage.model.rule_files import open_regular
from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping


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


# The text of a command is a template that is being rendered, so it is read and never taken apart as
# a shell would: a variable or an expression in it has no value yet.


_EXPRESSION = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_SCRIPT = re.compile(r"(?<![^\s;&|(\"'])(/[^\s;&|()\"'$]+\.(?:sh|bash))(?=[\s;&|)\"']|\Z)")
_MAX_SCRIPT = 256 * 1024
_UNKNOWN, _MACRO = "$", "\0"
_STATEMENT_ENDS = re.compile(r"(?<!\\)\n|;|&&|\|\|?")
_BINARY = re.compile(r"(?<![^\s;&|(\"'])((?:[\w.~+/-]*/)?spark\d?-submit)(?=\s|\Z)")
_APPLICATION = re.compile(r"(?<![^\s\"'])([^\s\"'=]+\.py)(?=[\s\"']|\Z)")
# Of these Spark takes one. The user's alone would leave out the jar, and not the listener.
_COLLIDING = re.compile(
    r"(?<![^\s\"'])(--jars|--py-files|--properties-file)(?=[\s=\"'])"
    r"|(?<![\w.])(spark\.(?:jars|submit\.pyFiles|extraListeners))(?==)"
)


class CommandLine(Frozen, frozen=True):
    """What the text of a command shows of its spark-submit; empty where it does not.

    :param colliding: flags and properties that would take the place of what is added
    """

    binary: str = ""
    application: str = ""
    master: str = ""
    deploy_mode: str = ""
    colliding: tuple[str, ...] = ()


def read_command_line(text: str, macro: str) -> CommandLine:
    """Read a template.

    :param macro: name of the macro that is called in the text, by the statement that counts
    """
    text = _EXPRESSION.sub(lambda found: _MACRO if macro in found[0] else _UNKNOWN, text)
    own = [s for s in _STATEMENT_ENDS.split(text) if _MACRO in s and _BINARY.search(s)]
    shown = " ".join(own) or text
    binary = _BINARY.search(shown)
    application = _APPLICATION.search(shown, binary.end() if binary else 0)
    return CommandLine(
        binary[1] if binary else "",
        application[1] if application else "",
        _flag_value(shown, "--master"),
        _flag_value(shown, "--deploy-mode"),
        tuple(dict.fromkeys(flag or key for flag, key in _COLLIDING.findall(shown))),
    )


def named_scripts(text: str) -> Iterator[str]:
    """Yield what is in the shell's scripts of this machine that a text names by their paths."""
    for name in dict.fromkeys(_SCRIPT.findall(text)):
        with suppress(OSError), open_regular(Path(name)) as file:
            yield file.read(_MAX_SCRIPT).decode(errors="replace")


def _flag_value(text: str, flag: str) -> str:
    found = re.search(rf"(?<!\S){flag}(?:\s+|=)[\"']?([^\s\"'$\\]+)(?=[\s\"']|\Z)", text)
    return found[1] if found else ""


def shell_arguments(submission: Submission, properties_file: str | None) -> str:
    """Give what a shell reads as the arguments of a submission, on one line."""
    flags = {
        "--properties-file": properties_file,
        "--jars": submission.jars,
        "--packages": submission.packages,
        "--py-files": submission.py_files,
    }
    words = [word for flag, value in flags.items() if value for word in (flag, value)]
    for key, value in submission.conf.items():
        words += ["--conf", f"{key}={value}"]
    return shlex.join(words)
