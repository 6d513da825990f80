"""Partitions as values and as folders: what Hive escapes comes back as it was."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sparklineage.model.partitioning import (
    NULL,
    Partition,
    escape,
    hive_fit,
    split_folder,
    unescape,
)


@pytest.mark.parametrize(
    ("text", "folder"),
    [
        pytest.param("2024-05-06", "2024-05-06", id="date"),
        pytest.param("a b/c=d%", "a b%2Fc%3Dd%25", id="separators"),
        pytest.param("%2F", "%252F", id="looks escaped"),
        pytest.param("10:00", "10%3A00", id="colon"),
        pytest.param("Zürich", "Zürich", id="unicode"),
        pytest.param(NULL, NULL, id="null"),
    ],
)
def test_values_are_escaped_as_spark_escapes_folders(text, folder):
    assert escape(text) == folder
    assert unescape(folder) == text


@given(st.text())
def test_unescaping_undoes_escaping(text):
    assert unescape(escape(text)) == text


LABELS = st.text(min_size=1, max_size=5)


@given(st.lists(st.tuples(LABELS, st.none() | st.text(max_size=5)), max_size=3))
def test_a_partition_is_read_back_from_its_own_path(values):
    partition = Partition.from_values(values)
    assert hive_fit(str(partition)).partition == partition


def test_null_and_the_empty_text_are_one_folder():
    assert Partition.from_values([("dt", None)]) == Partition.from_values([("dt", "")])
    assert str(Partition.from_values([("dt", None)])) == f"dt={NULL}"


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        pytest.param("dt=2024-05-06", ("dt", "2024-05-06"), id="plain"),
        pytest.param("a%3Db=c%2Fd", ("a=b", "c/d"), id="escaped"),
        pytest.param("k=a=b", ("k", "a=b"), id="equals sign in the value"),
        pytest.param(f"dt={NULL}", ("dt", NULL), id="null"),
        pytest.param("orders", None, id="no partition"),
        pytest.param("=x", None, id="no column"),
    ],
)
def test_a_folder_is_a_column_and_a_value(folder, expected):
    assert split_folder(folder) == expected
