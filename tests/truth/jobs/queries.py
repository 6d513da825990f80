"""Queries that TPC-H has none of: how they reach their sources, and which partitions matter."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tests.truth.job import DAYS, FIRST, SECOND, THIRD, Every, Job

if TYPE_CHECKING:
    from tests.truth.job import Lake


class _Query(Job):
    """A query over ``events`` and ``users``, whose result is appended to ``out``."""

    sql: ClassVar[str]
    by: ClassVar[tuple[str, ...]] = ()
    reads = {"events": Every(DAYS)}
    writes = {"out": "all"}

    def plant(self, lake: Lake) -> None:
        lake.write(lake.events(), "events", "dt")
        users = lake.spark.sql(
            "SELECT id AS user, concat('u', id) AS name, "
            "CASE WHEN id % 4 = 0 THEN 'de' WHEN id % 4 < 3 THEN 'fr' END AS country "
            "FROM range(60)"
        )
        lake.write(users, "users", "country")

    def run(self, lake: Lake) -> None:
        for table in ("events", "users"):
            lake.view(table)
        lake.write(lake.spark.sql(self.sql), "out", *self.by)


class LateralView(_Query):
    """Values of a generator are made of what it explodes."""

    sql = """SELECT e.id, x.part FROM events e
        LATERAL VIEW explode(split(concat_ws(',', user, id), ',')) x AS part
        WHERE e.dt = '2024-05-06'"""
    reads = {"events": [SECOND]}
    columns = {"out": {"id": {"events.id"}, "part": {"events.user", "events.id"}}}


class LateralJoin(_Query):
    """A lateral subquery sees the columns of what stands before it."""

    sql = """SELECT e.id, s.twice FROM events e,
        LATERAL (SELECT e.user * 2 AS twice) s WHERE e.dt > '2024-05-05'"""
    reads = {"events": [SECOND, THIRD]}
    columns = {"out": {"id": {"events.id"}, "twice": {"events.user"}}}


class FullJoin(_Query):
    """No condition of a full join leaves out partitions of either side."""

    sql = """SELECT coalesce(e.user, u.user) AS user, u.name FROM events e
        FULL JOIN users u ON e.user = u.user AND e.dt = '2024-05-06'"""
    reads = {"events": Every(DAYS), "users": Every(["de", "fr", None])}
    columns = {"out": {"user": {"events.user", "users.user"}, "name": {"users.name"}}}


class SemiJoin(_Query):
    """The right side of a semi join is read, and no value is made of it."""

    sql = """SELECT id, dt FROM events LEFT SEMI JOIN
        (SELECT user FROM users WHERE country = 'de') u ON events.user = u.user
        WHERE dt <> '2024-05-06'"""
    by = ("dt",)
    reads = {"events": [FIRST, THIRD], "users": ["de"]}
    writes = {"out": [FIRST, THIRD]}
    columns = {"out": {"id": {"events.id"}, "dt": {"events.dt"}}}


class NotIn(_Query):
    """A NOT IN is an anti join that minds nulls."""

    sql = "SELECT id FROM events WHERE user NOT IN (SELECT user FROM users WHERE country IS NULL)"
    reads = {"events": Every(DAYS), "users": [None]}
    columns = {"out": {"id": {"events.id"}}}


class ScalarSubquery(_Query):
    """A scalar subquery in the list of columns makes a value, one in a condition only filters."""

    sql = """SELECT id, (SELECT max(name) FROM users WHERE country = 'fr') AS last FROM events
        WHERE dt = (SELECT max(dt) FROM events)"""
    reads = {"events": Every(DAYS), "users": ["fr"]}
    columns = {"out": {"id": {"events.id"}, "last": {"users.name"}}}


class Correlated(_Query):
    """A correlated subquery is a join, and its value is made of both sides."""

    sql = """SELECT e.id, (SELECT max(u.name) FROM users u WHERE u.user = e.user) AS name
        FROM events e WHERE e.dt IN ('2024-05-05', '2024-05-07')"""
    reads = {"events": [FIRST, THIRD], "users": Every(["de", "fr", None])}
    columns = {"out": {"id": {"events.id"}, "name": {"users.name"}}}


class Intersected(_Query):
    """The rows of an INTERSECT are those of the left side; the right side filters."""

    sql = """SELECT user FROM events WHERE dt = '2024-05-05'
        INTERSECT SELECT user FROM users WHERE country = 'de'"""
    reads = {"events": [FIRST], "users": ["de"]}
    columns = {"out": {"user": {"events.user"}}}


class Excepted(_Query):
    """So are those of an EXCEPT."""

    sql = """SELECT user FROM events WHERE dt = '2024-05-05'
        EXCEPT SELECT user FROM events WHERE dt = '2024-05-06'"""
    reads = {"events": [FIRST, SECOND]}
    columns = {"out": {"user": {"events.user"}}}


class United(_Query):
    """Both sides of a union make its columns, by position."""

    sql = """SELECT id AS key, concat(dt) AS kind FROM events WHERE dt = '2024-05-07'
        UNION ALL SELECT user, name FROM users WHERE country = 'fr'"""
    reads = {"events": [THIRD], "users": ["fr"]}
    columns = {
        "out": {"key": {"events.id", "users.user"}, "kind": {"events.dt", "users.name"}},
    }


class GroupingSets(_Query):
    """A column that some grouping sets leave out is still made of its source."""

    sql = """SELECT dt, user % 2 AS odd, count(*) AS n, sum(id) AS total FROM events
        WHERE dt <= '2024-05-06' GROUP BY GROUPING SETS ((dt), (user % 2))"""
    reads = {"events": [FIRST, SECOND]}
    columns = {
        "out": {"dt": {"events.dt"}, "odd": {"events.user"}, "total": {"events.id"}, "n": set()},
    }
    declared = {"column_without_sources out n": "it is a count of rows"}


class Pivoted(_Query):
    """A pivoted value is made of what it aggregates, and of the column that chooses its cell."""

    sql = """SELECT * FROM (SELECT id, user, dt FROM events)
        PIVOT (sum(user) FOR dt IN ('2024-05-05' AS d5, '2024-05-06' AS d6))"""
    columns = {
        "out": {
            "id": {"events.id"},
            "d5": {"events.user", "events.dt"},
            "d6": {"events.user", "events.dt"},
        },
    }


class Windowed(_Query):
    """A window's value is made of its argument, its partition and its order."""

    sql = """SELECT id, sum(user) OVER (PARTITION BY dt ORDER BY id) AS running FROM events
        WHERE dt BETWEEN '2024-05-06' AND '2024-05-07'"""
    reads = {"events": [SECOND, THIRD]}
    columns = {
        "out": {
            "id": {"events.id"},
            "running": {"events.user", "events.dt", "events.id"},
        },
    }


class FilteredAggregate(_Query):
    """The filter of an aggregate chooses what it is made of."""

    sql = """SELECT dt, sum(user) FILTER (WHERE id > 3) AS total FROM events
        WHERE dt LIKE '2024-05-0%' GROUP BY dt"""
    by = ("dt",)
    writes = {"out": list(DAYS)}
    columns = {"out": {"dt": {"events.dt"}, "total": {"events.user", "events.id"}}}


class HigherOrder(_Query):
    """A lambda's result is made of the array, and of the columns that the lambda takes."""

    sql = """SELECT transform(collect_list(id), x -> x + 1) AS ids,
        aggregate(collect_list(user), 0L, (a, x) -> a + x) AS total FROM events
        WHERE dt = '2024-05-06'"""
    reads = {"events": [SECOND]}
    columns = {"out": {"ids": {"events.id"}, "total": {"events.user"}}}


class Structs(_Query):
    """Of a struct that is made and taken apart, each field is made of its own source."""

    sql = """SELECT s.a AS left, s.b AS right FROM
        (SELECT named_struct('a', id, 'b', user) AS s, dt FROM events) WHERE dt = '2024-05-06'"""
    reads = {"events": [SECOND]}
    columns = {"out": {"left": {"events.id"}, "right": {"events.user"}}}


class ValuesJoined(_Query):
    """Values that stand in the query are no dataset, and prune no partition by themselves."""

    sql = """SELECT e.id, v.label FROM events e JOIN
        (VALUES ('2024-05-05', 'a'), ('2024-05-06', 'b')) AS v(dt, label) ON e.dt = v.dt
        WHERE e.dt < '2024-05-06'"""
    reads = {"events": [FIRST]}
    columns = {"out": {"id": {"events.id"}, "label": set()}}
    declared = {"column_without_sources out label": "it is made of values in the query"}


class SelfJoin(_Query):
    """A table that is read twice has the partitions of both reads."""

    sql = """SELECT a.id, b.user FROM events a JOIN events b ON a.id = b.id + 1
        WHERE a.dt = '2024-05-05' AND b.dt = '2024-05-07'"""
    reads = {"events": [FIRST, THIRD]}
    columns = {"out": {"id": {"events.id"}, "user": {"events.user"}}}


class NoRows(_Query):
    """A day that does not exist is read of no partition; a format with a log writes no file."""

    sql = "SELECT id, user FROM events WHERE dt = '1999-01-01'"
    reads = {"events": "none"}

    def truth_of(self, kind: str) -> Job:
        return self if kind == "parquet" else _NoRowsInALog()


class _NoRowsInALog(NoRows):
    writes = {"out": "none"}


class Contradiction(_Query):
    """Where Spark can tell that a condition is false, its plan has no trace of the table."""

    sql = "SELECT id, user FROM events WHERE dt = '2024-05-05' AND dt = '2024-05-06'"
    reads = {}
    declared = {"column_lineage_missing out": "Spark knows before it plans that there are no rows"}

    def truth_of(self, kind: str) -> Job:
        return self if kind == "parquet" else _ContradictionInALog()

    def truth_on(self, spark: tuple[int, int]) -> Job:
        return self if spark >= (4, 0) else _ContradictionFoundLater()


class _ContradictionFoundLater(Contradiction):
    """Spark 3 does not compare the two conditions, and lists the folder for nothing."""

    reads = {"events": "none"}
    declared = {}


class _ContradictionInALog(Contradiction):
    reads = {"events": "none"}
    writes = {"out": "none"}
    declared = {"partitions_unknown events": "the listener has it of the plan before"}

    def truth_on(self, spark: tuple[int, int]) -> Job:
        return self if spark >= (4, 0) else _ContradictionFoundLaterInALog()


class _ContradictionFoundLaterInALog(_ContradictionInALog):
    declared = {}


class ByFunction(_Query):
    """A function of the column that partitions the table chooses partitions."""

    sql = "SELECT id, user FROM events WHERE date_add(to_date(dt), 1) = DATE'2024-05-07'"
    reads = {"events": [SECOND]}
    columns = {"out": {"id": {"events.id"}, "user": {"events.user"}}}

    def truth_of(self, kind: str) -> Job:
        return _ByFunctionOfIceberg() if kind == "iceberg" else self


class _ByFunctionOfIceberg(ByFunction):
    # Iceberg takes over no such filter, and Spark opens the files of all days.
    reads = {"events": Every(DAYS)}


class Either(_Query):
    """An OR with a condition on another column chooses no partitions."""

    sql = "SELECT id FROM events WHERE dt = '2024-05-05' OR user > 50"
    columns = {"out": {"id": {"events.id"}}}


class Limited(_Query):
    """A LIMIT over a sort reads all that is sorted."""

    sql = "SELECT id, dt FROM events WHERE dt >= '2024-05-06' ORDER BY id DESC LIMIT 3"
    reads = {"events": [SECOND, THIRD]}
    columns = {"out": {"id": {"events.id"}, "dt": {"events.dt"}}}


class NestedCtes(_Query):
    """A CTE that is used twice is read once or twice, with the same result."""

    sql = """WITH day AS (SELECT * FROM events WHERE dt = '2024-05-06'),
        big AS (SELECT id, user FROM day WHERE user > 10),
        small AS (SELECT id, user FROM day WHERE user <= 10)
        SELECT b.id AS big, s.user AS small FROM big b JOIN small s ON b.id % 7 = s.id % 7"""
    reads = {"events": [SECOND]}
    columns = {"out": {"big": {"events.id"}, "small": {"events.user"}}}


class Recursive(_Query):
    """A recursive CTE grows from its anchor."""

    cannot = dict.fromkeys(("3.5", "4.0"), "it has no WITH RECURSIVE")
    sql = """WITH RECURSIVE up AS (
        SELECT id, user FROM events WHERE dt = '2024-05-06' AND id < 5
        UNION ALL SELECT id + 100, user FROM up WHERE id < 300)
        SELECT id, user FROM up"""
    reads = {"events": [SECOND]}
    columns = {"out": {"id": {"events.id"}, "user": {"events.user"}}}


class Sampled(_Query):
    """A sample reads every file of what it samples."""

    sql = "SELECT id FROM events TABLESAMPLE (50 PERCENT) WHERE dt = '2024-05-05'"
    reads = {"events": Every(DAYS)}
    columns = {"out": {"id": {"events.id"}}}


class CrossCube(_Query):
    """A cross join of an aggregate with a table is made of both."""

    sql = """SELECT e.id, t.n FROM (SELECT id FROM events WHERE dt = '2024-05-07') e
        CROSS JOIN (SELECT max(user) AS n FROM users WHERE country = 'de') t"""
    reads = {"events": [THIRD], "users": ["de"]}
    columns = {"out": {"id": {"events.id"}, "n": {"users.user"}}}

    def truth_of(self, kind: str) -> Job:
        return _CrossCubeOfIceberg() if kind == "iceberg" else self


class _CrossCubeOfIceberg(CrossCube):
    declared = {"partitions_unknown users": "Iceberg answers it from its statistics"}


class CoalescedDays(_Query):
    """The day of the result is computed, and so are the partitions that are written."""

    sql = """SELECT id, date_format(date_add(to_date(dt), 30), 'yyyy-MM-dd') AS due FROM events
        WHERE dt = '2024-05-06'"""
    by = ("due",)
    reads = {"events": [SECOND]}
    writes = {"out": ["2024-06-05"]}
    columns = {"out": {"id": {"events.id"}, "due": {"events.dt"}}}
