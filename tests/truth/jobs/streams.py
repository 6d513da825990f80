"""Streams: a batch is a read of a part of the source's folder, and a write of its sink."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.truth.job import DAYS, NEXT, SECOND, Job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from tests.truth.job import Lake

SCHEMA = "id bigint, user bigint, dt string"
COLUMNS = {name: {f"events.{name}"} for name in ("id", "user", "dt")}


class _Stream(Job):
    """Events of files without partitions, all that are new, as they are."""

    form = "parquet"
    by: tuple[str, ...] = ()
    reads = {"events": "part"}
    writes = {"out": "all"}
    columns = {"out": COLUMNS}

    def plant(self, lake: Lake) -> None:
        for day in DAYS:
            frame = lake.events([day]).coalesce(1)
            frame.write.mode("append").format(self.form).save(lake.path("events"))

    def source(self, lake: Lake) -> DataFrame:
        reader = lake.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        return reader.format(self.form).load(lake.path("events"))

    def run(self, lake: Lake) -> None:
        self.batches(lake, self.source(lake).writeStream)

    def batches(self, lake: Lake, writer: DataStreamWriter) -> None:
        """Write all batches that there are, one for each file."""
        if self.by:
            writer = writer.partitionBy(*self.by)
        writer = writer.option("checkpointLocation", lake.path("checkpoint"))
        writer = writer.trigger(availableNow=True)
        if lake.kind == "iceberg":
            frame = lake.spark.createDataFrame([], SCHEMA)
            lake.write(frame, "out", *self.by)
            query = writer.format("iceberg").toTable(lake.name("out"))
        else:
            query = writer.format(lake.kind).start(lake.path("out"))
        query.awaitTermination()


class ParquetFilesOneByOne(_Stream):
    """Each batch reads one file of Parquet."""


class CsvFilesOneByOne(_Stream):
    """Each batch reads one file of CSV."""

    form = "csv"


class JsonFilesOneByOne(_Stream):
    """Each batch reads one file of JSON, and writes the partition of a day."""

    form = "json"
    by = ("dt",)
    writes = {"out": list(DAYS)}


class FilesOfAWildcardOneByOne(_Stream):
    """The source is a wildcard of files."""

    def source(self, lake: Lake) -> DataFrame:
        reader = lake.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        return reader.parquet(f"{lake.path('events')}/*.parquet")


class FilesInFoldersOneByOne(_Stream):
    """The files are in folders of which no columns are made."""

    def plant(self, lake: Lake) -> None:
        for number, day in enumerate(DAYS):
            lake.events([day]).coalesce(1).write.parquet(lake.path(f"events/delivery{number}"))

    def source(self, lake: Lake) -> DataFrame:
        reader = lake.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        return reader.option("recursiveFileLookup", "true").parquet(lake.path("events"))


class TableToTable(_Stream):
    """A table without partitions is copied as it is."""

    formats = ("delta",)

    def plant(self, lake: Lake) -> None:
        lake.write(lake.events(), "events")

    def source(self, lake: Lake) -> DataFrame:
        return lake.spark.readStream.format(lake.kind).load(lake.path("events"))


class PartitionsToTable(TableToTable):
    """A day of a table is copied as it is."""

    by = ("dt",)
    reads = {"events": [SECOND]}
    writes = {"out": [SECOND]}

    def plant(self, lake: Lake) -> None:
        lake.write(lake.events([SECOND]), "events", "dt")


class TableIntoItself(TableToTable):
    """A stream appends to the table that it reads what it has found there."""

    reads = {"events": "part"}
    writes = {"events": "all"}
    columns = {"events": COLUMNS}

    def batches(self, lake: Lake, writer: DataStreamWriter) -> None:
        writer = writer.option("checkpointLocation", lake.path("checkpoint")).format(lake.kind)
        writer.trigger(once=True).start(lake.path("events")).awaitTermination()


class EachBatchToTwoTables(_Stream):
    """A function writes each batch to two tables."""

    writes = {"out": "all", "large": "all"}
    columns = {"out": COLUMNS, "large": COLUMNS}

    def run(self, lake: Lake) -> None:
        def write(batch: DataFrame, number: int) -> None:
            del number
            batch.persist()
            lake.write(batch, "out")
            lake.write(batch.where("id > 14"), "large")
            batch.unpersist()

        writer = self.source(lake).writeStream.foreachBatch(write)
        writer = writer.option("checkpointLocation", lake.path("checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()


class RestartFromACheckpoint(_Stream):
    """A stream ends, new files arrive, and it starts again."""

    def run(self, lake: Lake) -> None:
        for part in range(2):
            if part:
                for file in lake.root.joinpath(lake.job, "later").glob("*.parquet"):
                    file.rename(lake.path(f"events/{file.name}"))
            self.batches(lake, self.source(lake).writeStream)

    def plant(self, lake: Lake) -> None:
        super().plant(lake)
        lake.events([NEXT]).coalesce(1).write.parquet(lake.path("later"))

    def batches(self, lake: Lake, writer: DataStreamWriter) -> None:
        if lake.kind == "iceberg" and lake.spark.catalog.tableExists(lake.name("out")):
            writer = writer.option("checkpointLocation", lake.path("checkpoint"))
            writer = writer.trigger(availableNow=True).format("iceberg")
            writer.toTable(lake.name("out")).awaitTermination()
            return
        super().batches(lake, writer)
