"""Whether partitions were as expected: red in DataHub where they were not.

There is one assertion for each job and dataset that it writes, on that dataset, and one more if
something is expected of what the job reads: a wrong partition that was read makes the output wrong,
and not the dataset that it was read from, which others own.

===========================  =======================================================================
``matched``                  ``SUCCESS``
``missing``, ``unexpected``  ``FAILURE``
``unobserved``               no result: that nobody saw is no fault of the data
``undeclared``               no assertion
===========================  =======================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.datahub import lenient
from airflow_provider_sparklineage.datahub.partitions.accesses import Access, accesses
from airflow_provider_sparklineage.datahub.partitions.assertions import Check, assertion
from airflow_provider_sparklineage.datahub.partitions.operations import can_be_stamped
from airflow_provider_sparklineage.datahub.partitions.run_datasets import expectation
from airflow_provider_sparklineage.model.credentials import scrub_name
from airflow_provider_sparklineage.model.terms import Side

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_sparklineage.datahub.proposals import Proposal
    from airflow_provider_sparklineage.datahub.subject import Subject

CATEGORY = "Partitions"
"""What DataHub's page lists the assertions below."""
MAX_ACCESSES = 20
"""Datasets that one result names, those that are not as expected before the others."""
_GRAVITY = {"unexpected": False, "missing": False, "unobserved": None, "matched": True}
"""Statuses, the worst first, and how an assertion comes out with them."""
_DESCRIPTIONS = {
    Side.WRITE: "{} writes the partitions that are expected",
    Side.READ: "{} makes this of the partitions that are expected",
}


def partition_checks(subject: Subject) -> Iterator[Proposal]:
    """Give the assertions on what a run wrote, with their results."""
    if not can_be_stamped(subject):
        return
    reads = [access for access in accesses(subject, Side.READ) if _status(access)]
    written: dict[str, list[Access]] = {}
    for access in accesses(subject, Side.WRITE):
        if access.is_of_this_run:
            written.setdefault(access.dataset.urn, []).append(access)
    of_reads = _check(subject, Side.READ, reads)
    for urn, writes in written.items():
        for check in (_check(subject, Side.WRITE, writes), of_reads):
            if check:
                yield from assertion(subject, check._replace(dataset=urn))


def _check(subject: Subject, side: Side, accessed: list[Access]) -> Check | None:
    """Sum accesses up; None if nothing is expected of any."""
    order = list(_GRAVITY)
    found = [access for access in accessed if _status(access)]
    found.sort(key=lambda access: order.index(_status(access)))
    if not found:
        return None
    job = lenient.text(lenient.at(subject.event, "job", "name"), 200)
    is_good = _GRAVITY[_status(found[0])]
    batch = found[0].summary if side is Side.WRITE else ""
    about = _DESCRIPTIONS[side].format(job)
    return Check("", side, CATEGORY, about, is_good, _results(found), batch=batch)


def _results(found: list[Access]) -> dict[str, str]:
    """Say of each dataset what was expected and what was observed, of the worst ones first."""
    results: dict[str, str] = {}
    for access in found[:MAX_ACCESSES]:
        is_alone = len(found) == 1 and access.side is Side.WRITE
        of = "" if is_alone else f"{scrub_name(lenient.text(access.dataset.name.name, 500))}: "
        each = {**expectation(access), "observed": access.summary}
        results |= {f"{of}{key}": value for key, value in each.items() if value}
    return results


def _status(access: Access) -> str:
    """Give how expected and observed compare; empty if nothing is expected."""
    status = lenient.text(access.check.get("status"))
    return status if status in _GRAVITY else ""
