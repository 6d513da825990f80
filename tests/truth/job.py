"""A job with its known truth: what it plants, what it does, and what is true of that.

The driver imports this module, and the jobs, so they need nothing but PySpark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

DAYS = FIRST, SECOND, THIRD = ("2024-05-05", "2024-05-06", "2024-05-07")
NEXT = "2024-05-08"
"""The day after those that :meth:`Lake.events` has."""

FORMATS = ("parquet", "delta", "iceberg")


class Every(list[str | None]):
    """All partitions that a table has, by their values; ``all`` is also right of them."""


How = str | list[str | tuple[str | None, ...] | None]
"""How much of a dataset is accessed: ``all``, ``none``, ``unknown``, or the partitions, each by its
value, or by its values where there are several dimensions. ``all`` is also true of a dataset
without partitions."""


class Lake:
    """The folders and tables of one job, of one format.

    A table of Iceberg is ``lakehouse.JOB.NAME``; one of another format is the folder ``JOB/NAME``
    in the lake.
    """

    def __init__(self, spark: SparkSession, root: Path, kind: str, job: str) -> None:
        self.spark, self.root, self.kind, self.job = spark, root, kind, job

    def path(self, name: str) -> str:
        """Give the path of a folder or file of the job."""
        return str(self.root / self.job / name)

    def name(self, table: str) -> str:
        """Give the name of a table, as SQL has it: :attr:`kind` and path, or catalog and name."""
        if self.kind == "iceberg":
            return f"lakehouse.{self.job}.{table}"
        return f"{self.kind}.`{self.path(table)}`"

    def read(self, table: str, **options: str) -> DataFrame:
        """Read a table with options of its format."""
        reader = self.spark.read.options(**options)
        if self.kind == "iceberg":
            return reader.format("iceberg").load(self.name(table))
        return reader.format(self.kind).load(self.path(table))

    def view(self, table: str) -> str:
        """Make a temporary view of a table, with the table's name; give that."""
        self.read(table).createOrReplaceTempView(table)
        return table

    def events(self, days: Sequence[str] = DAYS) -> DataFrame:
        """Make the frame (``id bigint``, ``user bigint``, ``dt string``) of 30 rows, ten a day."""
        values = ", ".join(f"'{day}'" for day in days)
        return self.spark.sql(
            f"SELECT id, id * 2 AS user, element_at(array({values}), "
            f"CAST(id % {len(days)} + 1 AS int)) AS dt FROM range(30)"
        )

    def write(self, frame: DataFrame, table: str, *by: str, mode: str = "append") -> None:
        """Write a frame as a table that these columns partition, one file for each partition.

        :param mode: ``append``, ``overwrite`` (of the whole table), or ``dynamic`` for an overwrite
            of the frame's partitions
        """
        frame = frame.coalesce(1).sortWithinPartitions(*by) if by else frame.coalesce(1)
        if self.kind == "iceberg":
            name, writer = self.name(table), frame.writeTo(self.name(table)).using("iceberg")
            if not self.spark.catalog.tableExists(name):
                (writer.partitionedBy(*by) if by else writer).create()
            elif mode == "append":
                writer.append()
            elif mode == "dynamic":
                writer.overwritePartitions()
            else:
                (writer.partitionedBy(*by) if by else writer).createOrReplace()
            return
        options = {"partitionOverwriteMode": "dynamic"} if mode == "dynamic" else {}
        saved = "append" if mode == "append" else "overwrite"
        saver = frame.write.format(self.kind).mode(saved).options(**options)
        saver.partitionBy(*by).save(self.path(table))

    def create(self, table: str, columns: str, *by: str) -> str:
        """Create an empty table by DDL, and give the name to use it by.

        :param columns: as in ``CREATE TABLE``, those that partition it included
        """
        name = self.name(table) if self.kind == "iceberg" else f"{self.job}.{table}"
        partitioned = f"PARTITIONED BY ({', '.join(by)})" if by else ""
        at = "" if self.kind == "iceberg" else f"LOCATION '{self.path(table)}'"
        self.spark.sql(f"CREATE TABLE {name} ({columns}) USING {self.kind} {partitioned} {at}")
        return name

    def register(self, table: str) -> str:
        """Make a table of Spark's own catalog of a partitioned folder; give its name."""
        name = f"{self.job}.{table}"
        self.spark.sql(f"CREATE TABLE {name} USING {self.kind} LOCATION '{self.path(table)}'")
        if self.kind == "parquet":
            self.spark.sql(f"MSCK REPAIR TABLE {name}")
        return name


class Job:
    """A job of one application, which all jobs of a format share, unless it is :attr:`alone`.

    A subclass is the job that is named like it, in lower case: its :meth:`plant` and :meth:`run`
    get a :class:`Lake` with folders of its own. Its attributes are what is true after :meth:`run`,
    by the names of tables and folders in its lake. Where formats differ, a method
    ``truth_of(kind)`` gives another job (a subclass) to take the truth from, and where Sparks
    differ, ``truth_on(spark)`` of that one does.
    """

    formats: ClassVar[Sequence[str]] = FORMATS
    alone: ClassVar[bool] = False
    """Whether it needs an application of its own."""
    cannot: ClassVar[Mapping[str, str]] = {}
    """Sparks (``4.0``) that cannot run it, or of which nothing is to be seen there, -> why not."""
    conf: ClassVar[Mapping[str, str]] = {}
    """SQL configuration while it runs."""
    static: ClassVar[Mapping[str, str]] = {}
    """Configuration of its application, if it is :attr:`alone`."""

    reads: ClassVar[Mapping[str, How]] = {}
    writes: ClassVar[Mapping[str, How]] = {}
    removes: ClassVar[Mapping[str, How]] = {}
    """Partitions that no longer have data after it."""
    maintains: ClassVar[Mapping[str, set[str]]] = {}
    """Tables of which files are maintained: the commands of Delta, and procedures of Iceberg."""
    columns: ClassVar[Mapping[str, Mapping[str, set[str]]]] = {}
    """Of an output: of each column, the source columns (``events.id``) of which its values are
    made, those of windows and conditions included. An output that is not here is not asked for."""
    declared: ClassVar[Mapping[str, str]] = {}
    """What cannot be known: ``code dataset`` or ``code dataset column`` -> why not. All other
    degradations that name a dataset of the job are wrong."""

    @classmethod
    def name(cls) -> str:
        """Give the name, which is also that of its folder, database and namespace."""
        return cls.__name__.lower()

    def truth_of(self, kind: str) -> Job:
        """Give the job that has the truth of a format."""
        del kind
        return self

    def truth_on(self, spark: tuple[int, int]) -> Job:
        """Give the job that has the truth on a Spark of this version."""
        del spark
        return self

    def plant(self, lake: Lake) -> None:
        """Make what is there before: by default the table ``events``, partitioned by ``dt``."""
        lake.write(lake.events(), "events", "dt")

    def run(self, lake: Lake) -> None:
        """Do what is looked at."""
        raise NotImplementedError
