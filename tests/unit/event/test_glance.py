"""A line for each dataset at the top of the partition check, where backends show it."""

from __future__ import annotations

import pytest

from airflow_provider_sparklineage.event import openlineage
from airflow_provider_sparklineage.event.facets import MAX_LINES, MORE_KEY
from airflow_provider_sparklineage.event.pipeline import events_of
from airflow_provider_sparklineage.expectations import Side
from airflow_provider_sparklineage.lineage.merge import LineageDataset, Outcome, TaskLineage
from airflow_provider_sparklineage.lineage.observed.accesses import Subset
from airflow_provider_sparklineage.lineage.subset_report import SubsetReport
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.locations import DEFAULT_LOCATOR
from airflow_provider_sparklineage.model.partitioning import Dimension, Partition
from airflow_provider_sparklineage.model.representation import DEFAULT_LIMITS, Adaptation
from airflow_provider_sparklineage.model.terms import Witness
from airflow_provider_sparklineage.spark.capture.lines import ReadReport
from tests.conftest import HEADER
from tests.openlineage_spec import validate_event

MARQUEZ = Adaptation(backend="marquez")

DT = (Dimension.of_column("dt"),)


def dataset(name, day=None, namespace="file", **known):
    known = {"witness": Witness.BOTH} | known
    if day is not None:
        known |= {"observed": True, "subset": Subset(DT, {Partition.from_values([("dt", day)])})}
    return LineageDataset(DatasetName(namespace, name), **known)


def task(inputs, outputs):
    report = SubsetReport((), DEFAULT_LOCATOR, DEFAULT_LIMITS)
    read = tuple(report.of(d, Side.READ) for d in inputs)
    return TaskLineage(Outcome.COMPLETE, read, tuple(report.of(d, Side.WRITE) for d in outputs))


def lines(inputs=(), outputs=(), how=MARQUEZ):
    lineage = task(inputs, outputs)
    event = events_of(lineage, how, ReadReport(), header=HEADER).adapted
    validate_event(event)
    check = event["run"]["facets"]["sparkLineage_partitionCheck"]
    return {key: text for key, text in check.items() if " " in key}


def test_each_dataset_has_a_line_and_outputs_come_first():
    found = lines([dataset("/a/raw", "1")], [dataset("/a/out", "2"), dataset("/a/log")])
    assert list(found.items()) == [
        ("wrote out", "dt=2"),
        ("wrote log", "partitions not known"),
        ("read raw", "dt=1"),
    ]


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({"failed": True}, ("was to write out", "which failed")),
        ({"witness": Witness.DECLARED}, ("declared to write out", "partitions not known")),
        ({"witness": None}, ("last known to write out", "partitions not known")),
    ],
    ids=["failed", "declared", "of the last run"],
)
def test_what_was_not_written_has_a_line_that_shows_it(more, line):
    found = lines([dataset("/raw", "1")], [dataset("/out", **more)])
    assert next(iter(found.items())) == line


def test_lines_have_as_much_of_a_name_as_no_other_dataset_shares():
    found = lines([dataset("/a/t", "1"), dataset("/b/t", "2")], [dataset("/a/t", "3")])
    assert found == {"wrote a/t": "dt=3", "read a/t": "dt=1", "read b/t": "dt=2"}


def test_more_than_there_is_room_for_are_counted():
    found = lines([dataset(f"/in{n}", str(n)) for n in range(30)], [dataset("/out", "1")])
    assert len(found) == MAX_LINES + 1
    assert found[MORE_KEY] == "11 datasets, in reads and writes"
    assert "wrote out" in found


def test_credentials_are_in_no_key():
    found = lines([], [dataset("t", "1", "https://user:hunter2@host")])
    assert found == {"wrote t": "dt=1"}
    both = [dataset("t", "1", f"https://user:hunter2@host{n}") for n in range(2)]
    assert list(lines([], both)) == ["wrote host0/t", "wrote host1/t"]


def test_names_are_those_that_the_backend_holds():
    both = [dataset("t", "1", "kafka://a,b"), dataset("t", "2", "kafka://a,c")]
    assert list(lines([], both)) == ["wrote a_b/t", "wrote a_c/t"]


def test_airflow_is_handed_the_lines_as_they_are():
    made = events_of(task((), [dataset("/out", "1")]), MARQUEZ, ReadReport(), header=HEADER)
    parts = openlineage.parts(made.adapted)
    facet = parts.run_facets["sparkLineage_partitionCheck"]
    assert vars(facet)["wrote out"] == "dt=1"
    assert "wrote out" in facet.skip_redact
