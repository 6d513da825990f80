"""Reading events of any producer: a value whose shape is not that of its schema counts as absent.

No function here raises, for any JSON, so that the parts of the conversion need no checks.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

MAX_TEXT = 1000
"""Characters of a text for people: a custom property, a description of a condition."""
_LONGEST_NUMBER = 2**63 - 1  # Avro's and Java's long
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def at(document: Any, *keys: str) -> Any:
    """Give the value at a path of keys; None if a key is missing, or a value above is no object."""
    for key in keys:
        if not isinstance(document, dict):
            return None
        document = document.get(key)
    return document


def mapping(value: Any) -> dict[str, Any]:
    """Give a value that is an object; {} for anything else."""
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[dict[str, Any]]:
    """Give the objects of a list; [] for anything else."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def texts(value: Any) -> list[str]:
    """Give the texts of a list that are not empty; [] for anything else."""
    return [one for one in map(text, value) if one] if isinstance(value, list) else []


def text(value: Any, limit: int = MAX_TEXT) -> str:
    """Give a value that is a text, in a form that can be stored; empty for anything else.

    A text that is longer than the limit ends in a checksum, so that two different texts stay
    different.
    """
    if not isinstance(value, str):
        return ""
    whole = value
    if not value.isascii() or "\0" in value:  # rare
        # Half of a pair of UTF-16 is no UTF-8, and databases refuse NUL in a text.
        whole = value.encode(errors="replace").decode().replace("\0", "\N{SYMBOL FOR NULL}")
    if len(whole) <= limit:
        return whole
    checksum = sha256(whole.encode()).hexdigest()[:16]
    return f"{whole[: limit - len(checksum) - 1]}…{checksum}"


def number(value: Any) -> int | None:
    """Give a value that is a count; None if it is not whole, negative or too large for a long."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value <= _LONGEST_NUMBER and value == value // 1 else None


def millis(time: Any) -> int | None:
    """Give a time of ISO 8601 in milliseconds since the epoch; None if it cannot be parsed.

    A time without a zone is in UTC.
    """
    try:
        found = datetime.fromisoformat(time)
        found = found if found.tzinfo else found.replace(tzinfo=UTC)
        return (found - _EPOCH) // timedelta(milliseconds=1)
    except (TypeError, ValueError, OverflowError):
        return None
