"""The errors of this package.

::

    SparkLineageError            problem and fix; the base of all
    ├── SettingsError            an argument or an option has an impossible value; raised when
    │   │                        settings are resolved
    │   ├── RulesError           a key of rules in YAML has an impossible value; raised when the
    │   │                        rules are read
    │   └── ConnectionFieldsError  a connection is missing or has impossible fields; raised when the
    │                            connection is read
    ├── DeclarationError         reads=, writes= or a partition key make no sense; raised after the
    │                            fields are rendered, and when an asset gets its partitions
    ├── ScheduleError            the upstream partitions of a run's schedule are not known; raised
    │                            after the fields are rendered, and by the command ``schedule``
    ├── ListenerError            no listener fits this Spark; raised before the job is
    │                            submitted, and when a listener is fetched
    ├── RemoteDriverError        the driver runs where nothing that it writes can be read; raised
    │                            before the job is submitted
    ├── NotAwaitedError          the task did not wait for the job's end; raised in place of
    │                            collecting the job's lineage
    ├── CaptureError             a capture bundle cannot be made, written or read; raised before the
    │                            job is submitted, and when its lineage is collected
    ├── ArchiveError             the archive does not store or give an event in time; raised after
    │                            the task's event is made, and for pages and commands
    ├── BackendError             a check of a backend gets no answer, or an unexpected one; raised
    │                            in commands, and when a connection is tested
    ├── HistoryError             a store of the history cannot be opened, built or queried; raised
    │   │                        in commands, on the page, and in tasks that query the history
    │   ├── LimitError           an answer takes more time or memory than it may, or is too long
    │   │   └── TooManyError     it would have too many rows; an answer on less may not
    │   └── UnknownNameError     the history has no dataset, partition, column or task of that name
    ├── DeliveryError            a backend did not accept all of an event; raised when it is sent
    ├── DocumentError            a stored event cannot be shown; raised on pages and in commands
    └── UnusableInputError       a command was given no input that it can use

No such error reaches a user's task: the operator turns them into a warning and a degradation in the
event, unless ``strict=True``. If an argument of the operator is wrong whatever its templates
render to, the error is raised when the DAG is parsed.
"""

from __future__ import annotations

from airflow_provider_sparklineage.model.credentials import scrub, scrub_name


class SparkLineageError(Exception):
    """Base of all errors that this package raises.

    :param problem: one or more sentences that tell people why the error was raised
    :param fix: one or more sentences on the remedy; empty if there is no remedy

    Problem and fix are scrubbed, so that they show no credentials of the texts that they quote. The
    text of the error is the problem, followed by the fix.
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
    """Raised when the organisation's rules are invalid; the message names file, line and key."""


class ConnectionFieldsError(SettingsError):
    """Raised when a ``sparklineage`` connection is missing or has impossible fields."""


class DeclarationError(SparkLineageError):
    """Raised when ``reads=``, ``writes=`` or ``partition_key_dimensions=`` make no sense."""


class ScheduleError(SparkLineageError):
    """Raised when the upstream partitions that a DAG's schedule names are not known."""


class ListenerError(SparkLineageError):
    """Raised when no listener jar fits this Spark, or the jar that fits cannot be fetched."""


class RemoteDriverError(SparkLineageError):
    """Raised when the driver will run where the worker cannot read the files that it writes."""


class NotAwaitedError(SparkLineageError):
    """Raised when the task did not wait for the job's end, so its events are not collected."""


class CaptureError(SparkLineageError):
    """Raised when the capture bundle of a try cannot be made, written or read."""


class ArchiveError(SparkLineageError):
    """Raised when the archive does not store or give an event in time; the message has the URL."""


class BackendError(SparkLineageError):
    """Raised when a check of a backend gets no answer, or an unexpected one."""


class HistoryError(SparkLineageError):
    """Raised when the history cannot be built, opened or queried."""


class LimitError(HistoryError):
    """Raised when an answer takes more time or memory than it may, or would be too long.

    The message names no dataset and no partition, so that every user may read it.
    """


class TooManyError(LimitError):
    """Raised when an answer would have too many rows; one on fewer datasets may not."""


class UnknownNameError(HistoryError):
    """Raised when no dataset, partition, column or task of the history has a requested name.

    The message lists names that exist. Because it quotes only names, only credentials in URLs are
    removed from it; ``s3://lake:orders`` has no credential.
    """

    @staticmethod
    def _shown(text: str) -> str:
        return scrub_name(text)


class DeliveryError(SparkLineageError):
    """Raised when a backend did not accept all of an event; the message names the accepted part.

    :param is_refusal: whether the backend refused this one event, so that others may be accepted
    """

    def __init__(self, problem: str, *, is_refusal: bool = False) -> None:
        self.is_refusal = is_refusal
        super().__init__(problem)


class DocumentError(SparkLineageError):
    """Raised when a stored event cannot be shown; the message is a full sentence."""


class UnusableInputError(SparkLineageError):
    """Raised when input events are not of one Spark application; the message has file and line."""
