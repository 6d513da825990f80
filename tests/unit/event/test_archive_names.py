"""Names in the archive: one file for each try, and no way out of the folder."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sparklineage.event.archive import encoded


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("shop.revenue-1_a", "shop.revenue-1_a"),
        ("manual__2024-05-06T00:00:00+00:00", "manual__2024-05-06T00%3A00%3A00%2B00%3A00"),
        ("a/b", "a%2Fb"),
        ("a%2Fb", "a%252Fb"),
        ("..", "%2E%2E"),
        (".", "%2E"),
        ("", "%"),
        ("каса", "%D0%BA%D0%B0%D1%81%D0%B0"),
        ("a\0*?[x]", "a%00%2A%3F%5Bx%5D"),
    ],
)
def test_a_name_is_percent_encoded(name, expected):
    assert encoded(name) == expected


@given(st.text(), st.text())
def test_two_names_have_two_paths(one, other):
    assert (encoded(one) == encoded(other)) == (one == other)


@given(st.text(min_size=50, max_size=300))
def test_a_path_has_no_name_that_a_file_system_refuses(name):
    path = encoded(name)
    assert 0 < len(path) <= 200
    assert "/" not in path
    assert path.isascii()
    assert path.strip(".")


def test_very_long_names_that_begin_alike_differ():
    assert encoded("ж" * 250) != encoded("ж" * 249)
