"""What is remembered: for a while, by this user, wherever it can be written."""

from __future__ import annotations

import os
import tempfile

import msgspec
import pytest

from airflow_provider_sparklineage.spark.submit import remembered


class Answer(msgspec.Struct, frozen=True):
    text: str


ANSWER = Answer("4.0.1")


@pytest.fixture
def temp(tmp_path, monkeypatch):
    folder = tmp_path / "temp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def cache(tmp_path, temp):
    return tmp_path / "cache"


def recall(cache, **kwargs):
    return remembered.recall(cache, "which?", Answer, **kwargs)


def kept(folder):
    [file] = folder.iterdir()
    return file


def test_an_answer_is_remembered_privately_and_for_its_question(cache):
    assert recall(cache) is None
    remembered.remember(cache, "which?", ANSWER)
    assert recall(cache) == ANSWER
    assert remembered.recall(cache, "what?", Answer) is None
    assert kept(cache).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("age_s", "expected"),
    [
        pytest.param(3500, ANSWER, id="young"),
        pytest.param(3700, None, id="old"),
        pytest.param(-30, ANSWER, id="of a server whose clock is a little ahead"),
        pytest.param(-3600, None, id="of the future, since a clock was ahead"),
    ],
)
def test_an_answer_has_its_time(cache, age_s, expected):
    remembered.remember(cache, "which?", ANSWER)
    status = kept(cache).stat()
    os.utime(kept(cache), (status.st_mtime - age_s,) * 2)
    assert recall(cache, max_age_s=3600) == expected


def unreadable(file):
    file.write_text("{")


def empty_since_the_machine_crashed(file):
    file.write_text("")


def of_another_shape(file):
    file.write_text('{"text": 5}')


def writable_for_others(file):
    file.chmod(0o666)


def a_link(file):
    file.rename(file.with_name("elsewhere"))
    file.symlink_to(file.with_name("elsewhere"))


def a_pipe(file):
    file.unlink()
    os.mkfifo(file)


def a_folder(file):
    file.unlink()
    file.mkdir()


def of_another_user(file):
    if os.getuid() != 0:
        pytest.skip("only root can give a file away")
    os.chown(file, 12345, -1)


@pytest.mark.parametrize(
    "spoilt",
    [
        unreadable,
        empty_since_the_machine_crashed,
        of_another_shape,
        writable_for_others,
        a_link,
        a_pipe,
        a_folder,
        of_another_user,
    ],
    ids=lambda spoil: spoil.__name__,
)
def test_what_cannot_be_believed_is_not_there(cache, spoilt):
    remembered.remember(cache, "which?", ANSWER)
    spoilt(kept(cache))
    assert recall(cache) is None


def test_where_the_cache_cannot_be_written_the_temporary_folder_has_it(cache, temp):
    cache.touch()  # as a folder, root could write to it
    remembered.remember(cache, "which?", ANSWER)
    assert recall(cache) == ANSWER
    assert [path.name for path in temp.iterdir()] == [f"sparklineage-{os.getuid()}"]


def test_where_nothing_can_be_written_nothing_is_remembered(cache, monkeypatch):
    cache.touch()
    monkeypatch.setattr(tempfile, "tempdir", "/dev/null")
    remembered.remember(cache, "which?", ANSWER)
    assert recall(cache) is None


def test_a_full_disk_leaves_no_part_of_a_file(cache, temp, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(remembered.msgspec.json, "encode", full)
    remembered.remember(cache, "which?", ANSWER)
    assert not [file for file in (*cache.iterdir(), *temp.rglob("*")) if file.is_file()]


def test_without_a_temporary_folder_the_cache_has_it_alone(tmp_path, monkeypatch):
    def full():
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", full)
    cache = tmp_path / "cache"
    assert recall(cache) is None
    remembered.remember(cache, "which?", ANSWER)
    assert recall(cache) == ANSWER
    nowhere = tmp_path / "file"
    nowhere.touch()
    remembered.remember(nowhere, "which?", ANSWER)
    assert recall(nowhere) is None
