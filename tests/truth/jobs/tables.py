"""Jobs on tables of the catalog, on other file formats, and what empties partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tests.truth.job import DAYS, FIRST, SECOND, THIRD, Every, Job

if TYPE_CHECKING:
    from tests.truth.job import Lake

ALL_COLUMNS = {"id": {"events.id"}, "user": {"events.user"}, "dt": {"events.dt"}}
COLUMNS = "id bigint, user bigint, dt string"


class TableAsSelect(Job):
    """A CTAS with partitions writes those of its rows."""

    reads = {"events": [SECOND, THIRD]}
    writes = {"out": [SECOND, THIRD]}
    columns = {"out": ALL_COLUMNS}

    def run(self, lake: Lake) -> None:
        lake.view("events")
        name = lake.name("out") if lake.kind == "iceberg" else f"{lake.job}.out"
        at = "" if lake.kind == "iceberg" else f"LOCATION '{lake.path('out')}'"
        lake.spark.sql(
            f"CREATE TABLE {name} USING {lake.kind} PARTITIONED BY (dt) {at} "
            "AS SELECT id, user, dt FROM events WHERE dt > '2024-05-05'"
        )


class InsertByName(Job):
    """Columns of an INSERT … BY NAME are those of the same name."""

    reads = {"events": [SECOND]}
    writes = {"out": [SECOND]}
    columns = {"out": ALL_COLUMNS}

    def run(self, lake: Lake) -> None:
        lake.view("events")
        name = lake.create("out", COLUMNS, "dt")
        lake.spark.sql(
            f"INSERT INTO {name} BY NAME SELECT dt, user, id FROM events WHERE dt = '{SECOND}'"
        )


class InsertByPosition(Job):
    """Columns of a plain INSERT are those of the same position."""

    reads = {"events": [SECOND]}
    writes = {"out": [SECOND]}
    columns = {"out": {"id": {"events.user"}, "user": {"events.id"}, "dt": {"events.dt"}}}

    def run(self, lake: Lake) -> None:
        lake.view("events")
        name = lake.create("out", COLUMNS, "dt")
        lake.spark.sql(f"INSERT INTO {name} SELECT user, id, dt FROM events WHERE dt = '{SECOND}'")


class InsertIntoOfFrames(Job):
    """``insertInto`` goes by position, whatever the names are."""

    reads = {"events": [SECOND]}
    writes = {"out": [SECOND]}
    columns = {"out": {"id": {"events.user"}, "user": {"events.id"}, "dt": {"events.dt"}}}

    def run(self, lake: Lake) -> None:
        name = lake.create("out", COLUMNS, "dt")
        day = lake.read("events").where(f"dt = '{SECOND}'")
        day.select("user", "id", "dt").write.insertInto(name)


class DynamicInsertOverwrite(Job):
    """INSERT OVERWRITE of the partitions of its rows leaves the others as they are."""

    conf = {"spark.sql.sources.partitionOverwriteMode": "dynamic"}
    reads = {"events": [SECOND]}
    writes = {"out": [FIRST, SECOND]}
    columns = {"out": ALL_COLUMNS}

    def run(self, lake: Lake) -> None:
        lake.view("events")
        name = lake.create("out", COLUMNS, "dt")
        lake.spark.sql(f"INSERT INTO {name} VALUES (1, 1, '2024-05-05'), (1, 1, '{SECOND}')")
        lake.spark.sql(f"INSERT OVERWRITE {name} SELECT * FROM events WHERE dt = '{SECOND}'")


class WriterConditionalOverwrite(Job):
    """``overwrite(condition)`` writes its rows, and removes what else fulfils the condition."""

    formats = ("delta", "iceberg")
    reads = {"events": [SECOND]}
    writes = {"out": [SECOND]}
    removes = {"out": [THIRD]}

    def plant(self, lake: Lake) -> None:
        lake.write(lake.events(), "events", "dt")
        lake.write(lake.events(), "out", "dt")

    def run(self, lake: Lake) -> None:
        from pyspark.sql import functions as F  # noqa: N812

        rows = lake.read("events").where(f"dt = '{SECOND}'")
        if lake.kind == "iceberg":
            rows.writeTo(lake.name("out")).overwrite(F.col("dt") >= SECOND)
        else:
            writer = rows.write.format("delta").mode("overwrite")
            writer.option("replaceWhere", f"dt >= '{SECOND}'").save(lake.path("out"))


class DeletedDays(Job):
    """A DELETE with a range removes several."""

    formats = ("delta", "iceberg")
    removes = {"events": [SECOND, THIRD]}

    def run(self, lake: Lake) -> None:
        lake.spark.sql(f"DELETE FROM {lake.name('events')} WHERE dt >= '{SECOND}'")


class WrittenAndRemoved(WriterConditionalOverwrite):
    """A day that is written and deleted is removed."""

    writes = {}
    removes = {"out": [SECOND]}

    def run(self, lake: Lake) -> None:
        lake.write(lake.read("events").where(f"dt = '{SECOND}'"), "out", "dt")
        lake.spark.sql(f"DELETE FROM {lake.name('out')} WHERE dt = '{SECOND}'")


class ViewOfTheCatalog(Job):
    """A view is no dataset; the table behind it is."""

    formats = ("parquet", "delta")
    reads = {"events": [SECOND]}
    writes = {"out": "all"}
    columns = {"out": {"id": {"events.id"}, "twice": {"events.user"}}}

    def run(self, lake: Lake) -> None:
        spark, job = lake.spark, lake.job
        events = lake.register("events")
        spark.sql(f"CREATE VIEW {job}.v AS SELECT id, user * 2 AS twice, dt FROM {events}")
        rows = spark.sql(f"SELECT id, twice FROM {job}.v WHERE dt = '{SECOND}'")
        lake.write(rows, "out")


class TableOfTheCatalog(Job):
    """A table of the catalog, read by name, of whose partitions a filter chooses one."""

    formats = ("parquet", "delta")
    reads = {"events": [THIRD]}
    writes = {"out": [THIRD]}
    columns = {"out": ALL_COLUMNS}

    def run(self, lake: Lake) -> None:
        rows = lake.spark.table(lake.register("events")).where("dt = '2024-05-07'")
        rows.write.format(lake.kind).partitionBy("dt").option("path", lake.path("out")).saveAsTable(
            f"{lake.job}.out"
        )


class _Files(Job):
    """Files of a format that Spark reads and writes itself."""

    formats = ("parquet",)
    format: ClassVar[str]
    reads = {"days": [SECOND]}
    writes = {"out": [SECOND]}
    columns = {"out": {"id": {"days.id"}, "dt": {"days.dt"}}}

    def plant(self, lake: Lake) -> None:
        rows = lake.events().selectExpr("CAST(id AS string) AS id", "dt").coalesce(1)
        rows.write.partitionBy("dt").format(self.format).save(lake.path("days"))

    def run(self, lake: Lake) -> None:
        reader = lake.spark.read.format(self.format).schema("id string, dt date")
        rows = reader.load(lake.path("days")).where(f"dt = '{SECOND}'")
        rows.write.partitionBy("dt").format(self.format).save(lake.path("out"))


class OrcFiles(_Files):
    """ORC."""

    format = "orc"


class JsonFiles(_Files):
    """JSON, a text for each row."""

    format = "json"


class CsvFiles(_Files):
    """CSV without a header."""

    format = "csv"


class TextFiles(_Files):
    """Text has one column, which is named ``value``, whatever the schema names it."""

    format = "text"
    columns = {"out": {"value": {"days.value"}, "dt": {"days.dt"}}}

    def run(self, lake: Lake) -> None:
        reader = lake.spark.read.format("text").schema("value string, dt date")
        rows = reader.load(lake.path("days")).where(f"dt = '{SECOND}'")
        rows.write.partitionBy("dt").format("text").save(lake.path("out"))


class PathOfOnePartition(Job):
    """A path that ends in a partition reads that partition of the table above it."""

    formats = ("parquet",)
    reads = {"events": [SECOND]}
    writes = {"out": "all"}
    columns = {"out": {"id": {"events.id"}}}

    def run(self, lake: Lake) -> None:
        rows = lake.spark.read.parquet(f"{lake.path('events')}/dt={SECOND}").select("id")
        rows.coalesce(1).write.parquet(lake.path("out"))


class PathsWithABase(Job):
    """Several paths with a ``basePath`` read these partitions."""

    formats = ("parquet",)
    reads = {"events": [FIRST, SECOND]}
    writes = {"out": [FIRST, SECOND]}

    def run(self, lake: Lake) -> None:
        base = lake.path("events")
        paths = [f"{base}/dt={day}" for day in DAYS[:2]]
        rows = lake.spark.read.option("basePath", base).parquet(*paths)
        lake.write(rows, "out", "dt")


class _Hive(Job):
    """A table of Hive's own kind, in a metastore of the application."""

    formats = ("parquet",)
    alone = True
    static = {
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.hive.exec.dynamic.partition.mode": "nonstrict",
    }
    stored: ClassVar[str]
    reads = {"events": [SECOND]}
    writes = {"out": [SECOND]}
    columns = {"out": ALL_COLUMNS}

    def table(self, lake: Lake) -> str:
        name = f"{lake.job}.out"
        lake.spark.sql(
            f"CREATE TABLE {name} (id bigint, user bigint) PARTITIONED BY (dt string) "
            f"STORED AS {self.stored} LOCATION '{lake.path('out')}'"
        )
        return name

    def run(self, lake: Lake) -> None:
        name = self.table(lake)
        lake.view("events")
        lake.spark.sql(f"INSERT INTO {name} SELECT id, user, dt FROM events WHERE dt = '{SECOND}'")


class HiveParquet(_Hive):
    """Spark writes it as its own."""

    stored = "PARQUET"


class HiveText(_Hive):
    """Hive's own classes write it."""

    stored = "TEXTFILE"


class HiveStatic(_Hive):
    """An overwrite of a static partition."""

    stored = "ORC"
    columns = {"out": {"id": {"events.id"}, "user": {"events.user"}}}
    declared = {"column_without_sources out dt": "it is the value of a static partition"}

    def run(self, lake: Lake) -> None:
        name = self.table(lake)
        lake.view("events")
        lake.spark.sql(
            f"INSERT OVERWRITE TABLE {name} PARTITION (dt = '{SECOND}') "
            f"SELECT id, user FROM events WHERE dt = '{SECOND}'"
        )


class HiveReadBack(_Hive):
    """A partition of a Hive table is written, and another one read."""

    stored = "TEXTFILE"
    writes = {"out": Every(DAYS), "last": "all"}
    reads = {"events": Every(DAYS)}
    columns = {"last": {"id": {"events.id"}}}

    def run(self, lake: Lake) -> None:
        name = self.table(lake)
        lake.view("events")
        lake.spark.sql(f"INSERT INTO {name} SELECT id, user, dt FROM events")
        rows = lake.spark.sql(f"SELECT id FROM {name} WHERE dt = '2024-05-07'")
        lake.write(rows, "last")


class HiveDropPartition(_Hive):
    """A partition that is dropped from a table is removed."""

    stored = "PARQUET"
    reads = {"events": Every(DAYS)}
    writes = {"out": [FIRST, THIRD]}
    removes = {"out": [SECOND]}

    def run(self, lake: Lake) -> None:
        name = self.table(lake)
        lake.view("events")
        lake.spark.sql(f"INSERT INTO {name} SELECT id, user, dt FROM events")
        lake.spark.sql(f"ALTER TABLE {name} DROP PARTITION (dt = '{SECOND}')")
