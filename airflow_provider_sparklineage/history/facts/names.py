"""Names and texts of an event, without the credentials that a producer may have left in them."""

from __future__ import annotations

from functools import lru_cache

from airflow_provider_sparklineage.model.credentials import scrub, scrub_name
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.texts import truncated

MAX_TEXT = 1000
"""Characters of an expression or a description that are kept."""


@lru_cache(maxsize=50_000)  # a few datasets are in all events
def dataset_name(namespace: str, name: str) -> DatasetName:
    """Give the name of a dataset; events of this package have no credentials in theirs."""
    return DatasetName(scrub_name(namespace), scrub_name(name))


@lru_cache(maxsize=50_000)  # the expressions of a job are the same in each of its runs
def short(text: str | None) -> str | None:
    """Give a text of somebody's query, truncated; None for none."""
    return truncated(scrub(text), MAX_TEXT) if text else None
