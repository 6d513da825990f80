"""The URLs of this package's pages in Airflow, and the line that leads to one."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

if TYPE_CHECKING:
    from airflow_provider_sparklineage.model.datasets import DatasetName

_READABLE = "/:="
"""Characters that a query may have as they are, and that names of datasets are full of."""


def dataset_page(
    airflow_url: str, dataset: DatasetName, partition: str = "", states: str = ""
) -> str:
    """Give the URL of a dataset, or of one of its partitions, on the page "Lineage".

    :param airflow_url: the URL of Airflow's pages
    :param partition: the partition, e.g. ``dt=2024-10-15``; empty for the dataset
    :param states: the letters of the states to which the page limits the partitions
    """
    place = {**dataset._asdict(), "partition": partition, "states": states}
    query = urlencode(
        {key: value for key, value in place.items() if value},
        errors="replace",  # half of a surrogate pair, of a path that is no UTF-8
        quote_via=quote,
        safe=_READABLE,
    )
    return f"{airflow_url.rstrip('/')}/plugin/spark-lineage-history?{query}"


def with_line(text: str, page: str) -> str:
    """Add the URL of a page to a text, as a last line; give the text alone if there is no URL.

    The line begins with a dash, because Marquez shows all lines as one paragraph.
    """
    return f"{text}\n\n— Lineage: {page}" if page else text
