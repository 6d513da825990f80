"""Terms that all folders use: sides of a job, outcomes of tries, and names of jobs and files.

The module also has the base class of immutable values.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec
from msgspec import Struct


class Frozen(Struct, frozen=True):
    """The base class of values that are compared and hashed by their fields, and never changed.

    A frozen dataclass behaves the same, but Python compiles six methods for each dataclass. That
    takes half a millisecond in each process that imports it, and every task is such a process. The
    methods of this base class are msgspec's, in C. Unlike a ``Struct`` that is read or written, a
    subclass may name types that are only imported for type checking.
    """


class Side(StrEnum):
    """The side of a job on which a dataset is: the job reads the dataset, or writes it."""

    READ = "read"
    WRITE = "write"


class Outcome(StrEnum):
    """The result of a task's try, which becomes the event type of the merged event."""

    COMPLETE = "COMPLETE"
    FAIL = "FAIL"


class Witness(StrEnum):
    """The reporter of an access to a dataset: listener, observer, both, or a declaration."""

    LISTENER = "listener"
    OBSERVER = "observer"
    BOTH = "both"
    DECLARED = "declared"


class JobName(msgspec.Struct, frozen=True, order=True):
    """OpenLineage namespace and name of a job; the fields have OpenLineage's names for them."""

    namespace: str
    name: str


NOT_KNOWN = "partitions not known"
"""The words, for people, for a part of a dataset that nobody knows; it may be all of it."""

_EXTENTS = {
    "all": "all of it",
    "part": "a part of it",
    "none": "nothing of it",
    "removed": "all of it",
    "unknown": NOT_KNOWN,
}


def extent_text(accessed: str, side: Side) -> str:
    """Describe in a few words how much of a dataset was read or written, without partitions.

    A write of ``all`` means that the dataset has no partitions: a partitioned dataset may have
    partitions that were not written, and another one rows from before.

    :param accessed: the extent, as the field ``accessed`` of ``sparkLineage_capture`` has it
    :return: the text; "" for another word
    """
    if accessed == "all" and side is Side.WRITE:
        return "unpartitioned"
    return _EXTENTS.get(accessed, "")


EVENTS = "events.ndjson"
OBSERVATIONS = "observations.ndjson"
MANIFEST = "manifest.json"
"""Files of a capture bundle, by which a folder is recognised as a bundle."""
