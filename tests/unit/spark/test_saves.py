"""Folders that RDD code saves: PySpark's methods, replaced by ones that record what they wrote."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from tests.unit.spark.test_driver import observer  # noqa: F401  (a fixture)


class Rdd:
    """PySpark's RDD, as far as it saves."""

    def __init__(self, validates="true"):
        self.saved = []
        self.ctx = Mock(**{"_jsc.getConf.return_value.get.return_value": validates})

    def saveAsTextFile(self, path):  # noqa: N802
        """Save as text."""
        self.saved.append(path)

    def saveAsNewAPIHadoopFile(self, path, outputFormatClass, conf=None):  # noqa: N802, N803
        if conf == "fails":
            raise ValueError(conf)
        return path, outputFormatClass

    def saveAsNewAPIHadoopDataset(self, conf):  # noqa: N802
        self.saved.append(conf)


@pytest.fixture
def records(observer, monkeypatch):  # noqa: F811
    """Give the records of what is saved by a subclass of :class:`Rdd`, as PySpark's are."""
    from sparklineage_observer import jvm, saves

    monkeypatch.setattr(jvm, "qualified", lambda _classes, _conf, path: f"file:{path}")
    found = []
    looking = Mock(observe=lambda _what, look: found.extend(look()))
    replaced = {}

    def replace(owner, name, new):
        replaced[name] = vars(owner)[name]
        setattr(owner, name, new)

    saves.wrap(Rdd, replace, looking)
    yield found
    for name, original in replaced.items():
        setattr(Rdd, name, original)


class Piped(Rdd):
    """A subclass, as PySpark's PipelinedRDD is."""


FORMAT = "org.apache.hadoop.mapreduce.lib.output.TextOutputFormat"
FOLDER = "mapreduce.output.fileoutputformat.outputdir"


@pytest.mark.parametrize(
    "save",
    [
        pytest.param(lambda rdd: rdd.saveAsTextFile("/out"), id="text"),
        pytest.param(lambda rdd: rdd.saveAsTextFile(path="/out"), id="text by name"),
        pytest.param(lambda rdd: rdd.saveAsNewAPIHadoopFile("/out", FORMAT), id="a format"),
        pytest.param(lambda rdd: rdd.saveAsNewAPIHadoopDataset({FOLDER: "/out"}), id="settings"),
        pytest.param(lambda rdd: rdd.saveAsNewAPIHadoopDataset(conf={FOLDER: "/out"}), id="named"),
    ],
)
def test_the_folder_that_was_saved_is_recorded_as_a_new_one(records, save):
    save(Piped())
    [record] = records
    [write] = record["writes"]
    assert (write["path"], write["mode"], write["how"]) == ("file:/out", "create", "exact")
    assert write["layouts"] == [{"base": "file:/out", "dimensions": [], "partitions": [[]]}]
    assert record["kind"] == "query"
    assert record["started"] <= record["ended"]


def test_the_method_does_what_it_did(records):
    rdd = Piped()
    assert rdd.saveAsTextFile("/out") is None
    assert rdd.saved == ["/out"]
    assert rdd.saveAsNewAPIHadoopFile("/out", FORMAT) == ("/out", FORMAT)
    assert (Rdd.saveAsTextFile.__name__, Rdd.saveAsTextFile.__doc__) == (
        "saveAsTextFile",
        "Save as text.",
    )
    assert len(records) == 2


def test_a_write_that_fails_is_not_recorded(records):
    with pytest.raises(ValueError, match="fails"):
        Piped().saveAsNewAPIHadoopFile("/out", FORMAT, conf="fails")
    assert records == []


def test_a_folder_may_hold_older_files_where_hadoop_does_not_look(records):
    Piped(validates="false").saveAsTextFile("/out")
    assert records[0]["writes"][0]["mode"] == "append"


def test_a_format_that_chooses_folders_by_the_rows_leaves_the_partitions_unknown(records):
    Piped().saveAsNewAPIHadoopFile("/out", "org.apache.hadoop.mapred.lib.MultipleTextOutputFormat")
    [write] = records[0]["writes"]
    assert (write["how"], write["layouts"]) == ("unknown", [])
    assert "several folders" in write["cut"]


def test_a_write_without_a_folder_is_named(records):
    Piped().saveAsNewAPIHadoopDataset({"mapreduce.job.outputformat.class": "a.TableOutputFormat"})
    [record] = records
    assert record["writes"] == []
    assert record["cut"] == ["what saveAsNewAPIHadoopDataset writes by a.TableOutputFormat"]
