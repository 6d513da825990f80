"""Terms of all stations: the sides of a job, how a try ends, who reported, what identifies a job.

And the base of immutable values that are only in memory.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec
from msgspec import Struct


class Frozen(Struct, frozen=True):
    """A value that has its fields, is compared and hashed by them, and is never changed.

    A frozen dataclass is the same to those who use it, but Python compiles six methods for each:
    half a millisecond of a process that imports it, and every task is one. These are msgspec's in
    C. Unlike a ``Struct`` that is read or written, it may name types that are only imported for
    type checking.
    """


class Side(StrEnum):
    """Whether a dataset is read or written."""

    READ = "read"
    WRITE = "write"


class Outcome(StrEnum):
    """How the task ended; the event type of the merged event."""

    COMPLETE = "COMPLETE"
    FAIL = "FAIL"


class Witness(StrEnum):
    """Whose word something is."""

    LISTENER = "listener"
    OBSERVER = "observer"
    BOTH = "both"
    DECLARED = "declared"


class JobName(msgspec.Struct, frozen=True, order=True):
    """OpenLineage namespace and name of a job, with the keys that OpenLineage has for them."""

    namespace: str
    name: str
