"""Newer forms of SQL, and types that came with Spark 4.0 to 4.2."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tests.truth.job import DAYS, FIRST, SECOND, THIRD, Every, Job
from tests.truth.jobs.queries import _Query
from tests.truth.jobs.tables import ALL_COLUMNS, COLUMNS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.truth.job import Lake

OF_4_0 = {"3.5": "it came with Spark 4.0"}
OF_4_1 = dict.fromkeys(("3.5", "4.0"), "it came with Spark 4.1")
OF_4_2 = dict.fromkeys(("3.5", "4.0"), "it came with Spark 4.2")
OF_NEW = {"id": {"new.id"}, "user": {"new.user"}, "dt": {"new.dt"}}


class _Script(Job):
    """A script of SQL reads ``events``, and inserts into ``out``."""

    cannot = dict.fromkeys(("3.5", "4.0"), "its SQL scripts are off, or it has none")
    reads = {"events": [SECOND]}
    writes = {"out": [SECOND]}
    columns = {"out": ALL_COLUMNS}

    def script(self, out: str) -> str:
        """Give the script."""
        raise NotImplementedError

    def run(self, lake: Lake) -> None:
        lake.view("events")
        out = lake.create("out", COLUMNS, "dt")
        lake.spark.sql(self.script(out)).collect()


class ScriptedLoop(_Script):
    """A loop over a query's rows inserts once for each."""

    reads = {"events": [SECOND, THIRD]}
    writes = {"out": [SECOND, THIRD]}
    columns = {"out": {"id": {"events.id"}, "user": {"events.user"}}}
    declared = {"column_without_sources out dt": "it is a variable of the script"}

    def script(self, out: str) -> str:
        return f"""BEGIN
            FOR day AS SELECT DISTINCT dt AS of FROM events WHERE dt >= '{SECOND}' DO
              INSERT INTO {out} SELECT id, user, day.of FROM events WHERE dt = day.of;
            END FOR;
        END"""


class ScriptedHandler(_Script):
    """A statement fails, and the handler of the script writes."""

    def script(self, out: str) -> str:
        return f"""BEGIN
            DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN
              INSERT INTO {out} SELECT id, user, dt FROM events WHERE dt = '{SECOND}';
            END;
            SELECT raise_error('no');
        END"""


class PipedAggregate(_Query):
    """Of the steps, one aggregates, and one unites."""

    cannot = OF_4_0
    sql = """FROM events |> WHERE dt = '2024-05-06'
        |> AGGREGATE sum(user) AS total GROUP BY concat(dt) AS day
        |> UNION ALL (SELECT country, user FROM users WHERE country = 'fr')"""
    reads = {"events": [SECOND], "users": ["fr"]}
    columns = {
        "out": {
            "day": {"events.dt", "users.country"},
            "total": {"events.user", "users.user"},
        }
    }


class Collated(_Query):
    """Texts are compared without case, which groups, joins and chooses."""

    cannot = OF_4_0
    formats = ("parquet",)
    sql = """SELECT u.name COLLATE UTF8_LCASE AS name, max(e.id) AS id FROM events e
        JOIN users u ON e.user = u.user AND u.name COLLATE UTF8_LCASE > 'U2'
        WHERE e.dt = '2024-05-06' AND u.country COLLATE UTF8_LCASE = 'DE'
        GROUP BY u.name COLLATE UTF8_LCASE"""
    reads = {"events": [SECOND], "users": ["de"]}
    columns = {"out": {"name": {"users.name"}, "id": {"events.id"}}}


class Times(_Query):
    """Times of a day."""

    cannot = OF_4_1
    formats = ("parquet",)
    conf = {"spark.sql.timeType.enabled": "true"}
    sql = """SELECT id, CAST(make_time(CAST(user % 24 AS int), 0, 0) AS string) AS at FROM events
        WHERE dt = '2024-05-06'"""
    reads = {"events": [SECOND]}
    columns = {"out": {"id": {"events.id"}, "at": {"events.user"}}}


class Places(_Query):
    """Points on a map, which are made of bytes, and are bytes again."""

    cannot = OF_4_1
    conf = {"spark.sql.geospatial.enabled": "true"}
    sql = """SELECT id, st_asbinary(st_geomfromwkb(
        unhex(concat('0101000000000000000000F03F', hex(repeat(chr(user % 60 + 1), 8))))
        )) AS place FROM events WHERE dt = '2024-05-06'"""
    reads = {"events": [SECOND]}
    columns = {"out": {"id": {"events.id"}, "place": {"events.user"}}}


class Qualified(_Query):
    """QUALIFY chooses rows by a window."""

    cannot = OF_4_2
    sql = """SELECT id, user FROM events WHERE dt = '2024-05-06'
        QUALIFY row_number() OVER (PARTITION BY user % 3 ORDER BY id) = 1"""
    reads = {"events": [SECOND]}
    columns = {"out": {"id": {"events.id"}, "user": {"events.user"}}}


class Nearest(_Query):
    """Each row is joined to the nearest one."""

    cannot = OF_4_2
    sql = """SELECT e.id, u.name FROM (SELECT * FROM events WHERE dt = '2024-05-06') e
        JOIN (SELECT * FROM users WHERE country = 'de') u
        EXACT NEAREST 1 BY DISTANCE abs(e.user - u.user)"""
    reads = {"events": [SECOND], "users": ["de"]}
    columns = {"out": {"id": {"events.id"}, "name": {"users.name"}}}


class _Merged(Job):
    """Rows of a day are merged into ``events``."""

    formats = ("delta", "iceberg")
    reads = {"new": "all", "events": [SECOND]}
    writes = {"events": [SECOND]}
    columns = {"events": OF_NEW}
    new: ClassVar[Sequence[str]] = ("*",)
    """The columns of the rows that are merged, made of those of ``events``."""

    def plant(self, lake: Lake) -> None:
        super().plant(lake)
        lake.write(lake.events((SECOND,)).where("id > 20").selectExpr(*self.new), "new")


class MergedWithEvolution(_Merged):
    """A MERGE adds a column to the table."""

    cannot = dict.fromkeys(("3.5", "4.0"), "its release of Delta adds no column by it")
    formats = ("delta",)
    columns = {"events": {**OF_NEW, "more": {"new.more"}}}
    new = ("*", "concat('m', id) AS more")

    def run(self, lake: Lake) -> None:
        lake.view("new")
        lake.spark.sql(
            f"""MERGE WITH SCHEMA EVOLUTION INTO {lake.name("events")} t USING new s
            ON t.id = s.id AND t.dt = '{SECOND}' WHEN MATCHED THEN UPDATE SET *
            WHEN NOT MATCHED THEN INSERT *"""
        )


class MergedByFrame(_Merged):
    """A frame is merged into a table without SQL."""

    cannot = OF_4_0

    def run(self, lake: Lake) -> None:
        from pyspark.sql import functions as F  # noqa: N812

        table = lake.register("events") if lake.kind == "delta" else lake.name("events")
        new = lake.read("new").alias("s")
        matched = F.expr(f"s.id = events.id AND events.dt = '{SECOND}'")
        new.mergeInto(table, matched).whenMatched().updateAll().whenNotMatched().insertAll().merge()


class SubqueriesOfFrames(_Query):
    """A frame is used as a scalar, in a condition, and for each row of another one."""

    cannot = OF_4_0
    reads = {"events": [SECOND], "users": ["de", "fr"]}
    columns = {
        "out": {
            "id": {"events.id"},
            "twice": {"events.user"},
            "last": {"users.name"},
        }
    }

    def run(self, lake: Lake) -> None:
        from pyspark.sql import functions as F  # noqa: N812

        events = lake.read("events").where(f"dt = '{SECOND}'")
        users = lake.read("users")
        french = users.where("country = 'fr'").agg(F.max("name"))
        german = users.where("country = 'de'").where(F.col("user") == F.col("e.user").outer())
        twice = lake.spark.range(1).select((F.col("e.user").outer() * 2).alias("twice"))
        rows = events.alias("e").where(german.exists()).lateralJoin(twice)
        lake.write(rows.select("id", "twice", french.scalar().alias("last")), "out")


class InsertOnlyMerged(_Merged):
    """A MERGE that only inserts."""

    new = ("id + 5 AS id", "user", "dt")

    def run(self, lake: Lake) -> None:
        lake.view("new")
        lake.spark.sql(
            f"""MERGE INTO {lake.name("events")} t USING new s
            ON t.id = s.id AND t.dt = '{SECOND}' WHEN NOT MATCHED THEN INSERT *"""
        )


class _Replacing(Job):
    """Rows of a day replace others."""

    formats = ("delta",)
    reads = {"new": "all"}
    writes = {"out": [SECOND]}
    columns = {"out": OF_NEW}
    how: str

    def plant(self, lake: Lake) -> None:
        lake.write(lake.events((SECOND,)), "new")

    def run(self, lake: Lake) -> None:
        lake.view("new")
        out = lake.create("out", COLUMNS, "dt")
        lake.spark.sql(f"INSERT INTO {out} {self.how} SELECT id, user, dt FROM new")


class ReplacedWhereBySql(_Replacing):
    """Rows of a condition."""

    how = f"REPLACE WHERE dt = '{SECOND}'"


class LikeAnother(Job):
    """A table is made like another one, of which it takes the columns, and then written."""

    formats = ("parquet", "delta")
    reads = {"events": [SECOND]}
    writes = {"copy": [SECOND]}
    columns = {"copy": ALL_COLUMNS}

    def run(self, lake: Lake) -> None:
        lake.view("events")
        name = lake.create("out", COLUMNS, "dt")
        lake.spark.sql(f"CREATE TABLE {lake.job}.copy LIKE {name} LOCATION '{lake.path('copy')}'")
        lake.spark.sql(
            f"INSERT INTO {lake.job}.copy SELECT id, user, dt FROM events WHERE dt = '{SECOND}'"
        )


class Measured(Job):
    """A view of measures, which a query asks for one by a dimension."""

    cannot = OF_4_2
    formats = ("parquet", "delta")
    reads = {"events": [SECOND]}
    writes = {"out": [SECOND]}
    columns = {"out": {"day": {"events.dt"}, "total": {"events.user"}}}

    def run(self, lake: Lake) -> None:
        spark, job = lake.spark, lake.job
        lake.register("events")
        spark.sql(
            f"""CREATE VIEW {job}.measures WITH METRICS LANGUAGE YAML AS $$
version: "0.1"
source: {job}.events
dimensions:
  - name: day
    expr: dt
measures:
  - name: total
    expr: sum(user)
$$"""
        )
        rows = spark.sql(
            f"SELECT day, measure(total) AS total FROM {job}.measures WHERE day = '{SECOND}' "
            "GROUP BY day"
        )
        lake.write(rows, "out", "day")


class LateralAliases(_Query):
    """A column of the list is used further on in it."""

    sql = """SELECT id, user + 1 AS next, next * 2 AS twice, twice + next + id AS total
        FROM events WHERE dt = '2024-05-06'"""
    reads = {"events": [SECOND]}
    columns = {
        "out": {
            "id": {"events.id"},
            "next": {"events.user"},
            "twice": {"events.user"},
            "total": {"events.user", "events.id"},
        },
    }


class Piped(_Query):
    """The syntax of pipes."""

    cannot = {"3.5": "it has no pipes"}
    sql = """FROM events |> WHERE dt = '2024-05-06' |> EXTEND user * 2 AS twice
        |> AGGREGATE sum(twice) AS total, max(id) AS last GROUP BY user % 3 AS kind
        |> SET total = total + last |> DROP last"""
    reads = {"events": [SECOND]}
    columns = {"out": {"kind": {"events.user"}, "total": {"events.user", "events.id"}}}


class Scripted(_Query):
    """A script of SQL: a loop over days."""

    cannot = {"3.5": "it has no scripts"}
    reads = {"events": [FIRST, SECOND]}
    writes = {"out": [FIRST, SECOND]}
    columns = {"out": {"id": {"events.id"}, "dt": {"events.dt"}}}
    conf = {"spark.sql.scripting.enabled": "true"}

    def run(self, lake: Lake) -> None:
        lake.view("events")
        out = lake.create("out", "id bigint, dt string", "dt")
        lake.spark.sql(f"""
            BEGIN
              DECLARE day DATE DEFAULT DATE'{FIRST}';
              WHILE day < DATE'{THIRD}' DO
                INSERT INTO {out} SELECT id, dt FROM events WHERE dt = CAST(day AS STRING);
                SET day = date_add(day, 1);
              END WHILE;
            END""")


class ViewsOnViews(_Query):
    """A view over a view over a cached view."""

    reads = {"events": [SECOND]}
    columns = {"out": {"n": {"events.user"}, "kind": {"events.id"}}}

    def run(self, lake: Lake) -> None:
        spark = lake.spark
        lake.view("events")
        spark.sql(f"CREATE TEMP VIEW a AS SELECT id, user AS n, dt FROM events WHERE dt='{SECOND}'")
        spark.sql("CACHE TABLE a")
        spark.sql("CREATE TEMP VIEW b AS SELECT id % 3 AS kind, n FROM a")
        spark.sql("CREATE TEMP VIEW c AS SELECT kind, sum(n) AS n FROM b GROUP BY kind")
        lake.write(spark.sql("SELECT * FROM c"), "out")
        spark.sql("UNCACHE TABLE a")


class BagOperations(_Query):
    """exceptAll, intersectAll and unionByName of frames with other columns."""

    reads = {"events": Every(DAYS), "users": ["de"]}
    writes = {"out": "all", "both": "all", "named": "all"}
    columns = {
        "out": {"user": {"events.user"}},
        "both": {"user": {"events.user"}},
        "named": {
            "user": {"events.user", "users.user"},
            "name": {"users.name"},
            "id": {"events.id"},
        },
    }

    def run(self, lake: Lake) -> None:
        from pyspark.sql.functions import col

        first = lake.read("events").where(f"dt = '{FIRST}'").select("user")
        second = lake.read("events").where(f"dt = '{SECOND}'").select("user")
        lake.write(first.exceptAll(second), "out")
        third = lake.read("events").where(f"dt = '{THIRD}'").select((col("user") - 2).alias("user"))
        lake.write(third.intersectAll(second), "both")
        named = lake.read("events").where(f"dt = '{FIRST}'").select("id", "user")
        users = lake.read("users").where("country = 'de'").select("name", "user")
        lake.write(named.unionByName(users, allowMissingColumns=True), "named")
