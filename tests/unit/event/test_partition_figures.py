"""Rows and bytes of written partitions, from the observer's records to each reader of the event."""

from __future__ import annotations

import io
import json
from pathlib import Path

import jsonschema
import msgspec
import pytest

import airflow_provider_sparklineage
from airflow_provider_sparklineage.cli import show
from airflow_provider_sparklineage.event import model
from airflow_provider_sparklineage.event.pipeline import event_of
from airflow_provider_sparklineage.event.steps.fitting import KINDS
from airflow_provider_sparklineage.expectations import Side
from airflow_provider_sparklineage.lineage.application.accesses import NOT_COUNTED, Figures
from airflow_provider_sparklineage.lineage.dataset import (
    LineageDataset,
    TaskLineage,
    with_statistics,
)
from airflow_provider_sparklineage.lineage.observed.accesses import Subset
from airflow_provider_sparklineage.lineage.observed.places import FolderPartitions
from airflow_provider_sparklineage.lineage.subset_report import SubsetReport
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.locations import DEFAULT_LOCATOR
from airflow_provider_sparklineage.model.partitioning import Dimension, Partition
from airflow_provider_sparklineage.model.representation import Limits
from airflow_provider_sparklineage.model.terms import Outcome, Witness
from airflow_provider_sparklineage.spark.capture.lines import ReadReport
from airflow_provider_sparklineage.spark.capture.observations import Layout, RecordDimension
from tests.conftest import HEADER
from tests.openlineage_spec import validate_event

FACETS = Path(airflow_provider_sparklineage.__file__).parent / "event" / "schemas"
SCHEMA = json.loads((FACETS / "SparkLineagePartitionsDatasetFacet.json").read_text())
T = DatasetName("s3://lake", "sales")
DT = (Dimension.of_column("dt"),)


def day(number):
    return Partition.from_values([("dt", f"{number:04}")])


def event(figures, most=100):
    """Make the event of a write of days; the figures of each are in their order."""
    by_day = {day(number): one for number, one in enumerate(figures)}
    written = LineageDataset(
        T,
        subset=Subset(DT, frozenset(by_day)),
        observed=True,
        figures=by_day,
        witness=Witness.BOTH,
    )
    report = SubsetReport((), DEFAULT_LOCATOR, Limits(partitions=most))
    output = report.of(with_statistics(written), Side.WRITE)
    lineage = TaskLineage(Outcome.COMPLETE, outputs=(output,))
    return event_of(lineage, ReadReport(), header=HEADER)


def facet_of(document):
    return document["outputs"][0]["facets"]["sparkLineage_partitions"]


# --- records to partitions ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layouts", "expected"),
    [
        pytest.param([((2, 3), (20, 30))], {0: (2, 20), 1: (3, 30)}, id="both"),
        pytest.param([(None, (20, 30))], {0: (None, 20), 1: (None, 30)}, id="bytes alone"),
        pytest.param([((2, None), None)], {0: (2, None), 1: (None, None)}, id="some rows alone"),
        pytest.param([(None, None)], None, id="neither"),
        pytest.param([((2, 3), (20, 30)), (None, None)], None, id="one layout without"),
        pytest.param([((2, 3), (20, 30))] * 2, {0: (4, 40), 1: (6, 60)}, id="two layouts"),
        pytest.param([((2,), (20,))], {0: (2, 20)}, id="a damaged record"),
        pytest.param([], {}, id="nothing was added"),
    ],
)
def test_numbers_of_layouts_are_those_of_their_partitions(layouts, expected):
    dimension, values = [RecordDimension("dt")], (("0000",), ("0001",))
    made = [Layout("file:/lake/sales", dimension, values, *numbers) for numbers in layouts]
    found = FolderPartitions(DEFAULT_LOCATOR).figures(made)
    known = None if found is None else {int(one.as_dict()["dt"]): f for one, f in found.items()}
    assert known == expected


# --- partitions to the event ----------------------------------------------------------------------


def test_the_facet_has_the_numbers_in_the_order_of_the_named_partitions():
    document = event([Figures(n, n * 10) for n in range(50)])
    validate_event(document)
    jsonschema.validate(facet_of(document), SCHEMA)
    assert facet_of(document)["rows"] == [*range(50)]
    assert facet_of(document)["bytes"] == [*range(0, 500, 10)]
    named = document["outputs"][0]["outputFacets"]["subset"]["outputCondition"]["partitions"]
    assert [one["dimensions"]["dt"] for one in named] == [f"{n:04}" for n in range(50)]
    statistics = document["outputs"][0]["outputFacets"]["outputStatistics"]
    assert (statistics["rowCount"], statistics["size"]) == (1225, 12250)


def test_numbers_that_are_not_known_keep_their_places_and_make_no_sum():
    document = event([Figures(1, 10), Figures(None, 20), NOT_COUNTED, Figures(4, 40)])
    jsonschema.validate(facet_of(document), SCHEMA)
    assert facet_of(document)["rows"] == [1, -1, -1, 4]
    assert facet_of(document)["bytes"] == [10, 20, -1, 40]
    assert "outputStatistics" not in document["outputs"][0]["outputFacets"]
    [output] = model.read_document(document).outputs
    assert output.figures == [(1, 10), (None, 20), (None, None), (4, 40)]


def test_where_nothing_is_known_or_named_there_are_no_lists():
    for document in (event([NOT_COUNTED] * 3), event([Figures(1, 10)] * 3, most=2)):
        assert facet_of(document).keys().isdisjoint({"rows", "bytes"})
    assert document["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] == 3


REPORTED = {"outputStatistics": msgspec.Raw(b'{"rowCount":7,"size":8,"fileCount":9}')}


def test_the_statistics_of_the_listener_stay():
    made = LineageDataset(T, side_facets=REPORTED, figures={day(1): Figures(1, 10)})
    assert with_statistics(made) is made


def test_lists_are_dropped_together_where_an_event_is_too_large():
    [kind] = [one for one in KINDS if "rows and bytes" in one.what]
    facet = facet_of(event([Figures(1, 10)] * 3))
    left, count = kind.reduced(facet)
    assert (left, count) == ({k: v for k, v in facet.items() if k not in ("rows", "bytes")}, 2)
    assert kind.reduced(left) == (left, 0)


# --- the event to its readers ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "sizes", "count"),
    [([1], [2], 2), ([1, 2], [3], 2), ([1], [2], 0), (None, None, 1), ([], [], 1)],
)
def test_lists_of_another_length_than_the_partitions_say_nothing(rows, sizes, count):
    assert model.Partitions(rows=rows, sizes=sizes).figures(count) in ([], [(None, None)])


@pytest.mark.parametrize(
    ("figures", "text"),
    [
        ([Figures(5, 1900)], "dt=0000 (5 rows, 1.9 kB)"),
        ([Figures(5, 10), Figures(None, 1)], "dt=0000 (5 rows, 10 bytes), dt=0001 (1 byte)"),
        ([Figures(1200 + n, 10**9) for n in range(4)], "each 1,200 … 1,203 rows, 1.0 GB"),
    ],
)
def test_show_prints_rows_and_bytes(figures, text):
    out = io.StringIO()
    document = model.read_document(event(figures))
    show.print_event(document, out)
    assert text in " ".join(out.getvalue().split())
