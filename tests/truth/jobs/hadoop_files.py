"""Files that RDD code reads and writes by Hadoop's formats; there are no columns in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.truth.job import SECOND, Job

if TYPE_CHECKING:
    from pyspark import RDD

    from tests.truth.job import Lake

NEW = "org.apache.hadoop.mapreduce.lib.output.TextOutputFormat"
OLD = "org.apache.hadoop.mapred.TextOutputFormat"
NO_COLUMNS = {"column_lineage_missing out": "RDD code has no columns"}
BY_LOCATION = {"partitions_inexact events": "only the listener sees the folders that RDDs read"}


class _Saves(Job):
    """A day of a table is saved by RDD code."""

    formats = ("parquet",)
    reads = {"events": [SECOND]}
    writes = {"out": "all"}
    declared = {**NO_COLUMNS, **BY_LOCATION}

    def run(self, lake: Lake) -> None:
        day = lake.read("events").where("dt = '2024-05-06'")
        self.save(day.rdd.map(lambda row: (str(row.id), str(row.user))), lake.path("out"))

    def save(self, pairs: RDD[tuple[str, str]], path: str) -> None:
        """Save the RDD in the way that is looked at."""
        raise NotImplementedError


class SavesText(_Saves):
    """Each row is a line."""

    def save(self, pairs: RDD[tuple[str, str]], path: str) -> None:
        pairs.map(";".join).saveAsTextFile(path)


class SavesASequence(_Saves):
    """A file of keys and values."""

    def save(self, pairs: RDD[tuple[str, str]], path: str) -> None:
        pairs.saveAsSequenceFile(path)


class SavesPickles(_Saves):
    """Python's own form."""

    def save(self, pairs: RDD[tuple[str, str]], path: str) -> None:
        pairs.saveAsPickleFile(path)


class SavesByTheOldInterface(_Saves):
    """An output format of Hadoop's older interface."""

    def save(self, pairs: RDD[tuple[str, str]], path: str) -> None:
        pairs.saveAsHadoopFile(path, OLD)


class SavesByTheNewInterface(_Saves):
    """An output format of Hadoop's newer interface, of which the listener reports nothing."""

    def save(self, pairs: RDD[tuple[str, str]], path: str) -> None:
        pairs.saveAsNewAPIHadoopFile(path, NEW)


class SavesBySettings(_Saves):
    """The folder is one of the settings of Hadoop's newer interface."""

    def save(self, pairs: RDD[tuple[str, str]], path: str) -> None:
        pairs.saveAsNewAPIHadoopDataset(
            {
                "mapreduce.job.outputformat.class": NEW,
                "mapreduce.output.fileoutputformat.outputdir": path,
                "mapreduce.job.output.key.class": "org.apache.hadoop.io.Text",
                "mapreduce.job.output.value.class": "org.apache.hadoop.io.Text",
            }
        )


class SavesAPartition(_Saves):
    """The folder is that of a day."""

    writes = {"out": [SECOND]}

    def save(self, pairs: RDD[tuple[str, str]], path: str) -> None:
        pairs.map(";".join).saveAsTextFile(f"{path}/dt=2024-05-06")


class _Texts(_Saves):
    """Texts are read and saved."""

    reads = {"texts": "unknown"}
    declared = {
        **NO_COLUMNS,
        "partitions_unknown texts": "of what RDDs read, the listener names partitions only",
    }

    def plant(self, lake: Lake) -> None:
        lines = lake.events().selectExpr("CAST(id AS string) AS line")
        lines.repartition(3).write.text(lake.path("texts"))

    def run(self, lake: Lake) -> None:
        self.texts(lake, lake.path("texts")).saveAsTextFile(lake.path("out"))

    def texts(self, lake: Lake, path: str) -> RDD[str]:
        """Read the lines in the way that is looked at."""
        raise NotImplementedError


class ReadsLines(_Texts):
    """The files of a folder, line by line."""

    def texts(self, lake: Lake, path: str) -> RDD[str]:
        return lake.spark.sparkContext.textFile(path)


class ReadsFilesOfAWildcard(_Texts):
    """The files of a folder, by a wildcard."""

    def texts(self, lake: Lake, path: str) -> RDD[str]:
        return lake.spark.sparkContext.textFile(f"{path}/*.txt")


class ReadsWholeFiles(_Texts):
    """Each file is a row."""

    def texts(self, lake: Lake, path: str) -> RDD[str]:
        return lake.spark.sparkContext.wholeTextFiles(path).values()


class ReadsBinaryFiles(_Texts):
    """Each file is a row of bytes."""

    def texts(self, lake: Lake, path: str) -> RDD[str]:
        return lake.spark.sparkContext.binaryFiles(path).keys()


class TextsToTheNewInterface(_Texts):
    """The listener reports neither the end of the job nor what it writes."""

    def run(self, lake: Lake) -> None:
        lines = lake.spark.sparkContext.textFile(lake.path("texts")).map(lambda line: (line, line))
        lines.saveAsNewAPIHadoopFile(lake.path("out"), NEW)
