"""The declaration of detail that was dropped for the size of an event."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode

if TYPE_CHECKING:
    from airflow_provider_sparklineage.model.datasets import DatasetName


def of_dropped(what: str, option: str, dataset: DatasetName | None = None) -> Degradation:
    """Declare what was dropped: ``3 descriptions``, or ``The column lineage of a dataset``.

    :param option: what a person would change to get more, as a sentence calls it
    """
    was, they = ("was", "it is") if dataset else ("were", "they are")
    return too_large(f"{what} {was} left out: {they} more", option, dataset)


def too_large(what: str, option: str, dataset: DatasetName | None = None) -> Degradation:
    """Declare what is more than there may be."""
    return Degradation(
        DegradationCode.DETAIL_DROPPED,
        f"{what} than {option} allows; raise it if what receives the event takes more.",
        dataset,
    )
