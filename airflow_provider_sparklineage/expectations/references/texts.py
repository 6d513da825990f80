r"""Where in an argument URIs and paths are: the scanning, without any meaning of what is found.

Decisions on ambiguous texts:

- A URI has one of Spark's file schemes. Without a scheme only absolute paths count, and only where
  a word begins: ``text/plain``, ``*/5``, ``C:/x``, ``./x`` and ``//`` are none, nor are texts with
  what paths never hold but regexes and unset variables do (``^ $ | \``).
- Other URLs (``https://…``, ``jdbc:…``) are passed over with all that is in them.
- An argument, or the value of its ``--key=``, or a quoted text, that begins with a URI or path may
  hold blanks: ``/lake/my orders``. There a blank ends it only before an option, a URI or a path.
  In other places, as in ``read /lake/orders daily``, every blank does.
- A comma or semicolon ends it only before a URI or path, ``key=`` between or not; in brackets, as
  in the glob ``dt={2024-05-06,2024-05-07}``, never. A bracket that closes none ends it.
- Double quotes are read with JSON's escapes, so JSON in JSON is read as well.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SCHEMES = (
    "file s3 s3a s3n gs abfs abfss wasb wasbs hdfs viewfs dbfs".split()  # noqa: SIM905  (reads better)
)
"""Schemes that Spark reads as files."""

LONGEST = 4096
"""Characters of the longest path that is looked at: Linux's PATH_MAX, four times an S3 key's."""

_DEEPEST = 8  # quotes in quotes: JSON in JSON in a shell's argument is three

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

    :param uri: without escapes
    :param at: the place in the text of each character of the URI, and of the end
    """

    uri: str
    at: Sequence[int]


def paths_in(text: str) -> Iterator[WrittenPath]:
    """Find the URIs and absolute paths in a text, in time linear to its length."""
    yield from _paths_in(text, range(len(text) + 1), 0)


def _paths_in(text: str, at: Sequence[int], depth: int) -> Iterator[WrittenPath]:
    lead = _LEAD.match(text)
    begin = lead.end() if lead else 0
    unclosed: set[str] = set()
    position = 0
    blanks = False
    while found := _WORD.search(text, position):
        start = found.start()
        quote = found["quote"]
        if quote:
            inner = None if quote in unclosed else _quoted(text, at, start)
            if inner is None:
                unclosed.add(quote)  # none of this kind closes later either
                position = found.end()
                continue
            content, places, position = inner
            if depth < _DEEPEST:
                yield from _paths_in(content, places, depth + 1)
            continue
        foreign = found["foreign"] is not None
        blanks = blanks or (start == begin and not foreign)
        end = _end(text, found.end(), blanks=blanks)
        position = max(end, found.end())
        uri = text[start:end].rstrip(" ,;" if blanks else ".,;:!\\")
        if foreign or len(uri) > LONGEST or (found["path"] and _NEVER_IN_PATHS.search(uri)):
            continue
        yield WrittenPath(uri, at[start : start + len(uri) + 1])


def _end(text: str, position: int, *, blanks: bool) -> int:
    """Find the end of the URI or path that has begun before a position."""
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
    """Read the quoted text that begins at a position: it, its places, and where it ends."""
    quote = text[start]
    if quote != '"':
        end = text.find(quote, start + 1)
        return (text[start + 1 : end], at[start + 1 : end + 1], end + 1) if end >= 0 else None
    found = _DOUBLE_QUOTED.match(text, start)
    if found is None:
        return None
    content = found[1]
    if "\\" not in content:
        return content, at[start + 1 : found.end()], found.end()
    parts: list[str] = []
    places: list[int] = []
    done = found.start(1)
    for escape in _ESCAPED.finditer(text, *found.span(1)):
        parts += [text[done : escape.start()], json.loads(f'"{escape[0]}"')]
        places += [*at[done : escape.start()], at[escape.start()]]
        done = escape.end()
    parts.append(text[done : found.end(1)])
    places += at[done : found.end(1) + 1]
    return "".join(parts), places, found.end()
