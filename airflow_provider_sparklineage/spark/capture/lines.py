"""Reading the JSON that other programs write: lines of a file (events, observations), and facets.

Reading a file here always ends. A pipe or a device in the place of a file is refused, because
reading from it could wait forever. A file is read only up to the size that it had when it was
opened, because its writer may go on writing. A line that is too long is skipped, without having the
whole line in memory. A facet stays JSON text (:data:`RawFacets`), and is decoded only when it is
needed.
"""

from __future__ import annotations

import codecs
import errno
import os
from contextlib import contextmanager
from itertools import chain
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from airflow_provider_sparklineage.model.files import open_regular
from airflow_provider_sparklineage.model.texts import truncated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from airflow_provider_sparklineage.model.exceptions import SparkLineageError

MAX_LINE_BYTES = 384 * 1024 * 1024
"""The largest size of the line of one event or observation. The lines of the largest plans have a
few MB. The facets of a longer event are left out, but its datasets are used: the event of one write
with a million column edges has more than 300 MB."""
MAX_TEXT = 500
"""The largest number of characters of a message from another program, such as a decoder's error or
an exception of Spark."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_CHUNK = 1024 * 1024
_T = TypeVar("_T")


class LongLine(NamedTuple):
    """A placeholder for a line that was skipped because it is too long.

    :param size: the number of bytes that were skipped
    """

    size: int


class UnreadableError(ValueError):
    """Raised when a text is not the expected JSON; the message is a clause, not a full sentence."""


class ReadReport(msgspec.Struct):
    """The result of reading the lines of one file; it grows while the lines are consumed."""

    bytes: int = 0
    events: int = 0
    """The number of lines that could be decoded."""
    malformed: list[str] = []
    """The first lines that could not be decoded, each as ``file:line: reason``."""
    malformed_lines: int = 0
    """The number of all lines that could not be decoded, without a torn last line."""
    torn: bool = False
    """Whether the last line has no line end and could not be decoded."""
    cut: bool = False
    """Whether reading ended early because its time was up."""

    MALFORMED_NAMED = 5  # enough to find the cause; further lines are only counted

    def add_malformed(self, where: str, why: object) -> None:
        """Count a line that could not be decoded, and note it if it is one of the first.

        :param where: the place of the line: ``file:line``
        :param why: the reason, a text or an error
        """
        self.malformed_lines += 1
        if len(self.malformed) < self.MALFORMED_NAMED:
            self.malformed.append(f"{where}: {why}")


@contextmanager
def opened(path: Path, error: type[SparkLineageError]) -> Iterator[IO[bytes]]:
    """Open a regular file that another program may have written.

    :param error: the class of the error that is raised if the file cannot be opened or read
    """
    try:
        with open_regular(path) as stream:
            yield stream
    except OSError as cause:
        msg = f"{path} cannot be read: {cause.strerror or cause}."
        raise error(msg) from cause


def content_of(path: Path) -> bytes:
    """Read a file that holds one JSON document; give its bytes.

    :raise OSError: if the file cannot be read, is not a regular file, or is larger than
        :data:`MAX_LINE_BYTES`
    """
    with open_regular(path) as stream:
        content = stream.read(MAX_LINE_BYTES + 1)
    if len(content) > MAX_LINE_BYTES:
        raise OSError(errno.EFBIG, f"it has more than {_in_mb(MAX_LINE_BYTES)}", str(path))
    return content


def lines_of(
    stream: IO[bytes], past_deadline: Callable[[], bool] = lambda: False
) -> Iterator[bytes | LongLine]:
    """Yield the lines of a file from its start, with their line ends, up to its present size.

    :param stream: a file that is open for reading
    :param past_deadline: a function that tells whether the time is over, so that no more of a long
        line is skipped. It is called only while a long line is skipped; the caller has to call it
        before each line
    :return: each line with its line end; a :class:`LongLine` for a line that is longer than
        :data:`MAX_LINE_BYTES`
    """
    left = stream.seek(0, os.SEEK_END)
    left -= stream.seek(0)
    is_first = True
    while left > 0 and (line := stream.readline(min(left, MAX_LINE_BYTES + 1))):
        left -= len(line)
        if len(line) <= MAX_LINE_BYTES:
            yield line.removeprefix(BYTE_ORDER_MARK) if is_first else line
        else:
            ended, size = line.endswith(b"\n"), len(line)
            del line  # frees the memory: the line is as long as a line may be
            skipped = 0 if ended else _skip_line(stream, left, past_deadline)
            left -= skipped
            yield LongLine(size + skipped)
        is_first = False


def _skip_line(stream: IO[bytes], left: int, past_deadline: Callable[[], bool]) -> int:
    """Read on to the end of a line; return the number of bytes that were read.

    :param stream: a file whose present position is inside the line
    :param left: the largest number of bytes to read
    :param past_deadline: a function that tells whether the time is over; then reading ends inside
        the line
    """
    skipped = 0
    while skipped < left and not past_deadline():
        skipped += _skip_hole(stream, left - skipped)
        chunk = stream.readline(min(left - skipped, _CHUNK))
        skipped += len(chunk)
        if not chunk or chunk.endswith(b"\n"):
            break
    return skipped


def _skip_hole(stream: IO[bytes], left: int) -> int:
    """Skip the hole of a sparse file that begins at the present position; return its size in bytes.

    A hole may be terabytes long. The size is 0 if no hole begins here, and for a stream that cannot
    find holes.

    :param left: the largest number of bytes to skip
    """
    here = stream.tell()
    try:
        return min(stream.seek(here, os.SEEK_DATA) - here, left)
    except OSError as error:
        if error.errno != errno.ENXIO:  # ENXIO: there are no data from here to the end
            return 0
        stream.seek(here + left)
        return left
    except ValueError:  # a stream in memory has no holes
        return 0


def read(
    lines: Iterable[bytes | LongLine],
    decoder: msgspec.json.Decoder[_T],
    report: ReadReport,
    *,
    source: str,
    past_deadline: Callable[[], bool] = lambda: False,
) -> Iterator[_T]:
    """Decode lines; report a line that cannot be decoded, and go on with the next line.

    :param lines: the lines of one file, with their line ends; if a line has no line end and cannot
        be decoded, its writer was killed while it wrote the line, and ``report.torn`` is set
    :param decoder: the decoder of one line
    :param report: receives the counts and the lines that could not be decoded
    :param source: the file's name, for messages
    :param past_deadline: is called before each line; if it returns True, reading ends and
        ``report.cut`` is set
    """
    for number, line in enumerate(lines, start=1):
        if past_deadline():
            report.cut = True
            return
        report.bytes += line.size if isinstance(line, LongLine) else len(line)
        if isinstance(line, bytes) and line.isspace():
            continue
        try:
            value = decoded(line, decoder)
        except UnreadableError as error:
            if isinstance(line, bytes) and not line.endswith(b"\n"):
                report.torn = True
            else:
                report.add_malformed(f"{source}:{number}", error)
            continue
        report.events += 1
        yield value


def decoded(text: bytes | LongLine, decoder: msgspec.json.Decoder[_T]) -> _T:
    """Decode a line or a whole document.

    :param decoder: gives the value, or refuses JSON of another shape
    :raise UnreadableError: if the text is too long, not UTF-8, not JSON of the decoder's shape, or
        nested too deeply
    """
    if isinstance(text, LongLine):
        msg = f"it has more than {_in_mb(MAX_LINE_BYTES)}"
        raise UnreadableError(msg)
    try:
        _require_utf8(text)
        return decoder.decode(text)
    except RecursionError as error:
        msg = "it is nested too deeply"
        raise UnreadableError(msg) from error
    except ValueError as error:  # all errors of msgspec, and of text that is not UTF-8
        raise UnreadableError(truncated(str(error), MAX_TEXT)) from error


def _require_utf8(text: bytes) -> None:
    """Check that the whole text is UTF-8, also the parts that the decoder leaves raw.

    The text is decoded piece by piece, because a decoded copy of the whole text could be large.

    :raise UnicodeDecodeError: if the text is not UTF-8
    """
    if text.isascii():
        return
    decoder = _utf8()
    for start in range(0, len(text), _CHUNK):
        decoder.decode(text[start : start + _CHUNK])
    decoder.decode(b"", final=True)


_utf8 = codecs.getincrementaldecoder("utf-8")


def _in_mb(size: int) -> str:
    return f"{size // 1024 // 1024} MB"


# --- facets ---------------------------------------------------------------------------------------


RawFacets = dict[str, msgspec.Raw]

MAX_DEPTH = 200
"""The largest number of levels in a facet that is passed on unchanged. A schema facet has two
levels for each level of nested structs. A deeper facet would exceed Python's recursion limit, on
the way to the backend or in the backend."""


def is_too_deep(text: bytes, value: Any) -> bool:
    """Whether a JSON object or array has more levels than :data:`MAX_DEPTH`.

    :param text: the JSON text of the value. The levels are counted only if the text has more than
        :data:`MAX_DEPTH` opening brackets, which few texts have.
    :param value: the object or array, as parsed JSON
    """
    if text.count(b"{") + text.count(b"[") <= MAX_DEPTH:
        return False
    level = [value]
    for _ in range(MAX_DEPTH):
        inner = chain.from_iterable(v.values() if isinstance(v, dict) else v for v in level)
        level = [v for v in inner if isinstance(v, (dict, list))]
        if not level:
            return False
    return True


def decode_facet(facet: msgspec.Raw | None, shape: type[_T]) -> _T | None:
    """Decode a raw facet; None if there is no facet, or if it has another shape.

    Other programs write the facets. A facet of another shape is left out, and the rest of its event
    is still used.

    :param shape: the class whose fields the facet should have
    """
    if facet is None:
        return None
    try:
        return msgspec.json.decode(facet, type=shape)
    except (ValueError, RecursionError):
        return None
