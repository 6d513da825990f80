"""Changes of rows and layouts: MERGE, marks of deleted rows, hidden partitions, renamed columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.truth.job import DAYS, FIRST, NEXT, SECOND, THIRD, Every, Job

if TYPE_CHECKING:
    from tests.truth.job import Lake


def on_read(lake: Lake, table: str = "events") -> None:
    """Let rows be marked as deleted, instead of files being written anew."""
    properties = "'delta.enableDeletionVectors' = 'true'"
    if lake.kind == "iceberg":
        modes = ", ".join(
            f"'write.{verb}.mode' = 'merge-on-read'" for verb in ("delete", "update", "merge")
        )
        properties = f"'format-version' = '2', {modes}"
    lake.spark.sql(f"ALTER TABLE {lake.name(table)} SET TBLPROPERTIES ({properties})")


class UpsertedOnRead(Job):
    """A MERGE of several clauses, one by the source, which marks rows."""

    formats = ("delta", "iceberg")
    reads = {"changes": "all", "events": Every(DAYS)}
    writes = {"events": [FIRST, SECOND, THIRD, NEXT]}
    columns = {
        "events": {
            "id": {"changes.id"},
            "user": {"changes.user"},
            "dt": {"changes.dt"},
        }
    }

    def plant(self, lake: Lake) -> None:
        super().plant(lake)
        on_read(lake)
        rows = lake.events().where("id < 3").selectExpr("id", "user + 1 AS user", "dt")
        rows = rows.union(lake.events((NEXT,)).selectExpr("id + 100", "user", "dt"))
        lake.write(rows, "changes")

    def run(self, lake: Lake) -> None:
        lake.view("changes")
        lake.spark.sql(
            f"MERGE INTO {lake.name('events')} t USING changes s ON t.id = s.id "
            "WHEN MATCHED AND s.id = 1 THEN DELETE "
            "WHEN MATCHED THEN UPDATE SET user = s.user "
            "WHEN NOT MATCHED THEN INSERT (id, user, dt) VALUES (s.id, s.user, s.dt) "
            f"WHEN NOT MATCHED BY SOURCE AND t.dt = '{THIRD}' AND t.id > 20 THEN DELETE"
        )


class UpdatedOnRead(Job):
    """An UPDATE and a DELETE that mark rows; the DELETE empties a day."""

    formats = ("delta", "iceberg")
    reads = {"events": [FIRST, SECOND]}
    writes = {"events": [FIRST]}
    removes = {"events": [SECOND]}

    def truth_of(self, kind: str) -> Job:
        return self if kind == "delta" else _UpdatedByStatistics()

    def plant(self, lake: Lake) -> None:
        super().plant(lake)
        on_read(lake)

    def run(self, lake: Lake) -> None:
        name = lake.name("events")
        lake.spark.sql(f"UPDATE {name} SET user = id WHERE dt = '{FIRST}' AND id < 10")
        lake.spark.sql(f"DELETE FROM {name} WHERE dt = '{SECOND}' AND user >= 0")


class _UpdatedByStatistics(UpdatedOnRead):
    # Iceberg knows by the statistics of a file that all its rows are to be deleted.
    reads = {"events": [FIRST]}


class MergedByFrames(Job):
    """The same by the functions of frames."""

    cannot = {"3.5": "its frames have no mergeInto"}
    formats = ("iceberg",)
    reads = {"changes": "all", "events": [SECOND]}
    writes = {"events": [SECOND]}
    columns = {"events": {"user": {"changes.user"}}}

    def plant(self, lake: Lake) -> None:
        super().plant(lake)
        lake.write(lake.events((SECOND,)).where("id < 10"), "changes")

    def run(self, lake: Lake) -> None:
        from pyspark.sql.functions import col, expr

        changes = lake.read("changes").alias("s")
        merge = changes.mergeInto(
            lake.name("events"), expr(f"events.id = s.id AND events.dt = '{SECOND}'")
        )
        merge.whenMatched().update({"user": col("s.user")}).merge()


class BatchesMerged(Job):
    """Each batch of a stream is merged into a table."""

    formats = ("delta", "iceberg")
    reads = {"arriving": "part", "events": [SECOND]}
    writes = {"events": [SECOND]}
    columns = {"events": {"user": {"arriving.user"}}}

    def plant(self, lake: Lake) -> None:
        super().plant(lake)
        for part in range(2):
            rows = lake.events((SECOND,)).where(f"id % 2 = {part} AND id < 10")
            rows.coalesce(1).write.mode("append").parquet(lake.path("arriving"))

    def run(self, lake: Lake) -> None:
        def merge(batch: object, number: int) -> None:
            del number
            batch.createOrReplaceTempView("arrived")
            batch.sparkSession.sql(
                f"MERGE INTO {lake.name('events')} t USING arrived s "
                f"ON t.id = s.id AND t.dt = '{SECOND}' "
                "WHEN MATCHED THEN UPDATE SET user = s.user"
            )

        reader = lake.spark.readStream.schema("id bigint, user bigint, dt string")
        stream = reader.option("maxFilesPerTrigger", 1).parquet(lake.path("arriving"))
        writer = stream.writeStream.foreachBatch(merge)
        writer = writer.option("checkpointLocation", lake.path("checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()


class AlignedDeletes(Job):
    """A DELETE by a time empties days of a hidden partition, and takes rows from another."""

    formats = ("iceberg",)
    reads = {"times": [SECOND]}
    writes = {"times": [SECOND]}
    removes = {"times": [FIRST]}

    def plant(self, lake: Lake) -> None:
        lake.create("times", "id bigint, at timestamp", "days(at)")
        rows = lake.events().selectExpr("id", "CAST(dt AS timestamp) + make_dt_interval(0, id) at")
        rows.where("id < 20").writeTo(lake.name("times")).append()

    def run(self, lake: Lake) -> None:
        name = lake.name("times")
        lake.spark.sql(f"DELETE FROM {name} WHERE at < TIMESTAMP'{SECOND}'")
        lake.spark.sql(f"DELETE FROM {name} WHERE at < TIMESTAMP'{SECOND} 04:00:00'")


class HiddenTimes(Job):
    """Tables by hours, days, buckets and prefixes; conditions on the columns choose partitions."""

    formats = ("iceberg",)
    reads = {
        "hours": ["2024-05-06-01"],
        "months": ["2024-06"],
        "prefixes": ["ab"],
        "buckets": "part",
    }
    writes = {"days": [SECOND], "out": "all", "names": ["ab"]}
    columns = {
        "days": {"id": {"hours.id"}, "at": {"hours.at"}},
        "names": {"id": {"prefixes.id"}, "name": {"prefixes.name"}},
        "out": {"id": {"months.id"}},
    }

    def plant(self, lake: Lake) -> None:
        times = lake.spark.sql(
            "SELECT id, TIMESTAMP'2024-05-06 00:10:00' + make_dt_interval(0, id % 4) AS at "
            "FROM range(20)"
        )
        lake.create("hours", "id bigint, at timestamp", "hours(at)")
        times.writeTo(lake.name("hours")).append()
        lake.create("days", "id bigint, at timestamp", "days(at)")
        lake.create("months", "id bigint, on date", "months(on)")
        lake.spark.sql(
            f"INSERT INTO {lake.name('months')} SELECT id, add_months(DATE'2024-05-06', "
            "CAST(id % 3 AS int)) FROM range(9)"
        )
        for table in ("prefixes", "names"):
            lake.create(table, "id bigint, name string", "truncate(2, name)")
        names = "concat(element_at(array('ab', 'cd'), CAST(id % 2 + 1 AS int)), id)"
        lake.spark.sql(f"INSERT INTO {lake.name('prefixes')} SELECT id, {names} FROM range(9)")
        lake.create("buckets", "id bigint", "bucket(4, id)")
        lake.spark.range(20).writeTo(lake.name("buckets")).append()

    def run(self, lake: Lake) -> None:
        name = lake.name
        lake.spark.sql(
            f"INSERT INTO {name('days')} SELECT * FROM {name('hours')} WHERE at >= "
            "TIMESTAMP'2024-05-06 01:00:00' AND at < TIMESTAMP'2024-05-06 02:00:00'"
        )
        rows = lake.spark.sql(f"SELECT id FROM {name('months')} WHERE on = DATE'2024-06-06'")
        lake.write(rows, "out")
        rows = lake.spark.sql(f"SELECT * FROM {name('prefixes')} WHERE name LIKE 'ab%'")
        rows.writeTo(name("names")).overwritePartitions()
        lake.spark.sql(f"SELECT * FROM {name('buckets')} WHERE id = 3").collect()


class OverwrittenHidden(Job):
    """A condition on a time overwrites days; an overwrite of partitions, those of its rows."""

    formats = ("iceberg",)
    reads = {"new": "part"}  # the rows that conditions on times choose
    writes = {"out": [SECOND, NEXT]}
    removes = {"out": [THIRD]}
    columns = {"out": {"id": {"new.id"}, "at": {"new.at"}}}

    def plant(self, lake: Lake) -> None:
        lake.create("out", "id bigint, at timestamp", "days(at)")
        rows = lake.events().selectExpr("id", "CAST(dt AS timestamp) AS at")
        rows.writeTo(lake.name("out")).append()
        new = lake.events((SECOND, NEXT)).selectExpr("id", "CAST(dt AS timestamp) AS at")
        lake.write(new, "new")

    def run(self, lake: Lake) -> None:
        from pyspark.sql.functions import expr

        new, name = lake.read("new"), lake.name("out")
        days = "at >= TIMESTAMP'2024-05-06' AND at < TIMESTAMP'2024-05-08'"
        new.where(f"at < TIMESTAMP'{THIRD}'").writeTo(name).overwrite(expr(days))
        new.where(f"at > TIMESTAMP'{THIRD}'").writeTo(name).overwritePartitions()


class DroppedField(Job):
    """A table loses the field of its partitions; a write after that is to none."""

    formats = ("iceberg",)
    reads = {"new": "all"}
    writes = {"events": "all"}

    def plant(self, lake: Lake) -> None:
        super().plant(lake)
        lake.write(lake.events((NEXT,)), "new")
        lake.spark.sql(f"ALTER TABLE {lake.name('events')} DROP PARTITION FIELD dt")

    def run(self, lake: Lake) -> None:
        lake.read("new").writeTo(lake.name("events")).append()


class DroppedFieldOfV1(DroppedField):
    """The same of the first version of the format, which keeps the field without values."""

    def plant(self, lake: Lake) -> None:
        name = lake.name("events")
        lake.spark.sql(
            f"CREATE TABLE {name} (id bigint, user bigint, dt string) USING iceberg "
            "PARTITIONED BY (dt) TBLPROPERTIES ('format-version' = '1')"
        )
        lake.events().sortWithinPartitions("dt").writeTo(name).append()
        lake.write(lake.events((NEXT,)), "new")
        lake.spark.sql(f"ALTER TABLE {name} DROP PARTITION FIELD dt")


class ReplacedField(Job):
    """Days become months; a read by days, and a write of a month."""

    formats = ("iceberg",)
    reads = {"times": [SECOND]}
    writes = {"times": ["2024-06"]}

    def plant(self, lake: Lake) -> None:
        lake.create("times", "id bigint, at timestamp", "days(at)")
        rows = lake.events().selectExpr("id", "CAST(dt AS timestamp) AS at")
        rows.writeTo(lake.name("times")).append()
        lake.spark.sql(
            f"ALTER TABLE {lake.name('times')} REPLACE PARTITION FIELD at_day WITH months(at)"
        )

    def run(self, lake: Lake) -> None:
        rows = lake.read("times").where(f"at >= TIMESTAMP'{SECOND}' AND at < TIMESTAMP'{THIRD}'")
        rows.selectExpr("id", "at + INTERVAL 31 DAYS AS at").writeTo(lake.name("times")).append()


class RenamedColumns(Job):
    """Columns are renamed and dropped in the job, that of the partitions too."""

    formats = ("delta", "iceberg")
    reads = {"events": [SECOND], "new": "all"}
    writes = {"out": [SECOND], "events": [NEXT]}
    columns = {
        "out": {"who": {"events.who"}, "day": {"events.day"}},
        "events": {"who": {"new.who"}, "day": {"new.day"}},
    }

    def plant(self, lake: Lake) -> None:
        super().plant(lake)
        lake.write(lake.events((NEXT,)).selectExpr("user AS who", "dt AS day"), "new")
        if lake.kind == "delta":
            lake.spark.sql(
                f"ALTER TABLE {lake.name('events')} SET TBLPROPERTIES "
                "('delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2', "
                "'delta.minWriterVersion' = '5')"
            )

    def run(self, lake: Lake) -> None:
        name = lake.name("events")
        lake.spark.sql(f"ALTER TABLE {name} RENAME COLUMN user TO who")
        lake.spark.sql(f"ALTER TABLE {name} RENAME COLUMN dt TO day")
        lake.spark.sql(f"ALTER TABLE {name} DROP COLUMN id")
        lake.write(lake.read("events").where(f"day = '{SECOND}'"), "out", "day")
        lake.spark.sql(f"INSERT INTO {name} SELECT * FROM {lake.name('new')}")


class ReplacedWhereInSql(Job):
    """INSERT INTO … REPLACE WHERE writes its rows, and removes what else was there."""

    formats = ("delta",)
    reads = {"events": [SECOND]}
    writes = {"out": [SECOND]}
    removes = {"out": [THIRD]}
    columns = {"out": {"id": {"events.id"}, "user": {"events.user"}, "dt": {"events.dt"}}}

    def plant(self, lake: Lake) -> None:
        super().plant(lake)
        lake.write(lake.events(), "out", "dt")

    def run(self, lake: Lake) -> None:
        events = f"SELECT * FROM {lake.name('events')} WHERE dt = '{SECOND}'"
        lake.spark.sql(
            f"INSERT INTO {lake.register('out')} REPLACE WHERE dt >= '{SECOND}' {events}"
        )


class ChangesOfATable(Job):
    """The change data feed by SQL: a day that was changed, not the whole table."""

    formats = ("delta",)
    reads = {"events": [SECOND]}
    writes = {"out": [SECOND]}
    columns = {"out": {"id": {"events.id"}, "dt": {"events.dt"}}}

    def plant(self, lake: Lake) -> None:
        super().plant(lake)
        name = lake.name("events")
        lake.spark.sql(
            f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
        )
        lake.spark.sql(f"UPDATE {name} SET user = 0 WHERE dt = '{SECOND}' AND id < 9")

    def run(self, lake: Lake) -> None:
        rows = lake.spark.sql(f"SELECT id, dt FROM table_changes('{lake.register('events')}', 2)")
        lake.write(rows, "out", "dt")

    def truth_on(self, spark: tuple[int, int]) -> Job:
        return self if spark >= (4, 0) else _ChangesOutOfSight()


class _ChangesOutOfSight(ChangesOfATable):
    reads = {"events": "unknown"}
    declared = {"partitions_unknown events": "before Spark 4, Delta reads it out of Spark's sight"}


class ReplacedByItself(Job):
    """A table is created anew from itself, and another one in its place."""

    cannot = {"3.5": "Delta cannot replace a table there"}
    formats = ("delta", "iceberg")
    reads = {"events": [SECOND]}
    writes = {"events": [SECOND]}
    removes = {"events": [FIRST, THIRD]}
    columns = {"events": {"id": {"events.id"}, "user": {"events.user"}, "dt": {"events.dt"}}}

    def run(self, lake: Lake) -> None:
        name = lake.name("events")
        lake.spark.sql(
            f"CREATE OR REPLACE TABLE {name} USING {lake.kind} PARTITIONED BY (dt) "
            f"AS SELECT * FROM {name} WHERE dt = '{SECOND}'"
        )
