"""Values of partitions in canonical form, by type, format and transform."""

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from airflow_provider_sparklineage.model.partitioning import NULL, Dimension, canonical_value
from airflow_provider_sparklineage.model.timestamps import canonical_time, has_zone


def of(kind, transform="identity"):
    return Dimension.of_column("c", transform, type=kind)


@pytest.mark.parametrize(
    ("value", "dimension", "expected"),
    [
        ("05", of("integer"), "5"),
        ("-05", of("bigint"), "-5"),
        ("00", of("int"), "0"),
        ("0020240506", of("int"), "20240506"),
        ("20240506", of("int"), "2024-05-06"),
        ("202405", of("int"), "2024-05"),
        ("202413", of("int"), "202413"),
        ("05", of("string"), "05"),
        ("05", of("varchar(2)"), "05"),
        ("20240506", of("string"), "2024-05-06"),
        ("202405", of("string"), "2024-05"),
        ("05", of(""), "5"),
        ("100", of(""), "100"),
        ("0100", of(""), "0100"),
        ("1.10", of("double"), "1.1"),
        ("-0.0", of("decimal(3,1)"), "0"),
        ("100", of("double"), "100"),
        ("1e3", of("double"), "1000"),
        ("1e999999999", of("double"), "1E+999999999"),
        ("NaN", of("double"), "NaN"),
        ("TRUE", of("boolean"), "true"),
        ("19849", of("date"), "2024-05-06"),
        ("2024-05-06 12:00:00", of("date"), "2024-05-06"),
        ("2024-05-06T00:00:00+02:00", of("date"), "2024-05-06"),
        ("2024-05-06", of("timestamp"), "2024-05-06T00:00:00"),
        ("2024-05-06 03", of("timestamp"), "2024-05-06T03:00:00"),
        ("2024-05-06 03:00:00.000", of("timestamp_ntz"), "2024-05-06T03:00:00"),
        ("2024-05-06 03:00:00.250", of("timestamptz"), "2024-05-06T03:00:00.25"),
        ("2024-05-06T00:00:00+02:00", of("timestamp"), "2024-05-05T22:00:00+00:00"),
        ("2024-05-06T00:00:00Z", of("timestamp"), "2024-05-06T00:00:00+00:00"),
        ("2024-05-06T00:30:00+02:00", of("int", "hour"), "2024-05-05T22"),
        ("476301", of("int", "hour"), "2024-05-02T21"),
        ("54", of("int", "year"), "2024"),
        ("2024", of("int", "year"), "2024"),
        ("202405", of("int", "month"), "2024-05"),
        ("hello", of("string", "day"), "hello"),
        ("9999999", of("int", "year"), "9999999"),
        ("9999999", of("int", "month"), "9999999"),
        ("9999999", of("int", "day"), "9999999"),
        (NULL, of("int", "hour"), NULL),
        ("", of("int"), ""),
        ("\u0665", of("int"), "\u0665"),
    ],
)
def test_the_canonical_form(value, dimension, expected):
    assert canonical_value(value, "", dimension) == expected


@pytest.mark.parametrize(
    ("value", "is_zoned"),
    [
        ("2024-05-06T00:00:00+02:00", True),
        ("2024-05-06T00:00Z", True),
        ("2024-05-06T00:00:00", False),
        ("2024-05-06", False),
    ],
)
def test_zones_are_recognised(value, is_zoned):
    assert has_zone(canonical_value(value, "", of("timestamp"))) == is_zoned


@pytest.mark.parametrize("separator", ["-", ""])
@given(day=st.dates())
def test_a_day_is_what_the_canonical_form_takes_for_one(separator, day):
    text = str(day).replace("-", separator)
    assert canonical_value(text, "", of("date")) == canonical_time(text) == str(day)


@given(st.text("0123456789-T W", max_size=10))
def test_what_is_no_time_and_no_number_of_days_stays_as_it_is(text):
    assume(canonical_time(text) is None and not re.fullmatch(r"-?\d{1,7}", text))
    assert canonical_value(text, "", of("date")) == text
