"""What is made of what: the part of the conversion that has lineage, of tables and of columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.datahub.feeding import fed
from airflow_provider_sparklineage.datahub.fields import Fields
from airflow_provider_sparklineage.datahub.job_columns import JobColumns
from airflow_provider_sparklineage.datahub.job_lineage import job_lineage
from airflow_provider_sparklineage.datahub.queries import queries, query_of
from airflow_provider_sparklineage.datahub.upstreams import upstreams

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_sparklineage.datahub.proposals import Proposal
    from airflow_provider_sparklineage.datahub.subject import Subject


def lineage(subject: Subject) -> Iterator[Proposal]:
    """Give the lineage of an event that has ended: the job's Query, its outputs', its own."""
    if not subject.has_ended:
        return
    yield from queries(subject)
    query, columns = query_of(subject), JobColumns()
    for output in fed(subject):
        fields = Fields(subject)
        yield from upstreams(subject, output, fields, query)
        columns.add(output, fields)
    yield from job_lineage(subject, columns)
