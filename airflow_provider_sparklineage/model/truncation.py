"""Long texts of SQL, truncated between literals and words; and long lists.

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
