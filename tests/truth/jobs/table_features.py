"""What only Delta can do with a table: its layout, its columns, and changes of its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.truth.job import DAYS, NEXT, SECOND, Job

if TYPE_CHECKING:
    from tests.truth.job import Lake


class DeletionVectors(Job):
    """Rows of one day are marked as deleted; to find them, the files of all days are read."""

    formats = ("delta",)
    reads = {"events": list(DAYS)}
    writes = {"events": [SECOND]}

    def plant(self, lake: Lake) -> None:
        super().plant(lake)
        lake.spark.sql(
            f"ALTER TABLE {lake.name('events')} "
            "SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
        )

    def run(self, lake: Lake) -> None:
        lake.spark.sql(f"DELETE FROM {lake.name('events')} WHERE id = 4")


class ReplacedWhere(Job):
    """The rows of a condition are replaced, which are those of a day."""

    formats = ("delta",)
    reads = {"new": "all"}
    writes = {"events": [SECOND]}

    def plant(self, lake: Lake) -> None:
        super().plant(lake)
        lake.write(lake.events((SECOND,)), "new")

    def run(self, lake: Lake) -> None:
        new = lake.read("new").write.format("delta").mode("overwrite")
        new.option("replaceWhere", "dt = '2024-05-06'").save(lake.path("events"))


class WrittenOnce(Job):
    """A write that names its transaction is skipped the second time."""

    formats = ("delta",)
    reads = {"new": "all"}
    writes = {"events": [SECOND]}
    declared = {"partitions_unknown new": "nothing tells that the second write read nothing"}

    def plant(self, lake: Lake) -> None:
        super().plant(lake)
        lake.write(lake.events((SECOND,)), "new")

    def run(self, lake: Lake) -> None:
        for _ in range(2):
            new = lake.read("new").write.format("delta").mode("append")
            new.options(txnAppId="app", txnVersion="1").save(lake.path("events"))


class Clustered(Job):
    """A table that is clustered has no partitions, so all of it is written."""

    formats = ("delta",)
    reads = {"events": [SECOND]}
    writes = {"clustered": "all"}

    def run(self, lake: Lake) -> None:
        day = f"SELECT * FROM {lake.name('events')} WHERE dt = '2024-05-06'"
        lake.spark.sql(
            f"CREATE TABLE {lake.name('clustered')} USING delta CLUSTER BY (dt) AS {day}"
        )


class Evolved(Job):
    """A write adds a column to the table."""

    reads = {"new": "all"}
    writes = {"events": [NEXT]}
    columns = {
        "events": {
            "id": {"new.id"},
            "user": {"new.user"},
            "dt": {"new.dt"},
            "more": {"new.id"},
        }
    }
    formats = ("delta",)

    def plant(self, lake: Lake) -> None:
        super().plant(lake)
        lake.write(lake.events((NEXT,)), "new")

    def run(self, lake: Lake) -> None:
        new = lake.read("new").selectExpr("*", "id + 1 AS more")
        new = new.write.format("delta").mode("append").option("mergeSchema", "true")
        new.save(lake.path("events"))
