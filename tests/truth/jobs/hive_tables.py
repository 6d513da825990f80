"""Tables of Hive's own kind: partitions that statements add, move, empty and fill."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.truth.job import DAYS, FIRST, SECOND, THIRD, Every, Job
from tests.truth.jobs.tables import ALL_COLUMNS

if TYPE_CHECKING:
    from tests.truth.job import Lake


class _External(Job):
    """The table is external, of two dimensions, and its data is in a folder of its own."""

    formats = ("parquet",)
    alone = True
    static = {
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.hive.exec.dynamic.partition.mode": "nonstrict",
    }

    def table(
        self, lake: Lake, name: str = "out", by: str = "dt string", stored: str = "PARQUET"
    ) -> str:
        """Create an external table, and give its name."""
        lake.spark.sql(
            f"CREATE EXTERNAL TABLE {lake.job}.{name} (id bigint, user bigint) "
            f"PARTITIONED BY ({by}) STORED AS {stored} LOCATION '{lake.path(name)}'"
        )
        return f"{lake.job}.{name}"


class HiveTablesOfAWarehouse(_External):
    """All statements about partitions of a metastore, in one application."""

    reads = {
        "events": Every(DAYS),
        "repaired": [SECOND],
        "added": [FIRST],
    }
    writes = {
        "mixed": [(SECOND, "0"), (SECOND, "1")],
        "text": [FIRST, THIRD],
        "from_repaired": "all",
        "from_added": "all",
        "exported": "all",
        "exported_orc": "all",
        "emptied": [FIRST, THIRD],
        "dropped": [FIRST, THIRD],
    }
    removes = {"emptied": [SECOND], "dropped": [SECOND]}
    columns = {
        "mixed": {"id": {"events.id"}, "user": {"events.user"}, "hour": {"events.id"}},
        "text": ALL_COLUMNS,
        "from_repaired": {"id": {"repaired.id"}},
        "exported": {"id": {"events.id"}},
    }
    declared = {"column_without_sources mixed dt": "it is the value of a static partition"}

    def plant(self, lake: Lake) -> None:
        super().plant(lake)
        lake.write(lake.events(), "repaired", "dt")
        lake.write(lake.events([FIRST]).select("id", "user"), "elsewhere")

    def run(self, lake: Lake) -> None:
        spark = lake.spark
        lake.view("events")
        mixed = self.table(lake, "mixed", "dt string, hour int")
        spark.sql(
            f"INSERT OVERWRITE TABLE {mixed} PARTITION (dt = '{SECOND}', hour) "
            f"SELECT id, user, CAST(id % 2 AS int) FROM events WHERE dt = '{SECOND}'"
        )
        text = self.table(lake, "text", stored="TEXTFILE")
        spark.sql(f"INSERT INTO {text} SELECT id, user, dt FROM events WHERE dt <> '{SECOND}'")
        repaired = self.table(lake, "repaired")
        spark.sql(f"MSCK REPAIR TABLE {repaired}")
        rows = spark.sql(f"SELECT id FROM {repaired} WHERE dt = '{SECOND}'")
        lake.write(rows, "from_repaired")
        added = self.table(lake, "added")
        spark.sql(
            f"ALTER TABLE {added} ADD PARTITION (dt = '{FIRST}') "
            f"LOCATION '{lake.path('elsewhere')}'"
        )
        lake.write(spark.sql(f"SELECT id FROM {added} WHERE dt = '{FIRST}'"), "from_added")
        spark.sql(
            f"INSERT OVERWRITE DIRECTORY '{lake.path('exported')}' USING parquet "
            f"SELECT id FROM events WHERE dt = '{FIRST}'"
        )
        spark.sql(
            f"INSERT OVERWRITE DIRECTORY '{lake.path('exported_orc')}' STORED AS ORC "
            f"SELECT id FROM events WHERE dt = '{FIRST}'"
        )
        emptied = self.table(lake, "emptied")
        spark.sql(f"INSERT INTO {emptied} SELECT id, user, dt FROM events")
        spark.sql(
            f"INSERT OVERWRITE TABLE {emptied} PARTITION (dt = '{SECOND}') "
            "SELECT id, user FROM events WHERE id > 1000"
        )
        dropped = f"{lake.job}.dropped"
        spark.sql(
            f"CREATE TABLE {dropped} (id bigint, user bigint, dt string) USING parquet "
            f"PARTITIONED BY (dt) LOCATION '{lake.path('dropped')}'"
        )
        spark.sql(f"INSERT INTO {dropped} SELECT id, user, dt FROM events")
        spark.sql(f"ALTER TABLE {dropped} DROP PARTITION (dt = '{SECOND}')")


class HiveMoves(_External):
    """Files are loaded, partitions renamed, and one with a place of its own is overwritten."""

    reads = {"events": [FIRST, SECOND], "delivery": "unknown"}
    writes = {
        "loaded": [FIRST],
        "placed": [FIRST],
        "odd": ["a b/c=d", "ü%"],
        "two": [(FIRST, "0"), (FIRST, "1")],
        "moved": [FIRST, THIRD],
    }
    removes = {"moved": [SECOND], "two": [(SECOND,), (SECOND, "0"), (SECOND, "1")]}
    columns = {"odd": {"id": {"events.id"}, "user": {"events.user"}, "kind": {"events.id"}}}
    declared = {
        "partitions_unknown delivery": "Spark moves the files without a look at them",
        "column_lineage_missing loaded": "files have no columns",
        "column_without_sources placed dt": "it is the value of a static partition",
    }

    def plant(self, lake: Lake) -> None:
        super().plant(lake)
        lake.events([FIRST]).selectExpr("id", "user").coalesce(1).write.csv(
            lake.path("delivery"), sep="\x01"
        )

    def run(self, lake: Lake) -> None:
        spark = lake.spark
        lake.view("events")
        loaded = self.table(lake, "loaded", stored="TEXTFILE")
        spark.sql(
            f"LOAD DATA INPATH '{lake.path('delivery')}' INTO TABLE {loaded} "
            f"PARTITION (dt = '{FIRST}')"
        )
        placed = self.table(lake, "placed")
        spark.sql(
            f"ALTER TABLE {placed} ADD PARTITION (dt = '{FIRST}') "
            f"LOCATION '{lake.path('elsewhere')}'"
        )
        spark.sql(
            f"INSERT OVERWRITE TABLE {placed} PARTITION (dt = '{FIRST}') "
            f"SELECT id, user FROM events WHERE dt = '{FIRST}'"
        )
        odd = self.table(lake, "odd", "kind string")
        spark.sql(
            f"INSERT INTO {odd} SELECT id, user, element_at(array('a b/c=d', 'ü%'), "
            f"CAST(id % 2 + 1 AS int)) FROM events WHERE dt = '{SECOND}'"
        )

        two = self.table(lake, "two", "dt string, hour int")
        spark.sql(
            f"INSERT INTO {two} SELECT id, user, dt, CAST(id % 2 AS int) FROM events "
            f"WHERE dt <> '{THIRD}'"
        )
        spark.sql(f"ALTER TABLE {two} DROP PARTITION (DT = '{SECOND}')")
        moved = self.table(lake, "moved")
        spark.sql(f"INSERT INTO {moved} SELECT id, user, dt FROM events WHERE dt <> '{THIRD}'")
        spark.sql(
            f"ALTER TABLE {moved} PARTITION (dt = '{SECOND}') RENAME TO PARTITION (dt = '{THIRD}')"
        )
