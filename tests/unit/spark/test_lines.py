"""Lines of files that anybody could have written: reading them ends, and one of them costs one."""

import io
import os
import socket
import threading
from pathlib import Path

import msgspec
import pytest

from airflow_provider_sparklineage.spark.capture import lines
from airflow_provider_sparklineage.spark.capture.lines import (
    LongLine,
    ReadReport,
    UnreadableError,
    content_of,
    lines_of,
    open_regular,
    read,
)

ANY = msgspec.json.Decoder()


def within_seconds(action):
    """Give what an action gives or raises, if it ends at all."""
    done = []

    def run():
        try:
            done.append(action())
        except OSError as error:
            done.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(20)
    assert done, "it waits for ever"
    return done[0]


def named_pipe(path):
    os.mkfifo(path)


def listening_socket(path):
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.close()


def endless_device(path):
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("make", [named_pipe, listening_socket, endless_device, Path.mkdir])
def test_what_is_no_regular_file_is_refused_and_not_waited_for(tmp_path, monkeypatch, make):
    monkeypatch.chdir(tmp_path)  # the path of a socket may not be long
    place = Path("events.ndjson")
    make(place)
    for way in (open_regular, content_of):
        assert isinstance(within_seconds(lambda way=way: way(place)), OSError)


@pytest.fixture
def short(monkeypatch):
    """Let a line have 20 bytes."""
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 20)


def test_a_line_that_is_too_long_is_skipped_and_the_others_are_read(short):
    text = b"1\n" + b"[" * 50 + b"\n" + b"2" * 19 + b"\n" + b"3" * 20 + b"\n4\n"
    found = list(lines_of(io.BytesIO(text)))
    assert found == [b"1\n", LongLine(51), b"2" * 19 + b"\n", LongLine(21), b"4\n"]


def test_a_line_that_is_too_long_is_reported_with_its_number(short):
    report = ReadReport()
    text = io.BytesIO(b"1\n" + b"[" * 50 + b"\n2\n")
    assert list(read(lines_of(text), ANY, report, source="events.ndjson")) == [1, 2]
    assert report.malformed == ["events.ndjson:2: it has more than 0 MB"]
    assert report.bytes == 55


def test_terabytes_that_nobody_wrote_are_passed_and_what_follows_is_read(tmp_path):
    file = tmp_path / "events.ndjson"
    size = 1 << 40
    with file.open("wb") as stream:
        stream.write(b"1\n")
        stream.truncate(size)
        stream.seek(size)
        stream.write(b"\n2\n")
    with open_regular(file) as stream:
        assert within_seconds(lambda: list(lines_of(stream))) == [
            b"1\n",
            LongLine(size - 1),
            b"2\n",
        ]


def test_terabytes_at_the_end_that_nobody_wrote_are_passed(tmp_path):
    file = tmp_path / "events.ndjson"
    with file.open("wb") as stream:
        stream.truncate(1 << 40)
    with open_regular(file) as stream:
        assert within_seconds(lambda: list(lines_of(stream))) == [LongLine(1 << 40)]


def test_a_file_that_grows_is_read_as_far_as_it_went(tmp_path):
    file = tmp_path / "events.ndjson"
    file.write_bytes(b"1\n2\n3")
    with open_regular(file) as stream, file.open("ab", buffering=0) as writer:
        found = []
        for line in lines_of(stream):
            found.append(line)
            writer.write(b"\n9" * 1000)
    assert found == [b"1\n", b"2\n", b"3"]


def test_the_deadline_ends_a_line_that_is_skipped(short):
    stream = io.BytesIO(b"1\n" + b"[" * 10_000_000 + b"\n2\n")
    found = list(lines_of(stream, past_deadline=lambda: True))
    assert found[:2] == [b"1\n", LongLine(21)]


@pytest.mark.parametrize(
    "line", [b"\n", b"x\n", b"1\n"], ids=["blank lines", "broken lines", "records"]
)
def test_the_deadline_is_asked_for_each_line_whatever_it_is(line):
    report = ReadReport()
    answers = iter([False, False, True])
    endless = iter(lambda: line, None)
    list(read(endless, ANY, report, source="x", past_deadline=lambda: next(answers)))
    assert report.cut


ODD = {
    "no UTF-8": b'{"a": "\xff"}',
    "a lone surrogate": b'"\\udc00"',
    "NUL": b"\0\0\0",
    "a huge number": b"1e999",
    "a number of 5000 digits": b"1" * 5000,
    "NaN": b"[NaN]",
    "Infinity": b"[-Infinity]",
    "nested 100,000 deep": b"[" * 100_000,
    "UTF-16": '{"a": 1}'.encode("utf-16-le"),
    "nothing but a quote": b'"',
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD.keys())
def test_a_line_that_cannot_be_decoded_costs_that_line(odd):
    report = ReadReport()
    text = io.BytesIO(b"1\n" + odd + b"\n2\n")
    assert list(read(lines_of(text), ANY, report, source="f")) == [1, 2]
    [why] = report.malformed
    assert why.startswith("f:2: ")


def test_a_reason_that_quotes_a_long_text_is_truncated():
    class Shape(msgspec.Struct):
        of: dict[str, int]

    line = msgspec.json.encode({"of": {"x" * 10_000: "y"}})
    with pytest.raises(UnreadableError) as error:
        lines.decoded(line, msgspec.json.Decoder(Shape))
    assert len(str(error.value)) <= lines.MAX_TEXT


@pytest.mark.parametrize(
    "text",
    [b"\xef\xbb\xbf1\n2\n", b"1\r\n2\r\n", b"\r\n1\n\r\n2"],
    ids=["byte order mark", "CRLF", "blank lines"],
)
def test_files_of_other_systems_are_read(text):
    report = ReadReport()
    assert list(read(lines_of(io.BytesIO(text)), ANY, report, source="f")) == [1, 2]
    assert (report.malformed, report.torn) == ([], False)


def test_of_keys_that_come_twice_the_last_counts():
    report = ReadReport()
    [value] = read([b'{"a": 1, "a": 2}\n'], ANY, report, source="f")
    assert value == {"a": 2}
