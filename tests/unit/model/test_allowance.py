"""The stages of the time that lineage may take, and the bounds of the memory."""

from __future__ import annotations

import pytest

from airflow_provider_sparklineage.model.allowance import (
    UNLIMITED,
    Allowance,
    Bound,
    SpentError,
    Stage,
)
from tests.allowances import lasting


@pytest.fixture
def clock():
    return [60.0]


def over(allowance):
    return [stage.name for stage in Stage if allowance.is_over(stage)]


@pytest.mark.parametrize(
    ("left", "stages_over"),
    [(60, 0), (41, 0), (39, 1), (29, 2), (23, 2), (22, 3), (19, 4), (17, 5), (14, 6), (5, 7)],
)
def test_each_stage_is_over_at_its_part_of_the_time(clock, left, stages_over):
    allowance = Allowance(lambda: clock[0])
    clock[0] = left
    assert over(allowance) == [stage.name for stage in Stage][:stages_over]
    clock[0] = 0.0
    assert len(over(allowance)) == len(Stage)


def test_stages_are_in_the_order_in_which_they_end():
    assert sorted(Stage) == list(Stage)


def test_later_stages_share_what_the_earlier_ones_left(clock):
    clock[0] = 20.0
    allowance = Allowance(lambda: clock[0], after=Stage.MERGING)
    assert over(allowance)[-1] == "MERGING"
    clock[0] = 14.9  # a quarter of the rest is gone: 3/4 of the whole are
    assert over(allowance)[-1] == "FACETS"
    clock[0] = 5.9
    assert over(allowance)[-1] == "EVENT_OF_BACKEND"


def test_a_kill_ends_a_stage_at_once_and_leaves_time_for_the_event(clock):
    merging = Allowance(lambda: clock[0])
    clock[0] = 3.0
    assert merging.is_over(Stage.MERGING)
    event = Allowance(lambda: clock[0], after=Stage.MERGING)
    assert not event.is_over(Stage.FACETS)


def test_a_task_that_is_killed_before_merging_shares_its_seconds_in_the_same_way(clock):
    clock[0] = 3.0
    allowance = Allowance(lambda: clock[0])
    clock[0] = 2.1
    assert not allowance.is_over(Stage.READING)
    clock[0] = 1.9
    assert allowance.is_over(Stage.READING)


@pytest.mark.parametrize("after", [None, Stage.MERGING])
def test_all_is_over_where_there_is_no_time(after):
    assert len(over(Allowance(lambda: 0.0, after))) == len(Stage)


def test_nothing_is_over_without_an_end():
    UNLIMITED.work(Stage.READING, 10**9)
    assert over(UNLIMITED) == []


def test_the_clock_is_asked_now_and_then():
    allowance = lasting(1)
    allowance.work(Stage.MERGING, 499)
    allowance.work(Stage.MERGING)
    allowance.work(Stage.MERGING, 499)
    with pytest.raises(SpentError, match="took too long"):
        allowance.work(Stage.MERGING)


def test_what_does_not_fit_is_not_counted():
    memory = Bound(10)
    assert [memory.takes(8), memory.takes(3), memory.left, memory.takes(2)] == [
        True,
        False,
        2,
        True,
    ]
    assert not memory.takes()
