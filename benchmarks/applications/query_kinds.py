"""Queries of several kinds, each some times; writes what looking at each cost the observer."""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

TIMES = 20
WITHOUT_DATA = ("count of a range", "rows of the job", "SET", "a view")
KINDS = (*WITHOUT_DATA, "a read", "a small write", "a copy", "a write of a join")


def queries(spark: SparkSession, lake: Path) -> dict[str, Callable[[int], Any]]:
    """Give what runs a query of each kind, by its number."""
    rows = spark.range(20).selectExpr("id", "id % 2 as region", "id % 3 as day")
    rows.coalesce(1).write.partitionBy("day", "region").parquet(str(lake / "in"))
    read = spark.read.parquet(str(lake / "in"))
    days = read.groupBy("day").count()

    def small_write(number: int) -> None:
        added = rows.drop("day").selectExpr("*", f"{number} as day").coalesce(1)
        added.write.mode("append").partitionBy("day", "region").parquet(str(lake / "small"))

    def copy(_: int) -> None:
        read.where("day = 1").write.mode("overwrite").parquet(str(lake / "copy"))

    def write_join(_: int) -> None:
        joined = read.join(days, "day")
        joined.write.mode("overwrite").parquet(str(lake / "join"))

    acts = (
        lambda _: spark.range(10).count(),
        lambda number: spark.createDataFrame([(number, "a")], "a int, b string").collect(),
        lambda number: spark.sql(f"SET a.b = {number}"),
        lambda _: read.createOrReplaceTempView("orders"),
        lambda _: read.where("day = 1 and id > 3").collect(),
        small_write,
        copy,
        write_join,
    )
    return dict(zip(KINDS, acts, strict=True))


class Looks:
    """Times how long the observer looks at each query, and counts its calls of the JVM."""

    def __init__(self) -> None:
        """Begin to count; calls that free objects are made by another thread, and not counted."""
        from py4j.clientserver import ClientServerConnection
        from sparklineage_observer.observer import Observer

        self.found: dict[str, list[tuple[float, int]]] = {}
        self.kind = ""
        self._looking = threading.local()
        send, finished = ClientServerConnection.send_command, Observer.finished
        here = self._looking

        def counted(connection: Any, command: str) -> Any:
            here.calls = getattr(here, "calls", 0) + 1
            return send(connection, command)

        def timed(*arguments: Any) -> None:
            before, begun = getattr(here, "calls", 0), time.perf_counter()
            finished(*arguments)
            look = ((time.perf_counter() - begun) * 1000, getattr(here, "calls", 0) - before)
            self.found.setdefault(self.kind, []).append(look)

        ClientServerConnection.send_command = counted
        Observer.finished = timed


def main(lake: Path) -> None:
    """Run each kind some times, and note milliseconds and calls of each next to the lake."""
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    bus = spark.sparkContext._jsc.sc().listenerBus()  # noqa: SLF001  (there is no other way)
    by_kind = queries(spark, lake)
    bus.waitUntilEmpty(60000)
    looks = Looks()
    for kind, act in by_kind.items():
        looks.kind = kind
        for number in range(TIMES):
            act(number)
        bus.waitUntilEmpty(60000)
    (lake.parent / "looks").write_text(json.dumps(looks.found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
