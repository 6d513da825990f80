"""Checks as OpenLineage's own facets, which consumers show without knowing this package.

======================================  ==========================================================
``dataQualityAssertions`` of a dataset  the checks of it that passed or failed. Of an output it is a
                                        dataset facet; of an input it is an input facet, because it
                                        is about this run's reads, not about the dataset
``test`` of the run                     all checks, also those that could not be made (``skip``)
======================================  ==========================================================

The text of an assertion is the same in each run, so that consumers see one check with a history.
The partitions are in ``expected`` and ``actual``. A dataset has one assertion for each side and
topic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sparklineage.event import model
from airflow_provider_sparklineage.event.facets import access_text
from airflow_provider_sparklineage.lineage.partitions.comparison import PartitionStatus
from airflow_provider_sparklineage.lineage.partitions.selection import wanted
from airflow_provider_sparklineage.model.producer import facet, present
from airflow_provider_sparklineage.model.terms import Side
from airflow_provider_sparklineage.model.texts import some, truncated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from airflow_provider_sparklineage.event.document import Facets
    from airflow_provider_sparklineage.lineage.dataset import LineageDataset
    from airflow_provider_sparklineage.model.datasets import DatasetName
    from airflow_provider_sparklineage.model.representation import MismatchPolicy

_FACETS = "https://openlineage.io/spec/facets"
_ASSERTIONS = f"{_FACETS}/1-1-0/DataQualityAssertionsDatasetFacet.json"
_TEST = f"{_FACETS}/1-0-1/TestRunFacet.json"
MAX_TEXT = 200
"""The most characters of the expected, and of the actual, data in words."""


class Check(NamedTuple):
    """A check of a dataset, and its result.

    :param dataset: the name of the dataset
    :param topic: the subject of the check in one word, e.g. ``partitions``
    :param text: the passed check in words that follow the dataset's name or precede it
    :param description: a sentence that describes the check
    :param is_good: whether the check passed; None if it could not be made
    :param severity: ``error`` or ``warn``; None if a failure of the check has no consequence
    :param origin: the origin of the expectation, e.g. ``declared``; None if it has none
    """

    dataset: DatasetName
    topic: str
    text: str
    description: str
    is_good: bool | None
    expected: str
    actual: str
    severity: str | None = None
    origin: str | None = None


# --- facets ---------------------------------------------------------------------------------------


def facets_of_dataset(checks: Iterable[Check]) -> Facets:
    """Make the facet ``dataQualityAssertions`` of a dataset, by its key.

    :param checks: the checks of one dataset
    :return: {} if none of the checks passed or failed
    """
    made = [
        present({"assertion": check.text, "success": check.is_good, **_details(check)})
        for check in checks
        if check.is_good is not None
    ]
    return assertions_facet(made)


def assertions_facet(entries: list[dict[str, Any]]) -> Facets:
    """Make the facet ``dataQualityAssertions`` of its entries, by its key; {} without entries."""
    return {model.ASSERTIONS_KEY: facet(_ASSERTIONS, assertions=entries)} if entries else {}


def with_checks(facets: Facets, checks: Iterable[Check]) -> Facets:
    """Add the checks of a dataset to its facets, behind the assertions of other producers.

    :return: new facets
    """
    return facets | assertions_facet([*entries_of(facets), *entries_of(facets_of_dataset(checks))])


def entries_of(facets: Facets) -> list[dict[str, Any]]:
    """Give the entries of the facet ``dataQualityAssertions``, of any producer and any form."""
    facet = facets.get(model.ASSERTIONS_KEY)
    entries = facet.get("assertions") if isinstance(facet, dict) else None
    return (
        [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    )


def is_own(entry: Mapping[str, Any]) -> bool:
    """Whether an entry of the facet ``dataQualityAssertions`` is of this package."""
    return entry.get("assertion") in (*model.PARTITION_TEXTS.values(), *model.FRESHNESS_TEXTS)


def facets_of_run(checks: Iterable[Check]) -> Facets:
    """Make the run facet ``test`` of all checks of a run, by its key; {} if there are none."""
    tests = [
        present(
            {
                "name": about(check.text, str(check.dataset)),
                "status": _STATUSES[check.is_good],
                "type": check.topic,
                **_details(check),
            }
        )
        for check in checks
    ]
    return {model.TEST_KEY: facet(_TEST, tests=tests)} if tests else {}


_STATUSES = {True: "pass", False: "fail", None: "skip"}


def _details(check: Check) -> dict[str, Any]:
    return {
        "severity": check.severity,
        "description": check.description,
        "expected": truncated(check.expected, MAX_TEXT),
        "actual": truncated(check.actual, MAX_TEXT),
        "params": {"origin": check.origin} if check.origin else None,
    }


def about(text: str, dataset: str) -> str:
    """Add the name of a dataset to the text of an assertion on it."""
    return f"{text} of {dataset}" if text in model.PARTITION_TEXTS.values() else f"{dataset} {text}"


# --- the check of partitions ----------------------------------------------------------------------


_DESCRIPTIONS = {
    Side.READ: "The job reads the partitions of this dataset that are expected.",
    Side.WRITE: "The job writes the partitions of this dataset that are expected.",
}


def partition_checks(
    datasets: Iterable[LineageDataset],
    side: Side,
    policy: MismatchPolicy,
    hidden: Callable[[str], str] = str,
) -> dict[DatasetName, Check]:
    """Give, by dataset, the partition checks of the datasets that were read, or were written.

    A dataset of which no partitions are expected has no check, nor has one of which all writes
    failed. Dates in arguments make no check, because they can only match. A match that is not
    certain, because Spark only planned to read partitions, is no success.

    :param policy: gives the severity of a mismatch
    :param hidden: hides the literals of an expected predicate, on request
    """
    return {
        dataset.name: _partition_check(dataset, side, policy, hidden)
        for dataset in datasets
        if dataset.check.status is not PartitionStatus.UNDECLARED
        and dataset.has_certain_expectation
        and not dataset.failed
    }


def _partition_check(
    dataset: LineageDataset, side: Side, policy: MismatchPolicy, hidden: Callable[[str], str]
) -> Check:
    expected = dataset.expected
    text = wanted(expected) if expected else ""
    return Check(
        dataset.name,
        "partitions",
        model.PARTITION_TEXTS[side],
        _DESCRIPTIONS[side],
        _is_good(dataset),
        hidden(text) if expected and expected.choices else text,
        access_text(dataset, side).lstrip(", "),
        policy.severity(side, dataset.name, is_exact=dataset.is_check_exact),
        str(expected.kind) if expected else None,
    )


def _is_good(dataset: LineageDataset) -> bool | None:
    status, subset = dataset.check.status, dataset.subset
    if status.is_mismatch:
        return False
    is_certain = not dataset.planned and (subset is None or subset.exact)
    return True if status is PartitionStatus.MATCHED and is_certain else None


# --- the check of freshness -----------------------------------------------------------------------


_FRESH = "up to date"


def freshness_check(
    dataset: DatasetName, findings: str, severity: str, partitions: Sequence[str] = ()
) -> Check:
    """Give the check that partitions of a dataset are up to date.

    :param findings: the partitions that are not, with the reasons; empty if all are
    :param severity: ``error`` if they fail the task, else ``warn``
    :param partitions: the partitions that were checked; () for all
    """
    of = f" ({some(partitions, _MAX_PARTITIONS)})" if partitions else ""
    return Check(
        dataset,
        "freshness",
        model.FRESHNESS_TEXTS[bool(partitions)],
        "The partitions are up to date with the data of which they were made.",
        not findings,
        _FRESH + of,
        findings or _FRESH + of,
        severity,
    )


_MAX_PARTITIONS = 5
