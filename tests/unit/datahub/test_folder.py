"""Files for `datahub ingest`: whole, in the order of time, whoever else writes."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from airflow_provider_sparklineage.datahub import sending
from airflow_provider_sparklineage.datahub.proposals import Proposal
from airflow_provider_sparklineage.model.exceptions import DeliveryError
from tests.unit.datahub.sdk import require_sdk

TABLE = "urn:li:dataset:(urn:li:dataPlatform:hive,db.t,PROD)"
GIVEN = [
    Proposal(TABLE, "status", {"removed": False}),
    Proposal(TABLE, "datasetProperties", {"name": "ü␟", "customProperties": {}}),
    Proposal(TABLE, "upstreamLineage", [{"op": "add", "path": "/upstreams/x", "value": {}}], True),
]


def event(time="2024-01-02T03:04:05.006+00:00", state="COMPLETE", run="01-ab"):
    return {"eventTime": time, "eventType": state, "run": {"runId": run}}


def test_the_folder_is_read_by_datahubs_file_source(tmp_path):
    require_sdk()
    from datahub.ingestion.api.common import PipelineContext
    from datahub.ingestion.source.file import GenericFileSource

    sending.write_file(tmp_path, event(), GIVEN)
    sending.write_file(tmp_path, event(run="02"), GIVEN[:1])
    source = GenericFileSource.create({"path": str(tmp_path)}, PipelineContext("test"))
    found = [unit.metadata for unit in source.get_workunits_internal()]

    assert not source.report.failures
    assert sorted((one.aspectName, one.changeType) for one in found) == sorted(
        (one.aspect_name, one.change_type) for one in [*GIVEN, GIVEN[0]]
    )


def test_names_are_in_the_order_of_time(tmp_path):
    times = [f"2024-01-0{day}T00:00:00Z" for day in (3, 1, 2)]
    paths = [sending.write_file(tmp_path, event(time), GIVEN) for time in times]

    assert [path.name[:8] for path in sorted(paths)] == ["20240101", "20240102", "20240103"]


def test_an_event_that_is_sent_again_is_there_once(tmp_path):
    assert sending.write_file(tmp_path, event(), GIVEN) == sending.write_file(
        tmp_path, event(), GIVEN
    )
    assert sending.write_file(tmp_path, event(), GIVEN[:1]) not in (None, *tmp_path.glob("*.part"))
    assert len(list(tmp_path.iterdir())) == 2


def test_many_write_at_once(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        list(
            pool.map(
                lambda i: sending.write_file(tmp_path / "new", event(run=str(i)), GIVEN), range(99)
            )
        )

    files = list((tmp_path / "new").iterdir())
    assert len(files) == 99
    assert all(len(json.loads(file.read_text())) == 3 for file in files)


def test_who_is_interrupted_leaves_nothing(tmp_path):
    def interrupted():
        yield GIVEN[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sending.write_file(tmp_path, event(), interrupted())

    assert list(tmp_path.iterdir()) == []


def test_a_hostile_event_stays_in_the_folder(tmp_path):
    path = sending.write_file(
        tmp_path, event(run="../../etc/" + "x" * 999, state="../\0", time=None), []
    )

    assert path.parent == tmp_path
    assert len(path.name) < 150
    assert json.loads(path.read_text()) == []


def test_a_folder_that_takes_nothing_is_named(tmp_path):
    (tmp_path / "file").touch()

    with pytest.raises(DeliveryError, match=f"folder {tmp_path}/file takes no file"):
        sending.write_file(tmp_path / "file", event(), GIVEN)
