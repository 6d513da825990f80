"""The observer's records: decoded whatever state the file is in."""

import json

from airflow_provider_sparklineage.spark.capture.observations import (
    ObservationReport,
    read_observations,
)


def test_torn_and_broken_lines_leave_the_others():
    report = ObservationReport()
    lines = [
        b'{"kind":"start"}\n',
        b"nonsense\n",
        b'{"error":"drain: gone"}\n',
        b"\n",
        b'{"kind":"query","reads":[{"node":1}]}\n',
        b'{"kind":"end","que',
    ]
    kinds = [r.kind for r in read_observations(lines, report)]
    assert kinds == ["start", ""]
    assert report.torn
    assert [m.split(":")[1] for m in report.malformed] == ["2", "5"]
    assert report.errors.first == ["drain: gone"]


def test_what_was_delivered_later_is_no_failure():
    report = ObservationReport()
    lines = [
        b'{"error":"deliver: SafeModeException: it is in safe mode; delivered 12 s later"}\n',
        b'{"kind":"end","errors":["delta: gone"]}\n',
    ]
    assert len(list(read_observations(lines, report))) == 2
    assert report.errors.first == ["delta: gone"]


def test_unknown_fields_are_no_reason_to_stop():
    line = b'{"kind":"query","reads":[{"node":"x","roots":["/t"],"novelty":1}],"novelty":2}\n'
    [record] = read_observations([line], ObservationReport())
    assert record.reads[0].roots == ["/t"]


def test_equal_lists_of_partitions_are_one_and_of_others_equal_partitions_are():
    days = [["2024-05-06"], ["2024-05-07"], [None]]

    def layout(partitions):
        return {"base": "/t", "dimensions": [{"field": "dt"}], "partitions": partitions}

    write = {"node": "x", "path": "/t", "mode": "append", "how": "exact", "shared": days}
    first = {"reads": [{"node": "x", "layouts": [layout(days)]}]}
    second = {"writes": [write | {"layouts": [layout(days)], "removed": [layout(days[1:])]}]}
    lines = [json.dumps({"kind": "query"} | record).encode() + b"\n" for record in (first, second)]
    one, other = read_observations(lines, ObservationReport())
    [read], [written] = one.reads, other.writes
    listed = read.layouts[0].partitions
    assert listed == (("2024-05-06",), ("2024-05-07",), (None,))
    assert written.layouts[0].partitions is written.shared is listed
    [removed] = written.removed
    assert [id(values) for values in removed.partitions] == [id(values) for values in listed[1:]]
