"""Other people's texts, made fit to be shown: truncated, and without characters that are not seen.

Secrets are found by their full text: half of one would leave the worker undetected.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


T = TypeVar("T")

_LITERALS = re.compile(r"""'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+"|(?P<half>['"].*)""", re.DOTALL)
_LAST_WORD = re.compile(r"\S+\Z")


def truncated(text: str, limit: int) -> str:
    """Truncate a text to a number of characters; then an ellipsis is the last one.

    Also in a word, if it is longer than half of that.
    """
    if len(text) <= limit:
        return text
    kept = text[: limit - 1]
    half = next((m.start() for m in _LITERALS.finditer(kept) if m["half"]), None)
    if half is not None:
        return f"{kept[:half]}…"
    if not text[len(kept)].isspace():
        words = _LAST_WORD.sub("", kept)
        kept = words if len(words) > limit // 2 else kept
    return f"{kept}…"


def some(things: Sequence[T], limit: int, called: Callable[[T], str] = str) -> str:
    """Name the first of a list, and count the others.

    :param called: gives the name of one; there may be thousands that nobody names
    """
    more = f" and {len(things) - limit} more" if len(things) > limit else ""
    return f"{', '.join(map(called, things[:limit]))}{more}"


# Characters that are not seen and yet do something: in a log they forge lines, in a terminal more.
# Names of datasets, columns and files, and what servers and libraries say, are other people's
# texts.


CONTROL_CHARACTERS = re.compile(
    "["
    "\x00-\x1f\x7f-\x9f"  # control characters, line ends among them
    "\u2028\u2029"  # further ends of lines and paragraphs
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # what changes the direction of text
    # What is not seen at all; without the joiners, which Persian and emoji are written with.
    "\u00ad\u180e\u200b\u2060-\u2064\ufeff\U000e0000-\U000e007f"
    "\ud800-\udfff"  # halves of surrogate pairs, which no encoding can write
    "]"
)


def escape_control_characters(text: str) -> str:
    r"""Write control characters as Python would: a line end is ``\n``, an escape ``\x1b``."""
    return CONTROL_CHARACTERS.sub(lambda found: ascii(found[0])[1:-1], text)
