"""While somebody looks at the page, one process at a time merges what tasks have delivered."""

from __future__ import annotations

import pytest

from airflow_provider_sparklineage.history import incoming, merging_process
from airflow_provider_sparklineage.history.engines import building
from airflow_provider_sparklineage.history.merging_process import Keeper
from airflow_provider_sparklineage.history.store import Store

pytest.importorskip("duckdb")


class Process:
    """A process that ends when a test says so."""

    def __init__(self):
        self.returncode, self.printed, self.is_killed = None, "", False

    pid = 0

    def poll(self):
        return self.returncode

    def kill(self):
        self.is_killed, self.returncode = True, -9

    def communicate(self):
        return None, self.printed


@pytest.fixture
def started(monkeypatch):
    found = []
    monkeypatch.setattr(merging_process, "start", lambda _: found.append(Process()) or found[-1])
    return found


@pytest.fixture
def now():
    return [1000.0]


@pytest.fixture
def url(tmp_path):
    folder = tmp_path / "history"
    building.build(Store(str(folder)), ())
    return folder.as_uri()


@pytest.fixture
def keeper(now):
    return Keeper(lambda: now[0])


def deliver(url):
    assert incoming.deliver(url, incoming.Sender("a", "b", "c", -1, 1), b"{}", 5)


def test_a_store_that_is_up_to_date_is_left_alone(keeper, url, started):
    state = keeper.state(url, may_merge=True)
    assert (state.generation, state.waiting, state.is_merging) == (1, 0, False)
    assert started == []


def test_what_was_delivered_is_merged_by_one_process(keeper, url, started, now):
    deliver(url)
    for _ in range(3):
        state = keeper.state(url, may_merge=True)
        now[0] += 100
    assert (state.waiting, state.is_merging) == (1, True)
    assert state.since is not None
    assert len(started) == 1


def test_a_store_that_is_not_there_is_built(keeper, tmp_path, started):
    state = keeper.state((tmp_path / "none").as_uri(), may_merge=True)
    assert (state.generation, state.built_at, state.is_merging) == (0, None, True)
    assert len(started) == 1


def test_nothing_is_started_where_only_the_command_merges(keeper, url, started):
    deliver(url)
    assert not keeper.state(url, may_merge=False).is_merging
    assert started == []


def test_one_that_has_failed_says_why_and_another_one_begins_after_a_pause(
    keeper, url, started, now
):
    deliver(url)
    keeper.state(url, may_merge=True)
    started[0].returncode, started[0].printed = 2, "error: the disk is full\n"
    now[0] += 5
    state = keeper.state(url, may_merge=True)
    assert (state.is_merging, state.problem) == (False, "error: the disk is full")
    now[0] += 20
    assert keeper.state(url, may_merge=True).is_merging
    assert len(started) == 2


def test_one_that_does_not_end_is_ended(keeper, url, started, now):
    deliver(url)
    keeper.state(url, may_merge=True)
    now[0] += 3601
    keeper.state(url, may_merge=True)
    assert started[0].is_killed
    assert len(started) == 2


def test_the_real_process_merges(keeper, url):
    deliver(url)
    process = merging_process.start(url)
    assert process.wait(60) == 0
    assert merging_process.ended(process) == ""
    assert keeper.state(url, may_merge=False).waiting == 0


def test_the_real_process_says_why_it_failed(url):
    with Store(url).building():
        problem = merging_process.merge(url, 60)
    assert "is being built already" in problem
    deliver(url)
    assert merging_process.merge(url, 0).startswith("merging took more than 0 s")
    assert merging_process.merge(url, 60) == ""
