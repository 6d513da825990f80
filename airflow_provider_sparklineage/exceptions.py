"""The errors of this package.

::

    SparkLineageError
    ├── SettingsError        a setting has an impossible value
    │   └── RulesError       so has a key of the partitioning rules
    ├── ListenerError        no usable listener jar for this Spark
    ├── CaptureError         a capture bundle cannot be made or read
    └── UnusableInputError   what a command was given holds no Spark application

None of them reaches a user's task: the operator turns them into a warning and a degradation in the
event, unless ``strict=True``.
"""

from __future__ import annotations


class SparkLineageError(Exception):
    """Base of all errors that this package raises."""


class SettingsError(SparkLineageError):
    """Raised when an operator argument or a ``[sparklineage]`` option has an impossible value."""


class RulesError(SettingsError):
    """Raised when the organisation's partitioning rules are wrong; names file, line and key."""


class ListenerError(SparkLineageError):
    """Raised when there is no listener jar that this Spark can load, or it cannot be fetched."""


class CaptureError(SparkLineageError):
    """Raised when the capture bundle of a try cannot be made, written or read."""


class UnusableInputError(SparkLineageError):
    """Raised when given events are not those of one Spark application; names the file and line."""
