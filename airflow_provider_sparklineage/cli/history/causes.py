"""Why something is stale, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.cli.history.tables import partition_text, time_text

if TYPE_CHECKING:
    from airflow_provider_sparklineage.cli.history.tables import Document

INDIRECTLY = "what it read is stale"

_DONE = {"overwrite": "was rewritten", "append": "was added to", "create": "was made anew"}
_DONE |= {"drop": "was dropped", "truncate": "was emptied"}


def change_text(cause: Document) -> str:
    """Say what was done, and when."""
    return f"{_DONE.get(cause['how'], 'was written')} {time_text(cause['at'])}"


def cause_text(row: Document, dataset: str) -> str:
    """Say what changed, when, and that what was read is stale itself, if that is how.

    :param row: a version that is stale
    :param dataset: what the cause's dataset is called
    """
    cause = row["cause"]
    what = f"{dataset} {partition_text(cause['partition'])} {change_text(cause)}"
    return what if row["is_direct"] else f"{INDIRECTLY}: {what}"
