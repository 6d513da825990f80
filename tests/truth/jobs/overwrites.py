"""Several writes of one table in one application: of what is overwritten, the last write counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.truth.job import DAYS, Job

if TYPE_CHECKING:
    from tests.truth.job import Lake

FIRST = {"id": {"events.id"}, "value": {"events.user"}, "dt": {"events.dt"}}
SECOND = {"id": {"more.id"}, "value": {"more.user"}, "dt": {"more.dt"}}
BOTH = {name: FIRST[name] | SECOND[name] for name in FIRST}


class _Twice(Job):
    """The days of two tables are written into one."""

    mode = "dynamic"
    first: tuple[str, ...] = (DAYS[0],)
    second: tuple[str, ...] = (DAYS[0],)
    reads = {"events": [DAYS[0]], "more": [DAYS[0]]}
    writes = {"out": [DAYS[0]]}
    columns = {"out": SECOND}

    def plant(self, lake: Lake) -> None:
        for table in ("events", "more"):
            lake.write(lake.events(), table, "dt")
        lake.write(lake.events().selectExpr("id", "user AS value", "dt").limit(0), "out", "dt")

    def run(self, lake: Lake) -> None:
        for table, days in (("events", self.first), ("more", self.second)):
            rows = lake.read(table).where(f"dt IN ({', '.join(map(repr, days))})")
            frame = rows.selectExpr("id", "user AS value", "dt")
            lake.write(frame, "out", "dt", mode=self.mode)


class TheSamePartitionTwice(_Twice):
    """The second write overwrites all of the first."""


class MoreThanTheFirstWrote(_Twice):
    """The second write overwrites the first, and writes other days."""

    second = DAYS
    reads = {"events": [DAYS[0]], "more": list(DAYS)}
    writes = {"out": list(DAYS)}


class APartOfTheFirst(_Twice):
    """Of the first write something is left."""

    first = DAYS
    reads = {"events": list(DAYS), "more": [DAYS[0]]}
    writes = {"out": list(DAYS)}
    columns = {"out": BOTH}


class OtherPartitionsThanTheFirst(_Twice):
    """Both writes are left, which come right after each other."""

    second = (DAYS[1],)
    reads = {"events": [DAYS[0]], "more": [DAYS[1]]}
    writes = {"out": list(DAYS[:2])}
    columns = {"out": BOTH}


class AppendedToTheFirst(_Twice):
    """Both writes are left, in one partition."""

    mode = "append"
    columns = {"out": BOTH}


class AllOverwritten(_Twice):
    """The second write overwrites the table."""

    mode = "overwrite"
    second = (DAYS[1],)
    reads = {"events": [DAYS[0]], "more": [DAYS[1]]}
    writes = {"out": [DAYS[1]]}
    removes = {"out": [DAYS[0]]}


class OverwrittenAndReadBack(_Twice):
    """What is read back after both writes is made of the second."""

    writes = {"out": [DAYS[0]], "copy": [DAYS[0]]}
    columns = {"out": SECOND, "copy": SECOND}

    def run(self, lake: Lake) -> None:
        super().run(lake)
        lake.write(lake.read("out"), "copy", "dt")


class StaticPartitionsBySql(_Twice):
    """Two statements overwrite one partition that they name."""

    formats = ("parquet",)

    def run(self, lake: Lake) -> None:
        columns = "id bigint, value bigint, dt string"
        out = f"{lake.job}.named"
        lake.spark.sql(
            f"CREATE TABLE {out} ({columns}) USING {lake.kind} PARTITIONED BY (dt) "
            f"LOCATION '{lake.path('out')}'"
        )
        for table in ("events", "more"):
            lake.view(table)
            lake.spark.sql(
                f"INSERT OVERWRITE {out} PARTITION (dt = '{DAYS[0]}') "
                f"SELECT id, user AS value FROM {table} WHERE dt = '{DAYS[0]}'"
            )

    def truth_of(self, kind: str) -> Job:
        del kind
        return _StaticPartitions()


class _StaticPartitions(StaticPartitionsBySql):
    """The partition is a literal."""

    columns = {"out": {name: SECOND[name] for name in ("id", "value")}}
    declared = {"column_without_sources out dt": "the partition is a literal"}
