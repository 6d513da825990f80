"""Runs of which partitions are checked, for the model of Marquez and for a real one."""

from __future__ import annotations

from typing import Any

from airflow_provider_sparklineage.event.assertions import (
    facets_of_dataset,
    facets_of_run,
    freshness_check,
)
from airflow_provider_sparklineage.event.document import Header, empty, replaced
from airflow_provider_sparklineage.event.pipeline import adapted, event_of
from airflow_provider_sparklineage.expectations import Expectation, Kind, Side
from airflow_provider_sparklineage.lineage.dataset import LineageDataset, TaskLineage
from airflow_provider_sparklineage.lineage.observed.accesses import Subset
from airflow_provider_sparklineage.lineage.subset_report import SubsetReport
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.locations import DEFAULT_LOCATOR
from airflow_provider_sparklineage.model.partitioning import Dimension, Partition
from airflow_provider_sparklineage.model.representation import (
    DEFAULT_LIMITS,
    Adaptation,
    MismatchPolicy,
    Representation,
)
from airflow_provider_sparklineage.model.terms import Outcome, Witness
from airflow_provider_sparklineage.spark.capture.lines import ReadReport

RAW, REVENUE, REPORT = (
    DatasetName("file", f"/lake/{name}") for name in ("raw", "revenue", "report")
)
READ, WROTE = "read the expected partitions", "wrote the expected partitions"
_WARN = MismatchPolicy()
_DT = (Dimension.of_column("dt"),)


def days(*values: str) -> tuple[Partition, ...]:
    """Give the partitions of days."""
    return tuple(Partition.from_values([("dt", value)]) for value in values)


def accessed(
    name: DatasetName,
    side: Side,
    seen: tuple[str, ...] | None,
    *wanted: str,
    kind: Kind = Kind.DECLARED,
    **known: Any,
) -> LineageDataset:
    """Make a dataset of which days were accessed, and others may be expected.

    :param seen: the days; None if nobody observed them
    """
    expected = [Expectation(kind, side, name, partitions=days(*wanted), dimensions=_DT)]
    observed = {} if seen is None else {"subset": Subset(_DT, frozenset(days(*seen)))}
    dataset = LineageDataset(
        name, witness=Witness.BOTH, observed=seen is not None, **observed, **known
    )
    report = SubsetReport(expected if wanted else [], DEFAULT_LOCATOR, DEFAULT_LIMITS)
    return report.of(dataset, side)


def neutral(
    inputs: list[LineageDataset],
    outputs: list[LineageDataset],
    policy: MismatchPolicy = _WARN,
    outcome: Outcome = Outcome.COMPLETE,
    day: int = 1,
    job: str = "revenue",
) -> dict[str, Any]:
    """Make the event of a run as XCom and archive have it."""
    header = Header(
        f"00000000-0000-7000-8000-{len(job):06}{day:06}",
        "tests",
        f"shop.{job}",
        f"2024-05-{day:02}T02:00:00+00:00",
    )
    lineage = TaskLineage(outcome, tuple(inputs), tuple(outputs))
    return event_of(lineage, ReadReport(), Representation(mismatches=policy), header=header)


def freshness(dataset: DatasetName, findings: str, day: int = 1) -> dict[str, Any]:
    """Make the event of a freshness check."""
    header = Header(
        f"00000000-0000-7000-8000-999999{day:06}",
        "tests",
        "shop.fresh",
        f"2024-05-{day:02}T03:00:00+00:00",
    )
    check = freshness_check(dataset, findings, "error")
    read = {**dataset._asdict(), "facets": {}, "inputFacets": facets_of_dataset([check])}
    return replaced(
        empty(header, Outcome.FAIL if findings else Outcome.COMPLETE),
        inputs=[read],
        run_facets=facets_of_run([check]),
    )


class Runs:
    """Runs that a Marquez hears of.

    :param marquez: the model or a server
    """

    def __init__(self, marquez: Any) -> None:
        self.marquez = marquez

    def send(self, event: dict[str, Any]) -> None:
        """Send an event as it is adapted for Marquez."""
        self.marquez.receive(adapted(event, Adaptation(backend="marquez")))

    def assertions(self, name: DatasetName) -> dict[str, bool]:
        """Give what a dataset's page shows of its quality."""
        shown: dict[str, bool] = self.marquez.dataset(*name).assertions
        return shown


def a_wrong_partition_is_red_until_a_right_one_is_written(runs: Runs) -> None:
    """Write a wrong day, then the right one."""
    runs.send(neutral([], [accessed(REVENUE, Side.WRITE, ("05",), "06")]))
    assert runs.assertions(REVENUE) == {WROTE: False}
    runs.send(neutral([], [accessed(REVENUE, Side.WRITE, ("07",), "07")], day=2))
    assert runs.assertions(REVENUE) == {WROTE: True}


def a_write_without_a_check_is_neither(runs: Runs) -> None:
    """Write a right day, then a day of which nothing is expected."""
    runs.send(neutral([], [accessed(REVENUE, Side.WRITE, ("05",), "05")]))
    runs.send(neutral([], [accessed(REVENUE, Side.WRITE, ("06",))], day=2))
    assert runs.assertions(REVENUE) == {}


def a_wrong_read_is_red_at_the_output_and_hides_nothing_at_the_input(runs: Runs) -> None:
    """Read a wrong day of a table that was rightly written."""
    runs.send(neutral([], [accessed(RAW, Side.WRITE, ("05",), "05")], job="raw"))
    read = accessed(RAW, Side.READ, ("04",), "05")
    runs.send(neutral([read], [accessed(REVENUE, Side.WRITE, ("05",), "05")], day=2))
    assert runs.assertions(RAW) == {WROTE: True}
    assert runs.assertions(REVENUE) == {WROTE: True, f"{READ} of /lake/raw": False}


def a_reader_without_outputs_hides_nothing(runs: Runs) -> None:
    """Read a right day of a table that was wrongly written, and write nothing."""
    runs.send(neutral([], [accessed(RAW, Side.WRITE, ("04",), "05")], job="raw"))
    runs.send(neutral([accessed(RAW, Side.READ, ("05",), "05")], [], day=2))
    assert runs.assertions(RAW) == {WROTE: False}


def a_run_that_a_check_fails_is_no_current_version(runs: Runs) -> None:
    """Fail the task for a wrong day: Marquez keeps showing what the last success wrote."""
    policy = MismatchPolicy("fail")
    runs.send(neutral([], [accessed(REVENUE, Side.WRITE, ("05",), "05")], policy))
    wrong = [accessed(REVENUE, Side.WRITE, ("05",), "06")]
    runs.send(neutral([], wrong, policy, Outcome.FAIL, day=2))
    assert runs.assertions(REVENUE) == {WROTE: True}
    assert runs.marquez.job("tests", "shop.revenue").state == "FAILED"


def a_stale_dataset_is_red_until_it_is_written_again(runs: Runs) -> None:
    """Find a table stale, write it again, and find it up to date, which hides nothing."""
    write = [accessed(REVENUE, Side.WRITE, ("05",), "05")]
    runs.send(neutral([], write))
    runs.send(freshness(REVENUE, "dt=05 is stale"))
    assert runs.assertions(REVENUE) == {"is up to date": False}
    assert runs.marquez.texts(*REVENUE).text == "dt=05 is stale"
    runs.send(neutral([], write, day=2))
    assert runs.assertions(REVENUE) == {WROTE: True}
    before = runs.marquez.texts(*REVENUE)
    runs.send(freshness(REVENUE, "", day=2))
    assert runs.assertions(REVENUE) == {WROTE: True}
    assert runs.marquez.texts(*REVENUE) == before


CASES = (
    a_wrong_partition_is_red_until_a_right_one_is_written,
    a_write_without_a_check_is_neither,
    a_wrong_read_is_red_at_the_output_and_hides_nothing_at_the_input,
    a_reader_without_outputs_hides_nothing,
    a_run_that_a_check_fails_is_no_current_version,
    a_stale_dataset_is_red_until_it_is_written_again,
)
