"""Texts from outside made safe to show: truncated, and with invisible characters escaped.

A text is never cut within a quoted literal: a secret is recognised by its full text, so half of a
secret would leave the worker undetected.
"""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


T = TypeVar("T")

_LITERALS = re.compile(r"""'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+"|(?P<half>['"].*)""", re.DOTALL)
_LAST_WORD = re.compile(r"\S+\Z")


def truncated(text: str, limit: int) -> str:
    """Truncate a longer text to ``limit`` characters at most, of which the last is an ellipsis.

    If the limit is within a literal in quotes, the text is cut before the literal. If the limit is
    within a word, the text is cut before the word, unless half of the limit or less would remain.
    """
    if len(text) <= limit:
        return text
    short = text[: limit - 1]
    half = next((m.start() for m in _LITERALS.finditer(short) if m["half"]), None)
    if half is not None:
        return f"{short[:half]}…"
    if not text[len(short)].isspace():
        words = _LAST_WORD.sub("", short)
        short = words if len(words) > limit // 2 else short
    return f"{short}…"


def some(things: Sequence[T], limit: int, called: Callable[[T], str] = str) -> str:
    """Name the first things of a list, and count the others.

    :param limit: the most things that are named
    :param called: a function that gives the name of a thing; it is called only for named things
    """
    more = f" and {len(things) - limit} more" if len(things) > limit else ""
    return f"{', '.join(map(called, things[:limit]))}{more}"


def size_text(size: int) -> str:
    """Format a number of bytes: ``512 bytes``, ``1.9 kB``, ``17.2 GB``."""
    if size < _KILO:
        return f"{size} byte{'' if size == 1 else 's'}"
    figure = float(size)
    for unit in ("kB", "MB", "GB"):
        figure /= _KILO
        if round(figure, 1) < _KILO:
            return f"{figure:.1f} {unit}"
    return f"{figure / _KILO:,.1f} TB"


_KILO = 1000


def did_you_mean(text: str, known: Iterable[str], called: Callable[[str], str] = str) -> str:
    """Ask whether a similar name was wanted; empty if no known name is similar.

    :param text: the name that is not known
    :param known: the names that are compared; at most three are offered, the most similar first
    :param called: a function that gives the name to offer for a name that was compared
    """
    near = difflib.get_close_matches(text, list(known), _OFFERED)
    *others, last = dict.fromkeys(map(called, near)) or [""]
    names = f"{', '.join(others)} or {last}" if others else last
    return f"Did you mean {names}?" if near else ""


_OFFERED = 3


# Characters that are invisible but have an effect: in a log they forge lines, and a terminal obeys
# them. Names of datasets, columns and files, and messages of servers and libraries, may have them.


CONTROL_CHARACTERS = re.compile(
    "["
    "\x00-\x1f\x7f-\x9f"  # control characters, line ends among them
    "\u2028\u2029"  # further ends of lines and paragraphs
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # these change the direction of text
    # Invisible characters, but for the joiners, which Persian and emoji are written with.
    "\u00ad\u180e\u200b\u2060-\u2064\ufeff\U000e0000-\U000e007f"
    "\ud800-\udfff"  # halves of surrogate pairs, which no encoding can write
    "]"
)


def escape_control_characters(text: str) -> str:
    r"""Write control characters as Python escapes: a line end as ``\n``, an escape as ``\x1b``."""
    return CONTROL_CHARACTERS.sub(lambda character: ascii(character[0])[1:-1], text)
