"""Checks of datasets as DataHub's assertions: what is checked, and how it came out in this run.

They are of the type ``CUSTOM``, by which external tools report theirs (``DATASET`` is deprecated),
with the fields that all servers with that type know: others leave out what they do not. A result is
stored below its time, assertion and ``messageId``: sending it again changes nothing.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.datahub import lenient
from airflow_provider_sparklineage.datahub.naming import urns
from airflow_provider_sparklineage.datahub.partitions.accesses import WHOLE
from airflow_provider_sparklineage.datahub.partitions.operations import stamped
from airflow_provider_sparklineage.datahub.proposals import Json, Proposal
from airflow_provider_sparklineage.datahub.runs import airflow_pages

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from airflow_provider_sparklineage.datahub.subject import Subject


class Check(NamedTuple):
    """A check of a dataset.

    :param dataset: URN of the dataset
    :param key: what makes it another check than others of the same job and dataset
    :param category: what DataHub's page lists it below
    :param description: what is checked, in a sentence
    :param is_good: how it came out; None if that is not known. Then there is no result: DataHub
        takes any but ``SUCCESS`` for a failing assertion (``EntityHealthResolver``)
    :param results: what it came out with, for people
    :param field: URN of the only field that it is about; empty if it is about the dataset
    :param batch: which part of the dataset it is about; empty if it is about all of it
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
    """Give the assertion that a check is, and its result."""
    of = "\n".join((subject.job, check.dataset, check.key))
    # The same for each run of a job.
    urn = f"urn:li:assertion:{sha256(of.encode()).hexdigest()[:32]}"
    yield Proposal(urn, "assertionInfo", _info(subject, check))
    platform = urns.data_platform(subject.names.orchestrator)
    yield Proposal(urn, "dataPlatformInstance", {"platform": platform})
    if check.is_good is not None:
        yield Proposal(urn, "assertionRunEvent", _result(subject, check, urn))


def _info(subject: Subject, check: Check) -> Json:
    field = {"field": check.field} if check.field else {}
    return {
        "type": "CUSTOM",
        "customAssertion": {"type": check.category, "entity": check.dataset, **field},
        "source": {"type": "EXTERNAL"},
        "description": check.description,
        "customProperties": {"job": subject.job},
    }


def _result(subject: Subject, check: Check, urn: str) -> Json:
    log = airflow_pages.task_instance(subject)
    result = {
        "type": "SUCCESS" if check.is_good else "FAILURE",
        "nativeResults": dict(check.results),
        **({"externalUrl": log} if log else {}),
    }
    return {
        **stamped(subject, WHOLE),
        "assertionUrn": urn,
        "asserteeUrn": check.dataset,
        "runId": lenient.text(lenient.at(subject.event, "run", "runId")),
        "status": "COMPLETE",
        "result": result,
        **({"batchSpec": {"nativeBatchId": check.batch}} if check.batch else {}),
    }
