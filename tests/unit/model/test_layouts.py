"""Layouts: folders below a dataset to partitions and back, with the places of the values."""

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sparklineage.model.partitioning import (
    NULL,
    Dimension,
    Partition,
    escape,
    hive_fit,
)
from airflow_provider_sparklineage.model.rules import Layout, PartitionSpec

DATE_COUNTRY = "{event_date:%Y/%m/%d}/{country}"
HIVE_HOURS = "dt={dt:%Y-%m-%d}/h={hour:%H}"


@pytest.mark.parametrize(
    ("layout", "below", "expected"),
    [
        pytest.param(
            DATE_COUNTRY,
            "2024/05/06/PL",
            [("event_date", "2024-05-06"), ("country", "PL")],
            id="date folders",
        ),
        pytest.param(
            HIVE_HOURS, "dt=2024-05-06/h=10", [("dt", "2024-05-06"), ("hour", "10")], id="hours"
        ),
        pytest.param("{ts:%Y-%m-%d/%H}", "2024-05-06/10", [("ts", "2024-05-06T10")], id="hour"),
        pytest.param("{m:%Y/%m}", "2024/05", [("m", "2024-05")], id="month"),
        pytest.param("{m:%Y%m}", "202405", [("m", "2024-05")], id="month in one folder"),
        pytest.param("{y:%Y}", "2024", [("y", "2024")], id="year"),
        pytest.param("{w:%G/W%V}", "2020/W53", [("w", "2020-W53")], id="ISO week"),
        pytest.param("{d:%G-%V-%u}", "2024-19-1", [("d", "2024-05-06")], id="day of a week"),
        pytest.param("{d:%Y/%j}", "2024/366", [("d", "2024-12-31")], id="day of the year"),
        pytest.param(
            "{t:%Y%m%dT%H%M%S}", "19700101T000000", [("t", "1970-01-01T00:00:00")], id="epoch"
        ),
        pytest.param(DATE_COUNTRY, "0001/01/01", [("event_date", "0001-01-01")], id="year 1"),
        pytest.param(
            "year={d:%Y}/month={d:%m}/day={d:%d}",
            "year=2024/month=05/day=06",
            [("d", "2024-05-06")],
            id="a family as one date",
        ),
        pytest.param(
            "{a:%Y-%m-%d}_{b:%Y-%m-%d}",
            "2024-05-06_2024-05-07",
            [("a", "2024-05-06"), ("b", "2024-05-07")],
            id="two dates in a folder",
        ),
        pytest.param("{a}-{b}", "x-y-z", [("a", "x"), ("b", "y-z")], id="text up to the first"),
        pytest.param("r={r}", "r=a%2Fb%3Dc", [("r", "a/b=c")], id="escaped slash and equals"),
        pytest.param("{r}", "Zürich", [("r", "Zürich")], id="unicode"),
        pytest.param("dt={dt:%Y-%m-%d}", f"dt={NULL}", [("dt", NULL)], id="null"),
        pytest.param("{d:%Y-%m-%d}", "2024-05-*", [("d", "2024-05-*")], id="glob of a time"),
        pytest.param(
            DATE_COUNTRY,
            "2024/05/06/*",
            [("event_date", "2024-05-06"), ("country", "*")],
            id="glob of text",
        ),
        pytest.param(DATE_COUNTRY, "2024/05/*/PL", [], id="glob in a time of several folders"),
        pytest.param(DATE_COUNTRY, "2024/05", [], id="ends within a time"),
        pytest.param(HIVE_HOURS, "dt=2024-05-06", [("dt", "2024-05-06")], id="ends early"),
        pytest.param(HIVE_HOURS, "", [], id="only the root"),
        pytest.param(
            HIVE_HOURS,
            "dt=2024-05-06/h=10/part-0.parquet",
            [("dt", "2024-05-06"), ("hour", "10")],
            id="files are ignored",
        ),
    ],
)
def test_a_path_gives_the_values_of_its_layout(layout, below, expected):
    assert Layout.parse(layout).fit(below).partition == Partition.from_values(expected)


@pytest.mark.parametrize(
    ("layout", "below"),
    [
        pytest.param(DATE_COUNTRY, "PL/2024/05/06", id="other order"),
        pytest.param(DATE_COUNTRY, "2023/02/29/PL", id="no such day"),
        pytest.param(DATE_COUNTRY, "2024/13", id="no such month, though it ends early"),
        pytest.param(DATE_COUNTRY, "٢٠٢٤/05/06", id="digits that are not ASCII"),
        pytest.param(HIVE_HOURS, "dt=2024-05-06/h=24", id="no such hour"),
        pytest.param("{w:%G-W%V}", "2024-W53", id="no such week"),
        pytest.param("{d:%Y/%Y-%m-%d}", "2024/2023-05-06", id="years that differ"),
        pytest.param("{a}/{a}", "x/y", id="values that differ"),
        pytest.param(HIVE_HOURS, "_delta_log", id="another folder"),
    ],
)
def test_a_path_that_does_not_fit_gives_nothing(layout, below):
    assert Layout.parse(layout).fit(below) is None


def test_values_are_in_the_format_of_their_dimension_and_in_the_order_of_the_dimensions():
    dimensions = [Dimension.of_column("country"), Dimension(("event_date",), format="%Y%m%d")]
    layout = Layout.parse(DATE_COUNTRY, dimensions)
    partition = Partition.from_values([("country", "PL"), ("event_date", "20240506")])
    assert layout.fit("2024/05/06/PL").partition == partition


# strftime pads no year before 1000 with zeros.
TIMESTAMPS = st.datetimes(datetime(1000, 1, 1)).map(  # noqa: DTZ001  (folders have no zone)
    lambda timestamp: timestamp.replace(microsecond=0)
)
PATTERNS = {
    "%Y/%m/%d": "10",
    "%Y-%m-%d/%H": "13",
    "%Y%m%d-%H%M%S": "19",
    "%Y/%j": "10",
    "%Y/%m": "7",
    "%G/%V/%u": "10",
}


@given(TIMESTAMPS, st.sampled_from(sorted(PATTERNS)), st.text(min_size=1, max_size=5))
def test_a_partition_is_read_back_from_its_folders(timestamp, pattern, text):
    layout = Layout.parse(f"{{at:{pattern}}}/of={{name}}")
    value = timestamp.isoformat()[: int(PATTERNS[pattern])]
    below = f"{timestamp.strftime(pattern)}/of={escape(text)}"
    assert layout.fit(below).partition == Partition.from_values([("at", value), ("name", text)])


@pytest.mark.parametrize(
    ("layout", "below", "expected"),
    [
        pytest.param(
            DATE_COUNTRY,
            "2024/05/06/PL/x",
            [("event_date", "2024/05/06"), ("country", "PL")],
            id="a time of several folders",
        ),
        pytest.param(
            "year={d:%Y}/month={d:%m}",
            "year=2024/month=05",
            [("d", "2024"), ("d", "05")],
            id="several fields of one dimension",
        ),
        pytest.param("x_{a}.d/{b}", "x_1.d", [("a", "1")], id="only what is there in full"),
    ],
)
def test_the_spans_of_values_are_where_the_path_has_them(layout, below, expected):
    fit = Layout.parse(layout).fit(below)
    assert [(label, below[start:end]) for label, start, end in fit.spans] == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("raw/data", "names no field", id="no field"),
        pytest.param("{}", "names no field", id="field without a name"),
        pytest.param("{a}/{b", "brace is not closed", id="open brace"),
        pytest.param("a//{b}", "empty folder", id="empty folder"),
        pytest.param("{a}{b}", "two fields of text are adjacent", id="adjacent fields"),
        pytest.param("{a:%F}", "%F in '%F' cannot be used", id="directive"),
        pytest.param("{a:%}", "cannot be used", id="half a directive"),
        pytest.param("{a:yyyy-MM-dd}", "no directive such as %Y", id="Java's pattern"),
        pytest.param("{a:%V}", "%V of a says nothing without %G", id="week of no year"),
        pytest.param("{a:%Y}/{a}", "a time in one place and text in another", id="time and text"),
    ],
)
def test_a_wrong_layout_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        Layout.parse(text)


def test_a_format_that_needs_more_than_the_layout_gives_is_refused():
    with pytest.raises(ValueError, match="needs %d, which the layout does not give"):
        Layout.parse("{m:%Y/%m}", [Dimension(("m",), format="%Y%m%d")])


def test_without_a_layout_the_folders_are_as_hive_has_them():
    spec = PartitionSpec((Dimension.of_column("dt"),))
    fit = spec.fit("dt=2024-05-06/r=a%2Fb/part-0.parquet")
    assert fit.partition == Partition.from_values([("dt", "2024-05-06"), ("r", "a/b")])
    assert fit.spans == (("dt", 3, 13), ("r", 16, 21))
    assert hive_fit("2024-05-06") is None
    assert hive_fit("").partition == Partition()
    assert spec.begins("dt=1")
    assert not spec.begins("r=1")


def test_a_layout_recognises_its_first_folder_unless_that_may_have_any_name():
    assert Layout.parse("{d:%Y}/{r}").begins("2024")
    assert not Layout.parse("{d:%Y}/{r}").begins("orders")
    assert not Layout.parse("{r}/{d:%Y}").begins("PL")
