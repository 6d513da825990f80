"""A write whose partitions nobody knows: each reader of events says so, and none takes it for all.

The table below has each module that reads how much of a dataset was accessed. A new module of that
kind fails a test here until the table has it, with the reader that is asked.
"""

from __future__ import annotations

import io
import re
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

import airflow_provider_sparklineage
from airflow_provider_sparklineage.cli import show as cli_show
from airflow_provider_sparklineage.datahub.conversion import proposals
from airflow_provider_sparklineage.event import model
from airflow_provider_sparklineage.event.descriptions import Descriptions
from airflow_provider_sparklineage.event.pipeline import event_of
from airflow_provider_sparklineage.expectations import Kind, Side
from airflow_provider_sparklineage.history.engines.duckdb import History
from airflow_provider_sparklineage.history.facts.accesses import accesses, reporter
from airflow_provider_sparklineage.history.queries.gaps import completeness, gaps
from airflow_provider_sparklineage.history.queries.trace import trace
from airflow_provider_sparklineage.history.store import Store
from airflow_provider_sparklineage.lineage.dataset import LineageDataset, TaskLineage
from airflow_provider_sparklineage.lineage.observed.accesses import Subset
from airflow_provider_sparklineage.lineage.partitions.comparison import (
    PartitionStatus,
    Reconciliation,
)
from airflow_provider_sparklineage.lineage.partitions.expected import Expected
from airflow_provider_sparklineage.lineage.subset_report import SubsetReport
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.locations import DEFAULT_LOCATOR
from airflow_provider_sparklineage.model.partitioning import Dimension, Partition
from airflow_provider_sparklineage.model.representation import DEFAULT_LIMITS
from airflow_provider_sparklineage.model.terms import Outcome, Witness
from airflow_provider_sparklineage.operators import freshness_check, partition_check
from airflow_provider_sparklineage.plugins import page, task_lineage
from airflow_provider_sparklineage.spark.capture.lines import ReadReport
from tests.conftest import HEADER
from tests.unit.history import worlds

PACKAGE = Path(airflow_provider_sparklineage.__file__).parent
TEXT = "partitions not known"
DT = (Dimension.of_column("dt"),)
DAY = frozenset({Partition.from_values([("dt", "1")])})
SALES = DatasetName("s3://lake", "sales")
LOG = DatasetName("s3://lake", "log")


def lineage():
    """Make the lineage of a run that wrote a partition as declared, and unknown ones elsewhere."""
    report = SubsetReport((), DEFAULT_LOCATOR, DEFAULT_LIMITS)
    known = LineageDataset(SALES, witness=Witness.BOTH, observed=True, subset=Subset(DT, DAY))
    rows = msgspec.Raw(b'{"rowCount": 7}')
    change = msgspec.Raw(b'{"lifecycleStateChange": "OVERWRITE"}')
    unknown = LineageDataset(
        LOG, {"lifecycleStateChange": change}, {"outputStatistics": rows}, witness=Witness.LISTENER
    )
    known, unknown = (report.of(one, Side.WRITE) for one in (known, unknown))
    known = replace(
        known, check=Reconciliation(PartitionStatus.MATCHED), expected=Expected(Kind.DECLARED, DAY)
    )
    return TaskLineage(Outcome.COMPLETE, (), (known, unknown))


@pytest.fixture(scope="module")
def event():
    return event_of(lineage(), ReadReport(), header=HEADER)


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    """Build a history in which dt=1 was written, and later something unknown."""
    folder = str(tmp_path_factory.mktemp("history"))
    known = worlds.event("a", worlds.at(1), worlds.write("dt=1"), dag_id="dag")
    unknown = worlds.write(extent="unknown", mode="overwrite", name="log")
    both = worlds.event(
        "b", worlds.at(2), worlds.write(extent="unknown"), unknown, started=worlds.at(1)
    )
    store = Store(folder)
    worlds.add_facts(store, worlds.lines([known, both]))
    with History(Store.open(folder)) as opened:
        yield opened


def the_check(event, history):
    del history
    check = event["run"]["facets"][model.CHECK_KEY]
    assert check["wrote log"] == TEXT
    assert TEXT in check["summary"]
    assert [entry["status"] for entry in check["writes"]] == ["matched", "undeclared"]
    assert check["status"] == "unobserved"  # nobody knows if the run wrote only as expected


def descriptions(event, history):
    del history
    found = Descriptions(event)
    assert f"log ({TEXT})" in found.of_run()
    assert TEXT in found.of_datasets()[Side.WRITE, LOG].text


def show(event, history):
    del history
    printed = io.StringIO()
    cli_show.print_event(model.read_document(event), printed)
    cli_show.print_run(model.read_document(event), printed)
    assert printed.getvalue().count(TEXT) == 2


def datahub(event, history):
    del history
    found = [one for one in proposals(event) if "/log," in str(one.urn) + str(one.aspect)]
    [operation] = [one.aspect for one in found if one.aspect_name == "operation"]
    assert operation["partitionSpec"] == {"type": "QUERY", "partition": TEXT}
    [outputs] = [one.aspect for one in found if one.aspect_name == "dataProcessInstanceOutput"]
    [edge] = [e for e in outputs["outputEdges"] if "/log," in e["destinationUrn"]]
    assert edge["properties"]["partitions"] == TEXT
    assert not [one for one in found if one.aspect_name in ("datasetProfile", "assertionRunEvent")]


def datahub_run(event, history):
    del history
    [run] = [
        one.aspect["customProperties"]
        for one in proposals(event)
        if one.aspect_name == "dataProcessInstanceProperties"
    ]
    assert run["wrote log"] == TEXT
    assert run["partitions"] == "unobserved"


def tab(event, history):
    del event, history
    model = page.STATIC.with_name("ui") / "src" / "task" / "model.ts"
    assert f'["unknown", "{TEXT}"]' in model.read_text()


def strip_of_other_runs(event, history):
    del history
    values = task_lineage._DateValues()
    values.add(event)
    assert (values.runs, values.unknown) == (1, 1)


def follow_up(event, history):
    del event, history
    known, unknown = partition_check.checks(lineage())
    assert (known.is_exact, unknown.is_exact) == (True, False)


def facts(event, history):
    del history
    read = model.read_document(event)
    found = accesses(read, reporter(read))
    assert [(one.name, one.extent) for one in found] == [
        ("sales", "partition"),
        ("log", "unknown"),
    ]


def versions(event, history):
    del event
    rows = history.rows("SELECT extent, valid_to, is_certain FROM changes WHERE name = 'orders'")
    assert {(row["extent"], row["is_certain"]) for row in rows} == {
        ("partition", False),
        ("unknown", False),
    }
    assert all(row["valid_to"] is None or row["extent"] == "unknown" for row in rows)


def questions(event, history):
    del event
    orders = DatasetName("ns", "orders")
    assert not any(hop.is_certain for hop in trace(history, orders, "dt=1"))
    assert gaps(history, orders) == []
    assert "unknown_part" in {one.reason for one in completeness(history, orders).unjudged}


def freshness(event, history):
    del event
    sentences = freshness_check._of_runs(history, DatasetName("ns", "log"), [{"dt": "1"}])
    assert list(sentences) == ["nobody is known to have written dt=1"]


READERS = {
    show: {"cli/show.py"},
    datahub: {"datahub/partitions.py"},
    datahub_run: {"datahub/runs.py"},
    descriptions: {"event/descriptions.py"},
    the_check: {"event/facets.py", "event/model.py"},
    facts: {"history/facts/accesses.py", "history/facts/line.py"},
    versions: {
        "history/tables.py",
        "plugins/history/answers.py",
        "plugins/history/health.py",
        *(
            f"history/steps/{step}.sql"
            for step in (
                *("accesses", "beyond", "bindings", "bindings_by_run", "changes"),
                *("changes_by_run", "ranged", "timeline", "writes"),
            )
        ),
    },
    questions: {
        f"history/queries/{query}.py"
        for query in (
            *(
                "datasets",
                "drift",
                "failed_writes",
                "gaps",
                "impact",
                "plan",
                "recorded",
                "schedule",
                "sql",
                "stale",
                "trace",
                "unjudged",
                "unwritten",
            ),
            *("patterns/__init__", "patterns/observed"),
        )
    },
    freshness: {"operators/freshness_check.py"},
    follow_up: {"operators/partition_check.py"},
    tab: {f"plugins/ui/src/task/{file}" for file in ("model.ts", "Partitions.tsx", "squares.ts")},
    strip_of_other_runs: {"plugins/task_lineage.py"},
}
OTHERS = {
    "history/engines/affected.py": "finds the datasets whose rows are all made again",
    "cli/schedule.py": "compares what is known; the query leaves out what is not",
    "cli/schemas.py": "prints the schemas of facets",
    "history/queries/patterns/timetable.py": "prints rules that were learned from what is known",
    "event/stored.py": "passes whole facets on",
}


@pytest.mark.parametrize("reader", READERS, ids=lambda of: of.__name__)
def test_a_reader_says_that_it_is_not_known(event, history, reader):
    reader(event, history)


_READS = re.compile(r"\.(accessed|observed|how\(side)\b|subset\.output\b|\bextent\b|\baccessed[,)]")


def test_the_table_has_all_that_read_how_much_was_accessed():
    folders = ("cli", "datahub", "event", "history", "operators", "plugins")
    files = [
        file
        for folder in folders
        for file in (PACKAGE / folder).rglob("*")
        if file.suffix in (".py", ".sql", ".ts", ".tsx") and "node_modules" not in file.parts
    ]
    found = {
        str(file.relative_to(PACKAGE)) for file in files if _READS.search(file.read_text("utf-8"))
    }
    assert found == set().union(*READERS.values(), OTHERS)
