"""Jobs of DataFrames, Python functions and ways to write."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from tests.truth.job import DAYS, FIRST, SECOND, THIRD, Every, Job

if TYPE_CHECKING:
    from tests.truth.job import Lake

ID_AND_USER = {"id": {"events.id"}, "user": {"events.user"}}


class PythonFunction(Job):
    """A Python UDF is made of its arguments."""

    reads = {"events": [SECOND]}
    writes = {"out": "all"}
    columns = {"out": {"id": {"events.id"}, "mixed": {"events.id", "events.user"}}}

    def run(self, lake: Lake) -> None:
        from pyspark.sql import functions as F  # noqa: N812

        mix = F.udf(lambda a, b: a * b, "long")
        day = lake.read("events").where(f"dt = '{SECOND}'")
        lake.write(day.select("id", mix("id", "user").alias("mixed")), "out")


class CachedThenSplit(Job):
    """Two writes take their rows from one cached frame."""

    reads = {"events": [SECOND, THIRD]}
    writes = {"low": [SECOND], "high": [THIRD]}
    columns = {
        "low": {**ID_AND_USER, "dt": {"events.dt"}},
        "high": {**ID_AND_USER, "dt": {"events.dt"}},
    }

    def run(self, lake: Lake) -> None:
        cached = lake.read("events").where(f"dt >= '{SECOND}'").cache()
        cached.count()
        lake.write(cached.where(f"dt = '{SECOND}'"), "low", "dt")
        lake.write(cached.where("dt = '2024-05-07'"), "high", "dt")
        cached.unpersist()


class Chain(Job):
    """A table on the way is no source of what comes of it."""

    reads = {"events": [SECOND]}
    writes = {"staged": [SECOND], "out": "all"}
    columns = {"out": {"n": {"events.user"}}}

    def run(self, lake: Lake) -> None:
        lake.write(lake.read("events").where(f"dt = '{SECOND}'"), "staged", "dt")
        lake.write(lake.read("staged").selectExpr("sum(user) AS n"), "out")


class TwoLevels(Job):
    """Two dimensions, one of them a number, with a null."""

    reads = {"hours": [(SECOND, "1"), (SECOND, None)]}
    writes = {"out": [(SECOND, "1"), (SECOND, None)]}
    columns = {"out": {"id": {"hours.id"}, "dt": {"hours.dt"}, "hour": {"hours.hour"}}}

    def plant(self, lake: Lake) -> None:
        hours = lake.events().selectExpr(
            "id", "dt", "CASE WHEN id % 2 = 0 THEN 1 WHEN id % 4 = 1 THEN 2 END AS hour"
        )
        lake.write(hours, "hours", "dt", "hour")

    def run(self, lake: Lake) -> None:
        rows = lake.read("hours").where(f"dt = '{SECOND}' AND (hour = 1 OR hour IS NULL)")
        lake.write(rows, "out", "dt", "hour")


class Dates(Job):
    """Partitions of a DATE are named as dates."""

    reads = {"days": [SECOND]}
    writes = {"out": [THIRD]}

    def plant(self, lake: Lake) -> None:
        lake.write(lake.events().selectExpr("id", "to_date(dt) AS day"), "days", "day")

    def run(self, lake: Lake) -> None:
        rows = lake.read("days").where(f"day = DATE'{SECOND}'")
        lake.write(rows.selectExpr("id", "date_add(day, 1) AS day"), "out", "day")


class Numbers(Job):
    """Partitions of an integer that a range chooses."""

    reads = {"buckets": ["3", "4"]}
    writes = {"out": ["30", "40"]}

    def plant(self, lake: Lake) -> None:
        rows = lake.events().selectExpr("id", "CAST(id % 6 AS int) AS bucket")
        lake.write(rows, "buckets", "bucket")

    def run(self, lake: Lake) -> None:
        rows = lake.read("buckets").where("bucket > 2 AND bucket < 5")
        lake.write(rows.selectExpr("id", "bucket * 10 AS bucket"), "out", "bucket")


class DynamicOverwrite(Job):
    """Only the partitions of the frame are overwritten."""

    reads = {"events": [SECOND]}
    writes = {"out": [SECOND]}
    columns = {"out": {**ID_AND_USER, "dt": {"events.dt"}}}

    def plant(self, lake: Lake) -> None:
        lake.write(lake.events(), "events", "dt")
        lake.write(lake.events(), "out", "dt")

    def run(self, lake: Lake) -> None:
        lake.write(lake.read("events").where(f"dt = '{SECOND}'"), "out", "dt", mode="dynamic")


class WholeOverwrite(Job):
    """An overwrite of the whole table writes what it writes."""

    reads = {"events": [SECOND]}
    writes = {"out": [SECOND]}

    def plant(self, lake: Lake) -> None:
        lake.write(lake.events(), "events", "dt")
        lake.write(lake.events([SECOND]), "out", "dt")

    def run(self, lake: Lake) -> None:
        lake.write(lake.read("events").where(f"dt = '{SECOND}'"), "out", "dt", mode="overwrite")


class DdlInsert(Job):
    """INSERT with a static partition writes that."""

    verb = "INTO"
    reads = {"events": [FIRST]}
    writes = {"out": ["2024-05-09"]}
    columns = {"out": {"id": {"events.id"}}}
    declared = {"column_without_sources out dt": "it is the value of a static partition"}

    def run(self, lake: Lake) -> None:
        name = lake.create("out", "id bigint, dt string", "dt")
        lake.view("events")
        lake.spark.sql(
            f"INSERT {self.verb} {name} PARTITION (dt = '2024-05-09') "
            "SELECT id FROM events WHERE dt = '2024-05-05'"
        )


class DdlOverwrite(DdlInsert):
    """INSERT OVERWRITE with a static partition overwrites that."""

    verb = "OVERWRITE"


class Updated(Job):
    """An UPDATE reads and writes the partitions of its rows."""

    formats = ("delta", "iceberg")
    reads = {"events": [SECOND]}
    writes = {"events": [SECOND]}

    def run(self, lake: Lake) -> None:
        lake.spark.sql(f"UPDATE {lake.name('events')} SET user = 0 WHERE dt = '{SECOND}'")


class Merged(Job):
    """A MERGE reads its source, and writes the partitions of the rows that it changed."""

    formats = ("delta", "iceberg")
    reads = {"changes": "all", "events": [SECOND]}
    writes = {"events": [SECOND]}

    def plant(self, lake: Lake) -> None:
        lake.write(lake.events(), "events", "dt")
        rows = lake.events().where(f"dt = '{SECOND}' AND id < 10")
        lake.write(rows.selectExpr("id", "user + 1 AS user", "dt"), "changes")

    def run(self, lake: Lake) -> None:
        lake.view("changes")
        lake.spark.sql(
            f"MERGE INTO {lake.name('events')} t USING changes s "
            f"ON t.id = s.id AND t.dt = '{SECOND}' "
            "WHEN MATCHED THEN UPDATE SET user = s.user"
        )


class FailedAction(Job):
    """A query that fails in the middle is caught; what comes after counts."""

    reads = {"events": Every(DAYS)}
    writes = {"out": list(DAYS)}

    def run(self, lake: Lake) -> None:
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException

        bad = lake.read("events").selectExpr("id", "user", "CAST(raise_error('no') AS string) dt")
        with suppress(PySparkException, Py4JJavaError):
            bad.collect()
        lake.write(lake.read("events"), "out", "dt")


class Collected(Job):
    """Rows that were collected are read; what is made of them by Python has no known source."""

    reads = {"events": [SECOND]}
    writes = {"out": "all"}
    declared = {"column_lineage_missing out": "the rows were in Python in between"}

    def run(self, lake: Lake) -> None:
        rows = lake.read("events").where(f"dt = '{SECOND}'").collect()
        frame = lake.spark.createDataFrame([(row.id,) for row in rows], "id long")
        lake.write(frame, "out")


class CollectedAgain(Job):
    """A frame that was explained is collected later, and once more: Spark plans it only once."""

    reads = {"events": [FIRST]}

    def run(self, lake: Lake) -> None:
        frame = lake.read("events").where(f"dt = '{FIRST}'")
        frame.explain()
        for _ in range(2):
            time.sleep(1)
            frame.collect()


class CountedOnly(Job):
    """A count reads what it counts, and writes nothing."""

    reads = {"events": [FIRST]}

    def run(self, lake: Lake) -> None:
        lake.read("events").where("dt = '2024-05-05'").agg({"user": "max"}).collect()

    def truth_of(self, kind: str) -> Job:
        return _CountedByIceberg() if kind == "iceberg" else self


class _CountedByIceberg(CountedOnly):
    declared = {"partitions_unknown events": "Iceberg answers it from its statistics"}
