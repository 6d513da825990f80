"""The errors of this package.

::

    SparkLineageError
    ├── SettingsError        a setting has an impossible value
    │   ├── RulesError       so has a key of the partitioning rules
    │   └── ConnectionFieldsError  so has a field of the connection, or it is not there
    ├── DeclarationError     a declaration of what a task reads or writes cannot be understood
    ├── ListenerError        no usable listener jar for this Spark
    ├── DriverElsewhereError the driver will not run where anything can be collected
    ├── CaptureError         a capture bundle cannot be made or read
    ├── ArchiveError         the archive could not be written or read in time
    ├── DocumentError        a stored event is none, damaged, or of a version that is too new
    └── UnusableInputError   what a command was given holds no Spark application

None of them reaches a user's task: the operator turns them into a warning and a degradation in the
event, unless ``strict=True``. An argument of the operator that no rendering could mend is refused
with the DAG that has it.
"""

from __future__ import annotations


class SparkLineageError(Exception):
    """Base of all errors that this package raises."""


class SettingsError(SparkLineageError):
    """Raised when an operator argument or a ``[sparklineage]`` option has an impossible value."""


class RulesError(SettingsError):
    """Raised when the organisation's partitioning rules are wrong; names file, line and key."""


class ConnectionFieldsError(SettingsError):
    """Raised when a ``sparklineage`` connection is missing or says what cannot be meant."""


class DeclarationError(SparkLineageError):
    """Raised when ``reads=``, ``writes=`` or ``partition_key_dimensions=`` make no sense."""


class ListenerError(SparkLineageError):
    """Raised when there is no listener jar that this Spark can load, or it cannot be fetched."""


class RemoteDriverError(SparkLineageError):
    """Raised when the driver will run where nothing that it writes can be read."""


class CaptureError(SparkLineageError):
    """Raised when the capture bundle of a try cannot be made, written or read."""


class ArchiveError(SparkLineageError):
    """Raised when the archive does not take or give an event in time; names the archive."""


class DocumentError(SparkLineageError):
    """Raised when a stored event cannot be shown; the message is a sentence for its reader."""


class UnusableInputError(SparkLineageError):
    """Raised when given events are not those of one Spark application; names the file and line."""
