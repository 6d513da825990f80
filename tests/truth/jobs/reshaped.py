"""Frames whose columns become rows, plans of many scans or steps, and scans pruned to nothing."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from tests.truth.job import DAYS, FIRST, SECOND, Job

if TYPE_CHECKING:
    from tests.truth.job import Lake

NAME = "it is the name of a column that was unpivoted"


class Unpivoted(Job):
    """Columns are unpivoted by the functions of frames, and by SQL."""

    reads = {"events": "all"}
    writes = {"out": "all", "melted": "all", "by_sql": "all"}
    _columns = {"key": {"events.id"}, "what": set(), "value": {"events.user", "events.id"}}
    columns = {"out": _columns, "melted": _columns, "by_sql": _columns}
    declared = {
        "column_without_sources out what": NAME,
        "column_without_sources melted what": NAME,
        "column_without_sources by_sql what": NAME,
    }

    def run(self, lake: Lake) -> None:
        events = lake.read("events").selectExpr("id AS key", "user * 2 AS a", "id + 1 AS b")
        lake.write(events.unpivot(["key"], ["a", "b"], "what", "value"), "out")
        lake.write(events.melt(["key"], None, "what", "value"), "melted")
        events.createOrReplaceTempView("wide")
        query = "SELECT * FROM wide UNPIVOT INCLUDE NULLS (value FOR what IN (a, b))"
        lake.write(lake.spark.sql(query), "by_sql")


class ManyScans(Job):
    """A plan reads a table 130 times, and has a column that the listener does not report."""

    reads = {"events": [FIRST, SECOND]}
    writes = {"out": "all"}
    columns = {"out": {"n": {"events.id", "events.user"}, "one": set()}}
    declared = {"column_without_sources out one": "it is a literal"}

    def run(self, lake: Lake) -> None:
        first, second = (
            lake.read("events").where(f"dt = '{day}'").selectExpr(f"{column} AS n", "1 AS one")
            for day, column in ((DAYS[0], "id"), (DAYS[1], "user"))
        )
        lake.write(reduce(lambda a, b: a.union(b), [first] * 65 + [second] * 65), "out")


class ManySteps(Job):
    """Columns are changed in many steps, each of which uses the column of the step before thrice.

    Texts in which each step stands in place of its column would have some 3²⁰ characters.
    """

    reads = {"events": [SECOND]}
    writes = {"out": "all"}
    columns = {"out": {"capped": {"events.user"}, "ranked": {"events.id"}}}

    def run(self, lake: Lake) -> None:
        from pyspark.sql import Window
        from pyspark.sql.functions import col, row_number, when

        frame = lake.read("events").where(f"dt = '{SECOND}'")
        frame = frame.selectExpr("user AS capped", "id AS ranked")
        for step in range(20):
            capped = col("capped")
            frame = frame.withColumn("capped", when(capped > step, capped - step).otherwise(capped))
        for _ in range(8):
            window = Window.partitionBy("ranked").orderBy("ranked")
            frame = frame.withColumn("ranked", col("ranked") + row_number().over(window))
        lake.write(frame, "out")


class PrunedToNothing(Job):
    """The join with a filtered table selects no partition, so nothing of the other table is read.

    Spark then leaves the scan of the other table out of the adaptive plan.
    """

    formats = ("parquet",)
    reads = {"events": "none", "days": "part"}  # the rows that the filter lets through
    writes = {"out": "all"}
    columns = {"out": {"id": {"events.id"}}}

    def plant(self, lake: Lake) -> None:
        super().plant(lake)
        days = lake.spark.sql("SELECT '2024-05-05' AS day, 'x' AS kind UNION ALL SELECT 'no', 'y'")
        lake.write(days, "days")

    def run(self, lake: Lake) -> None:
        days = lake.read("days").where("concat(kind, day) = 'none'").hint("broadcast")
        events = lake.read("events")
        lake.write(events.join(days, events.dt == days.day).select("id"), "out")


class PrunedToNothingAtOnce(PrunedToNothing):
    """The same without adaptive plans: the scan is run, and its pruning leaves no partition."""

    conf = {"spark.sql.adaptive.enabled": "false"}
