"""One spelling of a time, whatever a path, a template or a column spells."""

import pytest

from airflow_provider_sparklineage.model.moments import canonical


@pytest.mark.parametrize(
    ("text", "form", "expected"),
    [
        pytest.param("2024-05-06", "", "2024-05-06", id="ISO day"),
        pytest.param("20240506", "", "2024-05-06", id="basic day"),
        pytest.param("2024-05", "", "2024-05", id="month"),
        pytest.param("2024-05-06T03", "", "2024-05-06T03", id="hour"),
        pytest.param("2024-05-06-03", "", "2024-05-06T03", id="hour after a hyphen"),
        pytest.param("2024-05-06 03:30", "", "2024-05-06T03:30", id="minute"),
        pytest.param("20240506T033000", "", "2024-05-06T03:30:00", id="ts_nodash"),
        pytest.param(
            "2024-05-06T03:30:00+00:00", "", "2024-05-06T03:30:00+00:00", id="ts with its zone"
        ),
        pytest.param("2024-05-06T03:30:00Z", "", "2024-05-06T03:30:00+00:00", id="Z is a zone"),
        pytest.param("0001-01-01", "", "0001-01-01", id="year 1"),
        pytest.param("1970-01-01", "", "1970-01-01", id="epoch"),
        pytest.param("06.05.2024", "%d.%m.%Y", "2024-05-06", id="own format"),
        pytest.param("0001/01/01", "%Y/%m/%d", "0001-01-01", id="year 1 in an own format"),
        pytest.param("2024-W19-1", "%G-W%V-%u", "2024-05-06", id="ISO week"),
        pytest.param("2024", "%Y", "2024", id="a year, because the format says so"),
        pytest.param("2024", "", None, id="a year alone is any number"),
        pytest.param("202405", "", None, id="six digits are any number"),
        pytest.param("2024-02-30", "", None, id="no such day"),
        pytest.param("12345678", "", None, id="no such month"),
        pytest.param("PL", "", None, id="no time"),
        pytest.param("03", "%H", None, id="an hour of no day"),
        pytest.param("2024-05-06", "%Y%m%d", None, id="another format"),
        pytest.param("", "", None, id="empty"),
        pytest.param("__HIVE_DEFAULT_PARTITION__", "%Y", None, id="null"),
    ],
)
def test_times_are_spelled_alike(text, form, expected):
    assert canonical(text, form) == expected
