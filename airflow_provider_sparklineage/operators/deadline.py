"""The time that lineage may take once Spark has ended."""

from __future__ import annotations

import time

AFTER_KILL_S = 3.0  # Airflow sends SIGKILL 5 s after SIGTERM


class Budget:
    """Seconds for collecting, merging and relaying; a few only, once Airflow ends the process."""

    def __init__(self) -> None:
        self._until: float | None = None
        self._killed_at: float | None = None

    def begin(self, seconds: float) -> None:
        """Start the clock: Spark has ended."""
        self._until = time.monotonic() + seconds

    def killed(self) -> None:
        """Note that Airflow is ending the process."""
        self._killed_at = time.monotonic()

    @property
    def is_killed(self) -> bool:
        """Whether Airflow is ending the process."""
        return self._killed_at is not None

    @property
    def left(self) -> float:
        """Seconds that are left; 0 before the clock was started."""
        ends = [end for end in (self._until, self._end_of_killed) if end is not None]
        return max(0.0, min(ends) - time.monotonic()) if self._until is not None else 0.0

    @property
    def _end_of_killed(self) -> float | None:
        return None if self._killed_at is None else self._killed_at + AFTER_KILL_S

    def past_deadline(self) -> bool:
        """Whether nothing is left."""
        return self.left <= 0
