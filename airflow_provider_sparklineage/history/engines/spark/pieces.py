"""Writes the pieces of the tables (:mod:`..layouts`) on Spark: each place is one file of one task.

A *place* is where a piece is: its bucket, and the time from which on rows are in it. Rows get the
number of their place by a join with all places, which are few. Then they are divided among tasks by
that number and sorted by it, so that each place becomes one file, in a folder of its own, and no
rows come to the driver. A bucket whose dataset all runs read has many places, and so many tasks.

Times are microseconds since 1970 here, as Spark has no infinite times.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.history.engines.layouts import FIRST, LAST, key, starts
from airflow_provider_sparklineage.history.engines.spark.sql import spark_sql

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from airflow_provider_sparklineage.history.engines.layouts import Sizes
    from airflow_provider_sparklineage.history.tables import Table

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - times of the tables have no zone
_ENDS = {FIRST: -(2**63), LAST: 2**63 - 1}
_TEXTS = {time: text for text, time in _ENDS.items()}

PLACE, _TIME = "place", "place_time"
"""Columns that rows get: the number of their place, and the time by which they have it."""


class Place(NamedTuple):
    """Where a piece is.

    :param start: microseconds since 1970 from which on rows are in the piece
    """

    bucket: int = 0
    start: int = _ENDS[FIRST]

    @classmethod
    def of(cls, bucket: int, start: str) -> Place:
        """Read a place from a layout."""
        if start in _ENDS:
            return cls(bucket, _ENDS[start])
        return cls(bucket, (datetime.fromisoformat(start) - _EPOCH) // timedelta(microseconds=1))

    @property
    def text(self) -> str:
        """The start as a layout has it, which is as DuckDB writes times."""
        if self.start in _TEXTS:
            return _TEXTS[self.start]
        text = (_EPOCH + timedelta(microseconds=self.start)).isoformat(" ")
        return text.rstrip("0") if "." in text else text


def buckets_of(session: SparkSession, rows: DataFrame, spread: int) -> list[str]:
    """Choose the first datasets of buckets from all accesses (:func:`..layouts.starts`)."""
    rows.createOrReplaceTempView("accesses")
    return ["", *(row.start for row in session.sql(spark_sql(starts(spread))).collect()[1:])]


def bucketed(session: SparkSession, datasets: DataFrame, buckets: Sequence[str]) -> DataFrame:
    """Give the bucket of each dataset.

    :param datasets: rows with namespace and name
    """
    datasets.createOrReplaceTempView("to_divide")
    ends = pairwise([*buckets, None])
    rows = [(number, first, end) for number, (first, end) in enumerate(ends)]
    named = _rows(session, rows, "bucket INT, start STRING, until STRING")
    named.createOrReplaceTempView("bucket_starts")
    return session.sql(
        "SELECT /*+ BROADCAST(s) */ d.namespace, d.name, s.bucket "
        "FROM (SELECT DISTINCT namespace, name FROM to_divide) AS d "
        f"JOIN bucket_starts AS s ON {key('d')} >= s.start "
        f"AND (s.until IS NULL OR {key('d')} < s.until)"
    )


def _rows(session: SparkSession, rows: Sequence[tuple[object, ...]], schema: str) -> DataFrame:
    """Give some rows of the driver; unlike those of ``createDataFrame``, they need no job."""
    text = json.dumps([[None if v is None else str(v) for v in row] for row in rows])
    columns = (part.split() for part in schema.split(", "))
    casts = (f"CAST(r[{n}] AS {type_}) AS {name}" for n, (name, type_) in enumerate(columns))
    query = f"SELECT {', '.join(casts)} FROM (SELECT EXPLODE(FROM_JSON(:rows, :type)) AS r)"
    return session.sql(query, {"rows": text, "type": "ARRAY<ARRAY<STRING>>"})


class Divider:
    """Divides rows of a table among places.

    :param buckets: the bucket of each dataset, from :func:`bucketed`; None if there is one bucket
    """

    def __init__(self, session: SparkSession, table: Table, buckets: DataFrame | None) -> None:
        self._session, self._table = session, table
        self._buckets = buckets if table.is_by_dataset else None

    def placed(self, rows: DataFrame, places: Sequence[Place]) -> DataFrame:
        """Add to rows the number of their place in a list, and their time.

        :param places: sorted; each bucket has one with the first of all times
        """
        from pyspark.sql import functions as f

        rows = rows.withColumn(_TIME, f.expr(
            f"COALESCE(UNIX_MICROS(CAST(`{self._table.time}` AS TIMESTAMP)), {_ENDS[LAST]})"
        ))  # fmt: skip
        if self._buckets is None:
            rows = rows.withColumn("bucket", f.lit(0))
        else:
            names = self._buckets.select(
                f.col("namespace").alias("_namespace"), f.col("name").alias("_name"), "bucket"
            )
            same = rows["namespace"].eqNullSafe(names["_namespace"])
            rows = rows.join(names, same & rows["name"].eqNullSafe(names["_name"]))
            rows = rows.drop("_namespace", "_name")
        # Also of one place: Spark would take the number for a constant, and not sort by it.
        found = f.broadcast(self._places(places))
        is_there = (rows["bucket"] == found["_bucket"]) & (rows[_TIME] >= found["_start"])
        is_there &= found["_until"].isNull() | (rows[_TIME] < found["_until"])
        return rows.join(found, is_there).drop("bucket", "_bucket", "_start", "_until")

    def _places(self, places: Sequence[Place]) -> DataFrame:
        rows = [
            (number, one.bucket, one.start, after.start if after.bucket == one.bucket else None)
            for number, (one, after) in enumerate(pairwise([*places, Place(-1)]))
        ]
        columns = f"`{PLACE}` INT, _bucket INT, _start LONG, _until LONG"
        return _rows(self._session, rows, columns)

    def changed(self, old: DataFrame, new: DataFrame) -> dict[int, int]:
        """Give the places whose rows are other ones than before, with how many more these are.

        The rows are compared by their number and by the sum of their checksums, in any order.

        :param old: placed rows that are replaced
        :param new: placed rows that replace them
        """
        from pyspark.sql import functions as f

        # A null does not change a checksum of Spark's, so whether a value is null is one more.
        values = [f.col(f"`{one.name}`") for one in self._table.columns]
        checksum = f.xxhash64(*values, *(value.isNull() for value in values))
        signed = [
            rows.select(PLACE, f.lit(sign).alias("n"),
                        (sign * checksum.cast("decimal(38)")).alias("checksum"))
            for rows, sign in ((old, -1), (new, 1))
        ]  # fmt: skip
        sums = signed[0].unionByName(signed[1]).groupBy(PLACE).agg(
            f.sum("n").alias("more"), f.sum("checksum").alias("checksum")
        )  # fmt: skip
        rows = sums.where("more <> 0 OR checksum <> 0").collect()
        return {row[PLACE]: row.more for row in rows}

    def cut(
        self, rows: DataFrame, places: Sequence[Place], sizes: Sizes
    ) -> dict[int, dict[Place, int]]:
        """Cut places that have become too large at some of their times.

        :param rows: all rows of these places, placed
        :return: by number of the place, the places that it becomes, each with its number of rows
        """
        from pyspark.sql import Window
        from pyspark.sql import functions as f

        # A run has one time, so that these are far fewer than the rows.
        counted = rows.groupBy(PLACE, _TIME).agg(f.count("*").alias("n"))
        order = Window.partitionBy(PLACE).orderBy(_TIME)
        numbered = counted.select(
            "*",
            f.sum("n").over(order).alias("before"),
            f.sum("n").over(Window.partitionBy(PLACE)).alias("all"),
        )
        nth = f"IF(all <= {sizes.piece}, 0, (before - n) DIV {sizes.fill})"
        numbered = numbered.withColumn("nth", f.expr(nth))
        found = numbered.groupBy(PLACE, "nth").agg(
            f.min(_TIME).alias("start"), f.sum("n").alias("n")
        )  # fmt: skip
        parts: dict[int, dict[Place, int]] = {}
        for row in sorted(found.collect(), key=lambda row: (row[PLACE], row.nth)):
            place, cut = places[row[PLACE]], parts.setdefault(row[PLACE], {})
            cut[place._replace(start=row.start) if cut else place] = row.n
        return parts


WRITING = {
    "compression": "zstd",
    # Row groups are small, because a query skips a group by the group's least and greatest values.
    "parquet.block.size": str(16 * 1024 * 1024),
    # A place is one file.
    "maxRecordsPerFile": "0",
}


def write(rows: DataFrame, table: Table, folder: str, places: Collection[int]) -> Mapping[int, str]:
    """Write a file for each place of some rows; give the path of each below the folder.

    :param rows: placed rows
    :param folder: URL of a folder that is absent
    :param places: the numbers of all places that have rows
    """
    from pyspark.sql import functions as f

    names = [f.col(f"`{one.name}`") for one in table.columns]
    order = [f.col(name).asc_nulls_last() for name in table.sorted_by]
    if len(places) == 1:
        # Without partitions: in lineage, a build that reads all of it reads what it has written.
        rows = rows.select(*names).repartition(1).sortWithinPartitions(*order)
        rows.write.options(**WRITING).parquet(folder)
        return dict(zip(places, _files(rows.sparkSession, folder, 1), strict=True))
    rows = rows.select(*names, PLACE).repartition(PLACE).sortWithinPartitions(PLACE, *order)
    rows.write.options(**WRITING).partitionBy(PLACE).parquet(folder)
    return {int(name.rpartition("/")[0].rpartition("=")[2]): name
            for name in _files(rows.sparkSession, folder, 2)}  # fmt: skip


def _files(session: SparkSession, folder: str, parts: int) -> Iterable[str]:
    """Give the files below a folder, each by so many last parts of its path."""
    reader = session.read.option("recursiveFileLookup", True).schema("nothing INT")
    for file in reader.parquet(folder).inputFiles():
        yield "/".join(file.rsplit("/", parts)[1:])
