"""The events that a file holds: one a line, one document over many lines, or arrays of events.

What a file is, its content says: OpenLineage's file transport appends lines to files of any name.
If its first line is a JSON value, each line is one; else all of the file is. Files that are named
``.ndjson`` or ``.jsonl`` have lines in any case.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from airflow_provider_sparklineage.history.sources import Skip

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator

MAX_BYTES = 64 * 1024 * 1024
"""Of one event; they are in memory one at a time."""
SUFFIXES = (".json", ".ndjson", ".jsonl")
"""Of files with events in folders; each may be followed by ``.gz``."""

_OF_LINES = (".ndjson", ".jsonl")
_ARRAY = msgspec.json.Decoder(list[msgspec.Raw])
_RAW = msgspec.json.Decoder(msgspec.Raw)
_MARK = b"\xef\xbb\xbf"  # of the byte order, which some editors write


def has_events(name: str) -> bool:
    """Whether a file's name is one of a file with events."""
    return name.removesuffix(".gz").endswith(SUFFIXES)


class Readable(Protocol):
    """A stream: a file, or what unpacks one."""

    def readline(self, size: int = -1, /) -> bytes:
        """Give the rest of the line, or its first bytes."""
        ...

    def read(self, size: int = -1, /) -> bytes:
        """Give the next bytes."""
        ...


class Documents:
    """The documents of a stream, from where it stands.

    :param is_of_lines: whether its name says that each line is a document
    :param skipped: counts are added to it
    """

    def __init__(self, stream: Readable, skipped: Counter[str], *, is_of_lines: bool) -> None:
        self._stream, self._skipped, self._is_of_lines = stream, skipped, is_of_lines
        self.taken = 0
        """Bytes of complete lines that were read; 0 if the file is one document."""

    def __iter__(self) -> Iterator[bytes]:
        line = self._stream.readline(MAX_BYTES + 1)
        if self._is_of_lines or _is_json(line):
            yield from self._lines(line)
        elif line:
            yield from self._whole(line)

    def _lines(self, line: bytes) -> Iterator[bytes]:
        while line:
            if not line.endswith(b"\n"):
                if len(line) > MAX_BYTES:
                    line = self._passed(line)
                    continue
                if not _is_json(line):  # its writer is at it, or was killed
                    self._skipped[Skip.TORN_LINE] += not line.isspace()
                    return
            self.taken += len(line)
            if not line.isspace():
                yield from _split(line)
            line = self._stream.readline(MAX_BYTES + 1)

    def _passed(self, line: bytes) -> bytes:
        """Pass a line that is too long; give the one after it."""
        self._skipped[Skip.TOO_LARGE] += 1
        while line and not line.endswith(b"\n"):
            self.taken += len(line)
            line = self._stream.readline(MAX_BYTES)
        self.taken += len(line)
        return self._stream.readline(MAX_BYTES + 1)

    def _whole(self, start: bytes) -> Iterator[bytes]:
        text = start + self._stream.read(MAX_BYTES + 1 - len(start))
        if len(text) > MAX_BYTES:
            self._skipped[Skip.TOO_LARGE] += 1
        elif not text.isspace():
            yield from _split(text)


def is_of_lines(name: str) -> bool:
    """Whether a file's name says that it has a document in each line."""
    return name.removesuffix(".gz").endswith(_OF_LINES)


def _is_json(text: bytes) -> bool:
    try:
        _RAW.decode(text.removeprefix(_MARK))
    except (ValueError, RecursionError):
        return False
    return True


def _split(text: bytes) -> Iterator[bytes]:
    """Give the elements of an array; any other text as it is, whose reader may count it."""
    text = text.removeprefix(_MARK)
    if text.lstrip()[:1] == b"[":
        try:
            yield from map(bytes, _ARRAY.decode(text))
        except (ValueError, RecursionError):
            pass
        else:
            return
    yield text
