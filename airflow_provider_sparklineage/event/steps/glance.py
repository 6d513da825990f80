"""The partition check says of each dataset, in a line of its own, what was accessed.

A backend that shows a facet as it is shows the texts at its top first, and cuts long ones: Marquez
after thirty characters, but no keys. So the dataset is in the key, and the text is its partitions.
They repeat what the entries say, and no command of this package reads them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.event.document import name_of, replaced
from airflow_provider_sparklineage.event.partition_facets import CHECK_KEY, how, part
from airflow_provider_sparklineage.expectations import Side
from airflow_provider_sparklineage.model.datasets import short_names
from airflow_provider_sparklineage.model.texts import truncated

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_sparklineage.event.document import Event

MAX_LINES = 20
"""Datasets with a line; outputs come first."""
MAX_TEXT = 200
MORE_KEY = "and more"


def with_lines(event: Event) -> Event:
    """Give the partition check, which the event has, a line for each dataset.

    Lines that it has already are replaced, for datasets may have got other names.
    """
    facets = event["run"]["facets"]
    check = {key: value for key, value in facets[CHECK_KEY].items() if " " not in key}
    return replaced(event, run_facets={**facets, CHECK_KEY: {**check, **_lines(check)}})


def _lines(check: Mapping[str, Any]) -> dict[str, str]:
    entries = [(side, e) for side in (Side.WRITE, Side.READ) for e in check[f"{side}s"]]
    names = short_names(name_of(entry["dataset"]) for _, entry in entries)
    lines = {
        f"{how(entry, side)} {names[name_of(entry['dataset'])]}": truncated(part(entry), MAX_TEXT)
        for side, entry in entries[:MAX_LINES]
    }
    if len(entries) > MAX_LINES:
        lines[MORE_KEY] = f"{len(entries) - MAX_LINES} datasets, in reads and writes"
    return lines
