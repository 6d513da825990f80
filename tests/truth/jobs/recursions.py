"""Recursive common tables: of which tables and columns their rows are made, level after level."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tests.truth.job import DAYS, FIRST, NEXT, SECOND, THIRD, Every, Job
from tests.truth.jobs.queries import Recursive, _Query

if TYPE_CHECKING:
    from tests.truth.job import Lake


class _Recursion(_Query):
    cannot = Recursive.cannot


class RecursiveJoin(_Recursion):
    """Each level is joined to the table, of which it takes the rows of another day."""

    sql = """WITH RECURSIVE up AS (
        SELECT id, user, dt FROM events WHERE dt = '2024-05-05' AND id < 10
        UNION ALL SELECT e.id, up.user + e.user, e.dt FROM up JOIN events e ON e.id = up.id + 1
        WHERE e.dt = '2024-05-06')
        SELECT id, user, dt FROM up"""
    by = ("dt",)
    reads = {"events": list(DAYS[:2])}
    writes = {"out": list(DAYS[:2])}
    columns = {"out": {"id": {"events.id"}, "user": {"events.user"}, "dt": {"events.dt"}}}


class SwappingRecursion(_Recursion):
    """A level that swaps two columns makes each of both; a column that it hands on stays whole."""

    sql = """WITH RECURSIVE up(a, b, name, depth) AS (
        SELECT e.id, e.user, u.name, 0 FROM events e JOIN users u ON e.user = u.user
        WHERE e.dt = '2024-05-06' AND u.country = 'fr'
        UNION ALL SELECT b, a, name, depth + 1 FROM up WHERE depth < 3)
        SELECT a, b, name, depth FROM up"""
    reads = {"events": [SECOND], "users": ["fr"]}
    columns = {
        "out": {
            "a": {"events.id", "events.user"},
            "b": {"events.id", "events.user"},
            "name": {"users.name"},
            "depth": set(),
        }
    }
    declared = {"column_without_sources out depth": "it is counted from a literal"}


class ShiftingRecursion(_Recursion):
    """A column gets to the first place after two levels only."""

    sql = """WITH RECURSIVE up(a, b, c, depth) AS (
        SELECT 0L, 0L, user, 0 FROM events WHERE dt = '2024-05-06'
        UNION ALL SELECT b, c, 0L, depth + 1 FROM up WHERE depth < 3)
        SELECT a, b, c FROM up"""
    reads = {"events": [SECOND]}
    columns = {"out": {"a": {"events.user"}, "b": {"events.user"}, "c": {"events.user"}}}


class TwoRecursions(_Recursion):
    """Two recursions in a query, the second of which begins with the rows of the first."""

    sql = """WITH RECURSIVE up AS (
        SELECT id, user FROM events WHERE dt = '2024-05-06' AND id < 5
        UNION ALL SELECT id + 100, user FROM up WHERE id < 300),
        named AS (
        SELECT up.id, u.name, up.user FROM up JOIN users u ON up.user = u.user
        WHERE u.country = 'de'
        UNION ALL SELECT n.id, concat(n.name, u.name), n.user + 1 FROM named n
        JOIN users u ON u.user = n.user + 1 WHERE u.country IS NULL)
        SELECT id, name FROM named"""
    reads = {"events": [SECOND], "users": ["de", None]}
    columns = {"out": {"id": {"events.id"}, "name": {"users.name"}}}


class CountedRecursion(_Recursion):
    """Numbers that a recursion counts are made of no table."""

    sql = """WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 4)
        SELECT e.id, n.i FROM events e JOIN n ON e.id % 5 = n.i WHERE e.dt = '2024-05-07'"""
    reads = {"events": [THIRD]}
    columns = {"out": {"id": {"events.id"}, "i": set()}}
    declared = {"column_without_sources out i": "it is counted from a literal"}


class RecursionInACondition(_Recursion):
    """A recursion in a subquery chooses rows, and its table is read."""

    sql = """SELECT id FROM events WHERE dt = '2024-05-05' AND user IN (
        WITH RECURSIVE up AS (
        SELECT user FROM users WHERE country = 'fr' AND user < 5
        UNION ALL SELECT up.user + 4 FROM up WHERE up.user < 50) SELECT user FROM up)"""
    reads = {"events": [FIRST], "users": ["fr"]}
    columns = {"out": {"id": {"events.id"}}}


class RecursionOverwritten(_Recursion):
    """The days of a recursion overwrite those of a table."""

    conf: ClassVar[dict[str, str]] = {"spark.sql.sources.partitionOverwriteMode": "dynamic"}
    reads = {"events": [SECOND]}
    writes = {"out": [SECOND, THIRD, NEXT]}
    columns = {"out": {"id": {"events.id"}, "user": {"events.user"}, "dt": {"events.dt"}}}

    def run(self, lake: Lake) -> None:
        lake.view("events")
        name = lake.create("out", "id bigint, user bigint, dt string", "dt")
        lake.spark.sql(
            f"""INSERT OVERWRITE {name} WITH RECURSIVE up AS (
            SELECT id, user, dt FROM events WHERE dt = '{SECOND}'
            UNION ALL SELECT id + 100, user, CAST(date_add(to_date(dt), 1) AS string) FROM up
            WHERE id < 200) SELECT id, user, dt FROM up"""
        )


class RecursionOfAnAggregate(_Recursion):
    """A recursion begins with an aggregate of all days, and its rows are grouped."""

    sql = """WITH RECURSIVE up AS (
        SELECT dt, max(user) AS top FROM events GROUP BY dt
        UNION ALL SELECT dt, top - 10 FROM up WHERE top > 20)
        SELECT dt, sum(top) AS total FROM up GROUP BY dt"""
    by = ("dt",)
    reads = {"events": Every(DAYS)}
    writes = {"out": list(DAYS)}
    columns = {"out": {"dt": {"events.dt"}, "total": {"events.user"}}}


class LimitedRecursion(Job):
    """A LIMIT ends a recursion that would go on for ever; its rows are counted in the driver."""

    cannot = Recursive.cannot
    reads = {"events": [SECOND]}

    def run(self, lake: Lake) -> None:
        lake.view("events")
        lake.spark.sql(
            f"""WITH RECURSIVE up AS (SELECT id FROM events WHERE dt = '{SECOND}'
            UNION ALL SELECT id + 100 FROM up WHERE id < 250)
            SELECT id FROM up ORDER BY id DESC LIMIT 50"""
        ).collect()
