"""One statement that writes several tables: ``FROM … INSERT … INSERT …``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.truth.job import FIRST, SECOND, THIRD, Job

if TYPE_CHECKING:
    from tests.truth.job import Lake


class MultiInsert(Job):
    """A partition of one table is overwritten, and another table gets what its rows make."""

    reads = {"events": [FIRST, SECOND]}
    writes = {"a": [FIRST], "b": [SECOND]}
    columns = {
        "a": {"id": {"events.id"}, "who": {"events.user"}, "dt": set()},
        "b": {"id": {"events.id"}, "twice": {"events.user"}, "dt": {"events.dt"}},
    }
    declared = {"column_without_sources a dt": "it is a literal"}

    def run(self, lake: Lake) -> None:
        lake.view("events")
        a = lake.create("a", "id bigint, who bigint, dt string", "dt")
        b = lake.create("b", "id bigint, twice bigint, dt string", "dt")
        lake.spark.sql(f"""
            FROM events
            INSERT OVERWRITE TABLE {a} PARTITION (dt = '2024-05-05')
                SELECT id, user WHERE dt = '2024-05-05'
            INSERT INTO {b} SELECT id, user * 2, dt WHERE dt = '2024-05-06'
        """)


class MultiInsertOfStages(Job):
    """Both branches shuffle what a common table has, so that the plan of both is adaptive."""

    reads = {"events": "all"}
    writes = {"a": [FIRST, SECOND, THIRD], "b": "all"}
    columns = {
        "a": {"n": {"events.user"}, "dt": {"events.dt"}},
        "b": {"low": {"events.id"}, "high": {"events.user"}},
    }

    def run(self, lake: Lake) -> None:
        lake.view("events")
        a = lake.create("a", "n bigint, dt string", "dt")
        b = lake.create("b", "low bigint, high bigint")
        lake.spark.sql(f"""
            WITH some AS (SELECT user, id, dt FROM events)
            FROM some
            INSERT INTO {a} SELECT sum(user), dt GROUP BY dt
            INSERT INTO {b} SELECT min(id), max(user)
        """)

    def truth_of(self, kind: str) -> Job:
        return self if kind == "parquet" else _OfStatistics()


class _OfStatistics(MultiInsertOfStages):
    declared = {"partitions_unknown events": "the second branch is answered from statistics"}


class MultiInsertIntoOne(Job):
    """Two branches write one table."""

    reads = {"events": [FIRST, THIRD]}
    writes = {"a": [FIRST, THIRD]}
    columns = {"a": {"n": {"events.id", "events.user"}, "dt": {"events.dt"}}}

    def run(self, lake: Lake) -> None:
        lake.view("events")
        a = lake.create("a", "n bigint, dt string", "dt")
        lake.spark.sql(f"""
            FROM events
            INSERT INTO {a} SELECT id, dt WHERE dt = '2024-05-05'
            INSERT INTO {a} SELECT user, dt WHERE dt = '2024-05-07'
        """)
