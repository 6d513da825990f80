"""The time that lineage may take once Spark has ended, and the time that it has cost a task."""

from __future__ import annotations

import time

from airflow_provider_sparklineage.model.allowance import Allowance, Stage
from airflow_provider_sparklineage.model.budget import Budget

AFTER_KILL_S = 3.0  # Airflow sends SIGKILL 5 s after SIGTERM


class Deadline:
    """The time by which lineage must be collected and merged, and Spark's own events sent on.

    Once Airflow ends the process, only :data:`AFTER_KILL_S` are left.
    """

    def __init__(self) -> None:
        self._at: float | None = None
        self._at_if_killed: float | None = None

    def begin(self, seconds: float) -> None:
        """Start the clock, or start it anew; call this when Spark has ended.

        :param seconds: time limit for collecting and merging lineage, or for sending events on
        """
        self._at = time.monotonic() + seconds

    def killed(self) -> None:
        """Note that Airflow is ending the process."""
        self._at_if_killed = time.monotonic() + AFTER_KILL_S

    @property
    def is_killed(self) -> bool:
        """Whether Airflow is ending the process."""
        return self._at_if_killed is not None

    @property
    def left(self) -> float:
        """Seconds that are left; 0 before the clock was started."""
        if self._at is None:
            return 0.0
        at = self._at if self._at_if_killed is None else min(self._at, self._at_if_killed)
        return max(0.0, at - time.monotonic())

    @property
    def budget(self) -> Budget:
        """The time that is left, as a :class:`Budget`, for code that knows nothing of Airflow."""
        return Budget(lambda: self.left)

    def allowance(self, after: Stage | None = None) -> Allowance:
        """Give the time that is left, to be shared by the stages of merging.

        :param after: the last stage that is over; None if all are still to come
        """
        return Allowance(lambda: self.left, after)

    def part(self, seconds: float, kept: float = 0.0) -> Budget:
        """Give a budget of ``seconds`` from now on; :meth:`begin` has no influence on it.

        After :meth:`killed`, it is at most :data:`AFTER_KILL_S` minus ``kept``.

        :param kept: seconds that other work keeps once Airflow ends the process
        """
        ends = time.monotonic() + seconds

        def left() -> float:
            at = ends
            if self._at_if_killed is not None:
                at = min(at, self._at_if_killed - kept)
            return at - time.monotonic()

        return Budget(left)


class Stopwatch:
    """A context manager that adds up the seconds that its blocks take; blocks are not nested."""

    def __init__(self) -> None:
        self.seconds = self._begun = 0.0

    def __enter__(self) -> None:
        self._begun = time.monotonic()

    def __exit__(self, *_: object) -> None:
        self.seconds += time.monotonic() - self._begun


class Cost:
    """The seconds of wall-clock time that lineage adds to the duration of one try.

    They include neither the time of Airflow's OpenLineage provider, which sends START and COMPLETE,
    nor the time that Spark's listener and the observer take in the driver.
    """

    def __init__(self) -> None:
        self.before_job = Stopwatch()
        self.after_job = Stopwatch()

    def __str__(self) -> str:
        before, after = self.before_job.seconds, self.after_job.seconds
        return f"{before:.2f} s before the job and {after:.2f} s after it"
