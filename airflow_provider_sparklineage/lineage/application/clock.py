"""Times of a driver whose clock was put back while it ran, by the order in which it wrote.

One listener writes its events one after the other, in the order of their times but for the
milliseconds by which Spark's threads overtake each other. Where the times contradict that by more,
the clock was put back (NTP does it), and by the times alone what was written before it was read
would seem to be written later. Then the rest of the file is as much later as it takes for the order
to be that of the file. Lines that come again prove nothing.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from msgspec.structs import replace

from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from airflow_provider_sparklineage.spark.capture.events import SparkEvent

TOLERANCE = timedelta(seconds=1)
"""Threads of recorded jobs overtake each other by up to 20 ms."""


class Clock:
    """The clock of one driver.

    :param run_id: OpenLineage run id of its application
    :ivar put_back: by how much, in all
    """

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self.put_back = timedelta()

    def corrected(self, events: Iterable[SparkEvent]) -> Iterator[SparkEvent]:
        """Give events with times that fit their order.

        :param events: of one file, in its order; those of other applications prove nothing
        """
        latest: datetime | None = None
        seen: set[int] = set()  # of hashes, which take little room
        for event in events:
            if self._run_id not in (event.run.run_id, event.parent_run_id):
                yield event
                continue
            at = event.event_time
            line = hash((event.run.run_id, event.event_type, at))
            if self.put_back:
                at += self.put_back
            if latest is None or at > latest:
                latest = at
            elif latest - at > TOLERANCE and line not in seen:
                self.put_back += latest - at
                at = latest
            seen.add(line)
            yield replace(event, event_time=at) if self.put_back else event

    def degradations(self) -> Iterator[Degradation]:
        """Report it: what was observed has the driver's times too, and is not matched by them."""
        if self.put_back:
            seconds = self.put_back.total_seconds()
            yield Degradation(
                DegradationCode.CLOCK_WENT_BACKWARDS,
                f"The driver's clock was put back by {seconds:g} s while the job ran. Its actions "
                "are in the order of the event file, and what was observed (partitions, and reads "
                "that the listener does not report) is not used, because it belongs to actions by "
                "time alone; see to it that the clock is adjusted slowly (chrony, ntpd -x).",
            )
