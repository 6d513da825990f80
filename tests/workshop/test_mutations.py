"""Spoiled inputs of every kind are answered or refused in one line: a sample of thousands.

``python -m tests.mutations`` tries all of them, each in every way in which it is read.
"""

import random

import pytest

from tests.mutations.__main__ import tried
from tests.mutations.kinds import KINDS, Unsurvived, run
from tests.mutations.spoiling import spoiled


@pytest.mark.parametrize("kind", KINDS)
def test_a_spoiled_input_gives_no_traceback(kind):
    assert tried(kind, range(150), ways=1).problems == {}


def test_inputs_are_spoiled_by_their_seed_alone():
    text = b'{"a": [1, {"b": null}]}\n{"c": "d"}\n'
    first, second = ([spoiled(text, random.Random(n)) for n in range(100)] for _ in range(2))
    assert first == second
    assert len(set(first)) > 60


def test_a_run_that_ends_with_a_traceback_is_not_survived(monkeypatch):
    from airflow_provider_sparklineage.cli import events

    def broken(_paths):
        return {}["nothing"]

    monkeypatch.setattr(events, "events_of", broken)
    with pytest.raises((Unsurvived, TypeError)):
        run("show", "x")
