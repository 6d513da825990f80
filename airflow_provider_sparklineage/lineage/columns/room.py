"""How many edges may be in memory: of all writes of an application, as reported and composed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.lineage.columns.edges import count_all
from airflow_provider_sparklineage.model.budget import UNLIMITED, Budget, SpentError

if TYPE_CHECKING:
    from airflow_provider_sparklineage.lineage.columns.edges import ColumnLineage

MAX_TRANSFORMATIONS = 1_000_000
"""Each takes some 400 bytes. An event has room for a tenth of them."""


class ColumnRoom:
    """Counts what is kept; the same bound with and without a deadline.

    :param budget: the time for columns
    """

    def __init__(self, budget: Budget = UNLIMITED) -> None:
        self.budget = budget
        self._left = MAX_TRANSFORMATIONS

    def require(self, transformations: int) -> None:
        """Look whether there is room.

        :raise SpentError: if there is not
        """
        if transformations > self._left:
            msg = f"the job has more than {MAX_TRANSFORMATIONS} transformations of columns"
            raise SpentError(msg)

    def kept(self, lineage: ColumnLineage, *known: ColumnLineage | None) -> ColumnLineage:
        """Count the column lineage of a write, and give it back.

        :param known: what has been counted; one that is the same is given back in its place, as a
            loop writes a table with the same columns a thousand times
        :raise SpentError: if there is no room for it, or no time left
        """
        for same in known:
            if lineage is same or lineage == same:
                return same
        transformations = count_all(lineage)
        self.require(transformations)
        self._left -= transformations
        self.budget.work(transformations)
        return lineage
