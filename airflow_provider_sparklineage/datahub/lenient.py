"""Read events of any producer; a value that does not have its schema's shape counts as absent.

No function of this module raises an error for any JSON, so that the parts of the conversion need
no checks.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

MAX_TEXT = 1000
"""The most characters of a text for people: a custom property, a description of a condition."""
_LONGEST_NUMBER = 2**63 - 1  # Avro's and Java's long
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def at(document: Any, *keys: str) -> Any:
    """Give the value at a path of keys; None if a key is missing or leads into no object."""
    for key in keys:
        if not isinstance(document, dict):
            return None
        document = document.get(key)
    return document


def mapping(value: Any) -> dict[str, Any]:
    """Give the value if it is an object (a dict), else {}."""
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[dict[str, Any]]:
    """Give the entries of a list that are objects; [] if the value is no list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def texts(value: Any) -> list[str]:
    """Give the entries of a list that are texts and not empty; [] if the value is no list."""
    return [one for one in map(text, value) if one] if isinstance(value, list) else []


def text(value: Any, limit: int = MAX_TEXT) -> str:
    """Give the value if it is a text, in a form that databases can store, else an empty text.

    A text that is longer than the limit is cut and ends in a checksum, so that the results of two
    different texts differ.
    """
    if not isinstance(value, str):
        return ""
    whole = value
    if not value.isascii() or "\0" in value:  # rare
        # UTF-8 cannot have half of a surrogate pair, and databases refuse NUL in a text.
        whole = value.encode(errors="replace").decode().replace("\0", "\N{SYMBOL FOR NULL}")
    if len(whole) <= limit:
        return whole
    checksum = sha256(whole.encode()).hexdigest()[:16]
    return f"{whole[: limit - len(checksum) - 1]}…{checksum}"


def number(value: Any) -> int | None:
    """Give the value if it is a whole number from 0 to the largest long, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value <= _LONGEST_NUMBER and value == value // 1 else None


def millis(time: Any) -> int | None:
    """Convert a time of ISO 8601 to milliseconds since the epoch; None if it cannot be parsed.

    A time without a zone is read as UTC.
    """
    try:
        found = datetime.fromisoformat(time)
        found = found if found.tzinfo else found.replace(tzinfo=UTC)
        return (found - _EPOCH) // timedelta(milliseconds=1)
    except (TypeError, ValueError, OverflowError):
        return None
