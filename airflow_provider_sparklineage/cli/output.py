"""The output of a command: lines for a terminal, and documents that programs read.

What commands print is other people's text for the most part: names of datasets, templates, messages
of servers. All of it leaves through here, or through :func:`.show.escape`, and no character in it
controls the terminal.
"""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_provider_sparklineage.model import texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

T = TypeVar("T")


def say(line: str) -> None:
    """Print a line of the answer."""
    print(texts.escape_control_characters(line))


def note(line: str) -> None:
    """Print a line that is no part of the answer: an error, a note, how far it is."""
    print(texts.escape_control_characters(line), file=sys.stderr)


def say_json(document: Any, *, sort_keys: bool = False) -> None:
    """Print a document as JSON, with what would control a terminal escaped as JSON does."""
    text = json.dumps(document, indent=2, ensure_ascii=not _is_unicode(), sort_keys=sort_keys)
    print("\n".join(map(_escaped_json, text.split("\n"))))


def say_json_array(documents: Iterable[Any]) -> None:
    """Print documents as one JSON array, a line each: for programs, and for ``grep``."""
    is_unicode = _is_unicode()
    print("[", end="")
    for number, document in enumerate(documents):
        text = json.dumps(document, ensure_ascii=not is_unicode)
        print(",\n" if number else "\n", _escaped_json(text), sep="", end="")
    print("\n]")


def say_json_lines(documents: Iterable[Any]) -> None:
    """Print documents as JSON, one a line (NDJSON): as many as there are, as they come."""
    is_unicode = _is_unicode()
    for document in documents:
        print(_escaped_json(json.dumps(document, ensure_ascii=not is_unicode)))


def _is_unicode() -> bool:
    return (sys.stdout.encoding or "").lower().startswith("utf")


def _escaped_json(line: str) -> str:
    return texts.CONTROL_CHARACTERS.sub(lambda found: json.dumps(found[0])[1:-1], line)


@contextmanager
def logging_to_stderr() -> Iterator[None]:
    """Keep what Airflow logs out of the output.

    Airflow 3.2 logs already while its models are imported, so imports of it belong inside.
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
    """Call with Airflow's log, and what files of DAGs print, kept off stdout: JSON goes there."""
    from airflow.utils.cli import suppress_logs_and_warning

    results: list[T] = []

    def call(_: Namespace) -> None:
        results.append(made())

    with redirect_stdout(sys.stderr):
        suppress_logs_and_warning(call)(Namespace(verbose=False))
    return results[0]
