"""The SQL of a job as a Query entity of DataHub, where the event has one.

A job has one Query, which holds what it ran last. DataHub's own converter makes one of each text: a
text with a date in it would be another Query every day, and lineage that names it would be added to
the dataset every day, for ever, since the Query is a key of DataHub's patches.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.datahub import lenient
from airflow_provider_sparklineage.datahub.audit import stamp
from airflow_provider_sparklineage.datahub.proposals import Proposal
from airflow_provider_sparklineage.datahub.values import plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_sparklineage.datahub.subject import Subject

_LONGEST = 100_000
"""Characters of a statement: DataHub's page shows it, and its index holds it."""

_MOST_SUBJECTS = 500


def query_of(subject: Subject) -> str | None:
    """Give the URN of the job's Query; None if the event has no job, or no SQL."""
    if not subject.has_job or not _statement(subject):
        return None
    return f"urn:li:query:{sha256(subject.job.encode()).hexdigest()}"


def queries(subject: Subject) -> Iterator[Proposal]:
    """Give the Query of an event that has ended, with the datasets that it is about."""
    urn = query_of(subject)
    if urn is None or not subject.has_ended:
        return
    yield Proposal(urn, "queryProperties", _properties(subject))
    datasets = dict.fromkeys(one.urn for one in (*subject.inputs, *subject.outputs))
    subjects = [{"entity": dataset} for dataset in list(datasets)[:_MOST_SUBJECTS]]
    if subjects:
        yield Proposal(urn, "querySubjects", {"subjects": subjects})


def _properties(subject: Subject) -> dict[str, object]:
    return {
        "statement": {"value": _statement(subject), "language": "SQL"},
        "source": "SYSTEM",
        "name": lenient.text(lenient.at(subject.event, "job", "name")),
        "origin": subject.job,
        "created": stamp(subject),
        "lastModified": stamp(subject),
    }


def _statement(subject: Subject) -> str:
    return plain(lenient.at(subject.job_facets, "sql", "query"), _LONGEST).strip()
