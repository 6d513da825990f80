"""What is made of Spark's reports on streams; the driver's JVM is doubled."""

from __future__ import annotations

from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from airflow_provider_sparklineage.spark.submit import submitted_files

SOURCE = "file:/lake/in"


@pytest.fixture
def module(monkeypatch):
    """Give the observer's module as the driver has it."""
    monkeypatch.syspath_prepend(str(submitted_files.DRIVER))
    from sparklineage_observer import streams

    return streams


@pytest.fixture
def looked(module, monkeypatch):
    """Give the records of streams, by what Spark reports."""
    from sparklineage_observer.records import Budget, Limits

    records, failures = [], []
    observer = SimpleNamespace(
        observe=lambda _, look: records.extend(look() or [None]),
        failed=lambda *args: failures.append(args),
        **{"classes": Mock(), "conf": None, "budget": lambda: Budget(Limits(""))},
        **{"delta": Mock(), "snapshots": Mock(), "commands": Mock()},
    )
    monkeypatch.setattr(module.plans, "parts_of", lambda *_: [SimpleNamespace(scans=[], udfs=[])])
    monkeypatch.setattr(module.iceberg, "table_of", lambda _: None)
    streams = module.Streams(observer)
    return SimpleNamespace(streams=streams, records=records, failures=failures)


def progress(batch, *sources, **values):
    return {
        "runId": "run",
        "batchId": batch,
        "timestamp": "2024-05-06T10:00:00.250Z",
        "batchDuration": 500,
        "numInputRows": 1,
        "durationMs": {"addBatch": 1},
        "sources": [{"description": source} for source in sources],
        "sink": {"description": "ForeachBatchSink"},
        **values,
    }


def query(batch):
    execution = Mock(**{"currentBatchId.return_value": batch, "id.return_value": 7})
    sources = Mock(**{"mkString.return_value": ""})
    stream = Mock(**{"lastExecution.return_value": execution, "sources.return_value": sources})
    return Mock(**{"streamingQuery.return_value": stream})


def test_a_batch_has_the_times_that_spark_reports(looked):
    looked.streams.started("run", query(3))
    looked.streams.progressed(progress(3))
    [record] = looked.records
    assert (record["started"], record["ended"]) == (1714989600250, 1714989600750)
    assert (record["query"], record["function"]) == (7, "stream")


def test_a_batch_of_spark_3_takes_as_long_as_its_trigger(looked):
    looked.streams.started("run", query(3))
    steps = {"addBatch": 300, "triggerExecution": 400}
    looked.streams.progressed(progress(3, batchDuration=None, durationMs=steps))
    [record] = looked.records
    assert record["ended"] - record["started"] == 400


def test_of_a_batch_whose_plan_is_gone_the_partitions_are_unknown(looked):
    looked.streams.started("run", query(4))
    looked.streams.progressed(progress(3, f"FileStreamSource[{SOURCE}]"))
    [record] = looked.records
    [read] = record["reads"]
    assert read["roots"] == [SOURCE]
    assert "layouts" not in read
    assert "next batch" in read["cut"]


def test_a_trigger_without_a_batch_is_nothing(looked):
    looked.streams.started("run", query(3))
    looked.streams.progressed(progress(4, durationMs={"latestOffset": 1}))
    assert looked.records == []


def test_a_stream_that_began_unseen_is_left_alone(looked):
    looked.streams.progressed(progress(3))
    assert looked.records == []


@pytest.mark.parametrize(
    ("source", "cut"),
    [
        pytest.param("KafkaV2[Subscribe[t]]", ["what a stream reads from KafkaV2[Subscribe[t]]"]),
        pytest.param("RateStreamV2[rowsPerSecond=5", None),
        pytest.param(f"FileStreamSource[{SOURCE}]", None),
        pytest.param(f"DeltaSource[{SOURCE}]", None),
    ],
    ids=["Kafka", "rate", "files", "Delta"],
)
def test_a_source_that_is_not_looked_at_is_named_once(looked, source, cut):
    looked.streams.started("run", query(0))
    looked.streams.progressed(progress(0, source))
    looked.streams.progressed(progress(0, source))
    assert [record.get("cut") for record in looked.records] == [cut, None]


@pytest.mark.parametrize("event", ["onQueryStarted", "onQueryProgress", "onQueryTerminated"])
def test_no_trouble_reaches_the_job(module, event):
    failed = Mock()
    listener = module._Listener(Mock(), Mock(), failed)
    getattr(listener, event)(object())
    assert failed.called


def streaming(*, yes):
    link = Mock(**{"isStreaming.return_value": yes})
    return Mock(**{"logicalLink.return_value.get.return_value": link})


def read_of(*bases, files=1, dimensions=(), index="InMemoryFileIndex"):
    layouts = [{"base": base, "dimensions": list(dimensions), "partitions": [[]]} for base in bases]
    return {"roots": list(bases), "numFiles": files, "index": index, "layouts": layouts}


def test_files_of_a_batch_are_in_the_folder_of_their_source(looked):
    looked.streams.started("run", query(0))
    looked.streams.progressed(progress(0, f"FileStreamSource[{SOURCE}]"))
    read = read_of(f"{SOURCE}/a/part-0", f"{SOURCE}/part-1", "file:/other/part-2")
    looked.streams.narrow(read, streaming(yes=True))
    assert [layout["base"] for layout in read["layouts"]] == [SOURCE, "file:/other"]
    assert read["roots"] == []


def test_a_query_inside_of_the_first_batch_knows_the_folder_of_the_source(looked):
    sources = Mock(**{"mkString.return_value": f"FileStreamSource[{SOURCE}]\x01KafkaV2[topic]"})
    running = Mock(**{"streamingQuery.return_value.sources.return_value": sources})
    looked.streams.started("run", running)
    for _ in range(2):
        read = read_of(f"{SOURCE}/a/part-0")
        looked.streams.narrow(read, streaming(yes=True))
        assert [layout["base"] for layout in read["layouts"]] == [SOURCE]
    assert running.streamingQuery().sources.call_count == 1


def test_a_table_that_a_stream_reads_stays_the_table(looked):
    """Its root is no file, and its parent would be read instead."""
    looked.streams.started("run", query(0))
    read = read_of(SOURCE, index="TahoeBatchFileIndex")
    looked.streams.narrow(read, streaming(yes=True))
    assert [layout["base"] for layout in read["layouts"]] == [SOURCE]
    assert (read["roots"], read["chosen"]) == ([], True)


def test_a_batch_that_was_planned_and_not_executed_read_nothing(looked):
    looked.streams.started("run", query(0))
    read = read_of(f"{SOURCE}/part-0", files=0)
    looked.streams.narrow(read, streaming(yes=True))
    assert [layout["partitions"] for layout in read["layouts"]] == [[]]


def test_what_is_no_stream_stays_as_it_is(looked):
    looked.streams.started("run", query(0))
    read = read_of(SOURCE)
    looked.streams.narrow(read, streaming(yes=False))
    assert read == read_of(SOURCE)


def test_a_job_without_streams_is_asked_nothing(looked):
    scan = streaming(yes=True)
    looked.streams.narrow(read_of(SOURCE), scan)
    assert not scan.logicalLink.called
