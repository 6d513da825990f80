"""The collector of garbage, paused and given back as it was."""

import gc
import signal

import pytest

from airflow_provider_sparklineage.model.allowance import garbage_collector_paused


@pytest.fixture(autouse=True)
def _as_it_was():
    assert gc.isenabled()
    yield
    gc.unfreeze()
    gc.enable()


def test_it_is_paused_inside_and_back_after():
    with garbage_collector_paused():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_an_inner_pause_ends_no_outer_one():
    with garbage_collector_paused():
        with garbage_collector_paused():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_who_has_it_off_keeps_it_off():
    gc.disable()
    with garbage_collector_paused():
        pass
    assert not gc.isenabled()


class _TimeIsUpError(BaseException):
    pass


def test_a_timeout_inside_leaves_it_on():
    def fire(*_):
        raise _TimeIsUpError

    @garbage_collector_paused()
    def work():
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        signal.pause()

    before = signal.signal(signal.SIGALRM, fire)
    try:
        with pytest.raises(_TimeIsUpError):
            work()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert gc.isenabled()


def test_what_was_made_meanwhile_is_not_gone_through_by_the_next_quick_pass():
    with garbage_collector_paused():
        made = [[]]
    assert not any(known is made for known in gc.get_objects(generation=0))
    assert any(known is made for known in gc.get_objects(generation=2))


def test_what_somebody_froze_stays_frozen():
    gc.freeze()
    frozen = gc.get_freeze_count()
    with garbage_collector_paused():
        pass
    assert gc.get_freeze_count() >= frozen - 100  # some of it may be gone by now
