"""How far a command is, on a terminal."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.progress import Progress

from airflow_provider_sparklineage.cli import show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def progress(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show a bar while something is done; what is given takes how much of it is.

    Nothing is shown where nobody looks, and nothing stays of it.

    :param total: None where nobody knows, and how much is done is shown as a number
    """
    is_shown = sys.stderr.isatty() and total != 0
    with Progress(console=show.console(sys.stderr), disable=not is_shown, transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(
            task, completed=done, description=what if total else f"{what}: {done}"
        )
