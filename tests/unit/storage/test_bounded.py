"""Calls that may take so long and no longer."""

from __future__ import annotations

import gc
import threading
import weakref
from functools import partial

import pytest

from airflow_provider_sparklineage.model.budget import UNLIMITED, Budget
from airflow_provider_sparklineage.storage.bounded import (
    OutOfTimeError,
    StoreError,
    within,
    within_budget,
)


def test_what_a_call_gives_is_given():
    assert within(10, lambda: 7, "tried") == 7


def test_what_a_call_raises_is_raised():
    with pytest.raises(ZeroDivisionError):
        within(10, lambda: 1 / 0, "tried")


def test_who_waits_is_not_ended_by_what_ends_the_call():
    def ends():
        raise SystemExit(1)

    with pytest.raises(RuntimeError, match="SystemExit: 1"):
        within(10, ends, "tried")


def test_a_call_that_takes_longer_is_left_to_itself():
    released = threading.Event()
    with pytest.raises(OutOfTimeError):
        within(0.01, released.wait, "tried")
    released.set()


# --- with a budget --------------------------------------------------------------------------------


def test_what_a_store_answers_is_given():
    assert within_budget(UNLIMITED, lambda: 7, "tried") == 7


def test_what_a_store_fails_with_is_a_reason_without_secrets():
    def fail():
        msg = f"token=abcdefgh {'x' * 10_000}"
        raise ConnectionError(msg)

    with pytest.raises(StoreError, match=r"^ConnectionError: token=\*\*\* x") as raised:
        within_budget(UNLIMITED, fail, "tried")
    assert len(str(raised.value)) < 1000


def test_a_budget_that_is_cut_meanwhile_counts():
    released, left = threading.Event(), [3600.0]

    def hang():
        left[0] = 0.0
        released.wait(30)

    with pytest.raises(StoreError, match="no answer within"):
        within_budget(Budget(lambda: left[0]), hang, "tried")
    released.set()


def test_nobody_is_asked_when_the_time_is_up():
    with pytest.raises(StoreError, match="no time left"):
        within_budget(Budget(lambda: 0), pytest.fail, "tried")


def test_a_share_of_the_time_ends_before_the_whole_does():
    now = [30.0]
    whole = Budget(lambda: now[0])
    merging = whole.part(2 / 3)
    now[0] = 10.5
    assert not merging.is_spent()
    now[0] = 10.0
    assert merging.is_spent()
    assert not whole.is_spent()


def test_a_kill_ends_a_share_at_once():
    now = [30.0]
    merging = Budget(lambda: now[0]).part(2 / 3)
    now[0] = 3.0
    assert merging.is_spent()


def test_of_a_call_that_failed_nothing_is_kept():
    class Content:
        """Megabytes that could not be uploaded."""

    def fail(content):
        raise PermissionError(content)

    content = Content()
    kept = weakref.ref(content)
    gc.disable()  # as while a submission is set up
    try:
        with pytest.raises(StoreError):
            within_budget(UNLIMITED, partial(fail, content), "tried")
        del content
        assert kept() is None
    finally:
        gc.enable()
