"""Secrets are masked in all that is not a name.

Airflow's own redactor works on attribute names: a column called ``password`` would lose its lineage
to it, and 16 MB of column lineage take it half of the ten seconds after which Airflow drops an
event. Our facets therefore ask it to leave them alone (:mod:`..openlineage`), and so what Airflow
masks in logs is masked here. Names of datasets and columns are identities and stay.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, TypeVar

from airflow_provider_sparklineage.event.walk import IDENTITIES, Walk, is_unchanged

if TYPE_CHECKING:
    from collections.abc import Callable

V = TypeVar("V")


def masked(value: V, mask: Callable[[str], str]) -> V:
    """Mask the secrets in all texts of an event, or of a part of one, that are not names.

    :param mask: hides the secrets in a text
    """
    if mask is str or is_unchanged(value, mask):
        return value
    without: V = _Masking(mask).value(value)
    return without


class _Masking(Walk):
    def __init__(self, mask: Callable[[str], str]) -> None:
        self._text = cache(mask)  # descriptions come again with each edge

    def text(self, text: str, key: str, /) -> str:
        return text if key in IDENTITIES else self._text(text)
