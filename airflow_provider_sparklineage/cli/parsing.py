"""The parser of ``sparklineage``: help in sections, and errors that name what may have been wanted.

An error of usage prints the usage of the command at hand, and names the nearest command or option.
The help of a command ends with examples and the exit codes. ``airflow sparklineage`` has a parser
of Airflow's own, which gets the same texts (:func:`epilog`). If a shell asks for completion, the
process ends with the words that may stand at the cursor.
"""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from airflow_provider_sparklineage.cli.command_line import (
    AIRFLOW_COMMANDS,
    COMMANDS,
    SECTIONS,
)
from airflow_provider_sparklineage.cli.commands import Command, Group, note
from airflow_provider_sparklineage.model import producer, texts
from airflow_provider_sparklineage.model.degradations import DegradationCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from airflow_provider_sparklineage.history.engines.duckdb import History

    Completer = Callable[[str, argparse.Namespace], Iterable[str]]


T = TypeVar("T")

PROG = "sparklineage"
AIRFLOW_PROG = "airflow sparklineage"

DESCRIPTION = "Lineage of Spark jobs run by Airflow, from captured events."


# --- help -----------------------------------------------------------------------------------------


class _HelpFormatter(argparse.HelpFormatter):
    """Wraps sentences, and keeps the lines of a text that has lines: the examples."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" in text:
            return "".join(indent + line for line in text.splitlines(keepends=True))
        return super()._fill_text(text, width, indent)


def epilog(command: Command, prog: str) -> str:
    """Give the end of a command's help: its examples, and the exit codes.

    :param prog: the program's name
    """
    examples = [f"  {prog} {example}" for example in command.examples]
    has_strict = any("--strict" in one.flags for one in command.arguments)
    strict = ", or done with findings under --strict" if has_strict else ""
    codes = (
        ("0", "done"),
        ("1", f"{command.failure}{strict}"),
        ("2", "the input or the usage is wrong, and nothing was done"),
        ("130", "interrupted (Ctrl-C)"),
    )
    lines = [f"  {code:4}{meaning}" for code, meaning in codes]
    return "\n".join(("examples:", *examples, "", "exit codes:", *lines))


def sections(commands: Iterable[Command | Group]) -> Iterator[tuple[str, list[Command | Group]]]:
    """Give the sections of the help, each with those of the commands that are in it."""
    by_name = {command.name: command for command in commands}
    for title, names in SECTIONS.items():
        yield title, [by_name[name] for name in names if name in by_name]


def airflow_description() -> str:
    """Give the sections as lines: Airflow's help lists the commands in the order of their names."""
    listed = (
        f"{title}: {', '.join(one.name for one in of)}." for title, of in sections(AIRFLOW_COMMANDS)
    )
    return "\n".join((DESCRIPTION, *listed))


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are safe to print, and name the nearest of the known words.

    Wrong arguments are quoted with control characters escaped, or the terminal would obey them.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(formatter_class=_HelpFormatter, **settings)

    def error(self, message: str) -> NoReturn:
        super().error(texts.escape_control_characters(message))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a command or a choice that is not known.

        argparse has this method in all its versions, and lists the choices alone.
        """
        if action.choices is None or value in action.choices:
            return
        known = [str(one) for one in action.choices]
        hint = texts.did_you_mean(str(value), known) or f"Choose from {', '.join(known)}."
        raise argparse.ArgumentError(action, f"There is no {str(value)!r}. {hint}")


class _Main(_Parser):
    """The parser of ``sparklineage`` itself, whose help has the commands in sections."""

    def format_help(self) -> str:
        formatter = self.formatter_class(prog=self.prog)
        formatter.add_usage(f"{self.prog} [--version] COMMAND ...", (), ())
        formatter.add_text(self.description)
        for title, commands in sections(COMMANDS):
            formatter.start_section(title)
            for one in commands:
                formatter.add_argument(
                    argparse.Action([], one.name, metavar=one.name, help=one.help)
                )
            formatter.end_section()
        formatter.start_section("options")
        formatter.add_arguments([one for one in self._actions if one.option_strings])
        formatter.end_section()
        names = {command.name for command in COMMANDS}
        more = [one.name for one in AIRFLOW_COMMANDS if one.name not in names]
        formatter.add_text(
            f"`{AIRFLOW_PROG}` has these commands and {', '.join(more)}. `{self.prog} COMMAND "
            "--help` has examples, and the exit codes."
        )
        return formatter.format_help()


# --- parsing --------------------------------------------------------------------------------------


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read a command line; give its arguments, with its ``command`` and the ``parser`` of that.

    :param argv: the arguments after the program's name; None for those of this process
    :raise SystemExit: if the usage is wrong, or if the help or the version was printed
    """
    if "_ARGCOMPLETE" in os.environ:  # a shell asks what may stand at the cursor
        _complete(parser(), _actions(parser()))
    args, unknown = parser().parse_known_args(argv)
    if unknown:
        args.parser.error(_unknown(args.parser, unknown))
    if args.command is None:
        args.parser.print_help()
        raise SystemExit(2)
    return args


def _actions(of: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Give the arguments of a parser, and those of its commands."""
    for action in of._actions:  # noqa: SLF001 - argparse gives them to nobody else
        yield action
        if isinstance(action.choices, dict):
            for parser in action.choices.values():
                yield from _actions(parser)


def _unknown(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> str:
    own = parser._actions  # noqa: SLF001 - as above
    options = [flag for action in own for flag in action.option_strings]
    wrong = next((one for one in arguments if one.startswith("-")), "")
    hint = texts.did_you_mean(wrong.partition("=")[0], options)
    return f"unrecognized arguments: {' '.join(arguments)}{hint and '. '}{hint}"


@cache  # tests run thousands of commands in one process
def parser() -> argparse.ArgumentParser:
    """Give the parser of ``sparklineage``; :func:`parse` looks at its result once more."""
    main = _Main(prog=PROG, description=DESCRIPTION)
    version = f"%(prog)s {producer.version()}"
    main.add_argument("--version", action="version", version=version, help="print the version")
    main.set_defaults(command=None, parser=main)
    commands = main.add_subparsers(metavar="COMMAND", parser_class=_Parser)
    for command in COMMANDS:
        _add(commands, command)
    return main


def _add(parsers: argparse._SubParsersAction[_Parser], command: Command | Group) -> None:
    sub = parsers.add_parser(command.name, help=command.help, description=command.help)
    if isinstance(command, Group):
        sub.set_defaults(command=None, parser=sub)
        commands = sub.add_subparsers(metavar="COMMAND")
        for one in command.commands:
            _add(commands, one)
        return
    sub.epilog = epilog(command, PROG)
    _add_arguments(sub, command)


def _add_arguments(to: argparse.ArgumentParser, command: Command) -> None:
    for argument in command.arguments:
        to.add_argument(*argument.flags, **argument.settings)
    to.set_defaults(command=command, parser=to)


def is_misused(command: Command, args: argparse.Namespace, parser: argparse.ArgumentParser) -> bool:
    """Print an error of usage if one of the given arguments would be ignored.

    :param parser: the parser of the command
    """
    if misuse := command.misuse(args):
        parser.print_usage(sys.stderr)
        note(f"{parser.prog}: error: {misuse}")
    return bool(misuse)


def parser_of(command: Command, prog: str) -> argparse.ArgumentParser:
    """Give a parser for the usage of one command, where Airflow has read the command line.

    :param prog: the words before the command's name
    """
    of = _Parser(prog=f"{prog} {command.name}")
    _add_arguments(of, command)
    return of


# --- completion -----------------------------------------------------------------------------------


# Datasets and partitions are those of the store that --store or the environment names. Other stores
# are not asked: to import Airflow for its configuration or for a connection takes longer than
# anybody waits for a key.


_SECONDS = 2
"""A store that takes longer is not asked: the shell waits."""


def _complete(parser: argparse.ArgumentParser, actions: Iterable[argparse.Action]) -> None:
    """Print what may stand at the cursor, and end the process, if a shell has asked for it.

    :param parser: the parser of the program
    :param actions: all arguments of its commands
    """
    import argcomplete

    for action in actions:
        if completer := _COMPLETERS.get(str(action.metavar)):
            action.completer = _asked(completer)  # type: ignore[attr-defined]
    argcomplete.autocomplete(parser, always_complete_options="long")


def _asked(completer: Completer) -> Callable[..., list[str]]:
    """Make the function that argcomplete calls, which gives nothing in place of an error."""

    def of_argcomplete(prefix: str, parsed_args: argparse.Namespace, **_: Any) -> list[str]:
        with suppress(Exception):  # a traceback would be mixed into the line that the user types
            return [text for text in completer(prefix, parsed_args) if text.startswith(prefix)]
        return []

    return of_argcomplete


def _datasets(prefix: str, args: argparse.Namespace) -> Iterable[str]:
    from airflow_provider_sparklineage.history.queries.datasets import names_in

    names = _answer(args, names_in) or {}
    short = [name for name in names.values() if name.startswith(prefix)]
    return short or map(str, names)


def _partitions(_: str, args: argparse.Namespace) -> Iterable[str]:
    from airflow_provider_sparklineage.history.queries.datasets import dataset_of, partitions_of

    def of_dataset(history: History) -> list[str]:
        return partitions_of(history, dataset_of(history, args.dataset))

    return _answer(args, of_dataset) or ()


def _answer(args: argparse.Namespace, question: Callable[[History], T]) -> T | None:
    """Ask the store that the command line or the environment names.

    :return: None if none is named, or if it is not on this machine
    """
    from airflow_provider_sparklineage.cli.history.store import STORE_VARIABLE
    from airflow_provider_sparklineage.history.bounds import Bound, within
    from airflow_provider_sparklineage.history.engines.duckdb import History
    from airflow_provider_sparklineage.history.store import Store, local_path

    url = args.store or os.environ.get(STORE_VARIABLE, "")
    if not url or local_path(url) is None:
        return None
    with History(Store.open(url)) as history, within(Bound.of(_SECONDS, "")):
        return question(history)


def _codes(prefix: str, _: argparse.Namespace) -> Iterable[str]:
    from argcomplete.completers import FilesCompleter

    return [*(DegradationCode if prefix else ()), *FilesCompleter()(prefix)]


_COMPLETERS: dict[str, Completer] = {
    "DATASET": _datasets,
    "PARTITION": _partitions,
    "BUNDLE_FILE_OR_CODE": _codes,
}
"""The functions that give texts for an argument, by its metavar."""
