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
_ALL = "All lineage of this try; the event has the datasets that are declared or were there last."


class DegradationCode(StrEnum):
    """The kinds of degradation.

    The kinds are a part of the facet's contract: new ones may be added, and none is renamed.
    """

    meaning: str
    """A sentence on the cause."""
    missing: str
    """A sentence on the parts of the lineage that are missing."""
    remedy: str
    """A sentence or two on what people can do."""
    needs_attention: bool
    """Whether the set-up or this package is the cause, so that the user must be warned."""
    is_of_collecting: bool
    """Whether the worker could not collect everything; ``collect`` may collect it later."""

    def __new__(
        cls, code: str, meaning: str = "", missing: str = "", remedy: str = "", *traits: str
    ) -> Self:
        """Make a member of this class; by its code alone, an existing member is given.

        :param code: the code in the event
        :param meaning: as the attribute
        :param missing: as the attribute
        :param remedy: as the attribute
        :param traits: :data:`_NOTE` if the user needs no warning; :data:`_COLLECTING` if
            collecting again may end the degradation
        """
        kind = str.__new__(cls, code)
        kind._value_ = code
        kind.meaning, kind.missing, kind.remedy = meaning, missing, remedy
        kind.needs_attention = _NOTE not in traits
        kind.is_of_collecting = _COLLECTING in traits
        return kind

    # Kinds with a cause that the user can fix: nothing was collected, or not everything.
    INJECTION_FAILED = (
        "injection_failed",
        "The listener could not be added to the job; the job ran without it.",
        _ALL,
        "Correct the setting, connection or argument that the message names. `airflow sparklineage"
        " doctor` checks all of them.",
    )
    LISTENER_UNAVAILABLE = (
        "listener_unavailable",
        "No listener jar that fits this Spark was found; the job ran without it.",
        _ALL,
        "Fetch it with `sparklineage fetch-listener`; if no listener fits this Spark, the message "
        "says why.",
    )
    DRIVER_ELSEWHERE = (
        "driver_elsewhere",
        "The driver does not run on this worker, so its events could not be collected.",
        _ALL,
        "Set `capture_location` to a place that drivers and workers reach. If the driver delivers "
        "later, run `airflow sparklineage collect RUN`.",
        _COLLECTING,
    )
    DELIVERY_INCOMPLETE = (
        "delivery_incomplete",
        "A driver in a cluster delivered only a part of its capture to the worker.",
        "The lineage in the parts that did not arrive.",
        "Run `airflow sparklineage collect RUN` if they arrived later. The driver's log has the "
        "reason in lines that begin with `sparklineage:`.",
        _COLLECTING,
    )
    EXTENSION_UNAVAILABLE = (
        "extension_unavailable",
        "A jar that extends the listener could not be added; the job ran without it.",
        "The lineage that only this extension reports.",
        "Correct `listener_extensions`, or replace the jar that the message names.",
    )
    TRANSPORT_LEFT_OUT = (
        "transport_left_out",
        "The job's own transport was left out, because its secret would be in Spark's arguments.",
        "Spark's own events in the backend of that transport; the event of the task is complete.",
        "Provide a folder for a properties file, as the message says, or configure the transport "
        "on the worker instead.",
    )
    SUBMISSION_RESUMED = (
        "submission_resumed",
        "An earlier try had submitted the job, and this try waited for the end of the job.",
        "What the earlier try captured, if its capture bundle is not available to this worker.",
        "Set `capture_location` to a place that all workers reach.",
    )
    CAPTURE_UNAVAILABLE = (
        "capture_unavailable",
        "The capture bundle could not be made or read.",
        "All lineage of this try, or what the job did before its files were lost.",
        "Correct `capture_location`, its permissions or its free space, as the message says. "
        "`airflow sparklineage doctor` checks it.",
        _COLLECTING,
    )
    NO_EVENTS = (
        "no_events",
        "The listener wrote nothing.",
        "All lineage of this try.",
        "Look into the job's log: the job may have ended before it made a SparkContext. `airflow "
        "sparklineage doctor --spark-submit` tries the listener.",
    )
    MALFORMED_EVENTS = (
        "malformed_events",
        "Lines of the event file are not OpenLineage run events, or have facets that are not "
        "valid.",
        "The content of these lines or facets; all others were read.",
        "Make room if a disk was full; otherwise report it with the capture bundle.",
    )
    TORN_EVENT = (
        "torn_event",
        "The last line of the event file is incomplete: the driver died while writing it.",
        "The last event, often the end of a query and with it a write.",
        "Find out from the job's log why the driver died, and run the task again.",
    )
    FOREIGN_EVENTS = (
        "foreign_events",
        "The event file had events of another application, which were left out.",
        "The reads and writes of the other application.",
        "Start one application in a task, so that each has an event.",
    )
    APPLICATION_UNFINISHED = (
        "application_unfinished",
        "The application did not report its end: its driver was killed or is still running.",
        "All that the job did after its last event.",
        "Run `airflow sparklineage collect RUN` when the job has ended, with `--now` if its driver"
        " was killed.",
        _COLLECTING,
    )
    COLLECTION_CUT = (
        "collection_cut",
        "Collecting was stopped by its time budget or by the task's ``execution_timeout``.",
        "Columns first, then partitions and actions, as the message says.",
        "Raise `collect_timeout` or the task's `execution_timeout`. If the capture bundle is kept,"
        " `airflow sparklineage collect RUN` collects it again.",
        _COLLECTING,
    )
    CLOCK_WENT_BACKWARDS = (
        "clock_went_backwards",
        "The driver's clock was put back during the job; actions are in the order of the file.",
        "Partitions, and reads that only the observer saw: they are not used.",
        "Let the driver's clock be adjusted slowly (chrony, `ntpd -x`).",
    )
    MERGE_FAILED = (
        "merge_failed",
        "The collected events could not be merged, because of a defect in this package.",
        _ALL,
        "Report it with the capture bundle. `airflow sparklineage collect RUN` merges it again "
        "after an update.",
        _COLLECTING,
    )

    RELAY_INCOMPLETE = (
        "relay_incomplete",
        "Not all of Spark's own events were sent on (``relay_spark_events``).",
        "Some of Spark's own events in the backend; the event of the task is complete.",
        "See to it that the backend answers in time; the message has the first error.",
    )

    OBSERVATIONS_MISSING = (
        "observations_missing",
        "The observer was added to the driver and wrote nothing.",
        "Partitions, and columns that only the observer sees.",
        "Look for lines that begin with `sparklineage:` in the driver's log. `airflow sparklineage"
        " doctor --spark-submit` tries the observer.",
    )
    OBSERVER_OUTDATED = (
        "observer_outdated",
        "The observer in the driver is of another version of this package than the worker.",
        "Details that only the observer of this version sees.",
        "Copy the observer into the image of the drivers again, each time the package is updated. "
        "`sparklineage fetch-listener` puts it next to the jar.",
    )
    OBSERVER_FAILED = (
        "observer_failed",
        "The observer met an error, so some partitions may be unknown.",
        "Partitions and columns of the queries at which it failed.",
        "Make room if a disk was full; otherwise report it with the message.",
    )
    MALFORMED_OBSERVATIONS = (
        "malformed_observations",
        "Lines of the observer's file cannot be read.",
        "Partitions and columns in these lines; all others were read.",
        "Make room if a disk was full; otherwise report it with the capture bundle.",
    )

    # Kinds that the job or a limit of Spark's reports causes: the set-up needs no fix.
    ACTION_FAILED = (
        "action_failed",
        "An action failed, so its writes are not in the event.",
        "The writes of this action.",
        "Nothing has to be done for lineage. The job's log has the cause of the failure.",
        _NOTE,
    )
    ACTION_UNFINISHED = (
        "action_unfinished",
        "An action did not report its end, so its writes are not in the event.",
        "The writes of this action.",
        "Find out from the job's log why the driver ended before the action did.",
        _NOTE,
    )
    NOTHING_WRITTEN = (
        "nothing_written",
        "The application reported no output dataset.",
        "The output, if the job wrote one in a way that Spark does not report.",
        "If the job writes data, declare it with `writes=`; otherwise nothing has to be done.",
        _NOTE,
    )
    INTERNAL_READ_ASSUMED = (
        "internal_read_assumed",
        "A dataset was read after a full overwrite, so it counts as an intermediate, not an input.",
        "An input, if the job read data of the dataset that was there before.",
        "If it is an input, declare it with `reads=`; otherwise nothing has to be done.",
        _NOTE,
    )
    OUTPUT_GONE = (
        "output_gone",
        "Files or tables that the application wrote no longer existed when it ended.",
        "The last name of the output, if the job renamed or moved it other than by Spark.",
        "Declare the dataset under its last name with `writes=`.",
        _NOTE,
    )
    DELTA_HIDES_WRITES = (
        "delta_hides_writes",
        "With Delta's extension the listener omits writes of files by queries with a shuffle.",
        "Such writes, if the job has any.",
        "Let an observer run (`observe`), or declare the datasets with `writes=`.",
        _NOTE,
    )
    COLUMN_LINEAGE_MISSING = (
        "column_lineage_missing",
        "The listener reported no column lineage for an output.",
        "The sources of all columns of this output.",
        "Nothing can be done for data of RDDs. For other outputs let an observer run (`observe`).",
        _NOTE,
    )
    COLUMN_WITHOUT_SOURCES = (
        "column_without_sources",
        "An output column has no known source columns (a literal, ``count(*)``, a Python UDF, …).",
        "The sources of the column, if it has any.",
        "Nothing has to be done for a literal or a count. For Python functions let an observer run"
        " (`observe`).",
        _NOTE,
    )
    COLUMN_INCOMPLETE = (
        "column_incomplete",
        "Some sources of a column are not known (a Python UDF, MERGE, UPDATE, FILTER (WHERE …)).",
        "Some sources of the column; those in the event may be more than it needs, as the message "
        "says.",
        "Let an observer run (`observe`), which sees the plan of the write.",
        _NOTE,
    )
    SUBQUERY_UNSEEN = (
        "subquery_unseen",
        "A query has a scalar subquery, whose datasets are missing from the sources and inputs.",
        "The datasets and columns that the subquery reads.",
        "Let an observer run (`observe`), or declare the datasets with `reads=`.",
        _NOTE,
    )
    LEGACY_REFUSED = (
        "legacy_refused",
        "Column lineage has the compact form, because the legacy form would have too many edges.",
        "Edges that only the legacy form has, in backends that cannot read the compact form.",
        "Set `column_lineage = compact` if the backend can read it.",
        _NOTE,
    )

    OBSERVER_UNAVAILABLE = (
        "observer_unavailable",
        "No observer was started: the application is not Python, or the observer was not written.",
        "Partitions, and columns that only an observer sees.",
        "Nothing can be done for applications that are not Python. Otherwise the message has the "
        "reason.",
        _NOTE,
    )
    OBSERVATION_CUT = (
        "observation_cut",
        "The observer did not look at everything, because its budget was spent.",
        "Partitions and columns of the queries that were not looked at.",
        "Nothing has to be done. Queries on fewer partitions, or a store that lists faster, stay "
        "within the budget.",
        _NOTE,
    )
    OBSERVATION_UNTIED = (
        "observation_untied",
        "The observer saw partitions, but the files or the table cannot be named as a dataset.",
        "The dataset of these partitions.",
        "Declare the dataset with `reads=` or `writes=`.",
        _NOTE,
    )
    PARTITIONS_UNKNOWN = (
        "partitions_unknown",
        "It is not known which partitions of a dataset were read or written.",
        "The partitions of the dataset; the dataset itself is in the event.",
        "Let an observer run (`observe`), or declare the partitions with `reads=` or `writes=`.",
        _NOTE,
    )
    PARTITIONS_INEXACT = (
        "partitions_inexact",
        "A dataset's partitions are uncertain: they come from a listing or reported locations.",
        "Certainty: there may be more or fewer partitions than the event has.",
        "Nothing has to be done. A mismatch of such partitions fails no task.",
        _NOTE,
    )
    PARTITIONS_CUT = (
        "partitions_cut",
        "More partitions or locations were read or written than the event may name.",
        "The names of the partitions; the event has their range, their filter or their number.",
        "Raise `max_partitions`.",
        _NOTE,
    )
    DETAIL_DROPPED = (
        "detail_dropped",
        "Details were left out, because the event would be larger than the limit allows.",
        "Descriptions and transformations first, column lineage last, as the message says.",
        "Raise the option that the message names. `sparklineage merge BUNDLE --max-event-bytes N` "
        "prints the full event.",
        _NOTE,
    )
    BACKEND_REPAIRED = (
        "backend_repaired",
        "A part of the event was changed or left out, because the backend would refuse it.",
        "That part, in the backend; the event that Airflow keeps has it.",
        "Nothing has to be done. A name that the backend can store stays as it is.",
        _NOTE,
    )
    LAST_KNOWN = (
        "last_known",
        "Nothing is known of this try; the event has the datasets of the last successful run.",
        "All that this try did.",
        "Look at the other degradations of the event, which have the cause.",
        _NOTE,
    )
    NOT_SUBMITTED = (
        "not_submitted",
        "The try ended before its job was submitted; the event has the expected datasets.",
        "Nothing: the job did not run.",
        "Look into the task's log for the reason why it ended.",
        _NOTE,
    )
    DECLARATION_UNUSABLE = (
        "declaration_unusable",
        "A declaration of datasets that the job reads or writes is invalid and was left out.",
        "The datasets or partitions that are declared.",
        "Correct the declaration that the message names.",
    )
    DECLARATION_UNBOUND = (
        "declaration_unbound",
        "A declared table is not among the datasets that Spark reported.",
        "The link from the declaration to a dataset in the event.",
        "Correct the name, if the job does read or write the table; otherwise leave the "
        "declaration out.",
        _NOTE,
    )


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
