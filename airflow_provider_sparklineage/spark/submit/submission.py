"""The arguments of a spark-submit call, which injection reads and replaces.

The user can set a property in four places, and Spark does not merge the values: a flag wins over
``--conf``, ``--conf`` over the properties file, and the properties file replaces
``spark-defaults.conf``
(``org.apache.spark.deploy.SparkSubmitArguments.mergeDefaultSparkProperties``).

If spark-submit is in a shell command of the user's own, :func:`read_command_line` reads the parts
of the call that the command's text shows, and :func:`shell_arguments` writes the added arguments.
"""

from __future__ import annotations

import re
import shlex
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import field
from msgspec.structs import replace

from airflow_provider_sparklineage.model.files import open_regular
from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence


class Submission(Frozen, frozen=True):
    """The arguments of a spark-submit call that injection reads and replaces.

    The call is that of a SparkSubmitOperator, or of a shell command, or of a service such as Livy,
    or one that only ``sparklineage doctor`` makes. A SparkContext that is made without spark-submit
    has only ``conf``: its properties.

    :param conf: the properties of ``--conf``, by name
    :param jars: the text of ``--jars``; ``jars``, ``packages``, ``driver_class_path`` and
        ``py_files`` are None if the user does not set them
    :param application: the submitted file; only a ``.py`` file has a Python driver to observe
    :param env_vars: the operator's ``env_vars``; {} if there is no operator
    :param properties_file: the path for ``--properties-file``; None if Spark reads
        ``spark-defaults.conf``
    :param file_properties: the content of the properties file, or else of ``spark-defaults.conf``
    :param new_file: the content of a new properties file that has to replace ``file_properties``,
        because a new value may be a secret and must not become an argument; None if the file is
        not replaced
    """

    conf: Mapping[str, str] = field(default_factory=dict)
    jars: str | None = None
    packages: str | None = None
    driver_class_path: str | None = None
    py_files: str | None = None
    application: str = ""
    env_vars: Mapping[str, str] = field(default_factory=dict)
    properties_file: str | None = None
    file_properties: Mapping[str, str] = field(default_factory=dict)
    new_file: Mapping[str, str] | None = None

    @property
    def in_file(self) -> Mapping[str, str]:
        """The properties of the file with which the job will be submitted.

        They are ``new_file``, or else ``file_properties``.
        """
        return self.file_properties if self.new_file is None else self.new_file

    def value(self, key: str) -> str | None:
        """Give the value of a property from ``--conf``, else from the file (:attr:`in_file`).

        :param key: the name of the property
        :return: None if neither has the property
        """
        value = self.conf.get(key, self.in_file.get(key))
        return None if value is None else str(value)

    def keys(self) -> set[str]:
        """Give the names of all properties of ``--conf`` and of the file (:attr:`in_file`)."""
        return {*self.conf, *self.in_file}

    def listed_jars(self) -> list[str]:
        """List the jars that Spark would use: those of ``--jars``, or else of ``spark.jars``."""
        return listed(self.jars or self.value("spark.jars"))

    def listed_packages(self) -> list[str]:
        """List the Maven coordinates that Spark would resolve.

        They are those of ``--packages``, or else of ``spark.jars.packages``.
        """
        return listed(self.packages or self.value("spark.jars.packages"))

    def class_path(self) -> str | None:
        """Give the class path with which the driver's JVM would start; None if there is none.

        It is that of ``driver_class_path``, or else of ``spark.driver.extraClassPath``.
        """
        return self.driver_class_path or self.value("spark.driver.extraClassPath")

    def with_conf(self, values: Mapping[str, str]) -> Submission:
        """Set properties by ``--conf``; a new value replaces an old value of ``--conf``.

        :param values: the values by property
        """
        return replace(self, conf={**self.conf, **values})

    def without_conf(self, *keys: str) -> Submission:
        """Remove properties from the arguments ``--conf``.

        :param keys: the names of the properties
        """
        return replace(self, conf={k: v for k, v in self.conf.items() if k not in keys})

    def with_file(self, values: Mapping[str, str], without: Collection[str]) -> Submission:
        """Set properties in the properties file, and remove other properties from it.

        :param values: the new values by property
        :param without: the names of the properties to remove, unless ``values`` has them
        """
        others = {key: value for key, value in self.in_file.items() if key not in without}
        new = {**others, **values}
        return self if new == self.in_file else replace(self, new_file=new)

    def all_in_file(self) -> Submission:
        """Move all arguments to the properties file, so that any argument added later wins."""
        flags = {
            "spark.jars": self.jars,
            "spark.jars.packages": self.packages,
            "spark.submit.pyFiles": self.py_files,
            "spark.driver.extraClassPath": self.driver_class_path,
        }
        flagged = {key: value for key, value in flags.items() if value}
        file = {**self.in_file, **{k: str(v) for k, v in self.conf.items()}, **flagged}
        return Submission(
            application=self.application,
            env_vars=self.env_vars,
            properties_file=self.properties_file,
            file_properties=self.file_properties,
            new_file=file,
        )


def as_texts(properties: Mapping[Any, Any] | None) -> dict[str, str]:
    """Give properties as Spark gets them: names and values are texts."""
    return {str(key): str(value) for key, value in (properties or {}).items()}


def listed(text: str | None) -> list[str]:
    """Split the text of a list as Spark does: at commas, without the spaces around the items.

    :param text: the text, such as that of ``--jars``; None gives []
    """
    return [item.strip() for item in (text or "").split(",") if item.strip()]


# The text of a command is a template that is not rendered yet: its variables and expressions have
# no values. So the text is searched with patterns, and not parsed as a shell would parse it.


_EXPRESSION = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_SCRIPT = re.compile(r"(?<![^\s;&|(\"'])(/[^\s;&|()\"'$]+\.(?:sh|bash))(?=[\s;&|)\"']|\Z)")
_MAX_SCRIPT = 256 * 1024
_UNKNOWN, _MACRO = "$", "\0"
_STATEMENT_ENDS = re.compile(r"(?<!\\)\n|;|&&|\|\|?")
_BINARY = re.compile(r"(?<![^\s;&|(\"'])((?:[\w.~+/-]*/)?spark\d?-submit)(?=\s|\Z)")
_APPLICATION = re.compile(r"(?<![^\s\"'])([^\s\"'=]+\.py)(?=[\s\"']|\Z)")
# Spark uses only one value of each. If it used the user's value, our jar would be missing, and the
# listener's class, which ``spark.extraListeners`` would still name, could not be loaded.
_COLLIDING = re.compile(
    r"(?<![^\s\"'])(--jars|--py-files|--properties-file)(?=[\s=\"'])"
    r"|(?<![\w.])(spark\.(?:jars|submit\.pyFiles|extraListeners))(?==)"
)


class CommandLine(Frozen, frozen=True):
    """The parts of a spark-submit call that a command's text shows; a part not shown is empty.

    :param colliding: the flags and properties (``--jars``, ``spark.jars``, …) that the text sets
        and this package would set, too: Spark would use the values in the text
    """

    binary: str = ""
    application: str = ""
    master: str = ""
    deploy_mode: str = ""
    colliding: tuple[str, ...] = ()


def read_command_line(text: str, macro: str) -> CommandLine:
    """Read the spark-submit call in the template of a shell command.

    :param text: the template, which is not rendered yet
    :param macro: the name of the macro that the text calls; if the statement with the macro has a
        spark-submit, only this statement is read, and otherwise the whole text
    """
    text = _EXPRESSION.sub(lambda match: _MACRO if macro in match[0] else _UNKNOWN, text)
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
    """Yield the contents of the shell scripts on this machine that a text names by their paths.

    :param text: the text of a command; a script that cannot be read is left out
    """
    for name in dict.fromkeys(_SCRIPT.findall(text)):
        with suppress(OSError), open_regular(Path(name)) as file:
            yield file.read(_MAX_SCRIPT).decode(errors="replace")


def _flag_value(text: str, flag: str) -> str:
    match = re.search(rf"(?<!\S){flag}(?:\s+|=)[\"']?([^\s\"'$\\]+)(?=[\s\"']|\Z)", text)
    return match[1] if match else ""


def arguments(submission: Submission) -> list[str]:
    """Give the arguments of ``spark-submit`` for a submission, without the application.

    :return: the flags, each followed by its value
    """
    flags = {
        "--properties-file": submission.properties_file,
        "--jars": submission.jars,
        "--packages": submission.packages,
        "--py-files": submission.py_files,
        "--driver-class-path": submission.driver_class_path,
    }
    words = [word for flag, value in flags.items() if value for word in (flag, value)]
    for key, value in submission.conf.items():
        words += ["--conf", f"{key}={value}"]
    return words


# spark-submit's own options (org.apache.spark.launcher.SparkSubmitOptionParser): all others have a
# value, which is the next word, or follows an equals sign.
_SWITCHES = {"--help", "-h", "--supervise", "--usage-error", "--verbose", "-v", "--version"}
_SHORT = {"-c": "--conf"}
_FIELDS = {
    "--properties-file": "properties_file",
    "--jars": "jars",
    "--packages": "packages",
    "--py-files": "py_files",
    "--driver-class-path": "driver_class_path",
}


class _Option(NamedTuple):
    flag: str
    value: str
    words: tuple[str, ...]


def _options(words: Sequence[str]) -> tuple[list[_Option], list[str]]:
    """Divide arguments of spark-submit into options, and the application with its arguments."""
    options: list[_Option] = []
    left = list(words)
    while left and left[0].startswith("-"):
        is_long = left[0].startswith("--")
        flag, equals, value = left[0].partition("=") if is_long else (left[0], "", "")
        count = 1 if equals or flag in _SWITCHES else 2
        value = value if count == 1 else "".join(left[1:2])
        options.append(_Option(_SHORT.get(flag, flag), value, tuple(left[:count])))
        left = left[count:]
    return options, left


def read_arguments(words: Sequence[str], application: str = "") -> Submission:
    """Read the arguments of spark-submit.

    :param words: the options, and perhaps the application with its arguments
    :param application: the application, if it is not among the words
    """
    options, left = _options(words)
    properties = (option.value.partition("=") for option in options if option.flag == "--conf")
    flags = {_FIELDS[o.flag]: o.value for o in options if o.flag in _FIELDS}
    return Submission(
        conf={key: value for key, _, value in properties},
        application=application or "".join(left[:1]),
        **flags,  # type: ignore[arg-type]
    )


def with_arguments(words: Sequence[str], after: Submission) -> list[str]:
    """Change arguments of spark-submit to those of a submission.

    :param words: the arguments from which :func:`read_arguments` made the submission that was
        changed; those that were not changed keep their form
    :param after: the changed submission
    """
    (options, left), before = _options(words), read_arguments(words)
    kept: list[str] = []
    for flag, value, text in options:
        key = value.partition("=")[0]
        if flag == "--conf" and before.conf[key] != after.conf.get(key):
            continue
        field = _FIELDS.get(flag)
        if field is None or getattr(before, field) == getattr(after, field):
            kept += text
    return [*kept, *arguments(changes(before, after)), *left]


def with_application(
    words: Sequence[str], application: str, application_arguments: Sequence[str]
) -> list[str]:
    """Replace the application among arguments of spark-submit, and the application's own arguments.

    :param words: the arguments; all before the application are kept, but the number of executors
    """
    options, _ = _options(words)
    kept = [word for o in options if o.flag != "--num-executors" for word in o.words]
    return [*kept, application, *application_arguments]


def changes(before: Submission, after: Submission) -> Submission:
    """Give those properties and flags of a changed submission that are new or have new values."""
    return replace(
        after,
        conf={key: value for key, value in after.conf.items() if before.conf.get(key) != value},
        **{f: None for f in _FIELDS.values() if getattr(before, f) == getattr(after, f)},
    )


def shell_arguments(submission: Submission) -> str:
    """Give the arguments of a submission on one line, quoted for a shell."""
    return shlex.join(arguments(submission))
