"""Credentials are stripped: ``s3a://key:secret@bucket/x`` is ``s3a://bucket/x``, in names too.

What is one is decided by :mod:`~airflow_provider_sparklineage.model.credentials`; here, which texts
are names: a partition ``token=5`` is no credential, and of a name only a URL's are stripped.
"""

from __future__ import annotations

from functools import cache
from typing import TypeVar

from airflow_provider_sparklineage.event.walk import IDENTITIES, Walk, is_unchanged
from airflow_provider_sparklineage.model.credentials import scrub, scrub_name

V = TypeVar("V")

_NAMES = IDENTITIES | {"identifier", "summary", "first", "last", "locations"}
"""What else names a part of a dataset."""


def without_credentials(value: V) -> V:
    """Strip the credentials in all texts of an event, or of a part of one."""
    if is_unchanged(value, scrub):
        return value
    stripped: V = _Stripping().value(value)
    return stripped


class _Stripping(Walk):
    def __init__(self) -> None:
        # Names and descriptions come again with each edge.
        self._name, self._text = cache(scrub_name), cache(scrub)

    def text(self, text: str, key: str, /) -> str:
        return self._name(text) if key in _NAMES else self._text(text)
