"""The observer's records: decoded whatever state the file is in."""

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


def test_unknown_fields_are_no_reason_to_stop():
    line = b'{"kind":"query","reads":[{"node":"x","roots":["/t"],"novelty":1}],"novelty":2}\n'
    [record] = read_observations([line], ObservationReport())
    assert record.reads[0].roots == ["/t"]
