"""Texts for people, without credentials, and custom properties, which are such texts by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.datahub.lenient import MAX_TEXT, text
from airflow_provider_sparklineage.model.credentials import scrub

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MAX_NAME = 200
"""Characters of a property's name."""


def plain(value: Any, limit: int = MAX_TEXT) -> str:
    """Give a text for people: bounded, and without credentials; empty for anything else.

    Producers write SQL, descriptions and addresses as their users did, with passwords.
    """
    return scrub(text(value, limit))


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
        return number_text(value)
    return "" if value in ("[]", "{}") else plain(value)


def number_text(value: float) -> str:
    """Write a number; empty for one that is longer than Python writes any."""
    try:
        return text(str(value))
    except ValueError:
        return ""


def name_of_property(name: str) -> str:
    """Bound a name that somebody else gives."""
    return text(name, MAX_NAME)
