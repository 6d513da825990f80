"""Reads of a table as it was, of what changed in it, and of what is known about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.truth.job import DAYS, FIRST, NEXT, SECOND, THIRD, Job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tests.truth.job import Lake


class _History(Job):
    """Each day is a commit of its own."""

    formats = ("delta", "iceberg")

    def plant(self, lake: Lake) -> None:
        for day in DAYS:
            lake.write(lake.events().where(f"dt = '{day}'"), "events", "dt")

    def run(self, lake: Lake) -> None:
        lake.write(self.read(lake).selectExpr("id", "dt"), "out", "dt")

    def read(self, lake: Lake) -> DataFrame:
        """Make the frame that is written."""
        raise NotImplementedError


def versions(lake: Lake) -> list[tuple[str, str]]:
    """Give the (id, time) of each commit of ``events``, the oldest first."""
    if lake.kind == "iceberg":
        query = f"SELECT snapshot_id, committed_at FROM {lake.name('events')}.snapshots"
    else:
        query = f"DESCRIBE HISTORY {lake.name('events')}"
    columns = (
        ("snapshot_id", "committed_at") if lake.kind == "iceberg" else ("version", "timestamp")
    )
    rows = lake.spark.sql(query).orderBy(columns[1]).selectExpr(*(f"string({c})" for c in columns))
    return [(row[0], row[1]) for row in rows.collect()]


class VersionAsOf(_History):
    """The last day is in no version that is read."""

    reads = {"events": [FIRST, SECOND]}
    writes = {"out": [FIRST, SECOND]}
    columns = {"out": {"id": {"events.id"}, "dt": {"events.dt"}}}

    def read(self, lake: Lake) -> DataFrame:
        number, _ = versions(lake)[1]
        return lake.spark.sql(f"SELECT * FROM {lake.name('events')} VERSION AS OF {number}")


class TimestampAsOf(VersionAsOf):
    """As the version, by a time."""

    def read(self, lake: Lake) -> DataFrame:
        _, time = versions(lake)[1]
        return lake.spark.sql(f"SELECT * FROM {lake.name('events')} TIMESTAMP AS OF '{time}'")


class VersionByOption(VersionAsOf):
    """As the version, by an option of the reader; a filter leaves out a day more."""

    reads = {"events": [SECOND]}
    writes = {"out": [SECOND]}

    def read(self, lake: Lake) -> DataFrame:
        number, _ = versions(lake)[1]
        option = "snapshot-id" if lake.kind == "iceberg" else "versionAsOf"
        return lake.read("events", **{option: number}).where("dt > '2024-05-05'")


class WholeVersion(_History):
    """All that a version had, which is not all that the table has."""

    reads = {"events": [FIRST]}
    writes = {"out": [FIRST]}

    def read(self, lake: Lake) -> DataFrame:
        _, time = versions(lake)[0]
        if lake.kind == "delta":
            return lake.spark.read.format("delta").load(f"{lake.path('events')}@v0")
        at = f"unix_millis(TIMESTAMP '{time}')"
        milliseconds = lake.spark.sql(f"SELECT {at}").collect()[0][0]
        return lake.read("events", **{"as-of-timestamp": str(milliseconds)})


class Increment(_History):
    """What one commit added."""

    formats = ("iceberg",)
    reads = {"events": [SECOND]}
    writes = {"out": [SECOND]}
    columns = {"out": {"id": {"events.id"}, "dt": {"events.dt"}}}

    def read(self, lake: Lake) -> DataFrame:
        (first, _), (second, _), *_ = versions(lake)
        return lake.read("events", **{"start-snapshot-id": first, "end-snapshot-id": second})


class Changes(_History):
    """The rows that commits changed, of Iceberg by its metadata table."""

    formats = ("iceberg",)
    reads = {"events": [SECOND, THIRD]}
    writes = {"out": [SECOND, THIRD]}

    def read(self, lake: Lake) -> DataFrame:
        first, _ = versions(lake)[0]
        reader = lake.spark.read.option("start-snapshot-id", first)
        return reader.table(f"{lake.name('events')}.changes")


class ChangelogView(_History):
    """The same by a view that a procedure makes."""

    formats = ("iceberg",)
    reads = {"events": [SECOND]}
    writes = {"out": [SECOND]}
    declared = {"column_lineage_missing out": "Iceberg compares whole rows in functions of its own"}

    def read(self, lake: Lake) -> DataFrame:
        (first, _), (second, _), *_ = versions(lake)
        [view] = lake.spark.sql(
            "CALL lakehouse.system.create_changelog_view("
            f"table => '{lake.job}.events', changelog_view => 'changed', options => "
            f"map('start-snapshot-id', '{first}', 'end-snapshot-id', '{second}'))"
        ).collect()
        return lake.spark.table(view[0])


class ChangeFeed(_History):
    """The same of Delta, by its change data feed."""

    formats = ("delta",)
    conf = {"spark.databricks.delta.properties.defaults.enableChangeDataFeed": "true"}
    reads = {"events": [SECOND]}
    writes = {"out": [SECOND]}

    def plant(self, lake: Lake) -> None:
        key, value = next(iter(self.conf.items()))
        lake.spark.conf.set(key, value)
        super().plant(lake)
        lake.spark.conf.unset(key)

    def read(self, lake: Lake) -> DataFrame:
        options = {"readChangeFeed": "true", "startingVersion": "1", "endingVersion": "1"}
        return lake.read("events", **options)

    def truth_on(self, spark: tuple[int, int]) -> Job:
        return self if spark >= (4, 0) else _ChangeFeedOutOfSight()


class _ChangeFeedOutOfSight(ChangeFeed):
    reads = {"events": "unknown"}
    declared = {"partitions_unknown events": "before Spark 4, Delta reads it out of Spark's sight"}


class Tag(_History):
    """A tag names a version: all that it had is read, and the table has more by now."""

    formats = ("iceberg",)
    reads = {"events": list(DAYS)}
    writes = {"out": list(DAYS)}

    def plant(self, lake: Lake) -> None:
        super().plant(lake)
        lake.spark.sql(f"ALTER TABLE {lake.name('events')} CREATE TAG closed")
        lake.write(lake.events((NEXT,)), "events", "dt")

    def read(self, lake: Lake) -> DataFrame:
        return lake.spark.sql(f"SELECT * FROM {lake.name('events')} VERSION AS OF 'closed'")


class AboutTable(_History):
    """What is known about a table is no data of it: only the day that is read is read."""

    reads = {"events": [THIRD]}
    writes = {"out": [THIRD], "files": "all"}

    def run(self, lake: Lake) -> None:
        versions(lake)
        if lake.kind == "iceberg":
            for table in ("files", "partitions", "history", "manifests", "refs", "entries"):
                lake.spark.table(f"{lake.name('events')}.{table}").count()
            files = lake.spark.table(f"{lake.name('events')}.files")
            files = files.selectExpr("max(file_path) AS last", "sum(record_count) AS rows")
        else:
            files = lake.spark.sql(f"DESCRIBE DETAIL {lake.name('events')}")
            files = files.selectExpr("numFiles", "sizeInBytes")
        files.write.parquet(lake.path("files"))
        super().run(lake)

    def read(self, lake: Lake) -> DataFrame:
        return lake.read("events").where("dt = '2024-05-07'")

    def truth_of(self, kind: str) -> Job:
        return self if kind == "iceberg" else _AboutDelta()


class _AboutDelta(AboutTable):
    declared = {"column_lineage_missing files": "DESCRIBE gives rows without columns"}


class OnlyAboutTable(AboutTable):
    """A job that reads no data, and so has no input."""

    reads = {}
    writes = {"files": "all"}

    def read(self, lake: Lake) -> DataFrame:
        raise NotImplementedError

    def truth_of(self, kind: str) -> Job:
        return self if kind == "iceberg" else _OnlyAboutDelta()

    def run(self, lake: Lake) -> None:
        name = lake.name("events")
        if lake.kind == "iceberg":
            files = lake.spark.sql(f"SELECT partition.dt, file_count FROM {name}.partitions")
        else:
            files = lake.spark.sql(f"DESCRIBE DETAIL {name}").selectExpr("numFiles", "sizeInBytes")
        files.write.parquet(lake.path("files"))


class _OnlyAboutDelta(OnlyAboutTable):
    declared = _AboutDelta.declared
