"""Completion in a shell: what may stand at the cursor, as ``argcomplete`` asks for it.

Commands and options are the parser's. Datasets and partitions are those of the store that
``--store`` or the environment names. Other stores are not asked: to import Airflow for its
configuration or for a connection takes longer than anybody waits for a key.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import argcomplete
from argcomplete.completers import FilesCompleter

from airflow_provider_sparklineage.model.degradations import DegradationCode

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable

    from airflow_provider_sparklineage.history.engines.duckdb import History

    Completer = Callable[[str, argparse.Namespace], Iterable[str]]


T = TypeVar("T")

_SECONDS = 2
"""A store that takes longer is not asked: the shell waits."""


def complete(parser: argparse.ArgumentParser, actions: Iterable[argparse.Action]) -> None:
    """Print what may stand at the cursor, and end the process, if a shell has asked for it.

    :param parser: the parser of the program
    :param actions: all arguments of its commands
    """
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
    return [*(DegradationCode if prefix else ()), *FilesCompleter()(prefix)]


_COMPLETERS: dict[str, Completer] = {
    "DATASET": _datasets,
    "PARTITION": _partitions,
    "BUNDLE_FILE_OR_CODE": _codes,
}
"""The functions that give texts for an argument, by its metavar."""
