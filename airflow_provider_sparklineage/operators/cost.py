"""How long a task waits for its lineage: what a team asks before it turns lineage on for all."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class Cost:
    """Seconds of one try, by the clock, that the same task without lineage would not take.

    What Airflow's OpenLineage provider does, which sends START and COMPLETE, is not in them, nor
    what Spark's listener and the observer take in the driver.
    """

    def __init__(self) -> None:
        self.before = 0.0
        self.after = 0.0

    @contextmanager
    def before_job(self) -> Iterator[None]:
        """Add what is done in here to the wait for the job's start."""
        begun = time.monotonic()
        try:
            yield
        finally:
            self.before += time.monotonic() - begun

    @contextmanager
    def after_job(self) -> Iterator[None]:
        """Add what is done in here to the wait after the job's end."""
        begun = time.monotonic()
        try:
            yield
        finally:
            self.after += time.monotonic() - begun

    def __str__(self) -> str:
        return f"{self.before:.2f} s before the job and {self.after:.2f} s after it"
