"""Convert checks of datasets to DataHub's assertions, each with its result in this run.

The assertions are of the type ``CUSTOM``, the type for external tools (``DATASET`` is deprecated),
and have only fields that all servers with that type know: a server drops a field that it does not
know. DataHub stores a result by its time, assertion and ``messageId``, so that sending a result
again changes nothing.
"""

from __future__ import annotations

import json
from collections import Counter
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.datahub import naming, partitions
from airflow_provider_sparklineage.datahub.proposals import Json, Proposal, plain, stored
from airflow_provider_sparklineage.datahub.subject import task_instance_page
from airflow_provider_sparklineage.event import model
from airflow_provider_sparklineage.model.credentials import scrub_name
from airflow_provider_sparklineage.model.terms import Side

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from airflow_provider_sparklineage.datahub.subject import Subject


class Check(NamedTuple):
    """A check of a dataset.

    :param dataset: URN of the dataset
    :param key: a text that no other check of the same job and dataset has
    :param category: the heading of the check in DataHub's page
    :param description: a sentence that describes the check
    :param is_good: whether the check passed; None if that is not known. Then no result is sent,
        because DataHub takes any result but ``SUCCESS`` for a failure (``EntityHealthResolver``)
    :param results: the details of the result, for people
    :param field: URN of the only field that the check is about; empty if it is about all fields
    :param batch: the part of the dataset that the check is about, in words; empty if it is about
        the whole dataset
    """

    dataset: str
    key: str
    category: str
    description: str
    is_good: bool | None
    results: Mapping[str, str]
    field: str = ""
    batch: str = ""


def assertion(subject: Subject, check: Check) -> Iterator[Proposal]:
    """Yield the assertion of a check, and the check's result in the event's run if it is known."""
    of = "\n".join((subject.job, check.dataset, check.key))
    # The URN is the same for each run of a job, so that DataHub has a history of the results.
    urn = f"urn:li:assertion:{sha256(of.encode()).hexdigest()[:32]}"
    yield Proposal(urn, "assertionInfo", _assertion_info(subject, check))
    platform = naming.data_platform_urn(subject.names.orchestrator)
    yield Proposal(urn, "dataPlatformInstance", {"platform": platform})
    if check.is_good is not None:
        yield Proposal(urn, "assertionRunEvent", _assertion_run_event(subject, check, urn))


def _assertion_info(subject: Subject, check: Check) -> Json:
    field = {"field": check.field} if check.field else {}
    return {
        "type": "CUSTOM",
        "customAssertion": {"type": check.category, "entity": check.dataset, **field},
        "source": {"type": "EXTERNAL"},
        "description": check.description,
        "customProperties": {"job": subject.job},
    }


def _assertion_run_event(subject: Subject, check: Check, urn: str) -> Json:
    log = task_instance_page(subject)
    result = {
        "type": "SUCCESS" if check.is_good else "FAILURE",
        "nativeResults": dict(check.results),
        **({"externalUrl": log} if log else {}),
    }
    return {
        **partitions.stamped(subject, partitions.WHOLE),
        "assertionUrn": urn,
        "asserteeUrn": check.dataset,
        "runId": stored(subject.event.run.runId),
        "status": "COMPLETE",
        "result": result,
        **({"batchSpec": {"nativeBatchId": check.batch}} if check.batch else {}),
    }


# Partition checks show whether partitions were as expected. Each dataset that a job writes has one
# assertion, and a second one if the job expects partitions of the datasets that it reads. The
# dataset that was read has no assertion: if the job reads a wrong partition, the job's output is
# wrong, but the dataset that was read, which others own, is not.
#
# ===========================  ===================================================================
# ``matched``                  ``SUCCESS``
# ``missing``, ``unexpected``  ``FAILURE``
# ``unobserved``               no result: a missing observation is not a fault of the data
# ``undeclared``               no assertion
# ===========================  ===================================================================

PARTITIONS_CATEGORY = "Partitions"
"""The heading of these assertions in DataHub's page."""
MAX_ACCESSES = 20
"""The most datasets that one result names; datasets with a problem come first."""
_GRAVITY = {"unexpected": False, "missing": False, "unobserved": None, "matched": True}
"""The statuses of a partition check, the worst first, each with the check's ``is_good``."""
_CHECK_DESCRIPTIONS = {
    Side.WRITE: "{} writes the partitions that are expected",
    Side.READ: "{} makes this of the partitions that are expected",
}


def partition_checks(subject: Subject) -> Iterator[Proposal]:
    """Yield the partition checks of the event's outputs, with their results in the event's run.

    Where partitions are expected, an output has a check of its own partitions, and a check of those
    that the run read. Nothing is yielded before the run has ended.
    """
    if not partitions.can_be_stamped(subject):
        return
    reads = [access for access in partitions.accesses(subject, Side.READ) if _check_status(access)]
    written: dict[str, list[partitions.Access]] = {}
    for access in partitions.accesses(subject, Side.WRITE):
        if access.is_of_this_run:
            written.setdefault(access.dataset.urn, []).append(access)
    of_reads = _summed_check(subject, Side.READ, reads)
    for urn, writes in written.items():
        for check in (_summed_check(subject, Side.WRITE, writes), of_reads):
            if check:
                yield from assertion(subject, check._replace(dataset=urn))


def _summed_check(subject: Subject, side: Side, accessed: list[partitions.Access]) -> Check | None:
    """Make one check of several reads or several writes; None if no access has a partition check.

    The check has the result of the worst access. The check's dataset is empty; the caller sets it.

    :param subject: the event's entities with their URNs
    :param side: whether the accesses are reads or writes
    :param accessed: the accesses, all of this side
    """
    order = list(_GRAVITY)
    checked = [access for access in accessed if _check_status(access)]
    checked.sort(key=lambda access: order.index(_check_status(access)))
    if not checked:
        return None
    job = stored(subject.event.job.name, 200)
    is_good = _GRAVITY[_check_status(checked[0])]
    batch = checked[0].summary if side is Side.WRITE else ""
    about = _CHECK_DESCRIPTIONS[side].format(job)
    results = _partition_results(checked)
    return Check("", side, PARTITIONS_CATEGORY, about, is_good, results, batch=batch)


def _partition_results(checked: list[partitions.Access]) -> dict[str, str]:
    """Give the results of partition checks as texts, by dataset and kind: ``visits: missing``.

    If there is only one access and it is a write, the keys are without the dataset.

    :param checked: the accesses; only the first ``MAX_ACCESSES`` are read
    """
    results: dict[str, str] = {}
    for access in checked[:MAX_ACCESSES]:
        is_alone = len(checked) == 1 and access.side is Side.WRITE
        of = "" if is_alone else f"{scrub_name(stored(access.dataset.name.name, 500))}: "
        each = {**partitions.expectation(access), "observed": access.summary}
        results |= {f"{of}{key}": value for key, value in each.items() if value}
    return results


def _check_status(access: partitions.Access) -> str:
    """Give the status of an access's partition check; empty if no partitions are expected."""
    status = access.check.status if access.check else None
    return status if status in _GRAVITY else ""


# The facet ``dataQualityAssertions`` has the tests of a dataset that a task made. Airflow's
# operators that check columns and tables send this facet, and so do dbt and Great Expectations. A
# failed test is a failure even if its severity is only a warning: DataHub has no result between
# success and failure. The partition checks of this package are in that facet, too; they have their
# assertions above.

QUALITY_CATEGORY = "Data quality"
"""The heading of these assertions in DataHub's page."""
MAX_TESTS = 500
"""The most tests of one dataset: DataHub reads no more of them for a dataset's health."""


def quality(subject: Subject) -> Iterator[Proposal]:
    """Yield the data tests of the event's run, each once, with their results.

    Nothing is yielded before the run has ended.
    """
    if not partitions.can_be_stamped(subject):
        return
    checks: dict[tuple[str, str], Check] = {}
    for access in (one for side in Side for one in partitions.accesses(subject, side)):
        for check in _quality_checks(subject, access):
            checks.setdefault((check.dataset, check.key), check)
    for check in checks.values():
        yield from assertion(subject, check)


def _quality_checks(subject: Subject, access: partitions.Access) -> Iterator[Check]:
    facet = access.read_facet(model.ASSERTIONS_KEY, model.QualityAssertions)
    counts: Counter[tuple[str, ...]] = Counter()
    for test in islice(facet.assertions, MAX_TESTS):
        of = stored(test.assertion), stored(test.name), stored(test.column)
        is_above = test.assertion in model.PARTITION_TEXTS.values()
        if test.assertion and test.success is not None and not is_above:
            counts[of] += 1  # several tests, with different thresholds, can have one name
            yield _quality_check(subject, access, test, json.dumps(["quality", *of, counts[of]]))


def _quality_check(
    subject: Subject, access: partitions.Access, test: model.DataTest, key: str
) -> Check:
    column, name = stored(test.column), plain(test.name) or plain(test.assertion)
    about = plain(test.description) or (f"{name} of {column}" if column else name)
    field = subject.field(access.dataset.name, column) if column else ""
    details = {"severity": test.severity, "expected": test.expected, "actual": test.actual}
    results = {key: text for key, value in details.items() if (text := plain(value))}
    return Check(access.dataset.urn, key, QUALITY_CATEGORY, about, test.success, results, field)
