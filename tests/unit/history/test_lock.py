"""The lock: of all who want to write, one may."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier

import msgspec
import pytest

from airflow_provider_sparklineage.history.store import LOCK, STALE, Folder, Lock, Owner
from airflow_provider_sparklineage.model.exceptions import HistoryError

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GONE = Owner("elsewhere", 1, "gone", NOW - STALE - timedelta(seconds=1))


@pytest.fixture
def files(tmp_path):
    return Folder(tmp_path)


def lock(files):
    return Lock(files, lambda: NOW)


def left(files):
    return sorted(files.names(""))


def test_of_many_who_find_it_stale_one_takes_it_over(files):
    many = 8
    for _ in range(20):
        files.write(LOCK, msgspec.json.encode(GONE))
        ready, done = Barrier(many), Barrier(many)

        def take(_, ready=ready, done=done):
            mine = lock(files)
            ready.wait()
            try:
                with mine:
                    done.wait()  # nobody gives it back before all have tried
                    mine.check()
                    return True
            except HistoryError:
                done.wait()
                return False

        with ThreadPoolExecutor(many) as threads:
            assert sum(threads.map(take, range(many))) == 1
        assert left(files) == []


class TakenMeanwhile(Folder):
    """Another one takes the lock over between two looks at it."""

    def create(self, name, content):
        if name != LOCK:
            self.write(LOCK, msgspec.json.encode(Owner("other", 2, "other", NOW)))
        return super().create(name, content)


def test_who_looks_again_and_finds_it_taken_leaves_it(tmp_path):
    files = TakenMeanwhile(tmp_path)
    files.write(LOCK, msgspec.json.encode(GONE))
    with pytest.raises(HistoryError, match="process 2 on other"), lock(files):
        pass
    assert left(files) == [LOCK]
    assert msgspec.json.decode(files.read(LOCK), type=Owner).token == "other"


def test_who_was_killed_while_it_took_over_is_taken_over_too(files):
    files.write(LOCK, msgspec.json.encode(GONE))
    files.write(f"{LOCK}.gone", msgspec.json.encode(msgspec.structs.replace(GONE, token="x")))
    with lock(files):
        assert left(files) == [LOCK]
    assert left(files) == []


def test_a_lock_that_cannot_be_read_is_nobodys(files):
    files.write(LOCK, b"{torn")
    with lock(files) as mine:
        mine.check()


def test_who_has_it_is_named_with_times_and_what_to_do(files):
    at = datetime(2025, 12, 31, 23, 59, 58, tzinfo=UTC)
    files.write(LOCK, msgspec.json.encode(Owner("worker-7", 42, "x", at, at - timedelta(hours=1))))
    expected = (
        "The history is being built already, by process 42 on worker-7 since 2025-12-31 22:59:58, "
        "last seen 2025-12-31 23:59:58 UTC. Wait for it; if it does not move for five minutes, the "
        "next build takes its place."
    )
    with pytest.raises(HistoryError) as raised, lock(files):
        pass
    assert str(raised.value) == expected


@pytest.mark.parametrize(
    ("ahead", "is_taken"),
    [
        pytest.param(timedelta(hours=1), False, id="the clock of another machine is ahead"),
        pytest.param(timedelta(days=2), True, id="it is of another day"),
        pytest.param(timedelta(days=9000), True, id="it is of another age"),
    ],
)
def test_a_lock_from_the_future_is_not_one_for_ever(files, ahead, is_taken):
    files.write(LOCK, msgspec.json.encode(Owner("elsewhere", 1, "ahead", NOW + ahead)))
    if is_taken:
        with lock(files):
            pass
    else:
        with pytest.raises(HistoryError, match="already, by process 1 on elsewhere"), lock(files):
            pass
