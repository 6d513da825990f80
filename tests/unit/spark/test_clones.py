"""The record of a clone of a Delta table, from the commit in the log; the JVM is doubled."""

from __future__ import annotations

import json
from unittest.mock import Mock

import pytest

from airflow_provider_sparklineage.spark.submit import submitted_files

SCHEMA = {"type": "struct", "fields": [{"name": "id", "type": "long"}]}


def log_of(operation, **columns):
    add = {"path": "dt=1/a.parquet", "partitionValues": {"dt": "1"}, "dataChange": True}
    info = {"operation": operation, "userMetadata": "tag", "timestamp": 5000}
    meta = {"partitionColumns": ["dt"], **columns}
    return "\n".join(map(json.dumps, ({"commitInfo": info}, {"metaData": meta}, {"add": add})))


@pytest.fixture
def records_of(monkeypatch):
    """Give the records of a table's only commit, which clones a table if a command does so."""
    monkeypatch.syspath_prepend(str(submitted_files.DRIVER))
    from sparklineage_observer import delta
    from sparklineage_observer.records import Limits

    def found(text, command=None, version=0):
        file = f"/copy/_delta_log/{version:020}.json"
        monkeypatch.setattr(delta, "qualified", lambda _classes, _conf, path: path)
        monkeypatch.setattr(delta, "statuses", lambda *_: [(file,)])
        monkeypatch.setattr(delta, "text_of_file", lambda *_: text)
        tables = delta.DeltaTables("tag", 0)
        tables.written("/copy")
        if command is not None:
            tables.cloned(command)
        return list(tables.writes(Mock(), None, Limits("")))

    return found


def clone_of(path, *, is_older=False):
    """Give the command, as far as it is asked."""
    time_travel = Mock(**{"isDefined.return_value": is_older})
    source = Mock(
        **{"dataPath.return_value.toString.return_value": path},
        **{"timeTravelOpt.return_value": time_travel},
    )
    clone = Mock(
        **{"sourceTable.return_value": source},
        **{"targetPath.return_value.toString.return_value": "/copy"},
    )
    return Mock(**{"query.return_value.get.return_value": clone})


CLONE = log_of("CLONE", schemaString=json.dumps(SCHEMA))


def test_a_clone_reads_the_partitions_that_it_has(records_of):
    [record] = records_of(CLONE, clone_of("/t"))
    [read], [write] = record["reads"], record["writes"]
    assert (read["roots"], read["copied"], read["schema"]) == (["/t"], True, SCHEMA)
    assert [(o["base"], o["partitions"]) for o in read["layouts"]] == [("/t", [["1"]])]
    assert "schema" not in write
    assert "chosen" not in read


def test_a_clone_of_a_version_is_not_one_of_all_of_the_table(records_of):
    [record] = records_of(CLONE, clone_of("/t", is_older=True))
    assert record["reads"][0]["chosen"] is True


def test_of_a_clone_onto_a_table_the_partitions_of_the_source_are_unknown(records_of):
    [record] = records_of(CLONE, clone_of("/t"), version=3)
    assert "layouts" not in record["reads"][0]
    assert record["reads"][0]["cut"]


def test_without_its_command_a_clone_is_a_write_alone(records_of):
    [record] = records_of(CLONE)
    assert "reads" not in record
    assert "schema" not in record["writes"][0]


def test_a_conversion_to_delta_is_no_write(records_of):
    assert records_of(log_of("CONVERT")) == []
