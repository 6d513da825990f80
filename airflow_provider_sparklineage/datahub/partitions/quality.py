"""What a task tested of a dataset, as assertions: the facet ``dataQualityAssertions``.

Airflow's operators that check columns and tables send it, and so do dbt and Great Expectations. A
test that is a warning if it fails is a failure too: that is what DataHub knows.
"""

from __future__ import annotations

import json
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.datahub import lenient
from airflow_provider_sparklineage.datahub.partitions.accesses import Access, accesses
from airflow_provider_sparklineage.datahub.partitions.assertions import Check, assertion
from airflow_provider_sparklineage.datahub.partitions.operations import can_be_stamped
from airflow_provider_sparklineage.datahub.values import plain
from airflow_provider_sparklineage.model.terms import Side

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_sparklineage.datahub.proposals import Proposal
    from airflow_provider_sparklineage.datahub.subject import Subject

CATEGORY = "Data quality"
"""What DataHub's page lists the assertions below."""
MAX_TESTS = 500
"""Tests of one dataset: as many as DataHub looks at for a dataset's health."""
_FACET = "dataQualityAssertions"
_RESULTS = ("severity", "expected", "actual")


def quality(subject: Subject) -> Iterator[Proposal]:
    """Give the tests of a run that has ended, with their results."""
    if not can_be_stamped(subject):
        return
    done: set[tuple[str, str]] = set()
    for access in (*accesses(subject, Side.READ), *accesses(subject, Side.WRITE)):
        for check in _checks(subject, access):
            if (check.dataset, check.key) not in done:
                done.add((check.dataset, check.key))
                yield from assertion(subject, check)


def _checks(subject: Subject, access: Access) -> Iterator[Check]:
    facet = access.facets.get(_FACET) or access.dataset.facets.get(_FACET)
    known: Counter[tuple[str, ...]] = Counter()
    for test in islice(lenient.items(lenient.at(facet, "assertions")), MAX_TESTS):
        of = tuple(lenient.text(test.get(key)) for key in ("assertion", "name", "column"))
        if of[0] and isinstance(test.get("success"), bool):
            known[of] += 1  # a test with several thresholds has one name
            yield _check(subject, access, test, json.dumps(["quality", *of, known[of]]))


def _check(subject: Subject, access: Access, test: dict[str, Any], key: str) -> Check:
    column = lenient.text(test.get("column"))
    name = plain(test.get("name")) or plain(test.get("assertion"))
    about = plain(test.get("description")) or (f"{name} of {column}" if column else name)
    field = subject.field(access.dataset.name, column) if column else ""
    found = {key: plain(test.get(key)) for key in _RESULTS}
    results = {key: value for key, value in found.items() if value}
    return Check(access.dataset.urn, key, CATEGORY, about, test["success"], results, field)
