"""Who saw each dataset and how much of it was accessed; of which side something is missing."""

import io

import pytest
from msgspec.structs import replace

from airflow_provider_sparklineage.cli.show import print_event
from airflow_provider_sparklineage.event.facets import MAX_DATASETS
from airflow_provider_sparklineage.event.model import CAPTURE_KEY, read_document
from airflow_provider_sparklineage.event.pipeline import event_of
from airflow_provider_sparklineage.event.steps.texts import without_credentials
from airflow_provider_sparklineage.expectations import Side
from airflow_provider_sparklineage.lineage.dataset import LineageDataset
from airflow_provider_sparklineage.lineage.merge import Outcome, TaskLineage
from airflow_provider_sparklineage.lineage.observed.accesses import Subset
from airflow_provider_sparklineage.lineage.partitions.selection import Selected
from airflow_provider_sparklineage.lineage.subset_report import SubsetReport
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode
from airflow_provider_sparklineage.model.locations import DEFAULT_LOCATOR
from airflow_provider_sparklineage.model.partitioning import Dimension, Partition
from airflow_provider_sparklineage.model.representation import DEFAULT_LIMITS
from airflow_provider_sparklineage.model.terms import Witness
from airflow_provider_sparklineage.spark.capture.lines import ReadReport
from tests.conftest import HEADER
from tests.openlineage_spec import validate_event

T = DatasetName("file", "/lake/t")
DT = (Dimension.of_column("dt"),)
OTHER_DAY = Partition.from_values([("dt", "2024-05-07")])
DAY = Partition.from_values([("dt", "2024-05-06")])


def dataset(name=T, witness=Witness.BOTH, **known):
    bare = LineageDataset(name, witness=witness, **known)
    return SubsetReport((), DEFAULT_LOCATOR, DEFAULT_LIMITS).of(bare, Side.READ)


def event(*inputs, outputs=(), degradations=()):
    lineage = TaskLineage(Outcome.COMPLETE, inputs, outputs, degradations=degradations)
    document = event_of(lineage, ReadReport(), header=HEADER)
    validate_event(document)
    return document


def capture(document):
    return document["run"]["facets"][CAPTURE_KEY]


def shown(document):
    file = io.StringIO()
    print_event(read_document(document), file)
    return file.getvalue()


ACCESSES = [
    pytest.param({"observed": True}, "all", "all of it", id="unpartitioned"),
    pytest.param(
        {"observed": True, "subset": Subset(DT, frozenset({DAY}), full=True)},
        "all",
        "all of it",
        id="read in full",
    ),
    pytest.param(
        {"observed": True, "subset": Subset(DT, frozenset({DAY}))},
        "part",
        "dt=2024-05-06",
        id="some partitions",
    ),
    pytest.param(
        {"locations": frozenset({"/lake/t/x"})}, "part", "/lake/t/x", id="locations alone"
    ),
    pytest.param(
        {"observed": True, "subset": Subset(DT, frozenset())},
        "none",
        "no partition",
        id="no partition",
    ),
    pytest.param({"observed": True, "is_empty": True}, "none", "nothing of it", id="no data"),
    pytest.param({}, "unknown", "partitions not known", id="nobody knows"),
]


@pytest.mark.parametrize(("known", "accessed", "text"), ACCESSES)
def test_how_much_was_accessed_is_a_word_for_programs_and_a_text_for_people(known, accessed, text):
    document = event(
        dataset(**known),
        outputs=[dataset(DatasetName("file", "/o"), subset=Subset(DT, frozenset()), observed=True)],
    )
    [_, entry] = capture(document)["datasets"]
    assert entry == {
        "dataset": {"namespace": "file", "name": "/lake/t"},
        "side": "read",
        "witness": "both",
        "accessed": accessed,
    }
    [read] = document["run"]["facets"]["sparkLineage_partitionCheck"]["reads"]
    assert read["accessed"] == accessed
    assert text.removeprefix("/lake/t/") in shown(document)


def test_an_unpartitioned_output_is_not_called_all_of_it():
    """Rows may have been added to those of others."""
    document = event(dataset(observed=True), outputs=[dataset(observed=True)])
    read, written = shown(document).split("Outputs")
    assert "all of it" in read
    assert "unpartitioned" in written
    assert "all of it" not in written


def test_a_part_that_is_not_described_is_not_all():
    """There may have been no time to describe it."""
    known = dataset(observed=True, subset=Subset(DT, frozenset({DAY})))
    [entry] = capture(event(replace(known, selected=Selected())))["datasets"]
    assert entry["accessed"] == "part"


@pytest.mark.parametrize(
    ("witness", "mark"),
    [
        (Witness.LISTENER, "not seen by the observer"),
        (Witness.OBSERVER, "seen by the observer alone"),
        (Witness.DECLARED, "declared, not reported"),
        (Witness.BOTH, ""),
    ],
)
def test_a_dataset_is_marked_where_not_both_saw_it(witness, mark):
    other = dataset(DatasetName("file", "/lake/other"), observed=True)
    document = event(dataset(witness=witness, observed=True), other)
    assert [e["witness"] for e in capture(document)["datasets"]] == [str(witness), "both"]
    assert (mark or "all of it\n") in shown(document).replace(" \n", "\n")


def test_without_an_observer_no_dataset_is_marked():
    assert "observer" not in shown(event(dataset(witness=Witness.LISTENER)))


def test_partitions_that_were_only_planned_are_counted_as_such():
    subset = Subset(DT, frozenset({DAY, OTHER_DAY}), planned=frozenset({DAY}))
    document = event(dataset(observed=True, subset=subset))
    [entry] = capture(document)["datasets"]
    assert (entry["accessed"], entry["planned"]) == ("part", 1)
    assert "dt=2024-05-06, dt=2024-05-07; 1 only planned" in shown(document)


def test_a_failed_write_is_not_called_an_output_that_was_written():
    report = SubsetReport((), DEFAULT_LOCATOR, DEFAULT_LIMITS)
    bare = LineageDataset(T, witness=Witness.LISTENER)
    failed = report.of(bare, Side.WRITE, has_failed=True)
    document = event(outputs=[failed])
    [entry] = capture(document)["datasets"]
    assert (entry["accessed"], entry["failed"]) == ("unknown", True)
    assert "was to be written, which failed" in shown(document)


def test_what_stands_in_for_the_last_run_is_nobodys_word():
    assert "datasets" not in capture(event(LineageDataset(T)))


def test_of_many_datasets_the_outputs_and_the_first_inputs_are_listed():
    names = [DatasetName("file", f"/lake/{n:04}") for n in range(MAX_DATASETS + 5)]
    facet = capture(event(*map(dataset, names), outputs=[dataset()]))
    assert len(facet["datasets"]) == MAX_DATASETS
    assert [e["side"] for e in facet["datasets"][:2]] == ["write", "read"]
    assert facet["datasetCounts"] == {"read": len(names), "write": 1}


def test_a_degradation_names_its_side():
    unknown = DegradationCode.PARTITIONS_UNKNOWN
    entries = [
        Degradation(unknown, "Nobody knows.", T, side=Side.READ),
        Degradation(unknown, "Nobody knows.", T),
    ]
    found = capture(event(degradations=entries))["degradations"]
    assert [entry.get("side") for entry in found] == ["read", None]


def test_names_in_the_list_lose_their_credentials_too():
    secret = DatasetName("s3://key:hunter2@lake", "t")
    assert "hunter2" not in str(without_credentials(event(dataset(secret))))


def test_maintenance_is_in_the_facet_and_shown():
    lineage = TaskLineage(Outcome.COMPLETE, maintenance=((T, "OPTIMIZE"),))
    document = event_of(lineage, ReadReport(), header=HEADER)
    validate_event(document)
    [entry] = capture(document)["maintenance"]
    assert entry == {"dataset": T._asdict(), "operation": "OPTIMIZE"}
    assert "Maintained (neither read nor written)\n  /lake/t  OPTIMIZE" in shown(document)


def test_without_maintenance_there_is_no_list_of_it():
    assert "maintenance" not in capture(event())
