"""Read the two files of a bundle: the events in the order of the driver's clock, and the records.

Times of events (:class:`Clock`):

- One listener writes its events one after the other. If the driver's clock is put back (as NTP can
  do), a write that came before a read seems to come after that read, by the times alone. Then the
  times of all later events in the file are moved forward until they fit the order of the file. The
  second of two equal lines is no proof that the clock was put back.
- The driver knows whether its clock was put back: the observer compares the clock with a monotonic
  one. The observer's report decides, even against the times of the events.
- Without that report, an end whose time is earlier than that of an event before it in the file
  proves that the clock was put back: Spark stamps an end and reports it at once. A start proves
  nothing: Spark stamps it, plans for seconds, and may report it after the ends of inner executions
  and of other threads.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import starmap
from typing import TYPE_CHECKING

from msgspec.structs import replace

from airflow_provider_sparklineage.model.allowance import TOO_LONG, Limit, SpentError
from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode
from airflow_provider_sparklineage.spark.capture.observations import ObservationReport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle
    from airflow_provider_sparklineage.spark.capture.events import SparkEvent
    from airflow_provider_sparklineage.spark.capture.observations import ObservationRecord


# --- both files -----------------------------------------------------------------------------------


class Reading:
    """Reads the two files of a bundle; the reports are complete when both files are read.

    :param bundle: the bundle to read
    :param is_over: a function that tells whether the time for reading events is over
    :ivar report: the report on the events
    :ivar observed: the report on the records
    :ivar clock: the clock of the driver
    """

    def __init__(self, bundle: CaptureBundle, is_over: Callable[[], bool] = lambda: False) -> None:
        self._bundle = bundle
        self._is_over = is_over
        self.observed = ObservationReport()
        self.report = bundle.report
        self.clock = Clock(
            bundle.manifest.application_run_id, lambda: bundle.clock_put_back(is_over)
        )

    def events(self) -> Iterator[SparkEvent]:
        """Read the listener's events, with times that fit their order in the file.

        :raise CaptureError: if the file exists but cannot be read
        """
        events = self._bundle.events(self._is_over)
        return self.clock.corrected(events) if self._bundle.is_in_order else events

    def records(self, is_over: Callable[[], bool] = lambda: False) -> list[ObservationRecord]:
        """Read the observer's records: all or none, because some alone would give wrong partitions.

        :param is_over: a function that tells whether the time for reading records is over
        :raise CaptureError: if the file exists but cannot be read
        :raise SpentError: if the records have more partitions than :class:`Limit` allows, or there
            was no time to read all records
        """
        records: list[ObservationRecord] = []
        partitions, lists = 0, set()
        for record in self._bundle.observations(self.observed, is_over):
            layouts = [
                *(layout for read in record.reads for layout in read.layouts or ()),
                *(layout for write in record.writes for layout in write.every_layout),
            ]
            for listed in (layout.partitions for layout in layouts if layout.partitions):
                partitions += 1 if id(listed) in lists else len(listed)  # equal ones are one object
                lists.add(id(listed))
            if partitions > Limit.PARTITIONS:
                msg = f"they are more than {Limit.PARTITIONS}"
                raise SpentError(msg)
            records.append(record)
        if self.observed.cut:
            raise SpentError(TOO_LONG)
        return records


# --- the clock ------------------------------------------------------------------------------------


CLOCK_TOLERANCE = timedelta(seconds=1)
"""A smaller gap proves nothing: threads of recorded jobs overtake each other by up to 20 ms."""
MAX_WAITING = 1000
"""Number of starts that are held back in memory: no job plans so many queries at a time."""
_ENDS = frozenset({"COMPLETE", "FAIL", "ABORT"})


class Clock:
    """The clock of one driver, which may have been put back while the job ran.

    :param run_id: OpenLineage run id of the driver's application
    :param by_driver: a function that gives the time by which the clock was put back, as the driver
        reports it, or None if the driver reports nothing; called once, and only if events are not
        in the order of their times
    :ivar put_back: the total time by which the clock was put back
    """

    def __init__(
        self, run_id: str, by_driver: Callable[[], timedelta | None] = lambda: None
    ) -> None:
        self._run_id = run_id
        self._by_driver = cache(by_driver)
        self._gap = timedelta()
        self.put_back = timedelta()

    def corrected(self, events: Iterable[SparkEvent]) -> Iterator[SparkEvent]:
        """Give the events with times that fit their order in the file.

        A START event whose time is earlier than that of an event before it is held back until a
        later event proves that the clock was put back, or until the end of the file. So it may come
        later than in the file.

        :param events: the events of one file, in the order of the file; events of other
            applications prove nothing
        """
        latest: datetime | None = None
        seen: set[int] = set()  # hashes of lines, which take less memory than the lines
        waiting: list[tuple[SparkEvent, datetime]] = []  # each with the latest time before it
        for event in events:
            if self._run_id not in (event.run.run_id, event.parent_run_id):
                yield event
                continue
            at = event.event_time
            line = hash((event.run.run_id, event.event_type, at))
            if self.put_back:
                at = _later(at, self.put_back)
            if latest is None or at > latest:
                latest = at
            elif latest - at > CLOCK_TOLERANCE and line not in seen:
                is_proof = self._is_proof(event)
                if is_proof is None and event.event_type == "START" and len(waiting) < MAX_WAITING:
                    # The greatest gap counts: later events can narrow the gap of a held start.
                    self._gap = max(self._gap, latest - at)
                    waiting.append((event, latest))
                    seen.add(line)
                    continue
                if is_proof:
                    back, self._gap = max(self._gap, latest - at), timedelta()
                    self.put_back += back
                    yield from starmap(self._shifted, waiting)
                    waiting.clear()
                    at = _later(at, back)
                    latest = max(at, latest)
                elif is_proof is None:
                    at = latest
            seen.add(line)
            yield event if at == event.event_time else replace(event, event_time=at)
        yield from starmap(self._shifted, waiting)

    def _is_proof(self, event: SparkEvent) -> bool | None:
        """Whether an event that is out of order proves that the clock was put back.

        The time of such an event is earlier than that of an event before it in the file.

        :return: None if this event proves nothing, and only a later event can prove it: the driver
            reports nothing about its clock, and this event is not the end of a run
        """
        reported = self._by_driver()
        if reported is not None:
            return reported > CLOCK_TOLERANCE
        return True if event.event_type in _ENDS else None

    def _shifted(self, event: SparkEvent, latest: datetime) -> SparkEvent:
        return replace(event, event_time=min(_later(event.event_time, self.put_back), latest))

    def degradations(self) -> Iterator[Degradation]:
        """Yield a degradation if the clock was put back, else nothing.

        If it was put back, observations are not used: they have the driver's times too, and only
        these times match observations to actions.
        """
        if self.put_back:
            seconds = (self._by_driver() or self.put_back).total_seconds()
            yield Degradation(
                DegradationCode.CLOCK_WENT_BACKWARDS,
                f"The driver's clock was put back by {seconds:g} s while the job ran. Its actions "
                "are in the order of the event file, and what was observed (partitions, and reads "
                "that the listener does not report) is not used, because it belongs to actions by "
                "time alone; see to it that the clock is adjusted slowly (chrony, ntpd -x).",
            )


def _later(at: datetime, by: timedelta) -> datetime:
    """Give ``at + by``, at most the last possible time: a damaged event may name any year."""
    try:
        return at + by
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)
