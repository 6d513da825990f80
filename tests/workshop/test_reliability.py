"""The page of faults has what the registry has: ``make faults`` was run after the last change."""

from __future__ import annotations

import re
from collections import Counter

import pytest

pytest.importorskip("airflow", reason="the faults are those of its tasks")

from airflow_provider_sparklineage.model.degradations import DegradationCode
from tests.faults.__main__ import SPOILED
from tests.faults.page import PAGE, page
from tests.faults.registry import areas, faults
from tests.mutations.kinds import KINDS


def rows_of_the_page():
    return [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in PAGE.read_text().splitlines()
        if line.startswith("| ") and not line.startswith(("| fault ", "| kind "))
    ]


def faults_of_the_page():
    return [row for row in rows_of_the_page() if len(row) == 5]


def named(fault):
    return fault.name if fault.lane == "double" else f"{fault.name} ({fault.lane})"


def test_the_page_lists_the_faults_of_the_registry():
    assert [row[0] for row in faults_of_the_page()] == [named(fault) for fault in faults()]


def test_the_page_has_what_each_fault_declares():
    on_page = {row[0]: set(re.findall(r"`(\w+)`", row[2])) for row in faults_of_the_page()}
    assert on_page == {named(fault): set(fault.declares) for fault in faults()}


def test_the_prose_of_the_page_is_that_of_the_program():
    row = {"outcome": "", "declared": [], "warned": False, "seconds": 0, "left": []}
    written = page(dict.fromkeys((fault.name for fault in faults()), row), {})

    def prose(text):
        return [line for line in text.splitlines() if not line.startswith("| ")]

    assert prose(PAGE.read_text()) == prose(written)


def test_the_page_has_every_kind_of_spoiled_input():
    kinds = [row for row in rows_of_the_page() if len(row) == 3]
    tried = {name: len(range(0, SPOILED, kind.every)) for name, kind in KINDS.items()}
    assert kinds == [[name, f"{count:,}", "none"] for name, count in tried.items()]


def test_a_name_is_that_of_one_fault():
    assert [name for name, n in Counter(f.name for f in faults()).items() if n > 1] == []


@pytest.mark.parametrize("area", areas(), ids=lambda area: area.title)
def test_an_area_has_faults_and_declares_by_known_codes(area):
    assert area.faults
    assert {code for fault in area.faults for code in fault.declares} <= set(DegradationCode)
