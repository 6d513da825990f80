"""A spark-submit in a command of the user's own: what its text shows, and what is put into it.

The text is a template that is being rendered, so it is read and never taken apart as a shell would:
what is a variable or an expression there is not known.
"""

from __future__ import annotations

import re
import shlex
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.model.rule_files import open_regular
from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_sparklineage.spark.submit.submission import Submission

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


def read(text: str, macro: str) -> CommandLine:
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
        _value(shown, "--master"),
        _value(shown, "--deploy-mode"),
        tuple(dict.fromkeys(flag or key for flag, key in _COLLIDING.findall(shown))),
    )


def scripts(text: str) -> Iterator[str]:
    """Yield what is in the shell's scripts of this machine that a text names by their paths."""
    for name in dict.fromkeys(_SCRIPT.findall(text)):
        with suppress(OSError), open_regular(Path(name)) as file:
            yield file.read(_MAX_SCRIPT).decode(errors="replace")


def _value(text: str, flag: str) -> str:
    found = re.search(rf"(?<!\S){flag}(?:\s+|=)[\"']?([^\s\"'$\\]+)(?=[\s\"']|\Z)", text)
    return found[1] if found else ""


def arguments(submission: Submission, properties_file: str | None) -> str:
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
