"""Files that a job names one by one, by wildcards, and in buckets: their folder is the dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.truth.job import DAYS, Job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tests.truth.job import Lake

SCHEMA = "id bigint, user bigint"
COLUMNS = {name: {f"events.{name}"} for name in ("id", "user")}


class _Files(Job):
    """Files are read, and written as a table."""

    formats = ("parquet",)
    reads = {"events": "part"}
    writes = {"out": "all"}
    columns = {"out": COLUMNS}

    def run(self, lake: Lake) -> None:
        lake.write(self.rows(lake).select("id", "user"), "out")

    def rows(self, lake: Lake) -> DataFrame:
        """Read files in the way that is looked at."""
        raise NotImplementedError

    def files(self, lake: Lake) -> list[str]:
        """List the files of the table."""
        return sorted(map(str, lake.root.joinpath(lake.job, "events").rglob("*.parquet")))


class _Flat(_Files):
    """The table has three files and no partitions."""

    def plant(self, lake: Lake) -> None:
        lake.events().repartition(3).write.parquet(lake.path("events"))


class TwoFilesByName(_Flat):
    """Two of three files are named."""

    def rows(self, lake: Lake) -> DataFrame:
        return lake.spark.read.parquet(*self.files(lake)[:2])


class FilesByWildcard(_Flat):
    """A wildcard names all files."""

    def rows(self, lake: Lake) -> DataFrame:
        return lake.spark.read.parquet(f"{lake.path('events')}/*.parquet")


class FilesInALoop(_Flat):
    """Each file is read and appended alone."""

    def run(self, lake: Lake) -> None:
        for file in self.files(lake):
            rows = lake.spark.read.schema(SCHEMA).parquet(lake.path("events"))
            rows = rows.where(f"endswith(input_file_name(), '{file.rpartition('/')[2]}')")
            lake.write(rows.select("id", "user"), "out")

    reads = {"events": "all"}


class FilesByPattern(_Flat):
    """An option chooses files of the folder."""

    def rows(self, lake: Lake) -> DataFrame:
        return lake.spark.read.option("pathGlobFilter", "part-00000*").parquet(lake.path("events"))


class FilesOfPartitionsByName(_Files):
    """Files in two partitions are named, below the folder of the table."""

    reads = {"events": list(DAYS[:2])}

    def rows(self, lake: Lake) -> DataFrame:
        base = lake.spark.read.option("basePath", lake.path("events"))
        return base.parquet(*self.files(lake)[:2])


class Buckets(_Flat):
    """Rows are written into a table with sorted buckets, in partitions."""

    reads = {"events": "all"}
    writes = {"out": list(DAYS)}
    columns = {"out": {**COLUMNS, "dt": {"events.dt"}}}

    def run(self, lake: Lake) -> None:
        rows = lake.read("events").select("id", "user", "dt")
        writer = rows.write.partitionBy("dt").bucketBy(2, "id").sortBy("user")
        writer.option("path", lake.path("out")).saveAsTable(f"{lake.job}.buckets")


class InsertsByPosition(_Files):
    """Days are inserted into the partitions of a table, which are overwritten one by one."""

    reads = {"events": list(DAYS[:2])}
    writes = {"out": list(DAYS[:2])}
    columns = {"out": {**COLUMNS, "dt": {"events.dt"}}}
    conf = {"spark.sql.sources.partitionOverwriteMode": "dynamic"}

    def run(self, lake: Lake) -> None:
        name = lake.create("out", f"{SCHEMA}, dt string", "dt")
        for day in DAYS[:2]:
            rows = lake.read("events").where(f"dt = '{day}'")
            rows.select("id", "user", "dt").write.insertInto(name, overwrite=True)


class FailsAndWritesAgain(_Files):
    """A write fails in the middle, and the job writes the day again."""

    reads = {"events": [DAYS[0]]}
    writes = {"out": [DAYS[0]]}
    columns = {"out": {**COLUMNS, "dt": {"events.dt"}}}
    declared = {"action_failed out": "the first write failed"}

    def run(self, lake: Lake) -> None:
        from pyspark.sql.functions import expr

        rows = lake.read("events").where(f"dt = '{DAYS[0]}'").select("id", "user", "dt")
        fails = expr("CASE WHEN id > 20 THEN CAST(raise_error('planned') AS bigint) ELSE user END")
        try:
            lake.write(rows.withColumn("user", fails), "out", "dt", mode="dynamic")
        except Exception as error:
            if "planned" not in str(error):
                raise
        lake.write(rows, "out", "dt", mode="dynamic")
