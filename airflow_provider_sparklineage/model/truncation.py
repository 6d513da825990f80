"""Long texts of SQL, cut where they do not cut a literal or a word in two.

Secrets are found by their whole text: half of one would leave the worker unknown.
"""

from __future__ import annotations

import re

_LITERALS = re.compile(r"""'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+"|(?P<half>['"].*)""", re.DOTALL)
_LAST_WORD = re.compile(r"\S+\Z")


def truncated(text: str, limit: int) -> str:
    """Cut a text to a number of characters; an ellipsis is the last one of what was cut.

    A word that is longer than half of that is cut all the same.
    """
    if len(text) <= limit:
        return text
    kept = text[: limit - 1]
    half = next((m.start() for m in _LITERALS.finditer(kept) if m["half"]), None)
    if half is not None:
        return f"{kept[:half]}…"
    if not text[len(kept)].isspace():
        whole = _LAST_WORD.sub("", kept)
        kept = whole if len(whole) > limit // 2 else kept
    return f"{kept}…"
