"""The merged event as an XCom: what the tab shows, and what the next run knows of this one.

The value is the event itself where it fits, so that people can read it; else it is compressed; and
what is too large for that goes without detail, which the event then says.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import zlib
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.event.document import Written
from airflow_provider_sparklineage.event.validation import stored, validate
from airflow_provider_sparklineage.model.exceptions import DocumentError

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_sparklineage.event.document import Event

KEY = "sparklineage"
"""Key of the XCom."""

_ENCODING = "zlib+base64"
_ROUNDS = 8
_STALLED = 2
"""Rounds without effect after which all detail is gone."""
# PostgreSQL has no JSON with NUL or with halves of surrogate pairs; of whole pairs it has, but they
# are too rare to be recognised.
_UNSTORABLE = re.compile(rb"\\u(?:0000|d[89a-f])")
# An event is a few MB at most; what claims to be more is no event.
_MAX_EVENT_BYTES = 64 * 1024 * 1024


def encode(
    written: Written, max_bytes: int, smaller: Callable[[int], Event]
) -> dict[str, Any] | None:
    """Make the XCom of an event: at most ``max_bytes`` of JSON, as Airflow writes it.

    :param smaller: gives the event without detail, in about so many bytes of JSON; called again, in
        ever fewer
    :return: the value, or None if not even names fit
    """
    allowed = before = stalled = 0
    for _ in range(_ROUNDS):
        text = written.text
        if len(text) <= max_bytes and is_storable(text):
            return written.event
        packed = {
            "encoding": _ENCODING,
            "event": base64.b64encode(zlib.compress(text)).decode(),
        }
        size = len(json.dumps(packed))
        if size <= max_bytes:
            return packed
        stalled += bool(before) and len(text) >= before
        if stalled == _STALLED:
            return None
        # What is left compresses about as well as all of it did, and then a little worse.
        allowed = min(allowed or len(text), int(len(text) * max_bytes / size * 0.9))
        before, written = len(text), Written(smaller(allowed))
        allowed = int(allowed * 0.7)
    return None


def is_storable(text: bytes) -> bool:
    """Whether each of Airflow's databases can hold this JSON as it is."""
    return not _UNSTORABLE.search(text)


def decode(value: object) -> dict[str, Any]:
    """Give back the event of an XCom.

    :raise DocumentError: if it holds none that can be read; says why
    """
    if not isinstance(value, dict) or "encoding" not in value:
        return validate(value)
    if value["encoding"] != _ENCODING:
        problem = (
            f"This lineage is stored as {str(value['encoding'])[:40]!r}, which a newer "
            "airflow-provider-sparklineage does."
        )
        fix = "Update the package where it is to be shown."
        raise DocumentError(problem, fix)
    try:
        packed = base64.b64decode(str(value.get("event")), validate=True)
        text = zlib.decompressobj().decompress(packed, _MAX_EVENT_BYTES)
    except (binascii.Error, zlib.error, ValueError) as error:
        msg = f"The stored lineage is damaged and cannot be read ({error})."
        raise DocumentError(msg) from error
    return stored(text)
