"""What is missing from a merged event, and why: ``sparkLineage_capture.degradations``."""

from __future__ import annotations

from enum import StrEnum

import msgspec

# The manifest is read by these annotations.
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.terms import Side
from airflow_provider_sparklineage.model.texts import truncated


class DegradationCode(StrEnum):
    """The kinds of degradation; a part of the facet's contract: values are added, never renamed."""

    # Nothing or not everything was collected: a person can fix these.
    INJECTION_FAILED = "injection_failed"
    """The listener could not be added to the job; the job ran without it."""
    LISTENER_UNAVAILABLE = "listener_unavailable"
    """No listener jar that fits this Spark was found; the job ran without it."""
    DRIVER_ELSEWHERE = "driver_elsewhere"
    """The driver does not run on this worker, so its events could not be collected."""
    DELIVERY_INCOMPLETE = "delivery_incomplete"
    """Not all that a driver in a cluster captured was delivered to the worker."""
    EXTENSION_UNAVAILABLE = "extension_unavailable"
    """A jar that extends the listener could not be added; the job ran without it."""
    TRANSPORT_LEFT_OUT = "transport_left_out"
    """A secret of the job's own transport could not be kept from its arguments otherwise."""
    SUBMISSION_RESUMED = "submission_resumed"
    """The job had been submitted by an earlier try, and this one waited for its end."""
    CAPTURE_UNAVAILABLE = "capture_unavailable"
    """The capture bundle could not be made or read."""
    NO_EVENTS = "no_events"
    """The listener wrote nothing."""
    MALFORMED_EVENTS = "malformed_events"
    """Lines in the event file are not OpenLineage run events, or facets of them no such facets."""
    TORN_EVENT = "torn_event"
    """The last line of the event file is incomplete: the driver died while writing it."""
    FOREIGN_EVENTS = "foreign_events"
    """Events of another application were in the file; they were left out."""
    APPLICATION_UNFINISHED = "application_unfinished"
    """The application reported no end: its driver was killed or is still running."""
    COLLECTION_CUT = "collection_cut"
    """Collecting was stopped by its time budget or by the task's ``execution_timeout``."""
    CLOCK_WENT_BACKWARDS = "clock_went_backwards"
    """The driver's clock was put back while the job ran; actions are in the order of the file."""
    MERGE_FAILED = "merge_failed"
    """The collected events could not be merged: a defect in this package."""

    RELAY_INCOMPLETE = "relay_incomplete"
    """Not all of Spark's own events were sent on (``relay_spark_events``)."""

    OBSERVATIONS_MISSING = "observations_missing"
    """The observer was added to the driver and wrote nothing."""
    OBSERVER_FAILED = "observer_failed"
    """Something went wrong in the observer; some partitions may be unknown."""
    MALFORMED_OBSERVATIONS = "malformed_observations"
    """Lines of the observer's file cannot be read."""

    # The job's own doing, or the limits of what Spark reports: nothing to fix in the set-up.
    ACTION_FAILED = "action_failed"
    """An action failed; what it wrote is not claimed."""
    ACTION_UNFINISHED = "action_unfinished"
    """An action reported no end; what it wrote is not claimed."""
    NOTHING_WRITTEN = "nothing_written"
    """The application reported no output dataset."""
    INTERNAL_READ_ASSUMED = "internal_read_assumed"
    """A dataset was read back after a full overwrite: taken as an intermediate, not an input."""
    OUTPUT_GONE = "output_gone"
    """What was written was not there any more when the application ended."""
    DELTA_HIDES_WRITES = "delta_hides_writes"
    """With Delta's extension the listener leaves out writes of files whose plan has a shuffle."""
    COLUMN_LINEAGE_MISSING = "column_lineage_missing"
    """The listener reported no column lineage for an output."""
    COLUMN_WITHOUT_SOURCES = "column_without_sources"
    """An output column has no known source columns (a literal, ``count(*)``, a Python UDF, …)."""
    COLUMN_INCOMPLETE = "column_incomplete"
    """Not all sources of a column are known: a Python UDF, a MERGE or UPDATE, FILTER (WHERE …)."""
    SUBQUERY_UNSEEN = "subquery_unseen"
    """A scalar subquery is in a query; what it reads is among neither sources nor inputs."""
    LEGACY_REFUSED = "legacy_refused"
    """Column lineage in the legacy form would have too many edges; it is in the compact form."""

    OBSERVER_UNAVAILABLE = "observer_unavailable"
    """There is no Python driver on this worker to observe."""
    OBSERVATION_CUT = "observation_cut"
    """There was more to look at than the observer's budget allows."""
    OBSERVATION_UNTIED = "observation_untied"
    """Partitions were observed of something that is no dataset of the application's events."""
    PARTITIONS_UNKNOWN = "partitions_unknown"
    """The partitions of a dataset that were read or written are not known."""
    PARTITIONS_INEXACT = "partitions_inexact"
    """The partitions of a dataset are those of a listing or of reported locations, not certain."""
    PARTITIONS_CUT = "partitions_cut"
    """More partitions or locations were read or written than the event may name."""
    DETAIL_DROPPED = "detail_dropped"
    """The event would have been larger than it may be; detail was left out of it."""
    BACKEND_REPAIRED = "backend_repaired"
    """The lineage backend could not have taken something as it is; it was changed or left out."""
    LAST_KNOWN = "last_known"
    """Nothing is known of this try; what the last successful run read or wrote stands for it."""
    NOT_SUBMITTED = "not_submitted"
    """The try ended before its job was submitted; its datasets are those that were expected."""
    DECLARATION_UNUSABLE = "declaration_unusable"
    """A declaration of what is read or written cannot be understood; it was left out."""
    DECLARATION_UNBOUND = "declaration_unbound"
    """A declared table is none of the datasets that Spark reported."""

    @property
    def needs_attention(self) -> bool:
        """Whether the set-up or the package is at fault, so that a person should be warned."""
        return self not in _NOTES

    @property
    def is_of_collecting(self) -> bool:
        """Whether the worker could not collect all, which the command ``collect`` may do later."""
        return self in _OF_COLLECTING


_OF_COLLECTING = frozenset(
    {
        DegradationCode.DRIVER_ELSEWHERE,
        DegradationCode.DELIVERY_INCOMPLETE,
        DegradationCode.CAPTURE_UNAVAILABLE,
        DegradationCode.APPLICATION_UNFINISHED,
        DegradationCode.COLLECTION_CUT,
        DegradationCode.MERGE_FAILED,
    }
)

_NOTES = frozenset(
    {
        DegradationCode.ACTION_FAILED,
        DegradationCode.ACTION_UNFINISHED,
        DegradationCode.NOTHING_WRITTEN,
        DegradationCode.INTERNAL_READ_ASSUMED,
        DegradationCode.OUTPUT_GONE,
        DegradationCode.DELTA_HIDES_WRITES,
        DegradationCode.COLUMN_LINEAGE_MISSING,
        DegradationCode.COLUMN_WITHOUT_SOURCES,
        DegradationCode.COLUMN_INCOMPLETE,
        DegradationCode.SUBQUERY_UNSEEN,
        DegradationCode.LEGACY_REFUSED,
        DegradationCode.OBSERVER_UNAVAILABLE,
        DegradationCode.OBSERVATION_CUT,
        DegradationCode.OBSERVATION_UNTIED,
        DegradationCode.PARTITIONS_UNKNOWN,
        DegradationCode.PARTITIONS_INEXACT,
        DegradationCode.PARTITIONS_CUT,
        DegradationCode.DETAIL_DROPPED,
        DegradationCode.BACKEND_REPAIRED,
        DegradationCode.LAST_KNOWN,
        DegradationCode.NOT_SUBMITTED,
        DegradationCode.DECLARATION_UNBOUND,
    }
)


MAX_MESSAGE = 2000
"""Characters of a message: it quotes names and reasons that are other people's text."""


class Degradation(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that is missing: a code for programs and a sentence for people.

    The manifest has those that the worker knew of, the lineage has all, and the facet names them.

    :param message: a full sentence that names the dataset, column, run or line and, where there is
        one, the next step.
    :param side: of the dataset that it is about; None where it is about both, or none
    """

    code: DegradationCode
    message: str
    dataset: DatasetName | None = None
    column: str | None = None
    side: Side | None = None

    def __post_init__(self) -> None:
        if len(self.message) > MAX_MESSAGE:
            msgspec.structs.force_setattr(self, "message", truncated(self.message, MAX_MESSAGE))
