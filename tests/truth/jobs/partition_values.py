"""Values of partitions that are odd, typed or null, and partitions that are moved or emptied."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.truth.job import DAYS, FIRST, SECOND, THIRD, Every, Job

if TYPE_CHECKING:
    from tests.truth.job import Lake


class OddPartitions(Job):
    """Values of a partition with characters that a path escapes, an empty one, and a null."""

    reads = {"odd": ["x=y/z", "50%", "grün", None]}
    writes = {"out": ["x=y/z", "50%", "grün", None]}
    columns = {"out": {"id": {"odd.id"}, "kind": {"odd.kind"}}}

    def plant(self, lake: Lake) -> None:
        kinds = ("'a b'", "'x=y/z'", "'50%'", "'grün'", "'plain'", "CAST(NULL AS string)")
        rows = lake.spark.sql(
            f"SELECT id, element_at(array({', '.join(kinds)}), CAST(id % 6 + 1 AS int)) AS kind "
            "FROM range(30)"
        )
        lake.write(rows, "odd", "kind")

    def run(self, lake: Lake) -> None:
        rows = lake.read("odd").where("kind IN ('x=y/z', '50%', 'grün') OR kind IS NULL")
        lake.write(rows, "out", "kind")


class TypedPartitions(Job):
    """A time, a decimal and a flag partition a table, which is read back."""

    cannot = {"3.5": "it takes a flag in the name of a folder for a text"}
    _some = [("2024-05-06 01:30:00", "1.50", "true"), ("2024-05-06 01:30:00", "2.50", "true")]
    reads = {"typed": _some}
    writes = {"out": _some, "copy": _some}

    def truth_of(self, kind: str) -> Job:
        others = {"parquet": _TypedByFolders, "iceberg": _TypedByIceberg}
        return others[kind]() if kind in others else self

    def plant(self, lake: Lake) -> None:
        rows = lake.spark.sql(
            "SELECT id, timestamp_seconds(id % 2 * 3600) + (TIMESTAMP'2024-05-06 00:30:00' - "
            "TIMESTAMP'1970-01-01 00:00:00') AS at, CAST(1.5 + id % 3 AS decimal(8,2)) AS price, "
            "id % 2 = 1 AS odd FROM range(30)"
        )
        lake.write(rows, "typed", "at", "price", "odd")

    def run(self, lake: Lake) -> None:
        rows = lake.read("typed").where("odd AND price < 3")
        lake.write(rows, "out", "at", "price", "odd")
        lake.write(lake.read("out"), "copy", "at", "price", "odd")


class _TypedByFolders(TypedPartitions):
    # Spark takes the decimals in names of folders for doubles.
    _some = [("2024-05-06 01:30:00", "1.5", "true"), ("2024-05-06 01:30:00", "2.5", "true")]
    writes = {"out": _some, "copy": _some}


class _TypedByIceberg(TypedPartitions):
    _some = [("2024-05-06T01:30:00+00:00", price, "true") for price in ("1.50", "2.50")]
    reads = {"typed": _some}
    writes = {"out": _some, "copy": _some}


class ZeroPadded(Job):
    """Folders with zeros before a number, which Spark reads as a number."""

    formats = ("parquet",)
    reads = {"months": ["05"]}
    writes = {"out": ["5"]}
    columns = {"out": {"id": {"months.id"}, "month": {"months.month"}}}

    def plant(self, lake: Lake) -> None:
        for month in ("05", "06", "10"):
            rows = lake.spark.range(5).coalesce(1)
            rows.write.parquet(lake.path(f"months/month={month}"))

    def run(self, lake: Lake) -> None:
        lake.write(lake.read("months").where("month < 6"), "out", "month")


class EmptiedByOverwrite(Job):
    """An INSERT OVERWRITE of a static partition that gets no rows empties it."""

    reads = {"events": [SECOND]}
    removes = {"out": [SECOND]}

    def truth_of(self, kind: str) -> Job:
        return self if kind == "parquet" else _EmptiedOfStatistics()

    def plant(self, lake: Lake) -> None:
        super().plant(lake)
        lake.write(lake.events().select("id", "dt"), "out", "dt")

    def run(self, lake: Lake) -> None:
        lake.view("events")
        name = lake.name("out")
        if lake.kind != "iceberg":
            name = f"{lake.job}.out"
            at = f"LOCATION '{lake.path('out')}'"
            more = " (id bigint, dt string)" if lake.kind == "parquet" else ""
            by = " PARTITIONED BY (dt)" if lake.kind == "parquet" else ""
            lake.spark.sql(f"CREATE TABLE {name}{more} USING {lake.kind}{by} {at}")
            if lake.kind == "parquet":
                lake.spark.sql(f"MSCK REPAIR TABLE {name}")
        lake.spark.sql(
            f"INSERT OVERWRITE {name} PARTITION (dt = '{SECOND}') "
            f"SELECT id FROM events WHERE user > 1000 AND dt = '{SECOND}'"
        )


class _EmptiedOfStatistics(EmptiedByOverwrite):
    reads = {"events": "none"}


class ManagedPartitions(Job):
    """Partitions of a managed table are renamed, truncated and dropped."""

    formats = ("parquet",)
    reads = {"events": Every(DAYS)}
    writes = {"home/managed": ["2024-06-01"], "home/cut": [FIRST, THIRD]}
    removes = {"home/managed": [FIRST, SECOND], "home/cut": [SECOND]}
    columns = {"home/cut": {"id": {"events.id"}, "dt": {"events.dt"}}}

    declared = {"column_lineage_missing home/managed": "the rows were moved"}

    def run(self, lake: Lake) -> None:
        sql, job = lake.spark.sql, lake.job
        lake.view("events")
        sql(f"CREATE DATABASE {job}_home LOCATION '{lake.path('home')}'")
        for table in ("managed", "cut"):
            sql(
                f"CREATE TABLE {job}_home.{table} (id bigint, dt string) USING parquet "
                "PARTITIONED BY (dt)"
            )
        name = f"{job}_home.managed"
        sql(f"INSERT INTO {name} SELECT id, dt FROM events WHERE dt <= '{SECOND}'")
        sql(f"INSERT INTO {job}_home.cut SELECT id, dt FROM events")
        # The observer looks into the folders of a write after it, and should find all of them.
        sql("SELECT count(*) FROM events").collect()
        moved = f"PARTITION (dt = '{SECOND}') RENAME TO PARTITION (dt = '2024-06-01')"
        sql(f"ALTER TABLE {name} {moved}")
        sql(f"ALTER TABLE {name} DROP PARTITION (DT = '{FIRST}')")
        sql(f"TRUNCATE TABLE {job}_home.cut PARTITION (DT = '{SECOND}')")


class PartitionPathOfTwo(Job):
    """The path of a day, below which hours are, and hours by a list of paths."""

    formats = ("parquet",)
    reads = {"hours": [(SECOND, "0"), (SECOND, "1"), (THIRD, "1")]}
    writes = {"out": "all"}
    columns = {"out": {"id": {"hours.id"}, "hour": {"hours.hour"}}}

    def plant(self, lake: Lake) -> None:
        rows = lake.events().selectExpr("id", "dt", "CAST(floor(id / 15) AS int) AS hour")
        lake.write(rows, "hours", "dt", "hour")

    def run(self, lake: Lake) -> None:
        rows = lake.spark.read.parquet(f"{lake.path('hours')}/dt={SECOND}")
        base = lake.spark.read.option("basePath", lake.path("hours"))
        hour = base.parquet(f"{lake.path('hours')}/dt={THIRD}/hour=1")
        lake.write(rows.select("id", "hour").union(hour.select("id", "hour")), "out")


class PartitionPathOfDelta(Job):
    """Delta takes the path of a partition for a filter."""

    formats = ("delta",)
    reads = {"events": [SECOND]}
    writes = {"out": "all"}

    def run(self, lake: Lake) -> None:
        rows = lake.spark.read.format("delta").load(f"{lake.path('events')}/dt={SECOND}")
        lake.write(rows.select("id"), "out")
