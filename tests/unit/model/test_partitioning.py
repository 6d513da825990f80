"""Partitions as values and as folders: what Hive escapes comes back as it was."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sparklineage.model.partitioning import (
    NULL,
    Partition,
    date_of,
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
def test_values_are_spelled_as_spark_spells_folders(text, folder):
    assert escape(text) == folder
    assert unescape(folder) == text


@given(st.text())
def test_unescaping_undoes_escaping(text):
    assert unescape(escape(text)) == text


LABELS = st.text(min_size=1, max_size=5)


@given(st.lists(st.tuples(LABELS, st.none() | st.text(max_size=5)), max_size=3))
def test_a_partition_is_read_back_from_its_own_path(values):
    partition = Partition.of(values)
    assert hive_fit(str(partition)).partition == partition


def test_null_and_the_empty_text_are_one_folder():
    assert Partition.of([("dt", None)]) == Partition.of([("dt", "")])
    assert str(Partition.of([("dt", None)])) == f"dt={NULL}"


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


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("year=2024/month=05/day=06", "2024-05-06", id="day"),
        pytest.param("year=2024/month=5/day=6/hour=3", "2024-05-06T03", id="hour, no zeros"),
        pytest.param("year=2024/month=5", "2024-05", id="month"),
        pytest.param("yyyy=2024/mm=05/dd=06/hh=23", "2024-05-06T23", id="short labels"),
        pytest.param("Event_Year=2024/event_month=5/event_day=6", "2024-05-06", id="prefix"),
        pytest.param("country=PL/year=2024/month=5/day=6", "2024-05-06", id="others passed over"),
        pytest.param("year=1970/month=1/day=1/hour=0", "1970-01-01T00", id="epoch"),
        pytest.param("year=1/month=1/day=1", "0001-01-01", id="year 1"),
        pytest.param("year=2024", None, id="only a year"),
        pytest.param("year=2024/month=2/day=30", None, id="no such day"),
        pytest.param("year=2024/month=2/day=3/hour=24", None, id="no such hour"),
        pytest.param("year=2024/month=2/hour=3", None, id="an hour of no day"),
        pytest.param("year=2024/month=*", None, id="glob"),
        pytest.param(f"year=2024/month={NULL}", None, id="null"),
        pytest.param("a_year=2024/a_month=5/b_year=2024/b_month=6", None, id="two families"),
        pytest.param("year=2024/yyyy=2025/month=5", None, id="two years"),
        pytest.param("dt=2024-05-06", None, id="no family"),
    ],
)
def test_a_family_of_dimensions_stands_for_a_date(path, expected):
    assert date_of(hive_fit(path).partition) == expected
