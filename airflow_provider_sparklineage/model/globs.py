r"""Globs of values, paths and names of datasets, as Hadoop reads them (``GlobPattern``).

========================  ==========================================================================
``*``                     any characters; within one folder if the glob is a glob of folders
``**``, ``**/``           any characters; any number of folders, also none
``?``                     one character
``[a-c]``                 one character of a set; after ``!`` or ``^`` one that is not in the set
``{a,b}``                 one of several alternatives
``\``                     makes the next character stand for itself
========================  ==========================================================================

A glob that is invalid, because its braces do not pair or are nested too deeply, or a range goes
backwards, matches only its own text.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

SIGN = r"[*?\[\]{}\\]"
"""Regex of the characters by which a path is a glob, as in Spark's ``isGlobPath``."""

ANY_DEPTH = "**"

_SIGN = re.compile(SIGN)
_PARTS = re.compile(
    r"\\(?P<escaped>.)|\[(?P<negated>[!^]?)(?P<set>\]?[^\]]+)\]|\*\*/|\*\*|.", re.DOTALL
)
# The regex of each sign. The regex of the bracket is put before the regex of a set.
_ANYWHERE = {
    "*": ".*", "?": ".", "[": "", "**": ".*", "**/": "(?:.*/)?", "{": "(?:", "}": ")", ",": "|"
}  # fmt: skip
_STAR = _ANYWHERE["*"]
_IN_FOLDER = {**_ANYWHERE, "*": "[^/]*", "?": "[^/]", "[": "(?!/)"}


def is_glob(text: str) -> bool:
    """Whether Spark reads a path, or a value in it, as a pattern."""
    return _SIGN.search(text) is not None


@lru_cache(maxsize=1024)  # an organisation's globs, matched with every name of every task
def compiled(glob: str) -> re.Pattern[str]:
    """Translate a glob of values or names, in which ``*`` matches any characters.

    :return: the regex for :meth:`~re.Pattern.fullmatch`
    """
    return re.compile(_regex(glob, _ANYWHERE), re.DOTALL)


@lru_cache(maxsize=1024)
def compiled_folders(glob: str) -> re.Pattern[str]:
    """Translate a glob of folders, in which ``*`` matches only within one folder.

    :return: the regex for paths. A match ends where a folder ends, so :meth:`~re.Pattern.match`
        finds the leading folders of a path
    """
    return re.compile(f"(?:{_regex(glob, _IN_FOLDER)})(?=/|\\Z)", re.DOTALL)


def _regex(glob: str, words: dict[str, str]) -> str:
    parts: list[str] = []
    signs: list[str] = []
    depth = 0
    for part in _PARTS.finditer(glob):
        sign = part[0]
        signs.append(sign)
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
    if words is _ANYWHERE and not {"{", "**/"} & {*signs}:
        parts = _once(parts)
    regex = "".join(parts)
    try:
        re.compile(regex)
    except (re.error, RecursionError):  # a range from z to a, or a thousand nested braces
        depth = -1
    return re.escape(glob) if depth else regex


def _once(parts: list[str]) -> list[str]:
    """Make the regex between two ``*`` atomic, so that only its first match in a text is tried.

    The regex between two ``*`` matches texts of a single length. So if the rest of the glob does
    not match after the first match, it does not match after a later one. Without atomic groups, a
    glob with ten ``*`` would try all ways of cutting a text into eleven parts.

    :param parts: the regexes of the glob's wildcards and characters, in order
    """
    stars = [n for n, part in enumerate(parts) if part == _STAR]
    atomic = parts[: stars[0]] if stars else parts
    for n, end in pairwise(stars):
        atomic += ["(?>.*?", *parts[n + 1 : end], ")"]
    return [*atomic, *parts[stars[-1] :]] if stars else atomic
