"""Datasets by the shortest end of their names that tells them apart."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_sparklineage.model.datasets import DatasetName


def short_names(names: Iterable[DatasetName]) -> dict[DatasetName, str]:
    """Find the shortest end of each dataset's name that no other dataset shares."""
    segments = {name: [s for s in str(name).split("/") if s] for name in sorted(set(names))}
    ends = Counter(
        tuple(parts[-n:]) for parts in segments.values() for n in range(1, len(parts) + 1)
    )
    found = {}
    for name, parts in segments.items():
        own = (parts[-n:] for n in range(1, len(parts) + 1))
        end = next((e for e in own if ends[tuple(e)] == 1), parts)
        found[name] = "/".join(end) or str(name)
    return found
