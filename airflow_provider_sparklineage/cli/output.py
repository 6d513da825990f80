"""The output of a command, which may be a document that a program reads."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


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
