"""Values of partitions that a glob in a path means, as Hadoop reads globs (``GlobPattern``)."""

from __future__ import annotations

import re

_PARTS = re.compile(r"\\(?P<escaped>.)|\[(?P<negated>[!^]?)(?P<set>\]?[^\]]+)\]|.", re.DOTALL)
_WORDS = {"*": ".*", "?": ".", "{": "(?:", "}": ")", ",": "|"}
_SIGNS = re.compile(r"[*?\[\]{}\\]")
_SEPARATORS = re.compile("[-:T]")


def spellings(value: str, spelled: str, *, is_text: bool) -> tuple[str, ...]:
    """List how a folder may have spelled a value: nobody tells the folder, and a glob is about it.

    Spark reads ``05`` as 5, and a layout may spell ``2024-05-06`` without separators.

    :param value: as it was seen
    :param spelled: in the one spelling that values are compared in
    :param is_text: whether it is of a column of texts, which are as the folder has them
    """
    both = (value, spelled, _SEPARATORS.sub("", spelled))
    return both if is_text else (*both, value.zfill(2))


def is_glob(value: str) -> bool:
    """Whether a value is a pattern and not a text."""
    return _SIGNS.search(value) is not None


def compiled(glob: str) -> re.Pattern[str]:
    """Translate a glob; one whose braces do not pair is a text."""
    parts: list[str] = []
    depth = 0
    for part in _PARTS.finditer(glob):
        sign = part[0]
        depth += (sign == "{") - (sign == "}")
        if depth < 0:
            break
        if part["set"]:
            chars = re.sub(r"([\\\[\]^&~|])", r"\\\1", part["set"])
            parts.append(f"[{'^' if part['negated'] else ''}{chars}]")
        elif sign in _WORDS and (sign != "," or depth):
            parts.append(_WORDS[sign])
        else:
            parts.append(re.escape(part["escaped"] or sign))
    try:
        return re.compile(re.escape(glob) if depth else "".join(parts), re.DOTALL)
    except re.error:  # a range from z to a
        return re.compile(re.escape(glob))
