"""A command: its arguments, its output, and its progress bar.

A command is described in the words that argparse and Airflow's command line share. Most of its
output is text from elsewhere: names of datasets, templates, messages of servers. All output goes
through this module, or through :func:`.show.escape`; both escape the characters that control a
terminal. Lines for people and documents for programs go to stdout; errors, notes and progress go to
stderr. Every command imports this module, so it imports rich only in functions that use it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from pkgutil import resolve_name
from typing import IO, TYPE_CHECKING, Any, NoReturn, TypeVar

from msgspec import to_builtins

from airflow_provider_sparklineage.model import exceptions, texts
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.settings.checks import Check, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


class Argument(Frozen, frozen=True):
    """An argument of a command, in the words that argparse and Airflow's ``Arg`` share.

    :param settings: further parameters of argparse's ``add_argument``
    :param needs: arguments without which this one has no effect: ``--clear``, ``run``, or with a
        value, ``--format datahub``
    :param excludes: arguments with which this one has no effect, by flag or name; those that the
        command does not have are ignored
    """

    flags: tuple[str, ...]
    settings: dict[str, Any]
    needs: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The name of the argument in messages: its flag, or the name of its value."""
        is_option = self.flags[0].startswith("-")
        return self.flags[0] if is_option else str(self.settings["metavar"])

    def value(self, args: argparse.Namespace) -> Any:
        """Give the argument's value on a command line; None if it is not given."""
        flag = self.flags[0].lstrip("-").replace("-", "_")
        value = getattr(args, self.settings.get("dest", flag))
        is_default = value is False or value in ([], "") or value == self.settings.get("default")
        return None if is_default else value


def argument(
    flag: str,
    metavar: str | None,
    help_: str,
    *,
    needs: tuple[str, ...] = (),
    excludes: tuple[str, ...] = (),
    **settings: Any,
) -> Argument:
    """Describe an argument with a value.

    :param flag: the option, e.g. ``--run``, or the name of a positional argument
    :param metavar: name of the value in the help; None if the help lists its choices
    :param help_: the text of the argument in the help
    :param needs: as of :class:`Argument`
    :param excludes: as of :class:`Argument`
    :param settings: more parameters of argparse's ``add_argument``
    """
    return Argument((flag,), {"metavar": metavar, "help": help_, **settings}, needs, excludes)


def switch(
    flag: str, help_: str, *, needs: tuple[str, ...] = (), excludes: tuple[str, ...] = ()
) -> Argument:
    """Describe an option without a value, e.g. ``--json``, that is true if it is given."""
    return Argument((flag,), {"action": "store_true", "help": help_}, needs, excludes)


class Command(Frozen, frozen=True):
    """A command of ``sparklineage``.

    :param function: the function that runs the command, ``module:function``; the module is below
        :mod:`airflow_provider_sparklineage.cli`
    :param examples: command lines after the program's name, which work where the example DAG of
        this package (:mod:`.examples`) has run
    :param failure: the meaning of exit code 1
    :param needs_airflow: whether the module imports Airflow
    """

    name: str
    help: str
    function: str
    arguments: tuple[Argument, ...]
    examples: tuple[str, ...]
    failure: str = "not done"
    needs_airflow: bool = False

    def run(self, args: argparse.Namespace) -> int:
        """Import the command's function and call it; return the exit code."""
        with logging_to_stderr() if self.needs_airflow else nullcontext():
            function = resolve_name(f"{__package__}.{self.function}")
        code: int = function(args)
        return code

    def misuse(self, args: argparse.Namespace) -> str:
        """Say which of the given arguments would be ignored; empty if each has an effect."""
        known = {one.flags[0]: one for one in self.arguments}
        values = {flag: one.value(args) for flag, one in known.items()}
        given = {flag: value for flag, value in values.items() if value is not None}
        for flag in given:
            for need in known[flag].needs:
                name, _, value = need.partition(" ")
                if name not in given or (value and given[name] != value):
                    missing = need if value else known[name].label
                    return f"{known[flag].label} needs {missing}."
            for other in known[flag].excludes:
                if other in given:
                    return f"Give {known[other].label} or {known[flag].label}, not both."
        return ""


class Group(Frozen, frozen=True):
    """Commands of ``sparklineage`` with a common first word, such as ``history build``."""

    name: str
    help: str
    commands: tuple[Command, ...]


T = TypeVar("T")


def refuse(problem: str, fix: str = "") -> NoReturn:
    """Refuse the input of a command.

    :raise UnusableInputError: always
    """
    raise exceptions.UnusableInputError(problem, fix)


def say(line: str) -> None:
    """Print a line of the answer to stdout."""
    print(texts.escape_control_characters(line))


def note(line: str) -> None:
    """Print a line that is not part of the answer to stderr: an error, a note or progress."""
    with suppress(OSError):  # the answer counts, even if the notes cannot be written
        print(texts.escape_control_characters(line), file=sys.stderr)


def say_json(document: Any, *, sort_keys: bool = False) -> None:
    """Print a document as JSON; characters that control a terminal become JSON escapes."""
    print(_json_text(document, indent=2, sort_keys=sort_keys))


def say_json_array(documents: Iterable[Any]) -> None:
    """Print documents as one JSON array, one document a line: for programs, and for ``grep``."""
    print("[", end="")
    for number, document in enumerate(documents):
        print(",\n" if number else "\n", _json_text(document), sep="", end="")
    print("\n]")


def say_json_lines(documents: Iterable[Any]) -> None:
    """Print each document as a line of JSON (NDJSON), as soon as the iterable yields it."""
    for document in documents:
        print(_json_text(document))


def _json_text(document: Any, **settings: Any) -> str:
    is_unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    lines = json.dumps(document, ensure_ascii=not is_unicode, **settings).split("\n")
    escaped = texts.CONTROL_CHARACTERS
    return "\n".join(escaped.sub(lambda found: json.dumps(found[0])[1:-1], one) for one in lines)


@contextmanager
def logging_to_stderr() -> Iterator[None]:
    """Send stdout to stderr, so that Airflow's log is not mixed into the command's output.

    Airflow 3.2 logs already while its models are imported, so imports of Airflow belong inside the
    ``with`` block.
    """
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def quietly(made: Callable[[], T]) -> T:
    """Call ``made`` and give its result; keep Airflow's log and prints of DAG files off stdout.

    Stdout is for the command's answer, which can be JSON.
    """
    from airflow.utils.cli import suppress_logs_and_warning

    results: list[T] = []

    def call(_: argparse.Namespace) -> None:
        results.append(made())

    with redirect_stdout(sys.stderr):
        suppress_logs_and_warning(call)(argparse.Namespace(verbose=False))
    return results[0]


@contextmanager
def progress(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show a progress bar inside the ``with`` block; give the function that moves the bar.

    The function takes the number of things that are done so far. The bar is shown only if stderr is
    a terminal, and it disappears at the end.

    :param what: the text next to the bar
    :param total: number of all things; None if it is not known, and then the text shows the number
        of things done
    """
    from rich.progress import Progress

    from airflow_provider_sparklineage.cli import show

    is_shown = sys.stderr.isatty() and total != 0
    with Progress(console=show.console(sys.stderr), disable=not is_shown, transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(
            task, completed=done, description=what if total else f"{what}: {done}"
        )


_STATUS_STYLES = {Status.OK: "green", Status.WARNING: "yellow", Status.FAILED: "bold red"}


def checks_document(checks: Sequence[Check]) -> dict[str, Any]:
    """Give the document that ``--json`` prints; its schema is ``schemas/doctor.json``."""
    return {
        "status": str(worst_status(checks)),
        "checks": list(map(to_builtins, checks)),
    }


def worst_status(checks: Iterable[Check]) -> Status:
    """Give the worst status of the checks; ok if there are no checks."""
    order = [*Status]
    return max((check.status for check in checks), key=order.index, default=Status.OK)


def print_checks(checks: Sequence[Check], file: IO[str]) -> None:
    """Print a line for each check; the line ends with the fix."""
    from airflow_provider_sparklineage.cli import show

    out = show.console(file)
    width = max((len(check.name) for check in checks), default=0)
    for check in checks:
        style = _STATUS_STYLES[check.status]
        status = f"[{style}]{check.status:7}[/{style}]"
        text = show.escape(" ".join(f"{check.message} {check.fix}".split()))
        out.print(f"{status}  {show.escape(check.name):{width}}  {text}", soft_wrap=True)
