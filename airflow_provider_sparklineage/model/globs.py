r"""Globs of values, paths and names of datasets, as Hadoop reads them (``GlobPattern``).

========================  ==========================================================================
``*``                     any characters; within one folder where the glob is of folders
``**``, ``**/``           any characters; any number of folders, also none
``?``                     one character
``[a-c]``                 one of a set; not of it after ``!`` or ``^``
``{a,b}``                 one of several
``\``                     takes the next character as it is
========================  ==========================================================================

A glob that is wrong, because its braces do not pair or a range goes backwards, is a text.
"""

from __future__ import annotations

import re
from functools import lru_cache

SIGN = r"[*?\[\]{}\\]"
"""Regex of the characters that make a path a glob: those of Spark's ``isGlobPath``."""

ANY_DEPTH = "**"

_SIGN = re.compile(SIGN)
_PARTS = re.compile(
    r"\\(?P<escaped>.)|\[(?P<negated>[!^]?)(?P<set>\]?[^\]]+)\]|\*\*/|\*\*|.", re.DOTALL
)
# By sign; a bracket is what comes before the regex of a set.
_ANYWHERE = {
    "*": ".*", "?": ".", "[": "", "**": ".*", "**/": "(?:.*/)?", "{": "(?:", "}": ")", ",": "|"
}  # fmt: skip
_IN_FOLDER = {**_ANYWHERE, "*": "[^/]*", "?": "[^/]", "[": "(?!/)"}


def is_glob(text: str) -> bool:
    """Whether Spark takes a path, or a value in it, for a pattern."""
    return _SIGN.search(text) is not None


@lru_cache(maxsize=1024)  # an organisation's globs, matched with every name of every task
def compiled(glob: str) -> re.Pattern[str]:
    """Translate a glob of values or names, whose ``*`` is any characters."""
    return re.compile(_regex(glob, _ANYWHERE), re.DOTALL)


@lru_cache(maxsize=1024)
def compiled_folders(glob: str) -> re.Pattern[str]:
    """Translate a glob of folders, whose ``*`` stays within one.

    :return: to be matched with paths; it ends where a folder does, so that it finds the folders
        that a path begins with
    """
    return re.compile(f"(?:{_regex(glob, _IN_FOLDER)})(?=/|\\Z)", re.DOTALL)


def _regex(glob: str, words: dict[str, str]) -> str:
    parts: list[str] = []
    depth = 0
    for part in _PARTS.finditer(glob):
        sign = part[0]
        depth += (sign == "{") - (sign == "}")
        if depth < 0:
            break
        if part["set"]:
            chars = re.sub(r"([\\\[\]^&~|]|(?<=-)-)", r"\\\1", part["set"])
            parts.append(f"{words['[']}[{'^' if part['negated'] else ''}{chars}]")
        elif sign in words and sign != "[" and (sign != "," or depth):
            parts.append(words[sign])
        else:
            parts.append(re.escape(part["escaped"] or sign))
    regex = "".join(parts)
    return re.escape(glob) if depth or not _is_regex(regex) else regex


def _is_regex(text: str) -> bool:
    try:
        re.compile(text)
    except re.error:  # a range from z to a
        return False
    return True
