"""Credentials in texts and names that leave the worker: URLs, connection strings, messages.

Two functions remove credentials, from two kinds of text:

- :func:`scrub` removes all of the forms below from messages, descriptions, SQL and properties
- :func:`scrub_name` removes only the forms that are part of a URL or a connection string, from
  names that identify data (datasets, partitions, locations). A partition ``token=5`` is not a
  credential

=================================  ==========================  ====================================
form                               e.g.                        becomes
=================================  ==========================  ====================================
user and password of a URL         ``s3a://key:secret@bucket`` ``s3a://bucket``
user and password for Oracle JDBC  ``oracle:thin:me/pw@//h:1`` ``oracle:thin:@//h:1``
a parameter or property            ``?user=u&password=s&a=1``  ``?a=1``
..                                 ``h:1433;a=1;password=s``   ``h:1433;a=1``
a setting in words, SQL or JSON    ``--password=s``            ``--password=***``
..                                 ``password 's'``            ``password '***'``
=================================  ==========================  ====================================

and the forms in the second table, further down.

A user and password end at the last ``@`` before the host, because people do not escape an ``@`` in
a password. In Azure's schemes the part before the ``@`` is a container, which is not removed:
``abfss://container@account/path``. The functions do not recognise a password that is all digits
before a ``/`` (``//host:80/a@b`` is a path), nor a password with a blank and without quotes. They
do not hide the literal that a filter compares a column with (``token#1 = abc``): it is data.

Both functions take time in proportion to the length of the text, are idempotent, and raise nothing.
"""

from __future__ import annotations

import logging
import re
import string
from contextlib import suppress
from functools import lru_cache, partial
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from airflow_provider_sparklineage.model.texts import escape_control_characters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


# --- which names of parameters, properties and settings stand for secrets -------------------------


_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_USERS = frozenset({"user", "username"})
_SECRET_WORDS = frozenset({"pwd", "pass", "passphrase", "sas"})
_SECRET_LAST_WORDS = frozenset({"auth", "authorization", "signature", "sig"})
_SECRET_PARTS = (
    *("password", "passwd", "secret", "sharedaccess", "apikey", "accesskey", "accountkey"),
    *("privatekey", "storagekey", "encryptionkey", "masterkey"),
)
_SECRET_ENDS = ("token", "credential", "credentials")


@lru_cache(maxsize=4096)  # most texts have the same few keys
def is_secret(key: str) -> bool:
    """Whether the name of a parameter, property or setting says that its value is a secret.

    :param key: one word, or several: ``password``, ``fs.s3a.secret.key``, ``X-Amz-Security-Token``
    """
    words = [word.lower() for word in _WORDS.findall(key)]
    flat = "".join(words)
    return (
        any(part in flat for part in _SECRET_PARTS)
        or flat.endswith(_SECRET_ENDS)
        or not _SECRET_WORDS.isdisjoint(words)
        or (bool(words) and words[-1] in _SECRET_LAST_WORDS)
    )


def is_credential(key: str) -> bool:
    """Whether a name in a URL or a connection string stands for a secret, or for a user."""
    return is_secret(key) or key.lower().replace("_", "") in _USERS


# --- forms in which secrets stand in texts that are neither URLs nor ``key=value`` ----------------
#
# ===========================  =====================================================================
# a header                     ``Authorization: Bearer eyJ…``, ``{'Authorization': 'Basic bWU6'}``
# a private key                ``-----BEGIN PRIVATE KEY-----…``
# two arguments of a command   ``--password hunter2``, ``['--password', 'hunter2']``
# a pair of Spark's            ``('spark.x.password', 'hunter2')``: ``SparkConf.getAll()``
# a login in SQL               ``IDENTIFIED BY 'hunter2'``
# a line of YAML               ``password: hunter2``
# Oracle's way to log in       ``scott/tiger@//host:1521/service``
# percent-encoded text         ``https%3A%2F%2Fme%3Ahunter2%40host``
# ===========================  =====================================================================
#
# All functions take time in proportion to the length of the text.


HIDDEN = "***"
"""The text in place of a hidden value, where leaving it out would change the text's form."""

_SCHEMES = "basic|bearer|digest|negotiate|token|apikey"
_HEADER = re.compile(
    rf"(authorization[\"'\\]{{0,8}}\s{{0,3}}[:=]\s{{0,3}}[\"'\\]{{0,8}})(?:{_SCHEMES})\s{{1,3}}"
    r"[^\s\"'\\,;]+",
    re.IGNORECASE,
)
# A token after "Bearer". A shorter text there is a word, as in "Bearer authentication".
_BEARER = re.compile(r"\b([Bb]earer )\s{0,3}[\w.~+/-]{20,}=*", re.ASCII)
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(?:(?!-----).)*"
    r"(?:-----END [A-Z ]{0,40}PRIVATE KEY-----)?",
    re.DOTALL,
)
_LOGIN = re.compile(r"(?<![\w/.$#-])[\w.$#-]{1,128}/[^\s@/\"']{1,128}@//")


def without_tokens(text: str) -> str:
    """Hide secrets without a key before them: HTTP headers, private keys, and Oracle logins."""
    if "earer" in text or "uthorization" in text:
        text = _BEARER.sub(rf"\1{HIDDEN}", _HEADER.sub(rf"\1{HIDDEN}", text))
    if "PRIVATE KEY" in text:
        text = _PRIVATE_KEY.sub(HIDDEN, text)
    return _LOGIN.sub("@//", text) if "@" in text and "@//" in text else text


# If an option follows an option, the first one has no value. In a list the value is the next quoted
# text.
_OPTION = re.compile(r"--([A-Za-z][\w.-]{0,100})(?:[ \t]{1,3}(?![-\s])|[\"'],\s{0,3}(?=[\"'][^-]))")


def option_values(text: str) -> Iterator[int]:
    """Yield the positions where the secret values of command-line options begin."""
    for match in _OPTION.finditer(text):
        if text[match.start() - 1 : match.start()] not in _IN_ENTRY_KEY and is_secret(match[1]):
            yield match.end()


# Only a key with a dot is a property; ``IN ('token', 'x')`` compares a column with words.
_PAIR = re.compile(r"\([\"']([A-Za-z]\w{0,50}\.[\w.-]{1,100})[\"'],\s{0,3}(?=[\"'])")
_IDENTIFIED = re.compile(r"\bIDENTIFIED BY (?=[\"'])", re.IGNORECASE)


def quoted_secrets(text: str) -> Iterator[int]:
    """Yield the positions of quoted secrets that follow their key without ``=`` or ``:``."""
    for match in _PAIR.finditer(text):
        if is_secret(match[1]):
            yield match.end()
    if "ed by " in text.lower():  # a regex that ignores case would be slower
        for match in _IDENTIFIED.finditer(text):
            yield match.end()


_IN_ENTRY_KEY = frozenset(f"{string.ascii_letters}{string.digits}_.-")
_IN_KEY = "".join(_IN_ENTRY_KEY)
# The key must begin a line or an entry in braces: "The password: see the connection" is prose.
_BEFORE_ENTRY = re.compile(r"(?:^|[\n{,])[ \t]{0,40}(?:- )?\Z")
_ENTRY = re.compile(r":[ \t]{1,3}(?=[^\s\"',{}\[\]]{1,4000}[ \t]{0,3}(?:$|[,}]))", re.MULTILINE)


def entry_values(text: str) -> Iterator[int]:
    """Yield the positions where the secret values of YAML entries begin."""
    for at, above in _secret_keys(text, ": ", 150, _IN_KEY):
        entry = _ENTRY.match(text, at)
        if entry and _BEFORE_ENTRY.search(above):
            yield entry.end()


def _secret_keys(text: str, sign: str, longest: int, of_key: str) -> Iterator[tuple[int, str]]:
    """Find each sign that follows the key of a secret, such as ``=`` after ``password``.

    :param longest: the number of characters before the sign that are read
    :param of_key: all characters that a key may have
    :return: pairs of the sign's position, and the part of those characters that is before the key
    """
    at = -1
    while (at := text.find(sign, at + 1)) >= 0:
        before = text[max(0, at - longest) : at]
        above = before.rstrip(of_key)
        if is_secret(before[len(above) :]):
            yield at, above


_ENCODED = re.compile(r"(?<![\w.~%+*/-])[\w.~%+*-]+", re.ASCII)
_SIGN = re.compile("%3d|%3a%2f%2f|%40", re.IGNORECASE)


def decoded(text: str, scrub: Callable[[str], str]) -> str:
    """Scrub the percent-encoded parts of a text, except those that are partition folders.

    A part is decoded once, scrubbed, and encoded again.

    :param scrub: the function that removes the credentials from a decoded part
    """
    if "%" not in text or not _SIGN.search(text):  # the search for all encoded parts is slower
        return text
    return _ENCODED.sub(lambda run: _recoded(run[0], scrub), text)


def _recoded(run: str, scrub: Callable[[str], str]) -> str:
    if not _SIGN.search(run):
        return run
    plain = unquote(run)
    scrubbed = scrub(plain)
    return run if scrubbed == plain else quote(scrubbed, safe="*")


def scrub(text: str) -> str:
    """Remove or hide the credentials in a text; use :func:`scrub_name` for a name."""
    return _settled(text, _scrub_plain_text)


def scrub_name(text: str) -> str:
    """Remove the credentials from a name that identifies data; do not change the rest of it."""
    return _settled(text, _scrub_plain_urls)


def logger(name: str) -> logging.Logger:
    """Give the logger of a module, with a filter that removes credentials.

    Neither the logger's messages nor its tracebacks show credentials, and each message is one line:
    the filter escapes the line ends in names. An exception of a handler is not raised.
    """
    own = logging.getLogger(name)
    if not any(isinstance(one, _Scrubbing) for one in own.filters):
        own.addFilter(_Scrubbing())
        own.handle = partial(_handle, own.handle)  # type: ignore[method-assign]
    return own


def _handle(handle: Callable[[logging.LogRecord], None], record: logging.LogRecord) -> None:
    with suppress(Exception):  # a handler of the user's that raises would fail the task
        handle(record)


class _Scrubbing(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        try:
            text = record.getMessage()
        except Exception:  # arguments that do not fit: the handler reports them without raising
            return True
        record.msg, record.args = escape_control_characters(scrub(text)), ()
        if record.exc_info:
            # A handler would format the traceback itself, with the unscrubbed texts of exceptions.
            trace = logging.Formatter().formatException(record.exc_info)
            lines = (escape_control_characters(line) for line in scrub(trace).split("\n"))
            record.msg, record.exc_info = "\n".join([record.msg, *lines]), None
        return True


# --- the order of the steps -----------------------------------------------------------------------

_ROUNDS = 8
"""The most rounds of removal. A round may bring two parts together that are a credential again.
Ordinary text needs no third round; a text that needs more than these rounds is hidden in full."""


def _settled(text: str, scrub_plain: Callable[[str], str]) -> str:
    for _ in range(_ROUNDS):
        scrubbed = decoded(scrub_plain(text), scrub_plain)
        if scrubbed == text:
            return text
        text = scrubbed
    return HIDDEN


def _scrub_plain_urls(text: str) -> str:
    if "@" in text:
        text = _ORACLE.sub(r"\1@", _without_users(text))
    if "=" in text:
        text = _without_properties(text, _PARAMETER)
        if "jdbc:" in text.lower():  # a regex that ignores case would be slower
            text = _JDBC.sub(lambda url: _without_properties(url[0], _PROPERTY), text)
    return text


def _scrub_plain_text(text: str) -> str:
    text = _TRUNCATED.sub(_without_half_user, without_tokens(_scrub_plain_urls(text)))
    if "'" in text or '"' in text:
        text = _without_settings(text, _quoted_values(text))
    for values in (option_values, entry_values, quoted_secrets, _values):
        text = _without_settings(text, values(text))
    return text


# --- users of URLs --------------------------------------------------------------------------------

# A character that may belong to a URL. A quote may do so only within a word, as in a password.
_IN_WORD = r"[^\s\"'`<>]|[\"'`](?=\w)"
_WORD = re.compile(rf"(?:{_IN_WORD})+", re.ASCII)
_END_OF_AUTHORITY = re.compile(r"[/?#]|;(?=[\w .]{1,100}=)", re.ASCII)
_HOSTS = re.compile(r"(?:\[[^\]@]*\]|[^:@\[]*)(?::\d{0,5})?(?:[,;)].*)?", re.DOTALL | re.ASCII)
_AZURE = re.compile(r"(?:abfs|wasb)s?\Z", re.IGNORECASE)
_NO_CONTAINER = frozenset(":/?#")


def _without_users(text: str) -> str:
    kept, done = [], 0
    at, sign, word_end = 0, -1, 0
    while (at := text.find("://", at)) >= 0:
        at = start = at + 3
        if sign < start and (sign := text.find("@", start)) < 0:
            break
        if word_end <= start:
            word = _WORD.match(text, start)
            word_end = word.end() if word else start
        if sign >= word_end:
            continue
        at = _end_of_user(text, start, word_end)
        gone = at - start
        container = text[start:at].removesuffix("@").rpartition("@")[2]
        is_azure = _AZURE.search(text[max(done, start - 8) : start - 3])
        if is_azure and container and _NO_CONTAINER.isdisjoint(container):
            gone -= len(container) + 1
        if gone:
            kept.append(text[done:start])
            done = start + gone
    return "".join(kept) + text[done:]


def _end_of_user(text: str, start: int, word_end: int) -> int:
    """Find the position where the host of a URL begins, after a user and password if it has any.

    :param start: the position after the ``//`` of the URL
    :param word_end: the position where the URL ends at the latest
    """
    if text.startswith("arn:", start):  # an access point of S3, whose name has colons
        return start
    while True:
        match = _END_OF_AUTHORITY.search(text, start, word_end)
        end = match.start() if match else word_end
        last = text.rfind("@", start, end)
        if last < 0 and not _HOSTS.fullmatch(text, start, end):
            last = text.find("@", end, word_end)  # user:secret, and the secret has a slash in it
        if last < 0:
            return start
        start = last + 1


# In a truncated text a URL may end with half of a password, and without the @ after it.
_TRUNCATED = re.compile(r"://[^\s/?#@\"'`<>;…:]+:[^\s/?#@\"'`<>;…]+(?=[\s\"'`<>;…]|\Z)")


def _without_half_user(authority: re.Match[str]) -> str:
    text = authority[0][3:]
    as_host = (text, text.rstrip(".,:)]!"))  # a sentence may end there
    is_host = any(map(_HOSTS.fullmatch, as_host)) or "{" in text or text.startswith("arn:")
    return authority[0] if is_host else f"://{HIDDEN}"


_ORACLE = re.compile(r"(oracle:(?:thin|oci8?|kprb):)[^\s?;<>]*@", re.IGNORECASE | re.ASCII)


# --- parameters and properties --------------------------------------------------------------------

_JDBC = re.compile(rf"jdbc:(?:{_IN_WORD})*", re.IGNORECASE | re.ASCII)
_KEY = r"([\w.%-]{1,100})"
_PARAMETER = re.compile(rf"[?&;#] ?{_KEY}=", re.ASCII)
_PROPERTY = re.compile(rf"[?&;#,(:/] ?{_KEY}=", re.ASCII)

# The API keys of Google and others in ?key=; a shorter value may be the key of an object.
_API_KEY = re.compile(r"[\w-]{20,}", re.ASCII)

# A value may begin with a part in braces or quotes, and ends at the next separator after it.
_IN_BRACES = r"\{\{[^{}]*\}\}|\{[^{}]*\}"
_IN_QUOTES = r"'(?:[^'\\]|\\.|'')*(?:'|\\?\Z)|\"(?:[^\"\\]|\\.|\"\")*(?:\"|\\?\Z)"


def _value_until(separators: str) -> re.Pattern[str]:
    rest = rf"(?:[^\s\"'`<>{separators}]|[\"'`](?=\w))*"
    return re.compile(rf"(?:{_IN_BRACES}|{_IN_QUOTES})?{rest}", re.ASCII | re.DOTALL)


_VALUES = {
    **dict.fromkeys("?&#", _value_until("&#")),
    ";": _value_until(";"),
    **dict.fromkeys(",(:/", _value_until(",;&)")),
}


def _without_properties(text: str, pattern: re.Pattern[str]) -> str:
    kept, done, at = [], 0, 0
    first = ""  # the separator before the latest run of removed properties
    while match := pattern.search(text, at):
        at = match.end() - 1  # a kept value may be a URL, with parameters of its own
        separator = text[match.start()]
        if not is_credential(match[1]) and not (
            match[1] == "key" and separator in "?&" and _API_KEY.match(text, match.end())
        ):
            continue
        if match.start() > done or not first:
            kept.append(_after(first, text[done : match.start()]))
            first = separator
        at = done = _end_of_value(text, match.end(), separator)
    return "".join(kept) + _after(first, text[done:])


def _end_of_value(text: str, at: int, separator: str) -> int:
    value = _VALUES[separator].match(text, at)
    end = value.end() if value else at
    if text[end : end + 1] not in tuple("&;#,"):  # the last signs may be a sentence's punctuation
        while end > at and text[end - 1] in ".,:)]":
            end -= 1
    return end


def _after(first: str, rest: str) -> str:
    """Give the text after removed properties, with the separator that it now needs before it.

    :param first: the separator before the removed properties, such as ``?``
    :param rest: the text after them, such as ``&a=1``, which becomes ``?a=1``
    """
    if first and first in "?#(/:" and len(rest) > 1 and rest[0] in "&;,":
        return first + rest[1:]
    return first + rest if first and first in "(/" else rest


# --- settings in words, SQL and JSON --------------------------------------------------------------

# Quotes of JSON in JSON have a backslash or more before them.
_ESCAPED = r"\\{1,8}[\"']"
_IN_ESCAPED_QUOTES = rf"{_ESCAPED}(?:(?!{_ESCAPED}).)*(?:{_ESCAPED}|\Z)"
_OPENING = re.compile(r"\\{0,8}[\"']")
_SET_VALUE = re.compile(
    rf"{_IN_ESCAPED_QUOTES}|{_IN_QUOTES}|(?:{_IN_BRACES})?(?:(?:{_IN_WORD})*(?:[^\s\"'`<>.,;:)\]}}]|[\"'`](?=\w)))?",
    re.ASCII | re.DOTALL,
)


def _without_settings(text: str, values: Iterator[int]) -> str:
    """Hide the values that begin at the given positions of a text."""
    kept, done = [], 0
    for at in values:
        value = _SET_VALUE.match(text, at) if at >= done else None
        if value and value[0]:
            opening = _OPENING.match(value[0])
            quote = opening[0] if opening else ""
            kept.append(f"{text[done:at]}{quote}{HIDDEN}{quote}")
            done = value.end()
    return "".join(kept) + text[done:]


_OF_KEY = f"{string.ascii_letters}{string.digits}_.%-"


def _values(text: str) -> Iterator[int]:
    """Yield the positions where the secret values of ``key=value`` begin."""
    for at, above in _secret_keys(text, "=", 101, _OF_KEY):
        if above[-1:] != "/":  # a key after a slash is that of a partition's folder
            yield at + 1


# Matches "password": "x" and password = 'x', and a table's options in SQL: password 'x' and
# "password" "x". The set of first letters makes the search quick.
_QUOTED_SETTING = re.compile(
    r"[pPsStTaA](?i:(?P<plain>(?<=p)(?:assword|asswd|wd)|(?<=s)ecret)|(?<=t)oken"
    r"|(?:(?<=a)(?:pi|ccess|ccount)|(?<=p)rivate)[-_.]?key)"
    r"[\w.-]{0,60}(?:\\{0,8}(?P<quote>[\"'`]))?(?P<between>\s{0,3}(?P<sign>=>?|:)?\s{0,3})"
    r"(?=\\{0,8}[\"'])",
    re.ASCII,
)
_OPENED = re.compile(r"([\"'`])[\w.-]{0,60}\Z", re.ASCII)


def _quoted_values(text: str) -> Iterator[int]:
    """Yield the positions where the quotes of secret values begin."""
    for match in _QUOTED_SETTING.finditer(text):
        # A quote after the key must open before the key: 'a secret' and 'b' are two texts.
        if match["quote"]:
            opened = _OPENED.search(text[max(0, match.start() - 61) : match.start()])
            if opened is None or opened[1] != match["quote"]:
                continue
        if match["sign"] or (match["plain"] and match["between"]):
            yield match.end()
