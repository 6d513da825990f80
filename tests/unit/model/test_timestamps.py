"""One canonical form of a time, whatever form it has in a path, a template or a column."""

from datetime import datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from airflow_provider_sparklineage.model.partitioning import NULL, hive_fit
from airflow_provider_sparklineage.model.timestamps import (
    canonical_time,
    common_format,
    date_of_columns,
    parsed,
    step_counter,
    written,
)


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
        pytest.param("2024", "%Y", "2024", id="a year, because the format is of a year"),
        pytest.param("2024", "", None, id="a year alone is any number"),
        pytest.param("202405", "", None, id="six digits are any number"),
        pytest.param("2024-02-30", "", None, id="no such day"),
        pytest.param("12345678", "", None, id="no such month"),
        pytest.param("PL", "", None, id="no time"),
        pytest.param("03", "%H", None, id="an hour of no day"),
        pytest.param("2024-05-06", "%Y%m%d", None, id="another format"),
        pytest.param("", "", None, id="empty"),
        pytest.param("٢٠٢٤-05-06T03", "", None, id="digits that are not ASCII"),
        pytest.param("2024-05-06 24", "", None, id="no such hour"),
        pytest.param("2024-05-06T03:30:00.25", "", "2024-05-06T03:30:00.25", id="fraction"),
        pytest.param("2024-127", "%Y-%j", "2024-05-06", id="day of the year"),
        pytest.param("2023-366", "%Y-%j", None, id="no such day of the year"),
        pytest.param("2024-12-30 W01", "%Y-%m-%d W%V", None, id="week of another year"),
        pytest.param("06May2024", "%d%b%Y", None, id="names of months are not read"),
        pytest.param(NULL, "%Y", None, id="null"),
    ],
)
def test_the_canonical_form_of_a_time(text, form, expected):
    assert canonical_time(text, form) == expected


@pytest.mark.parametrize(
    ("text", "form", "or_iso", "expected"),
    [
        pytest.param("06.05.2024", "%d.%m.%Y", True, "2024-05-06", id="in its format"),
        pytest.param("2024-05-06", "%d.%m.%Y", True, "2024-05-06", id="or in ISO 8601"),
        pytest.param("2024-05-06T03", "%d.%m.%Y", True, "2024-05-06T03", id="an hour in ISO 8601"),
        pytest.param("2024-05-06", "%d.%m.%Y", False, None, id="only in its format"),
        pytest.param("5/6/2024", "%d.%m.%Y", True, None, id="neither"),
    ],
)
def test_a_value_that_is_not_in_the_format_may_be_in_iso_8601(text, form, or_iso, expected):
    assert canonical_time(text, form, or_iso=or_iso) == expected


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        pytest.param(["2024-05-06", "2024-06-01"], "%Y-%m-%d", id="days"),
        pytest.param(["20240506", "20240601"], "%Y%m%d", id="compact days"),
        pytest.param(["2024", "2025"], "%Y", id="years"),
        pytest.param(["2024-05-06 03"], "%Y-%m-%d %H", id="one"),
        pytest.param(["2024-05-06", "20240601"], None, id="two formats"),
        pytest.param(["2024-5-6"], None, id="missing zeros"),
    ],
)
def test_the_format_that_times_have_in_common(texts, expected):
    assert common_format(*texts) == expected


TIMES = st.datetimes().map(lambda at: at.replace(microsecond=0))
FIRST, LAST = map(datetime.fromisoformat, ("0001-01-01", "9999-12-31T23:59:59"))


@given(TIMES, st.sampled_from(["%Y-%m-%dT%H:%M:%S", "%d.%m.%Y %H%M%S %%", "%Y%j %H-%M-%S"]))
@example(FIRST, "%Y-%m-%dT%H:%M:%S")
@example(LAST, "%Y%j %H-%M-%S")
def test_a_time_is_read_back_as_it_was_written(at, pattern):
    assert parsed(written(at, pattern), pattern) == at


@given(TIMES)
def test_a_day_of_an_iso_week_is_read_back(at):
    midnight = at.replace(hour=0, minute=0, second=0)
    assert parsed(written(at, "%G-W%V-%u"), "%G-W%V-%u") == midnight


@given(TIMES, st.sampled_from(["%Y-%m-%d", "%Y%m%d%H", "%Y-%m-%dT%H:%M", "%Y%m%d%H%M%S"]))
def test_the_next_step_is_one_more(at, pattern):
    length = {"d": {"days": 1}, "H": {"hours": 1}, "M": {"minutes": 1}, "S": {"seconds": 1}}
    number = step_counter(pattern)
    try:
        later = at + timedelta(**length[pattern[-1]])
    except OverflowError:
        return
    assert number(written(later, pattern)) == number(written(at, pattern)) + 1


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
        pytest.param("a_year=2024/a_month=5/b_year=2024/b_month=6", None, id="two sets of columns"),
        pytest.param("year=2024/yyyy=2025/month=5", None, id="two years"),
        pytest.param("dt=2024-05-06", None, id="no such columns"),
    ],
)
def test_the_date_of_several_columns(path, expected):
    assert date_of_columns(hive_fit(path).partition.values) == expected
