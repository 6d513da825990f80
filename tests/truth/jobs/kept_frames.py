"""Frames that Spark keeps: caches, checkpoints, and the batches of ``foreachBatch``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.truth.job import DAYS, FIRST, SECOND, Job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tests.truth.job import Lake


class CachedTable(Job):
    """A view of a cached table is aggregated."""

    reads = {"events": [SECOND]}
    writes = {"out": [SECOND]}
    columns = {"out": {"total": {"events.user"}, "one": set(), "dt": {"events.dt"}}}
    declared = {"column_without_sources out one": "it is a literal"}

    def run(self, lake: Lake) -> None:
        lake.view("events")
        lake.spark.sql(
            "CACHE TABLE kept AS SELECT user * 2 AS twice, dt FROM events WHERE dt = '2024-05-06'"
        )
        lake.spark.sql("CREATE TEMPORARY VIEW seen AS SELECT twice AS n, dt FROM kept")
        total = lake.spark.sql("SELECT sum(n) AS total, 1 AS one, dt FROM seen GROUP BY dt")
        lake.write(total, "out", "dt")
        lake.spark.sql("UNCACHE TABLE kept")


class CachedThenOverwritten(Job):
    """A cached frame is written after the table that it was read from has been overwritten."""

    reads = {"events": [SECOND]}
    writes = {"events": [SECOND], "out": [SECOND]}
    columns = {"out": {"n": {"events.id", "events.user"}, "dt": {"events.dt"}}}
    declared = {"column_without_sources events user": "it is a literal"}
    formats = ("parquet",)

    def run(self, lake: Lake) -> None:
        day = lake.read("events").where("dt = '2024-05-06'")
        kept = day.selectExpr("id + user AS n", "dt").cache()
        kept.count()
        new = day.selectExpr("id", "0L AS user", "dt").localCheckpoint()
        lake.write(new, "events", "dt", mode="dynamic")
        lake.write(kept, "out", "dt")


class CachedAndCollectedAgain(Job):
    """A cached frame is collected twice: the second time nothing of the table is read."""

    reads = {"events": [SECOND]}
    writes = {"out": "all"}
    columns = {"out": {"user": {"events.user"}}}

    def run(self, lake: Lake) -> None:
        kept = lake.read("events").where(f"dt = '{SECOND}'").cache()
        kept.collect()
        kept.collect()
        lake.write(kept.select("user"), "out")


class Checkpoints(Job):
    """A checkpoint of a join of a checkpoint with itself is aggregated."""

    reads = {"events": [FIRST, SECOND]}
    writes = {"out": [FIRST, SECOND]}
    columns = {"out": {"most": {"events.user"}, "n": set(), "dt": {"events.dt"}}}
    declared = {"column_without_sources out n": "it is a count of rows"}

    def run(self, lake: Lake) -> None:
        days = lake.read("events").where("dt < '2024-05-07'")
        twice = days.selectExpr("id", "user * 2 AS twice", "dt").localCheckpoint()
        joined = twice.alias("a").join(twice.alias("b"), "id")
        both = joined.selectExpr("b.twice AS n", "a.dt").localCheckpoint(eager=False)
        both.createOrReplaceTempView("both")
        query = "SELECT max(n) AS most, count(*) AS n, dt FROM both GROUP BY dt"
        lake.write(lake.spark.sql(query), "out", "dt")


class RowsOfTheJob(Job):
    """Rows are collected, and made a frame again: nobody knows of what its columns are made."""

    reads = {"events": "all"}
    writes = {"out": "all"}
    columns = {"out": {}}
    declared = {"column_lineage_missing out": "the rows were in the memory of Python"}

    def run(self, lake: Lake) -> None:
        rows = lake.read("events").collect()
        lake.write(lake.spark.createDataFrame(rows, "id long, user long, dt string"), "out")


class EachBatch(Job):
    """Each batch of a stream is joined with a table, and written by a function of the job."""

    formats = ("parquet",)
    reads = {"events": list(DAYS), "people": "all"}
    writes = {"out": list(DAYS), "names": "all"}
    columns = {
        "out": {"twice": {"events.user"}, "name": {"people.name"}, "dt": {"events.dt"}},
        "names": {"n": {"people.name"}},
    }

    def plant(self, lake: Lake) -> None:
        super().plant(lake)
        lake.write(lake.spark.sql("SELECT id, 'x' AS name FROM range(30)"), "people")

    def run(self, lake: Lake) -> None:
        def write(batch: DataFrame, _: int) -> None:
            lake.write(batch.selectExpr("user * 2 AS twice", "name", "dt"), "out", "dt")
            lake.write(batch.selectExpr("length(name) AS n"), "names")

        schema = lake.read("events").schema
        stream = lake.spark.readStream.schema(schema).parquet(lake.path("events"))
        joined = stream.join(lake.read("people"), "id")
        begun = joined.writeStream.foreachBatch(write).trigger(availableNow=True)
        begun.option("checkpointLocation", lake.path("checkpoint")).start().awaitTermination()
