"""How far a file was read: what it was like then, and the byte after the last complete line.

A file that has the size and the time of its mark is not opened. One that has grown is read on from
there, if what is before that byte is what was there: a log that was rotated or a document that was
written anew begins again. What is read twice is counted once, by its checksum.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import IO, NamedTuple

_TAIL = 1024
_FIELDS = 4


class Mark(NamedTuple):
    """A mark.

    :param size: of the file, in bytes
    :param modified: when it was written last, in nanoseconds since the epoch
    :param offset: where the next build goes on; 0 if it begins again
    :param tail: checksum of what is before that
    """

    size: int
    modified: int
    offset: int = 0
    tail: str = ""

    def __str__(self) -> str:
        return ".".join(map(str, self))

    @classmethod
    def parsed(cls, text: str | None) -> Mark | None:
        """Read a mark; None if there is none, or it is of another version."""
        size, modified, offset, tail = (*(text or "").split("."), *[""] * _FIELDS)[:_FIELDS]
        if not (size.isdecimal() and modified.isdecimal() and offset.isdecimal()):
            return None
        return cls(int(size), int(modified), int(offset), tail)

    def is_of(self, size: int, modified: int) -> bool:
        """Whether nothing has changed since."""
        return (self.size, self.modified) == (size, modified)


def tail_of(stream: IO[bytes], offset: int) -> str:
    """Give the checksum of the last KB before an offset."""
    start = max(0, offset - _TAIL)
    stream.seek(start)
    return blake2b(stream.read(offset - start), digest_size=8).hexdigest()


def start_of(stream: IO[bytes], known: Mark | None, size: int) -> int:
    """Give where to begin in a file, by its mark."""
    if known is None or not known.offset or known.offset > size:
        return 0
    return known.offset if tail_of(stream, known.offset) == known.tail else 0
