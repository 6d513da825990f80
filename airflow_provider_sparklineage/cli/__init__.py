# PYTHON_ARGCOMPLETE_OK - argcomplete looks for this near the beginning of the file
"""The ``sparklineage`` command, and the commands of ``airflow sparklineage``.

:mod:`.command_line` lists all commands with their arguments, and :mod:`.parsing` reads the command
line by this list. The function of a command is in another module, which is imported when the
command runs, so that help is quick. Airflow itself calls :func:`airflow_commands`.

Exit codes: 0 if the command is done; 1 if it is done with findings under ``--strict``, or is not
done; 2 if the input or the usage is wrong; 130 if it is interrupted.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.cli import parsing
from airflow_provider_sparklineage.cli.command_line import AIRFLOW_COMMANDS
from airflow_provider_sparklineage.cli.commands import Command, Group, note
from airflow_provider_sparklineage.model import credentials, exceptions, texts
from airflow_provider_sparklineage.storage import bounded

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from airflow.cli.cli_config import CLICommand


TRACEBACK = "SPARKLINEAGE_TRACEBACK"
"""Environment variable; if it is set, an unexpected error is raised with its traceback."""


def _guarded(run: Callable[[argparse.Namespace], int], args: argparse.Namespace) -> int:
    """Run a command, and print its errors; return the exit code."""
    nothing = Path(os.devnull)
    # Python has None for a stream that the shell has closed.
    sys.stdin = sys.stdin or nothing.open(encoding="utf-8")
    sys.stderr = sys.stderr or nothing.open("w", encoding="utf-8")
    if sys.stdout is None:
        note("sparklineage: The standard output is closed. To have none, send it to /dev/null.")
        return 1
    with contextlib.suppress(AttributeError):  # in tests, stdout can lack reconfigure()
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        code = run(args)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of the output (head, less) has ended
        _discard_output()
        return 0
    except KeyboardInterrupt:
        _discard_output()
        return _INTERRUPTED
    except Exception as error:
        code = _reported(error)
        try:
            sys.stdout.flush()
        except OSError:  # Python must not report it once more at its end
            _discard_output()
    return code


_INTERRUPTED = 130  # as shells have it: 128 and the number of SIGINT


def _discard_output() -> None:
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _reported(error: Exception) -> int:
    """Print an error as one line; return the exit code."""
    unusable = (
        exceptions.UnusableInputError,
        exceptions.DocumentError,
        exceptions.HistoryError,
        exceptions.RulesError,
    )
    if isinstance(error, exceptions.SparkLineageError):
        note(f"sparklineage: {error}")
        return 2 if isinstance(error, unusable) else 1
    if os.environ.get(TRACEBACK):
        raise error
    if fix := _fix_of_machine(error):
        note(f"sparklineage: {bounded.reason(error)}. {fix}")
        return 1
    what = texts.truncated(credentials.scrub(f"{type(error).__name__}: {error}"), 500)
    note(
        f"sparklineage: This is a defect in sparklineage ({what}). Please report it, with the "
        f"output of the same command with {TRACEBACK}=1 in front."
    )
    return 1


def _fix_of_machine(error: Exception) -> str:
    """Give the remedy for an error of the machine or its installation; empty for other errors."""
    if isinstance(error, OSError):
        return bounded.remedy(error)
    if any(one.__module__ == "sqlalchemy.exc" for one in type(error).__mro__):
        return "Airflow's database does not give that; `airflow db check` tries it."
    if isinstance(error, MemoryError):
        return "Run it where there is more memory, or on fewer events at once."
    is_ours = str(getattr(error, "name", None)).startswith("airflow_provider_sparklineage")
    if isinstance(error, ModuleNotFoundError) and not is_ours:
        return "Install it: pip install airflow-provider-sparklineage brings all that it needs."
    return ""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the ``sparklineage`` command; return its exit code.

    :param argv: the arguments after the command's name; None for those of this process
    """
    args = parsing.parse(argv)
    command: Command = args.command
    if parsing.is_misused(command, args, args.parser):
        return 2
    return _guarded(command.run, args)


def airflow_commands() -> list[CLICommand]:
    """Give the commands of ``airflow sparklineage`` (``cli`` of the provider info)."""
    from airflow.cli.cli_config import ActionCommand, Arg, GroupCommand

    def added(command: Command | Group, prog: str = parsing.AIRFLOW_PROG) -> CLICommand:
        if isinstance(command, Group):
            within = f"{prog} {command.name}"
            subcommands = tuple(added(one, within) for one in command.commands)
            return GroupCommand(name=command.name, help=command.help, subcommands=subcommands)

        def run(args: argparse.Namespace) -> None:
            # Airflow's own commands on connections set this variable, too. Without it Airflow
            # does not find the connections in its database.
            os.environ.setdefault("_AIRFLOW_PROCESS_CONTEXT", "server")
            if parsing.is_misused(command, args, parsing.parser_of(command, prog)):
                raise SystemExit(2)
            code = _guarded(command.run, args)
            if code:
                raise SystemExit(code)

        arguments = [
            Arg(flags=a.flags, **a.settings)  # type: ignore[no-untyped-call]
            for a in command.arguments
        ]
        return ActionCommand(
            name=command.name,
            help=command.help,
            func=run,
            args=arguments,
            description=command.help,
            epilog=parsing.epilog(command, parsing.AIRFLOW_PROG),
        )

    return [
        GroupCommand(
            name="sparklineage",
            help="Lineage of Spark jobs",
            description=parsing.airflow_description(),
            subcommands=tuple(map(added, AIRFLOW_COMMANDS)),
        )
    ]
