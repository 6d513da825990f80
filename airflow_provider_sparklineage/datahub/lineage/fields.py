"""URNs of columns, each made once for all edges of an output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.model.datasets import DatasetName

if TYPE_CHECKING:
    from airflow_provider_sparklineage.datahub.lineage.columns import Source
    from airflow_provider_sparklineage.datahub.subject import Subject


class Fields(dict["Source", str]):
    """The URN of each column that is asked for, by dataset and name."""

    def __init__(self, subject: Subject) -> None:
        super().__init__()
        self._subject = subject

    def __missing__(self, source: Source) -> str:
        """Make the URN of a column that was not asked for before."""
        namespace, name, column = source
        urn = self[source] = self._subject.field(DatasetName(namespace, name), column)
        return urn
