"""Partitions are shown as the folders of their dataset are named."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sparklineage.history.facts.cells import cell_of_text
from airflow_provider_sparklineage.history.queries.datasets import Folders
from airflow_provider_sparklineage.history.queries.patterns.axes import FORMATS

NULL = "__HIVE_DEFAULT_PARTITION__"


def folders(*partitions):
    return Folders(
        {"cell": cell.cell, "partition": cell.partition} for cell in map(cell_of_text, partitions)
    )


def shown(known, unknown):
    """Give the folders of an unknown partition, after those that are known."""
    values = folders(*known).of(cell_of_text(unknown).cell)
    return "/".join(f"{label}={value}" for label, value in values.items())


@pytest.mark.parametrize(
    ("known", "unknown"),
    [
        pytest.param(["dt=2024-10-15/hour=03"], "dt=2024-10-16/hour=07", id="leading zeros"),
        pytest.param(["dt=2024-10-15/hour=3"], "dt=2024-10-16/hour=7", id="no leading zeros"),
        pytest.param(["dt=2024-10-15/hour=13"], "dt=2024-10-16/hour=7", id="no zeros are known"),
        pytest.param(["dt=2024-10-15/hour=003"], "dt=2024-10-16/hour=010", id="three digits"),
        pytest.param(["dt=20241015"], "dt=20241016", id="compact dates"),
        pytest.param(["m=202410"], "m=202411", id="compact months"),
        pytest.param(["ts=2024-10-15-03"], "ts=2024-10-15-04", id="a day and an hour"),
        pytest.param(["region=eu/dt=2024-10-15"], "region=us/dt=2024-10-16", id="the order"),
        pytest.param(["region=eu/dt=20241015"], "dt=20241016", id="some of the dimensions"),
        pytest.param([f"dt={NULL}", "dt=20241015"], "dt=20241016", id="null among dates"),
        pytest.param(["n=05", "n=17"], f"n={NULL}", id="null"),
        pytest.param(["n=5", "n=007", "n=008"], "n=009", id="most have the form"),
        pytest.param(["region=a=b"], "region=c=d", id="an equals sign in a value"),
        pytest.param([], "dt=2024-10-15/region=eu", id="nothing is known"),
    ],
)
def test_an_unknown_partition_has_the_form_of_the_known_ones(known, unknown):
    """A gap is named as its folder would be."""
    assert shown(known, unknown) == unknown


def test_a_known_partition_is_as_it_was_written():
    """Also where its form is not that of most others."""
    known = ["dt=20241015", "dt=20241016", "dt=2024-10-17"]
    assert [shown(known, one) for one in known] == known


def test_a_partition_that_is_written_in_another_form_is_as_it_was_last_written():
    """The latest row is the last."""
    assert shown(["dt=20241015", "dt=2024-10-15"], "dt=20241015") == "dt=2024-10-15"


@given(
    st.sampled_from([form for form, unit in FORMATS.items() if unit in ("month", "day", "hour")]),
    st.dates(date(2001, 1, 1), date(2099, 12, 31)),
    st.integers(1, 60),
)
def test_each_format_of_times_is_learned(form, first, days):
    """Three known times are enough."""
    start = datetime(first.year, first.month, first.day, 7)  # noqa: DTZ001  (as in folders)
    texts = [f"dt={start + timedelta(n):{form}}".replace("/", "%2F") for n in range(3)]
    later = f"dt={start + timedelta(days):{form}}"
    assert shown(texts, later.replace("/", "%2F")) == later
