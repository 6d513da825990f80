"""Queries in newer forms of SQL, views on views, and bags of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.truth.job import DAYS, UNTRIED, Every
from tests.truth.jobs.queries import TODAY, _Query

if TYPE_CHECKING:
    from tests.truth.job import Lake

FIRST, SECOND, THIRD = DAYS


class LateralAliases(_Query):
    """A column of the list is used further on in it."""

    cannot = UNTRIED
    sql = """SELECT id, user + 1 AS next, next * 2 AS twice, twice + next + id AS total
        FROM events WHERE dt = '2024-05-06'"""
    reads = {"events": [TODAY]}
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

    cannot = {**UNTRIED, "3.5": "it has no pipes"}
    sql = """FROM events |> WHERE dt = '2024-05-06' |> EXTEND user * 2 AS twice
        |> AGGREGATE sum(twice) AS total, max(id) AS last GROUP BY user % 3 AS kind
        |> SET total = total + last |> DROP last"""
    reads = {"events": [TODAY]}
    columns = {"out": {"kind": {"events.user"}, "total": {"events.user", "events.id"}}}


class Scripted(_Query):
    """A script of SQL: a loop over days."""

    cannot = {**UNTRIED, "3.5": "it has no scripts"}
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

    cannot = UNTRIED
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

    cannot = UNTRIED
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
