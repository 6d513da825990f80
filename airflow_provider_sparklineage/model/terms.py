"""Terms of all packages: the sides of a job, outcomes of tries, witnesses, and the names of jobs.

The module also has the base of immutable values that stay in memory.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec
from msgspec import Struct


class Frozen(Struct, frozen=True):
    """The base of values that are compared and hashed by their fields, and never changed.

    A frozen dataclass behaves the same, but Python compiles six methods for each class. That takes
    half a millisecond of each process that imports the class, and every task is such a process. The
    methods of this base are msgspec's, in C. Unlike a ``Struct`` that is read or written, a
    subclass may name types that are only imported for type checking.
    """


class Side(StrEnum):
    """Whether a dataset is read or written."""

    READ = "read"
    WRITE = "write"


class Outcome(StrEnum):
    """The end of a task's try; it is the event type of the merged event."""

    COMPLETE = "COMPLETE"
    FAIL = "FAIL"


class Witness(StrEnum):
    """The source of a statement on a dataset: listener, observer, both, or a declaration."""

    LISTENER = "listener"
    OBSERVER = "observer"
    BOTH = "both"
    DECLARED = "declared"


class JobName(msgspec.Struct, frozen=True, order=True):
    """OpenLineage namespace and name of a job, with the keys that OpenLineage has for them."""

    namespace: str
    name: str


EVENTS = "events.ndjson"
OBSERVATIONS = "observations.ndjson"
MANIFEST = "manifest.json"
"""Files of a capture bundle, by which a folder is known for one."""
