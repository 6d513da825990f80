"""Calls that may take so long and no longer."""

from __future__ import annotations

import threading

import pytest

from airflow_provider_sparklineage.storage.bounded import OutOfTimeError, within


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
