"""Forms in which secrets stand in texts that are neither URLs nor ``key=value``.

===========================  =======================================================================
a header                     ``Authorization: Bearer eyJ…``, ``{'Authorization': 'Basic bWU6'}``
a private key                ``-----BEGIN PRIVATE KEY-----…``
two arguments of a command   ``--password hunter2``, ``['--password', 'hunter2']``
a pair of Spark's            ``('spark.x.password', 'hunter2')``: ``SparkConf.getAll()``
a login in SQL               ``IDENTIFIED BY 'hunter2'``
a line of YAML               ``password: hunter2``
Oracle's way to log in       ``scott/tiger@//host:1521/service``
what is percent-encoded      ``https%3A%2F%2Fme%3Ahunter2%40host``
===========================  =======================================================================

All take time in proportion to the length of the text.
"""

from __future__ import annotations

import re
import string
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from airflow_provider_sparklineage.model.secret_keys import is_secret

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HIDDEN = "***"
"""Stands for a value that cannot be left out without a trace."""

_SCHEMES = "basic|bearer|digest|negotiate|token|apikey"
_HEADER = re.compile(
    rf"(authorization[\"'\\]{{0,8}}\s{{0,3}}[:=]\s{{0,3}}[\"'\\]{{0,8}})(?:{_SCHEMES})\s{{1,3}}"
    r"[^\s\"'\\,;]+",
    re.IGNORECASE,
)
# A token by itself; shorter ones are words: "Bearer authentication".
_BEARER = re.compile(r"\b([Bb]earer )\s{0,3}[\w.~+/-]{20,}=*", re.ASCII)
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(?:(?!-----).)*"
    r"(?:-----END [A-Z ]{0,40}PRIVATE KEY-----)?",
    re.DOTALL,
)
_LOGIN = re.compile(r"(?<![\w/.$#-])[\w.$#-]{1,128}/[^\s@/\"']{1,128}@//")


def without_tokens(text: str) -> str:
    """Hide what headers, private keys and logins have, whatever stands before them."""
    if "earer" in text or "uthorization" in text:
        text = _BEARER.sub(rf"\1{HIDDEN}", _HEADER.sub(rf"\1{HIDDEN}", text))
    if "PRIVATE KEY" in text:
        text = _PRIVATE_KEY.sub(HIDDEN, text)
    return _LOGIN.sub("@//", text) if "@" in text and "@//" in text else text


# The next option is no value; in a list the value is a text of its own.
_OPTION = re.compile(r"--([A-Za-z][\w.-]{0,100})(?:[ \t]{1,3}(?![-\s])|[\"'],\s{0,3}(?=[\"'][^-]))")


def option_values(text: str) -> Iterator[int]:
    """Yield where the secret values of options begin."""
    for found in _OPTION.finditer(text):
        if text[found.start() - 1 : found.start()] not in _IN_KEYS and is_secret(found[1]):
            yield found.end()


# With a dot it is a property; ``IN ('token', 'x')`` compares with words.
_PAIR = re.compile(r"\([\"']([A-Za-z]\w{0,50}\.[\w.-]{1,100})[\"'],\s{0,3}(?=[\"'])")
_IDENTIFIED = re.compile(r"\bIDENTIFIED BY (?=[\"'])", re.IGNORECASE)


def quoted_secrets(text: str) -> Iterator[int]:
    """Yield where secrets in quotes begin that no sign binds to their key."""
    for found in _PAIR.finditer(text):
        if is_secret(found[1]):
            yield found.end()
    if "ed by " in text.lower():  # a search without regard to case is the slower part
        for found in _IDENTIFIED.finditer(text):
            yield found.end()


_IN_KEYS = frozenset(f"{string.ascii_letters}{string.digits}_.-")
_OF_KEY = "".join(_IN_KEYS)
# All of a line, or of an entry in braces: "The password: see the connection" is none.
_BEFORE_ENTRY = re.compile(r"(?:^|[\n{,])[ \t]{0,40}(?:- )?\Z")
_ENTRY = re.compile(r":[ \t]{1,3}(?=[^\s\"',{}\[\]]{1,4000}[ \t]{0,3}(?:$|[,}]))", re.MULTILINE)


def entry_values(text: str) -> Iterator[int]:
    """Yield where the secret values of entries of YAML begin."""
    at = -1
    while (at := text.find(": ", at + 1)) >= 0:
        before = text[max(0, at - 150) : at]
        above = before.rstrip(_OF_KEY)
        if len(above) == len(before) or not is_secret(before[len(above) :]):
            continue
        entry = _ENTRY.match(text, at)
        if entry and _BEFORE_ENTRY.search(above):
            yield entry.end()


_ENCODED = re.compile(r"(?<![\w.~%+*/-])[\w.~%+*-]+", re.ASCII)
_SIGN = re.compile("%3d|%3a%2f%2f|%40", re.IGNORECASE)


def decoded(text: str, scrub: Callable[[str], str]) -> str:
    """Scrub what is percent-encoded once, but for folders of partitions."""
    if "%" not in text or not _SIGN.search(text):  # a search of all is the slower part
        return text
    return _ENCODED.sub(lambda run: _recoded(run[0], scrub), text)


def _recoded(run: str, scrub: Callable[[str], str]) -> str:
    if not _SIGN.search(run):
        return run
    plain = unquote(run)
    scrubbed = scrub(plain)
    return run if scrubbed == plain else quote(scrubbed, safe="*")
