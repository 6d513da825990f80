"""The gaps in a merged event, with their reasons: ``sparkLineage_capture.degradations``."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

import msgspec

# Not below TYPE_CHECKING: msgspec reads the manifest by these annotations.
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.terms import Side
from airflow_provider_sparklineage.model.texts import truncated

# Traits of a kind: it needs no warning; collecting again may end it.
_NOTE, _COLLECTING = "note", "collecting"


class DegradationCode(StrEnum):
    """The kinds of degradation.

    The kinds are a part of the facet's contract: new ones may be added, and none is renamed.
    """

    needs_attention: bool
    """Whether the set-up or this package is the cause, so that the user must be warned."""
    is_of_collecting: bool
    """Whether the worker could not collect everything; ``collect`` may collect it later."""

    def __new__(cls, code: str, *traits: str) -> Self:
        """Make a member of this class.

        :param code: the code in the event
        :param traits: :data:`_NOTE` if the user needs no warning; :data:`_COLLECTING` if
            collecting again may end the degradation
        """
        kind = str.__new__(cls, code)
        kind._value_ = code
        kind.needs_attention = _NOTE not in traits
        kind.is_of_collecting = _COLLECTING in traits
        return kind

    # Kinds with a cause that the user can fix: nothing was collected, or not everything.
    INJECTION_FAILED = "injection_failed"
    """The listener could not be added to the job; the job ran without it."""
    LISTENER_UNAVAILABLE = "listener_unavailable"
    """No listener jar that fits this Spark was found; the job ran without it."""
    DRIVER_ELSEWHERE = "driver_elsewhere", _COLLECTING
    """The driver does not run on this worker, so its events could not be collected."""
    DELIVERY_INCOMPLETE = "delivery_incomplete", _COLLECTING
    """A driver in a cluster delivered only a part of its capture to the worker."""
    EXTENSION_UNAVAILABLE = "extension_unavailable"
    """A jar that extends the listener could not be added; the job ran without it."""
    TRANSPORT_LEFT_OUT = "transport_left_out"
    """The job's own transport was left out, because its secret would be in Spark's arguments."""
    SUBMISSION_RESUMED = "submission_resumed"
    """An earlier try had submitted the job, and this try waited for the end of the job."""
    CAPTURE_UNAVAILABLE = "capture_unavailable", _COLLECTING
    """The capture bundle could not be made or read."""
    NO_EVENTS = "no_events"
    """The listener wrote nothing."""
    MALFORMED_EVENTS = "malformed_events"
    """Lines of the event file are not OpenLineage run events, or have facets that are not valid."""
    TORN_EVENT = "torn_event"
    """The last line of the event file is incomplete: the driver died while writing it."""
    FOREIGN_EVENTS = "foreign_events"
    """The event file had events of another application, which were left out."""
    APPLICATION_UNFINISHED = "application_unfinished", _COLLECTING
    """The application did not report its end: its driver was killed or is still running."""
    COLLECTION_CUT = "collection_cut", _COLLECTING
    """Collecting was stopped by its time budget or by the task's ``execution_timeout``."""
    CLOCK_WENT_BACKWARDS = "clock_went_backwards"
    """The driver's clock was put back during the job; actions are in the order of the file."""
    MERGE_FAILED = "merge_failed", _COLLECTING
    """The collected events could not be merged, because of a defect in this package."""

    RELAY_INCOMPLETE = "relay_incomplete"
    """Not all of Spark's own events were sent on (``relay_spark_events``)."""

    OBSERVATIONS_MISSING = "observations_missing"
    """The observer was added to the driver and wrote nothing."""
    OBSERVER_OUTDATED = "observer_outdated"
    """The observer in the driver is of another version of this package than the worker."""
    OBSERVER_FAILED = "observer_failed"
    """The observer met an error, so some partitions may be unknown."""
    MALFORMED_OBSERVATIONS = "malformed_observations"
    """Lines of the observer's file cannot be read."""

    # Kinds that the job or a limit of Spark's reports causes: the set-up needs no fix.
    ACTION_FAILED = "action_failed", _NOTE
    """An action failed, so its writes are not in the event."""
    ACTION_UNFINISHED = "action_unfinished", _NOTE
    """An action did not report its end, so its writes are not in the event."""
    NOTHING_WRITTEN = "nothing_written", _NOTE
    """The application reported no output dataset."""
    INTERNAL_READ_ASSUMED = "internal_read_assumed", _NOTE
    """A dataset was read after a full overwrite, so it counts as an intermediate, not an input."""
    OUTPUT_GONE = "output_gone", _NOTE
    """Files or tables that the application wrote no longer existed when it ended."""
    DELTA_HIDES_WRITES = "delta_hides_writes", _NOTE
    """With Delta's extension the listener omits writes of files by queries with a shuffle."""
    COLUMN_LINEAGE_MISSING = "column_lineage_missing", _NOTE
    """The listener reported no column lineage for an output."""
    COLUMN_WITHOUT_SOURCES = "column_without_sources", _NOTE
    """An output column has no known source columns (a literal, ``count(*)``, a Python UDF, …)."""
    COLUMN_INCOMPLETE = "column_incomplete", _NOTE
    """Some sources of a column are not known (a Python UDF, MERGE, UPDATE, FILTER (WHERE …))."""
    SUBQUERY_UNSEEN = "subquery_unseen", _NOTE
    """A query has a scalar subquery, whose datasets are missing from the sources and inputs."""
    LEGACY_REFUSED = "legacy_refused", _NOTE
    """Column lineage has the compact form, because the legacy form would have too many edges."""

    OBSERVER_UNAVAILABLE = "observer_unavailable", _NOTE
    """No observer was started: the application is not Python, or the observer was not written."""
    OBSERVATION_CUT = "observation_cut", _NOTE
    """The observer did not look at everything, because its budget was spent."""
    OBSERVATION_UNTIED = "observation_untied", _NOTE
    """The observer saw partitions, but the files or the table cannot be named as a dataset."""
    PARTITIONS_UNKNOWN = "partitions_unknown", _NOTE
    """It is not known which partitions of a dataset were read or written."""
    PARTITIONS_INEXACT = "partitions_inexact", _NOTE
    """A dataset's partitions are uncertain: they come from a listing or reported locations."""
    PARTITIONS_CUT = "partitions_cut", _NOTE
    """More partitions or locations were read or written than the event may name."""
    DETAIL_DROPPED = "detail_dropped", _NOTE
    """Details were left out, because the event would be larger than the limit allows."""
    BACKEND_REPAIRED = "backend_repaired", _NOTE
    """A part of the event was changed or left out, because the backend would refuse it."""
    LAST_KNOWN = "last_known", _NOTE
    """Nothing is known of this try; the event has the datasets of the last successful run."""
    NOT_SUBMITTED = "not_submitted", _NOTE
    """The try ended before its job was submitted; the event has the expected datasets."""
    DECLARATION_UNUSABLE = "declaration_unusable"
    """A declaration of datasets that the job reads or writes is invalid and was left out."""
    DECLARATION_UNBOUND = "declaration_unbound", _NOTE
    """A declared table is not among the datasets that Spark reported."""


MAX_MESSAGE = 2000
"""The most characters of a message, whose quoted names and reasons may have any length."""


class Degradation(msgspec.Struct, frozen=True, omit_defaults=True):
    """One gap in the lineage: a code for programs and a sentence for people.

    The manifest has the degradations that are known before merging. The merged lineage has these
    and all others; in the event they are in the facet ``sparkLineage_capture``.

    :param message: a full sentence that names the dataset, column, run or line and, if a person can
        take one, the next step; it is truncated to :data:`MAX_MESSAGE` characters
    :param side: whether the job reads or writes the dataset; None if the gap concerns both, or no
        dataset
    """

    code: DegradationCode
    message: str
    dataset: DatasetName | None = None
    column: str | None = None
    side: Side | None = None

    def __post_init__(self) -> None:
        if len(self.message) > MAX_MESSAGE:
            msgspec.structs.force_setattr(self, "message", truncated(self.message, MAX_MESSAGE))
