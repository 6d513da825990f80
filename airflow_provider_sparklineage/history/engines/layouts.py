"""How large the files of the tables become, and in which order datasets lie in them.

A file is a :class:`.store.Piece`. First the rows of ``accesses``, ``changes`` and ``bindings`` are
divided among buckets by dataset, so that a build finds the rows of a dataset without reading all.
A bucket has the datasets of a range in alphabetical order: with ranges a query skips most files by
their least and greatest names, and with hashes of the names it would read all. Then the rows of a
bucket are divided by time, because new rows are nearly always of the latest time, so that even of a
dataset that all runs read, a build rewrites the last file only.

A piece that has grown too large is cut at some of its times. The buckets stay as they are until
the tables have outgrown them (:meth:`Sizes.is_outgrown`): then DuckDB divides the rows among other
buckets, and Spark makes the tables anew. Both engines (:mod:`.pieces`, :mod:`.spark.pieces`) read
and write the same layout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.history.tables import VERSION
from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_sparklineage.history.store import Layout, Manifest
    from airflow_provider_sparklineage.history.tables import Table

FIRST, LAST = "-infinity", "infinity"
"""The start of the first piece of a bucket; and that of a piece whose rows have no time."""
DATASET = ("namespace", "name")

MAX_PARTS = 32
"""Number of parts of facts at which the next build writes several parts into one.

Each build adds a part and looks for events and runs in the files of all parts; from an object
store, the number of files decides how long that takes.
"""


def smallest(sizes: Mapping[str, int], new: int = 0) -> list[str]:
    """Give the parts to write again: each has at most twice as many facts as all smaller ones.

    So a fact is written again only if it comes into a part that is half as large again, at least.

    :param sizes: number of facts in each part
    :param new: number of facts in the new part
    """
    joined: list[str] = []
    for part in sorted(sizes, key=sizes.__getitem__):
        if len(joined) > 1 and sizes[part] > 2 * new:
            break
        joined.append(part)
        new += sizes[part]
    return joined


class Sizes(Frozen, frozen=True):
    """How large buckets and pieces become.

    :param bucket: number of accesses for which there is a bucket
    :param buckets: greatest number of buckets
    :param piece: greatest number of rows of a piece. Each build rewrites the last pieces; each
        query opens all of them
    :param round: number of accesses that a build brings into the tables at once, which decides how
        much memory it takes
    """

    bucket: int = 1_000_000
    buckets: int = 256
    piece: int = 400_000
    round: int = 4_000_000

    @property
    def fill(self) -> int:
        """The number of rows to which pieces are cut, so that late rows find room."""
        return max(1, self.piece * 4 // 5)

    def spread(self, accesses: int) -> int:
        """Give the number of buckets for a number of accesses, a power of two."""
        wanted = 1
        while wanted < self.buckets and wanted * self.bucket < accesses:
            wanted *= 2
        return wanted

    def is_outgrown(self, layout: Layout, accesses: int) -> bool:
        """Whether there are so many more or fewer accesses now that buckets must be chosen anew."""
        return not layout.spread <= 2 * self.spread(accesses) <= 4 * layout.spread

    def mergeable(self, before: Manifest, new: int) -> Layout | None:
        """Give the layout of a generation's tables; None if they must be made anew.

        :param new: number of the new events, which are taken to have as many accesses as the others
        """
        if before.layout is None or before.version < VERSION:
            return None
        events, accesses = before.rows["events"], before.rows["accesses"]
        accesses += accesses * new // max(events, 1)
        return None if self.is_outgrown(before.layout, accesses) else before.layout


def key(row: str) -> str:
    """Give SQL for the text of a row's dataset by which datasets are ordered.

    :param row: name of a row with namespace and name
    """
    return f"(COALESCE({row}.namespace, '') || chr(10) || COALESCE({row}.name, ''))"


def starts(spread: int) -> str:
    """Give SQL that chooses the first dataset of each bucket, by its key, from all ``accesses``.

    Each bucket has about as many accesses as the others.

    :param spread: the wanted number of buckets; there are fewer if few datasets have most accesses
    """
    return (
        f"SELECT MIN(k) AS start FROM (SELECT k, "
        f"CAST((SUM(n) OVER (ORDER BY k) - n) * {spread} // (SUM(n) OVER ()) AS INTEGER) AS nth "
        f"FROM (SELECT {key('a')} AS k, COUNT(*) AS n FROM accesses AS a GROUP BY 1) AS c) AS t "
        "GROUP BY nth ORDER BY nth"
    )


def columns_of(table: Table, row: str = "") -> str:
    """Give SQL for the list of a table's columns.

    :param row: name of the row that has them
    """
    return ", ".join(f'{row and f"{row}."}"{column.name}"' for column in table.columns)


def same(one: str, other: str, *columns: str) -> str:
    """Give the SQL condition that two rows have the same values, or null, in some columns."""
    return " AND ".join(f"{one}.{name} IS NOT DISTINCT FROM {other}.{name}" for name in columns)
