"""Custom properties: texts by name, as people read them and DataHub's search can hold them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.datahub.lenient import text
from airflow_provider_sparklineage.model.credentials import scrub

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MAX_NAME = 200
"""Characters of a property's name."""


def shown(document: Mapping[str, Any], keys: Iterable[str]) -> dict[str, str]:
    """Give those of an object's texts, numbers and booleans that it has."""
    found = ((key, value_of(document.get(key))) for key in keys)
    return {key: value for key, value in found if value}


def value_of(value: Any) -> str:
    """Write a value without credentials; empty for a list, an object, and what is not there.

    Airflow's facets have lists as texts, so that an empty one is ``[]``.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    return "" if value in ("[]", "{}") else scrub(text(value))


def name_of_property(name: str) -> str:
    """Bound a name that somebody else gives."""
    return text(name, MAX_NAME)
