"""The declaration of detail that was dropped for the size of an event."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode
from airflow_provider_sparklineage.model.texts import some

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_sparklineage.model.datasets import DatasetName

NAMED = 5
"""Outputs and facets that are named; the others are counted."""


def of_dropped(what: str, option: str, dataset: DatasetName | None = None) -> Degradation:
    """Declare what was dropped: ``3 descriptions``, or ``The column lineage of a dataset``.

    :param option: what a person would change to get more, as a sentence calls it
    """
    was, they = ("was", "it is") if dataset else ("were", "they are")
    return too_large(f"{what} {was} left out: {they} more", option, dataset)


def of_column_lineage(outputs: Sequence[DatasetName], option: str) -> list[Degradation]:
    """Declare whose column lineage was dropped: of each output, or in one sentence if many."""
    if len(outputs) <= NAMED:
        return [of_dropped(f"The column lineage of {name}", option, name) for name in outputs]
    named = some(outputs, NAMED)
    return [of_dropped(f"The column lineage of {len(outputs)} outputs ({named})", option)]


def too_large(what: str, option: str, dataset: DatasetName | None = None) -> Degradation:
    """Declare what is more than there may be."""
    return Degradation(
        DegradationCode.DETAIL_DROPPED,
        f"{what} than {option} allows; raise it if what receives the event takes more.",
        dataset,
    )
