"""Files of a store, several at once, in order and in time."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from airflow_provider_sparklineage.model.budget import UNLIMITED, Budget
from airflow_provider_sparklineage.storage.bounded import StoreError
from airflow_provider_sparklineage.storage.objects import downloaded


def store(download):
    return SimpleNamespace(download=download)


def writes_its_name(name, target):
    target.write_text(name)


def test_files_come_in_the_order_in_which_they_are_asked_for(tmp_path):
    names = [f"{n}" for n in range(100, 0, -1)]
    second = threading.Event()

    def first_comes_last(name, target):
        if name == "100":
            assert second.wait(30)
        second.set()
        target.write_text(name)

    sizes = {name: len(name) for name in names}
    found = [
        p.read_text() for _, p in downloaded(store(first_comes_last), sizes, tmp_path, UNLIMITED)
    ]
    assert found == names


def test_several_are_downloaded_at_once(tmp_path):
    together = threading.Barrier(8, timeout=30)

    def wait_for_others(name, target):
        together.wait()
        target.write_text(name)

    sizes = {f"{n}": 1 for n in range(8)}
    assert len(list(downloaded(store(wait_for_others), sizes, tmp_path, UNLIMITED))) == 8


def test_names_are_not_used_as_names_here(tmp_path):
    folder = tmp_path / "in" / "here"
    folder.mkdir(parents=True)
    name = "../../out"
    ((_, path),) = downloaded(store(writes_its_name), {name: len(name)}, folder, UNLIMITED)
    assert path.parent == folder


def test_a_connection_that_breaks_is_made_again(tmp_path):
    tried = []

    def break_once(name, target):
        tried.append(name)
        if len(tried) == 1:
            raise ConnectionResetError
        target.write_text(name)

    ((_, found),) = downloaded(store(break_once), {"a": 1}, tmp_path, UNLIMITED)
    assert found.read_text() == "a"


@pytest.mark.parametrize(
    "error", [PermissionError("no"), ValueError("no"), KeyError("no"), SystemExit("no")]
)
def test_one_that_fails_is_a_reason_and_the_others_come(tmp_path, error):
    def fail(name, target):
        if name == "b":
            raise error
        target.write_text(name)

    _, (_, failed), (_, last) = downloaded(
        store(fail), {"a": 1, "b": 1, "c": 1}, tmp_path, UNLIMITED
    )
    assert isinstance(failed, StoreError)
    assert type(error).__name__ in str(failed)
    assert last.read_text() == "c"


def test_a_slow_first_file_holds_no_other_back(tmp_path):
    others_are_there = threading.Barrier(2)
    sizes = {f"{n}": 1 for n in range(30)}

    def download(name, target):
        if name == "0":
            others_are_there.wait(30)
        target.write_text("x")
        if name == "29":
            others_are_there.wait(30)

    assert len(list(downloaded(store(download), sizes, tmp_path, UNLIMITED))) == 30


def test_no_more_is_begun_when_nobody_wants_more(tmp_path):
    begun = []

    def download(name, target):
        begun.append(name)
        target.write_text("x")

    sizes = {f"{n}": 1 for n in range(10_000)}
    files = downloaded(store(download), sizes, tmp_path, UNLIMITED)
    next(files)
    files.close()
    for thread in threading.enumerate():
        if thread.name == "sparklineage-download":
            thread.join(30)
    assert len(begun) < len(sizes)


def test_it_ends_with_the_budget(tmp_path):
    released = threading.Event()
    left = [1.0]

    def hang(name, target):
        left[0] = 0.0
        released.wait(30)

    assert list(downloaded(store(hang), {"a": 1}, tmp_path, Budget(lambda: left[0]))) == []
    released.set()
