"""Commands about whole tables: maintenance, moves to another version, clones, and branches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.truth.job import DAYS, FIRST, NEXT, SECOND, THIRD, Job
from tests.truth.jobs.snapshots import versions

if TYPE_CHECKING:
    from tests.truth.job import Lake

LAST = [THIRD]
ROWS_OF_NO_TABLE = {"column_lineage_missing events": "the rows are those of range()"}


class _Days(Job):
    """Each day is a commit of its own, of four files."""

    formats = ("delta", "iceberg")

    def plant(self, lake: Lake) -> None:
        for day in DAYS:
            frame = lake.events().where(f"dt = '{day}'").repartition(4)
            if lake.kind == "delta":
                frame.write.format("delta").mode("append").partitionBy("dt").save(
                    lake.path("events")
                )
                continue
            name = lake.name("events")
            if not lake.spark.catalog.tableExists(name):
                lake.create("events", "id bigint, user bigint, dt string", "dt")
                properties = "'format-version' = '2', 'write.distribution-mode' = 'none'"
                lake.spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ({properties})")
            frame.writeTo(name).append()

    def call(self, lake: Lake, procedure: str, arguments: str = "", table: str = "events") -> None:
        """Call a procedure of Iceberg, and collect its result, as the ``spark-sql`` shell does."""
        given = ", ".join(filter(None, [f"table => '{lake.job}.{table}'", arguments]))
        lake.spark.sql(f"CALL lakehouse.system.{procedure}({given})").collect()


class Compacted(_Days):
    """Files are rewritten: the same data is in other files."""

    maintains = {"events": {"OPTIMIZE", "rewrite_data_files"}}

    def run(self, lake: Lake) -> None:
        if lake.kind == "delta":
            lake.spark.sql(f"OPTIMIZE {lake.name('events')}").collect()
        else:
            self.call(lake, "rewrite_data_files", "options => map('min-input-files', '2')")


class Sorted(_Days):
    """The same, in another order of the rows, and of one partition."""

    maintains = {"events": {"OPTIMIZE", "rewrite_data_files"}}

    def run(self, lake: Lake) -> None:
        if lake.kind == "delta":
            day = "WHERE dt = '2024-05-06'"
            lake.spark.sql(f"OPTIMIZE {lake.name('events')} {day} ZORDER BY (id)").collect()
        else:
            order = "strategy => 'sort', sort_order => 'id', options => map('rewrite-all', 'true')"
            self.call(lake, "rewrite_data_files", f"{order}, where => 'dt = \"2024-05-06\"'")


class CompactedAndRead(Compacted):
    """A day is read by the job itself, and only that counts."""

    reads = {"events": [SECOND]}
    writes = {"out": [SECOND]}

    def run(self, lake: Lake) -> None:
        super().run(lake)
        lake.write(lake.read("events").where("dt = '2024-05-06'"), "out", "dt")


class CompactedWhileWritten(_Days):
    """A write that is followed by a compaction, which Delta starts by itself."""

    conf = {"spark.databricks.delta.autoCompact.minNumFiles": "2"}
    writes = {"events": LAST}
    declared = ROWS_OF_NO_TABLE
    maintains = {"events": {"OPTIMIZE", "rewrite_data_files"}}

    def run(self, lake: Lake) -> None:
        if lake.kind == "delta":
            lake.spark.conf.set("spark.databricks.delta.autoCompact.enabled", "true")
        lake.write(lake.events(LAST), "events", "dt")
        if lake.kind == "delta":
            lake.spark.conf.unset("spark.databricks.delta.autoCompact.enabled")
        else:
            self.call(lake, "rewrite_data_files", "options => map('min-input-files', '2')")


class Cleaned(_Days):
    """Files that no reader sees are removed."""

    maintains = {"events": {"VACUUM", "expire_snapshots", "remove_orphan_files"}}

    def run(self, lake: Lake) -> None:
        if lake.kind == "delta":
            lake.spark.sql(f"VACUUM {lake.name('events')}").collect()
            return
        self.call(lake, "expire_snapshots", "older_than => TIMESTAMP '2100-01-01 00:00:00'")
        self.call(lake, "remove_orphan_files")


class Manifests(_Days):
    """Only metadata are rewritten."""

    formats = ("iceberg",)
    maintains = {"events": {"rewrite_manifests"}}

    def run(self, lake: Lake) -> None:
        self.call(lake, "rewrite_manifests")


class DeletedRowsMaintained(_Days):
    """Marks of deleted rows are rewritten, or the rows are taken out of the files."""

    formats = ("iceberg",)
    maintains = {"events": {"REORG", "OPTIMIZE", "rewrite_position_delete_files"}}

    def plant(self, lake: Lake) -> None:
        super().plant(lake)
        name = lake.name("events")
        if lake.kind == "delta":
            lake.spark.sql(
                f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
            )
        else:
            lake.spark.sql(
                f"ALTER TABLE {name} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')"
            )
        lake.spark.sql(f"DELETE FROM {name} WHERE id = 4")
        lake.spark.sql(f"DELETE FROM {name} WHERE id = 7")

    def run(self, lake: Lake) -> None:
        if lake.kind == "delta":
            lake.spark.sql(f"REORG TABLE {lake.name('events')} APPLY (PURGE)").collect()
        else:
            rewritten = "options => map('rewrite-all', 'true')"
            self.call(lake, "rewrite_position_delete_files", rewritten)


class Restored(_Days):
    """The table has again the state before the last day, which is gone."""

    removes = {"events": LAST}
    version = 1

    def run(self, lake: Lake) -> None:
        number, _ = versions(lake)[self.version]
        if lake.kind == "delta":
            restored = f"RESTORE TABLE {lake.name('events')} TO VERSION AS OF {self.version}"
            lake.spark.sql(restored).collect()
        else:
            self.call(lake, "rollback_to_snapshot", f"snapshot_id => {number}")


class RestoredRows(_Days):
    """A day that had rows before the version has rows after it, too."""

    writes = {"events": [SECOND]}

    def plant(self, lake: Lake) -> None:
        super().plant(lake)
        lake.write(lake.events((SECOND,)), "events", "dt")

    def run(self, lake: Lake) -> None:
        number, _ = versions(lake)[2]
        if lake.kind == "delta":
            lake.spark.sql(f"RESTORE TABLE {lake.name('events')} TO VERSION AS OF 2").show()
        else:
            self.call(lake, "set_current_snapshot", f"snapshot_id => {number}")


class RestoredDay(Restored):
    """A day that was deleted is there again."""

    removes = {}
    writes = {"events": [SECOND]}
    version = 2

    def plant(self, lake: Lake) -> None:
        super().plant(lake)
        lake.spark.sql(f"DELETE FROM {lake.name('events')} WHERE dt = '2024-05-06'")


class Cloned(_Days):
    """A clone has the data of its source without a copy."""

    formats = ("delta",)
    reads = {"events": "all"}
    writes = {"copy": list(DAYS)}
    columns = {"copy": {name: {f"events.{name}"} for name in ("id", "user", "dt")}}

    def run(self, lake: Lake) -> None:
        copy, events = lake.name("copy"), lake.name("events")
        lake.spark.sql(f"CREATE TABLE {copy} SHALLOW CLONE {events}").collect()


class ClonedVersion(Cloned):
    """A clone of the version that has two days."""

    reads = {"events": [FIRST, SECOND]}
    writes = {"copy": [FIRST, SECOND]}

    def run(self, lake: Lake) -> None:
        copy, events = lake.name("copy"), lake.name("events")
        lake.spark.sql(f"CREATE TABLE {copy} SHALLOW CLONE {events} VERSION AS OF 1").collect()


class Converted(Job):
    """The folder becomes a table of Delta, with the files that are there."""

    formats = ("delta",)
    cannot = {"4.0": "the release of Delta does not fit the one of Spark"}
    maintains = {"plain": {"CONVERT TO DELTA"}}

    def plant(self, lake: Lake) -> None:
        lake.events().write.partitionBy("dt").parquet(lake.path("plain"))

    def run(self, lake: Lake) -> None:
        path = f"parquet.`{lake.path('plain')}`"
        lake.spark.sql(f"CONVERT TO DELTA {path} PARTITIONED BY (dt string)")


class Purged(DeletedRowsMaintained):
    """The same of Delta."""

    formats = ("delta",)
    cannot = Converted.cannot


class FilesAdded(_Days):
    """A table takes over files of a folder, without a copy."""

    formats = ("iceberg",)
    reads = {"plain": "unknown"}
    writes = {"events": ["2024-05-09"]}
    declared = {
        "partitions_unknown plain": "the procedure reads it out of Spark's sight",
    }

    def plant(self, lake: Lake) -> None:
        super().plant(lake)
        lake.events(("2024-05-09",)).write.partitionBy("dt").parquet(lake.path("plain"))

    def run(self, lake: Lake) -> None:
        self.call(lake, "add_files", f"source_table => '`parquet`.`{lake.path('plain')}`'")


class _Branched(_Days):
    """A table with a branch ``audit``, which has a day more."""

    formats = ("iceberg",)

    def plant(self, lake: Lake) -> None:
        super().plant(lake)
        lake.spark.sql(f"ALTER TABLE {lake.name('events')} CREATE BRANCH audit")
        self.insert(lake, NEXT)

    def insert(self, lake: Lake, day: str) -> None:
        """Write a day to the branch."""
        lake.events((day,)).writeTo(f"{lake.name('events')}.branch_audit").append()


class BranchWritten(_Branched):
    """A write to a branch is not one to the table."""

    writes = {"events.branch_audit": ["2024-05-09"]}
    declared = {"column_lineage_missing events.branch_audit": "the rows are those of range()"}

    def run(self, lake: Lake) -> None:
        self.insert(lake, "2024-05-09")


class BranchWrittenInSql(_Branched):
    """The same by INSERT, from a table, with columns."""

    reads = {"events": [SECOND]}
    writes = {"events.branch_audit": [SECOND]}
    columns = {
        "events.branch_audit": {
            "id": {"events.id"},
            "user": {"events.user"},
            "dt": {"events.dt"},
        }
    }

    def run(self, lake: Lake) -> None:
        name = lake.name("events")
        query = f"SELECT id + 100, user, dt FROM {name} WHERE dt = '2024-05-06'"
        lake.spark.sql(f"INSERT INTO {name}.branch_audit {query}")


class BranchRead(_Branched):
    """A branch is read, and a day of it is written elsewhere."""

    reads = {"events.branch_audit": [THIRD, NEXT]}
    writes = {"out": [THIRD, NEXT]}
    columns = {"out": {"id": {"events.branch_audit.id"}, "dt": {"events.branch_audit.dt"}}}

    def run(self, lake: Lake) -> None:
        branch = lake.spark.sql(f"SELECT * FROM {lake.name('events')} VERSION AS OF 'audit'")
        lake.write(branch.where("dt > '2024-05-06'").selectExpr("id", "dt"), "out", "dt")


class BranchReadByOption(BranchRead):
    """The same by an option of the reader."""

    def run(self, lake: Lake) -> None:
        branch = lake.spark.read.option("branch", "audit").table(lake.name("events"))
        lake.write(branch.where("dt > '2024-05-06'").selectExpr("id", "dt"), "out", "dt")


class BranchPublished(_Branched):
    """The table takes over the state of its branch."""

    reads = {"events.branch_audit": [NEXT]}
    writes = {"events": [NEXT]}

    def run(self, lake: Lake) -> None:
        self.call(lake, "fast_forward", "branch => 'main', to => 'audit'")


class WrittenAndPublished(_Branched):
    """Write, audit, publish, all in one job. Of an append nobody knows what was there before."""

    conf = {"spark.wap.branch": "audit"}
    reads = {"events.branch_audit": [NEXT, "2024-05-09"]}
    writes = {"events.branch_audit": ["2024-05-09"], "events": [NEXT, "2024-05-09"]}
    declared = BranchWritten.declared

    def plant(self, lake: Lake) -> None:
        super().plant(lake)
        lake.spark.sql(
            f"ALTER TABLE {lake.name('events')} SET TBLPROPERTIES ('write.wap.enabled' = 'true')"
        )

    def run(self, lake: Lake) -> None:
        lake.events(("2024-05-09",)).writeTo(lake.name("events")).append()
        lake.spark.conf.unset("spark.wap.branch")
        self.call(lake, "fast_forward", "branch => 'main', to => 'audit'")


class StagedAndPublished(_Days):
    """A snapshot is staged by an id, which is not in the table, and picked later."""

    formats = ("iceberg",)
    writes = {"events": ["2024-05-09"], "other.branch_staged": ["2024-05-09"]}
    declared = {
        "column_lineage_missing other.branch_staged": "the rows are those of range()",
    }

    def plant(self, lake: Lake) -> None:
        super().plant(lake)
        lake.write(lake.events(), "other", "dt")
        for table in ("events", "other"):
            lake.spark.sql(
                f"ALTER TABLE {lake.name(table)} SET TBLPROPERTIES ('write.wap.enabled' = 'true')"
            )
        lake.spark.conf.set("spark.wap.id", "first")
        lake.events(("2024-05-09",)).writeTo(lake.name("events")).append()
        lake.spark.conf.unset("spark.wap.id")

    def run(self, lake: Lake) -> None:
        self.call(lake, "publish_changes", "wap_id => 'first'")
        lake.spark.conf.set("spark.wap.id", "second")
        lake.events(("2024-05-09",)).writeTo(lake.name("other")).append()
        lake.spark.conf.unset("spark.wap.id")
