"""Jobs that empty partitions, or only some files of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.truth.job import DAYS, FIRST, NEXT, SECOND, THIRD, Job

if TYPE_CHECKING:
    from tests.truth.job import Lake

TABLES = ("delta", "iceberg")


class DeletedDay(Job):
    """A day is deleted: no file has to be read."""

    formats = TABLES
    removes = {"events": [SECOND]}

    def run(self, lake: Lake) -> None:
        lake.spark.sql(f"DELETE FROM {lake.name('events')} WHERE dt = '{SECOND}'")


class DeletedDayByRows(Job):
    """All rows of a day are deleted, by another column than that of the partitions."""

    formats = ("delta",)
    reads = {"events": [*DAYS]}
    removes = {"events": [SECOND]}

    def run(self, lake: Lake) -> None:
        lake.spark.sql(f"DELETE FROM {lake.name('events')} WHERE id % 3 = 1")


class DeletedRows(Job):
    """Some rows of a day are deleted: its file is written anew."""

    formats = TABLES
    reads = {"events": [SECOND]}
    writes = {"events": [SECOND]}

    def run(self, lake: Lake) -> None:
        lake.spark.sql(f"DELETE FROM {lake.name('events')} WHERE dt = '{SECOND}' AND id = 1")


class DeletedFile(Job):
    """One of the two files of a day is removed as a whole: the day has data left."""

    formats = TABLES
    writes = {"events": [SECOND]}

    def truth_of(self, kind: str) -> Job:
        """Give the truth: Iceberg knows by the statistics of a file that all its rows go."""
        return _DeletedFileOfDelta() if kind == "delta" else self

    def plant(self, lake: Lake) -> None:
        super().plant(lake)
        lake.write(lake.events().selectExpr("id + 100 AS id", "user", "dt"), "events", "dt")

    def run(self, lake: Lake) -> None:
        name = lake.name("events")
        lake.spark.sql(f"DELETE FROM {name} WHERE dt = '{SECOND}' AND id >= 100")


class _DeletedFileOfDelta(DeletedFile):
    reads = {"events": [SECOND]}


class MovedDay(Job):
    """A day becomes another one: the old one is empty, and the new one is written."""

    formats = TABLES
    reads = {"events": [SECOND]}
    writes = {"events": [NEXT]}
    removes = {"events": [SECOND]}

    def run(self, lake: Lake) -> None:
        name = lake.name("events")
        lake.spark.sql(f"UPDATE {name} SET dt = '{NEXT}' WHERE dt = '{SECOND}'")


class OverwrittenByADay(Job):
    """A table of three days is overwritten with one: the other two are gone."""

    formats = TABLES
    reads = {"source": [SECOND]}
    writes = {"events": [SECOND]}
    removes = {"events": [FIRST, THIRD]}

    def plant(self, lake: Lake) -> None:
        super().plant(lake)
        lake.write(lake.events(), "source", "dt")

    def run(self, lake: Lake) -> None:
        day = lake.read("source").where(f"dt = '{SECOND}'")
        lake.write(day, "events", "dt", mode="overwrite")


class ReplacedDays(OverwrittenByADay):
    """Two days are replaced by one of them."""

    formats = ("delta",)
    reads = {"source": [FIRST]}
    writes = {"events": [FIRST]}
    removes = {"events": [SECOND]}

    def run(self, lake: Lake) -> None:
        day = lake.read("source").where(f"dt = '{FIRST}'")
        writer = day.write.format("delta").mode("overwrite")
        where = f"dt IN ('{FIRST}', '{SECOND}')"
        writer.option("replaceWhere", where).save(lake.path("events"))


class Emptied(Job):
    """All days are deleted."""

    formats = TABLES
    removes = {"events": [*DAYS]}

    def run(self, lake: Lake) -> None:
        lake.spark.sql(f"DELETE FROM {lake.name('events')}")


class EmptiedPlain(Job):
    """All rows of a table without partitions are deleted."""

    formats = TABLES
    removes = {"plain": "all"}

    def plant(self, lake: Lake) -> None:
        lake.write(lake.events(), "plain")

    def run(self, lake: Lake) -> None:
        lake.spark.sql(f"DELETE FROM {lake.name('plain')}")


class Truncated(Emptied):
    """The same, by the command for that."""

    formats = ("iceberg",)

    def run(self, lake: Lake) -> None:
        lake.spark.sql(f"TRUNCATE TABLE {lake.name('events')}")


class FilledAgain(OverwrittenByADay):
    """A day is deleted, and written again."""

    formats = TABLES
    removes = {}

    def run(self, lake: Lake) -> None:
        lake.spark.sql(f"DELETE FROM {lake.name('events')} WHERE dt = '{SECOND}'")
        lake.write(lake.read("source").where(f"dt = '{SECOND}'"), "events", "dt")


class DroppedPartition(Job):
    """A day of a table of Spark's catalog is dropped."""

    formats = ("parquet",)
    removes = {"cleaned": [SECOND]}

    def plant(self, lake: Lake) -> None:
        lake.write(lake.events(), "cleaned", "dt")

    def run(self, lake: Lake) -> None:
        name = lake.create("cleaned", "id bigint, user bigint, dt string", "dt")
        lake.spark.sql(f"MSCK REPAIR TABLE {name}")
        lake.spark.sql(f"ALTER TABLE {name} DROP PARTITION (dt = '{SECOND}')")


class OverwrittenFolder(OverwrittenByADay):
    """A folder of three days is overwritten with one: nobody sees what was there before."""

    formats = ("parquet",)
    removes = {}
