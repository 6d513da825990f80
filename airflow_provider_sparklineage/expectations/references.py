"""References to data in an argument: the datasets and partitions of its URIs and paths.

A scan finds URIs and paths by their form, :mod:`airflow_provider_sparklineage.model.locations`
gives the dataset and partition of each, and then the values of the partitions are located in the
text. A date without a column's name (``t/2024-05-06``) is a partition only if a rule says so;
without a rule it is a location.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.model.credentials import scrub_name
from airflow_provider_sparklineage.model.globs import is_glob
from airflow_provider_sparklineage.model.locations import DEFAULT_LOCATOR, Locator
from airflow_provider_sparklineage.model.partitioning import Partition
from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from airflow_provider_sparklineage.model.datasets import DatasetName
    from airflow_provider_sparklineage.model.locations import Location


# --- the places of URIs and paths in an argument --------------------------------------------------
#
# Decisions on ambiguous texts:
#
# - A URI has one of Spark's file schemes. Without a scheme only absolute paths are found, and only
#   where a word begins: ``text/plain``, ``*/5``, ``C:/x``, ``./x`` and ``//`` are not paths, nor
#   are texts with characters that regexes and unset variables have, but paths never (``^ $ | \``).
# - Other URLs (``https://…``, ``jdbc:…``) are skipped with all texts in them.
# - If an argument, the value of its ``--key=``, or a quoted text begins with a URI or path, this
#   URI or path may have blanks: ``/lake/my orders``. A blank then ends it only before an option, a
#   URI or a path. In other places, as in ``read /lake/orders daily``, every blank ends the path.
# - A comma or semicolon ends a URI or path only before another one, with or without ``key=``
#   between. In brackets, as in the glob ``dt={2024-05-06,2024-05-07}``, it never ends the path. A
#   closing bracket without an opening one ends a URI or path.
# - Double quotes are read with JSON's escapes, so JSON in JSON is read as well.


SCHEMES = (
    "file s3 s3a s3n gs abfs abfss wasb wasbs hdfs viewfs dbfs".split()  # noqa: SIM905  (reads better)
)
"""The schemes of the URIs that Spark reads as files."""

LONGEST = 4096
"""The most characters of a path: Linux's PATH_MAX, and four times the longest key of S3."""

_DEEPEST = 8  # levels of quotes in quotes; JSON in JSON in a shell's argument has three

_URI = rf"(?:{'|'.join(SCHEMES)}):/(?=[^\s,;])"
_PATH = r"/(?=[^/\s*,;])"
_BEGINS = rf"""(?:[\w.-]++=)?["'`\[(]*(?:{_URI}|{_PATH})"""
_LEAD = re.compile(r"\s*(?:[\w.-]++=\s*)*")
_NEXT_IN_LIST = re.compile(rf"\s*{_BEGINS}")
_NEXT_AFTER_BLANK = re.compile(rf"(?:--?[A-Za-z]|{_BEGINS})")
_WORD = re.compile(
    rf"""
    (?P<quote>(?<![\w])["'`])
    | (?P<uri>(?<![\w+.:/-]){_URI})
    | (?P<path>(?<![^\s,;=\[({{"'`|]){_PATH})
    | (?P<foreign>(?<![\w+.-])(?:jdbc:|[A-Za-z][\w+.-]*+://))
    """,
    re.VERBOSE,
)
_DELIMITER = re.compile(r"""\s+|[,;{}\[\]()"'`<>]""")
_CLOSES = {"}": "{", "]": "[", ")": "("}
_NEVER_IN_PATHS = re.compile(r"[\^$|\\]")
_ESCAPED = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|u[0-9a-fA-F]{4}|[\"\\/bfnrt])"
)
_DOUBLE_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*+)"', re.DOTALL)


class WrittenPath(NamedTuple):
    """A URI or path in a text.

    :param uri: the URI or path without escapes
    :param at: the positions in the text of each character of the URI, and of the URI's end
    """

    uri: str
    at: Sequence[int]


def paths_in(text: str) -> Iterator[WrittenPath]:
    """Find the URIs and absolute paths in a text, in time linear to the text's length."""
    yield from _paths_in(text, range(len(text) + 1), 0)


def _paths_in(text: str, at: Sequence[int], depth: int) -> Iterator[WrittenPath]:
    lead = _LEAD.match(text)
    begin = lead.end() if lead else 0
    unclosed: set[str] = set()
    position = 0
    blanks = False
    while word := _WORD.search(text, position):
        start = word.start()
        quote = word["quote"]
        if quote:
            inner = None if quote in unclosed else _quoted(text, at, start)
            if inner is None:
                unclosed.add(quote)  # a later quote of this kind is not closed either
                position = word.end()
                continue
            content, places, position = inner
            if depth < _DEEPEST:
                yield from _paths_in(content, places, depth + 1)
            continue
        foreign = word["foreign"] is not None
        blanks = blanks or (start == begin and not foreign)
        end = _end(text, word.end(), blanks=blanks)
        position = max(end, word.end())
        uri = text[start:end].rstrip(" ,;" if blanks else ".,;:!\\")
        if foreign or len(uri) > LONGEST or (word["path"] and _NEVER_IN_PATHS.search(uri)):
            continue
        yield WrittenPath(uri, at[start : start + len(uri) + 1])


def _end(text: str, position: int, *, blanks: bool) -> int:
    """Find the end of the URI or path that begins before ``position``.

    :param blanks: whether the URI or path may have blanks
    """
    open_brackets: list[str] = []
    for delimiter in _DELIMITER.finditer(text, position):
        sign = delimiter[0]
        if sign in "{[(":
            open_brackets.append(sign)
        elif sign in _CLOSES:
            if not open_brackets or open_brackets.pop() != _CLOSES[sign]:
                return delimiter.start()
        elif not (sign in ",;" and open_brackets) and _is_end(text, delimiter, blanks=blanks):
            return delimiter.start()
    return len(text)


def _is_end(text: str, delimiter: re.Match[str], *, blanks: bool) -> bool:
    sign = delimiter[0]
    if sign in ",;":
        return _NEXT_IN_LIST.match(text, delimiter.end()) is not None
    if sign == "'":
        return not blanks
    if sign.isspace() and blanks and "\n" not in sign:
        return _NEXT_AFTER_BLANK.match(text, delimiter.end()) is not None
    return True


def _quoted(text: str, at: Sequence[int], start: int) -> tuple[str, Sequence[int], int] | None:
    """Read the quoted text that begins at a position.

    :param at: the position of each character of ``text`` in the original text
    :param start: the position in ``text`` of the opening quote
    :return: the content without quotes and escapes; the positions of the content's characters in
        the original text; and the position in ``text`` after the closing quote. None if there is no
        closing quote
    """
    quote = text[start]
    if quote != '"':
        end = text.find(quote, start + 1)
        return (text[start + 1 : end], at[start + 1 : end + 1], end + 1) if end >= 0 else None
    match = _DOUBLE_QUOTED.match(text, start)
    if match is None:
        return None
    content = match[1]
    if "\\" not in content:
        return content, at[start + 1 : match.end()], match.end()
    parts: list[str] = []
    places: list[int] = []
    done = match.start(1)
    for escape in _ESCAPED.finditer(text, *match.span(1)):
        parts += [text[done : escape.start()], json.loads(f'"{escape[0]}"')]
        places += [*at[done : escape.start()], at[escape.start()]]
        done = escape.end()
    parts.append(text[done : match.end(1)])
    places += at[done : match.end(1) + 1]
    return "".join(parts), places, match.end()


_NEEDS_BUCKET = re.compile("(?:s3|gs|abfs|wasb)")


class ValueSpan(NamedTuple):
    """The place of the value of a partition's dimension: characters ``[start, end)`` of a text."""

    label: str
    start: int
    end: int


class Reference(Frozen, frozen=True):
    """A URI or path in the characters ``[start, end)`` of a text, and the data that it names.

    :param uri: the URI or path as Spark gets it, without the quotes and escapes of the text
    :param partition: the values that the path gives: all values, the leading ones, or no value; a
        glob in the path is a value, too
    :param location: the name of the path, with all its folders, if folders below the dataset give
        no known value, such as dates without a column's name; the partition is then empty.
        Otherwise None
    :param values: the places of the values of the partition's dimensions; a dimension has several
        places if its layout has several fields for it
    :param is_glob: whether the partition, or the location, has wildcards. Wildcards in the
        dataset's name or in a file's name are not counted
    """

    start: int
    end: int
    uri: str
    dataset: DatasetName
    partition: Partition
    location: str | None
    values: tuple[ValueSpan, ...]
    is_glob: bool


def references(text: str, locator: Locator = DEFAULT_LOCATOR) -> tuple[Reference, ...]:
    """Find the data that a text names, in the order of the text, in time linear to its length.

    :param text: an argument, or the value of a Spark property or environment variable, rendered
    :param locator: finds the dataset and the partition of a path
    """
    named = (_reference(path, locator) for path in paths_in(text))
    return tuple(sorted(filter(None, named), key=lambda one: (one.start, one.end)))


def _reference(path: WrittenPath, locator: Locator) -> Reference | None:
    if scrub_name(path.uri) != path.uri:  # the URI has a credential, and datasets' names are sent
        return None
    location = locator.locate(path.uri, may_be_file=True)
    if location is None:
        return None
    if _NEEDS_BUCKET.match(path.uri) and location.folder.namespace.endswith("://"):
        return None
    partition = location.partition
    # If all folders below the dataset are values, the rest of the path is files: dt=2024-05-06/*
    selecting = location.below if partition is None else "/".join(v for _, v in partition.values)
    return Reference(
        path.at[0],
        path.at[-1],
        path.uri,
        location.dataset,
        partition or Partition(),
        location.folder.name if partition is None else None,
        tuple(_value_spans(path, location)),
        is_glob(selecting),
    )


def _value_spans(path: WrittenPath, location: Location) -> Iterator[ValueSpan]:
    below = list(re.finditer("[^/]+", location.below))
    segments = list(re.finditer("[^/]+", path.uri))[-len(below) or len(path.uri) :]
    # Slashes may be doubled in the URI, so each folder has its own shift from the name to the URI.
    # The shift is noted for the folder's end as well, because an empty value may begin there.
    shift = {
        at: segment.start() - folder.start()
        for folder, segment in zip(below, segments, strict=True)
        for at in range(folder.start(), folder.end() + 1)
    }
    for label, begin, end in location.spans:
        yield ValueSpan(label, path.at[begin + shift[begin]], path.at[end + shift[end]])
