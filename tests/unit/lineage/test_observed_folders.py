"""Layouts of the observer as partitions: as many objects as there are partitions, and no more."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sparklineage.lineage.observed.places import FolderPartitions
from airflow_provider_sparklineage.model.allowance import Allowance, SpentError, Stage
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.locations import DEFAULT_LOCATOR
from airflow_provider_sparklineage.model.partitioning import NULL, Dimension, Partition
from airflow_provider_sparklineage.spark.capture.observations import Layout, RecordDimension

SALES = DatasetName("file", "/lake/sales")
BASES = {
    "file:/lake/sales": (),
    "file:///lake/sales/": (),
    "file:/lake/sales/dt=1": (("dt", "1"),),
    "file:/lake/sales/dt=1/region=a%252Fb": (("dt", "1"), ("region", "a%2Fb")),
}
values = st.sampled_from(["1", "2", "", "a/b", None])


@st.composite
def layouts(draw):
    names = draw(st.lists(st.sampled_from(["dt", "region", "hour"]), unique=True))
    own = [RecordDimension(name, type=draw(st.sampled_from(["", "date"]))) for name in names]
    # Of a damaged record there may be fewer values than dimensions, or more.
    listed = st.lists(st.lists(values, max_size=3).map(tuple), max_size=4).map(tuple)
    return Layout(draw(st.sampled_from(sorted(BASES))), own, draw(listed))


def partitions_of(layout):
    """Make the partitions of a layout one by one."""
    labels = [dimension.field for dimension in layout.dimensions]
    made = set()
    for row in layout.partitions:
        known = [NULL if value is None else value for value in row]
        made.add(Partition((*BASES[layout.base], *zip(labels, known, strict=False))))
    return made


@given(st.lists(st.lists(layouts(), max_size=3), max_size=4))
def test_each_list_gives_its_partitions_whatever_was_seen_before(each):
    folders = FolderPartitions(DEFAULT_LOCATOR)
    for one in each:
        dimensions, found = folders.of(one, SALES)
        assert found == set().union(*map(partitions_of, one))
        assert set(dimensions) == {
            Dimension.of_column(name)
            for layout in one
            for name in (*dict(BASES[layout.base]), *(d.field for d in layout.dimensions))
        }


def of_days(*days, base="file:/lake/sales"):
    return Layout(base, [RecordDimension("dt")], tuple((day,) for day in days))


def test_equal_lists_are_one_set_and_equal_partitions_one_object():
    folders = FolderPartitions(DEFAULT_LOCATOR)
    first = folders.of([of_days("1", "2", None)], SALES)[1]
    again = folders.of([of_days("1", "2", None, base="file:///lake/sales")], SALES)[1]
    more = folders.of([of_days("2", None, "3"), of_days("1")], SALES)[1]
    assert first is again
    assert {id(partition) for partition in first} < {id(partition) for partition in more}


def test_making_partitions_is_cut_when_there_is_no_time_left():
    days = [str(n) for n in range(10_000)]
    looks = iter([60.0, 60.0, 60.0])
    allowance = Allowance(lambda: next(looks, 0.0))
    folders = FolderPartitions(DEFAULT_LOCATOR, partial(allowance.work, Stage.OBSERVATIONS))
    with pytest.raises(SpentError):
        folders.of([of_days(*days)], SALES)
    assert next(looks, None) is None
