"""One event to one line of facts: what is known of a run by it, in the form of the tables.

=================  ===============================================================================
:mod:`.shapes`     what is read of an event
:mod:`.lenient`    reading an event of any producer and shape
:mod:`.runs`       which run it is of
:mod:`.accesses`   what was read and written, with :mod:`.extents` how much, :mod:`.cells` which
:mod:`.columns`    which columns were made of which
:mod:`.line`       the line that is written
=================  ===============================================================================

An event that says nothing usable is skipped with a reason; a part of one that has another shape
than its schema is as if it were absent, and counted. Nothing here raises, whatever text it is
given, and nothing opens a file: the function may run on the executors of a cluster.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.history.facts.accesses import accesses, reporter
from airflow_provider_sparklineage.history.facts.columns import columns
from airflow_provider_sparklineage.history.facts.lenient import read
from airflow_provider_sparklineage.history.facts.line import Facts, Line
from airflow_provider_sparklineage.history.facts.runs import run
from airflow_provider_sparklineage.history.facts.times import utc
from airflow_provider_sparklineage.model.credentials import scrub

if TYPE_CHECKING:
    from airflow_provider_sparklineage.history.facts.runs import Try
    from airflow_provider_sparklineage.history.facts.shapes import Event

__all__ = ["Line", "Reason", "Skipped", "facts_of"]

_TYPES = frozenset({"START", "RUNNING", "COMPLETE", "FAIL", "ABORT", "OTHER"})
_OTHER = "OTHER"
_MAX_INT = 2**31 - 1


class Reason(StrEnum):
    """Why something has no line of facts."""

    NO_JSON = "no_json"
    """The text is no JSON, or nested too deeply to be read."""
    NO_RUN_EVENT = "no_run_event"
    """It has no run with an id, no job with a name, or no time: e.g. an event of a dataset."""


class Skipped(NamedTuple):
    """An event that has no line."""

    reason: Reason


def facts_of(event: bytes | str, source: str, of: Try | None = None) -> Line | Skipped:
    """Give the line of facts of an event.

    :param event: one JSON document, of any producer
    :param source: where it was read, as the tables are to say it
    :param of: the try, where whoever kept the event knows it: archive, bundle. Of this package's
        events only, for anybody may have a file that is called as one of an archive
    """
    text = event.encode(errors="replace") if isinstance(event, str) else event
    try:
        found = read(text)
    except (ValueError, RecursionError):
        return Skipped(Reason.NO_JSON)
    if found is None:
        return Skipped(Reason.NO_RUN_EVENT)
    facts = _facts(found.event, of)
    if facts is None:
        return Skipped(Reason.NO_RUN_EVENT)
    made, left_out = columns(found.event.outputs or ())
    return Line.of(facts, made, source, found.left_out + left_out)


def _facts(event: Event, of: Try | None) -> Facts | None:
    time, who = utc(event.eventTime), reporter(event)
    if time is None or not event.run.runId or not event.job.name:
        return None
    facets = event.run.facets
    check = facets.check if facets else None
    return Facts(
        run_id=event.run.runId,
        namespace=event.job.namespace,
        job=event.job.name,
        event_type=event.eventType if event.eventType in _TYPES else _OTHER,
        event_time=time,
        is_ours=who.is_ours,
        degradations=_degradations(event),
        accesses=list(dict.fromkeys(accesses(event, who))),
        producer=scrub(event.producer) if event.producer else None,
        check_status=check.status if check else None,
        **run(event, of if who.is_ours else None),
    )


def _degradations(event: Event) -> int:
    capture = event.run.facets.capture if event.run.facets else None
    if capture is None:
        return 0
    counts = capture.degradationCounts
    return min(sum(counts.values()) if counts else len(capture.degradations or ()), _MAX_INT)
