"""Task-level lineage of every recorded application, against a truth that was checked by hand.

The truths are in ``tests/golden/lineage``, the same for all Sparks but for the lines that name
some; ``tests/lineage_text.py`` explains how they are written.
"""

from __future__ import annotations

import re

import pytest

from tests.conftest import GOLDEN, OBSERVED, RECORDED, SPARKS
from tests.lineage_text import Truth, lines_of, lines_of_several
from tests.record_events import CASES, CONNECTORS

TRUTHS = GOLDEN / "lineage"


@pytest.mark.parametrize(("spark", "case"), RECORDED)
def test_the_lineage_is_the_one_that_was_checked_by_hand(recorded, spark, case):
    truth = Truth((TRUTHS / f"{case}.txt").read_text(), spark)
    assert lines_of(recorded(case, spark).lineage) == sorted(truth.reported)


@pytest.mark.parametrize(("spark", "case"), RECORDED)
def test_what_is_true_and_not_in_the_event_is_reported_as_missing(spark, case):
    truth = Truth((TRUTHS / f"{case}.txt").read_text(), spark)
    assert list(truth.silent_gaps()) == []


@pytest.mark.parametrize(("spark", "case"), OBSERVED)
def test_the_lineage_with_observations_is_the_one_that_was_checked_by_hand(recorded, spark, case):
    truth = Truth((TRUTHS / "observed" / f"{case}.txt").read_text(), spark)
    assert lines_of(recorded(case, spark).observed) == sorted(truth.reported)
    assert list(truth.silent_gaps()) == []


@pytest.mark.parametrize("spark", SPARKS)
def test_every_application_is_recorded_where_its_connector_is(spark):
    here = {of for of, case in CASES.items() if case.connector in (None, *CONNECTORS[spark])}
    assert {case for of, case in RECORDED if of == spark} == here
    observed = {case for of, case in OBSERVED if of == spark}
    # Next to the observer the listener of Spark 3.5 loses the starts of short actions.
    assert observed <= here if spark == "3.5" else observed == here


def test_what_is_reported_though_untrue_or_silently_lost_has_a_remark():
    for file in TRUTHS.rglob("*.txt"):
        above = ""
        for line in file.read_text().splitlines():
            if re.search(r"^\+|(<-|,) [+!]", line):
                assert above.startswith("#"), f"{file.name}: {line}"
            above = line


TEXT = """\
# a remark
reads orders
[3.5] reads rates
out.a <- orders.a IDENTITY, -orders.b TRANSFORMATION
out.c <- -orders.c IDENTITY
-reads hidden
says column_incomplete out.a
"""


def test_lines_of_other_sparks_and_what_is_unreported_are_not_expected():
    assert Truth(TEXT, "4.0").reported == [
        "reads orders",
        "out.a <- orders.a IDENTITY",
        "says column_incomplete out.a",
    ]
    assert "reads rates" in Truth(TEXT, "3.5").reported


def test_a_gap_that_is_not_reported_is_found():
    assert list(Truth(TEXT, "4.0").silent_gaps()) == ["out.c", "reads hidden"]


def test_lines_that_differ_carry_their_sparks():
    assert lines_of_several({"3.5": ["a", "b"], "4.0": ["b"]}) == ["[3.5] a", "b"]
