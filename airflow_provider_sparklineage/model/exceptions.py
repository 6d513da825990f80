"""The errors of this package.

::

    SparkLineageError            problem and fix; the base of all
    ├── SettingsError            an argument or an option has an impossible value: when settings
    │   │                        are resolved
    │   ├── RulesError           so has a key of rules that are YAML: when they are read
    │   └── ConnectionFieldsError  a connection is missing or has impossible fields: when it is read
    ├── DeclarationError         reads=, writes= or a partition key make no sense: once fields are
    │                            rendered, and when partitions are recorded on an asset
    ├── ListenerError            this Spark can have no listener: before the job is submitted, and
    │                            when a listener is fetched
    ├── RemoteDriverError        the driver runs where nothing that it writes can be read: before
    │                            the job is submitted
    ├── NotAwaitedError          spark-submit did not wait for the job's end: when its lineage would
    │                            otherwise be collected
    ├── CaptureError             a capture bundle cannot be made, written or read: before the job is
    │                            submitted, and when its lineage is collected
    ├── ArchiveError             the archive does not take or give an event in time: after the
    │                            task's event is made, and when a page or a command asks for it
    ├── HistoryError             a store of the history cannot be opened, built or queried: in
    │   │                        commands, on the page, and in tasks that look at it
    │   └── UnknownNameError     it has no dataset, partition, column or task of that name
    ├── DeliveryError            a backend did not take all of an event: when it is sent
    ├── DocumentError            a stored event cannot be shown: on pages and in commands
    └── UnusableInputError       a command was given nothing that it can use

None of them reaches a user's task: the operator turns them into a warning and a degradation in the
event, unless ``strict=True``. An argument of the operator that no rendering could correct is
refused with the DAG that has it.
"""

from __future__ import annotations

from airflow_provider_sparklineage.model.credentials import scrub, scrub_name


class SparkLineageError(Exception):
    """Base of all errors that this package raises.

    :param problem: one or more sentences that say to people why it was raised
    :param fix: one or more sentences on the remedy; empty if there is none

    Both are scrubbed, so that they show no credentials of the texts that they quote. The text of
    the error is both, one after the other.
    """

    def __init__(self, problem: str, fix: str = "") -> None:
        self.problem = self._shown(problem)
        self.fix = self._shown(fix)
        super().__init__(self.problem, self.fix)

    def __str__(self) -> str:
        return f"{self.problem} {self.fix}".rstrip()

    @staticmethod
    def _shown(text: str) -> str:
        return scrub(text)


class SettingsError(SparkLineageError):
    """Raised when an operator argument or a ``[sparklineage]`` option has an impossible value."""


class RulesError(SettingsError):
    """Raised when the organisation's rules are invalid; names file, line and key."""


class ConnectionFieldsError(SettingsError):
    """Raised when a ``sparklineage`` connection is missing or has impossible fields."""


class DeclarationError(SparkLineageError):
    """Raised when ``reads=``, ``writes=`` or ``partition_key_dimensions=`` make no sense."""


class ListenerError(SparkLineageError):
    """Raised when no listener jar fits this Spark, or the one that fits cannot be fetched."""


class RemoteDriverError(SparkLineageError):
    """Raised when the driver will run where the worker cannot read the files that it writes."""


class NotAwaitedError(SparkLineageError):
    """Raised when spark-submit did not wait for the job's end, so its events are not collected."""


class CaptureError(SparkLineageError):
    """Raised when the capture bundle of a try cannot be made, written or read."""


class ArchiveError(SparkLineageError):
    """Raised when the archive does not take or give an event in time; names the archive."""


class HistoryError(SparkLineageError):
    """Raised when the history cannot be built, opened or queried."""


class UnknownNameError(HistoryError):
    """Raised when no dataset, partition, column or task of the history has a requested name.

    The message names the existing ones. It quotes only names, in which only a part of a URL can be
    a credential; ``s3://lake:orders`` has none.
    """

    @staticmethod
    def _shown(text: str) -> str:
        return scrub_name(text)


class DeliveryError(SparkLineageError):
    """Raised when a backend did not take all of an event; says which part it took.

    :param is_refusal: whether the backend refused this event, so that it may take the next one
    """

    def __init__(self, problem: str, *, is_refusal: bool = False) -> None:
        self.is_refusal = is_refusal
        super().__init__(problem)


class DocumentError(SparkLineageError):
    """Raised when a stored event cannot be shown; the message is a sentence for people."""


class UnusableInputError(SparkLineageError):
    """Raised when given events are not those of one Spark application; names the file and line."""
