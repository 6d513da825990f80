"""What is made of what, of tables and of columns.

:mod:`.feeding` has who feeds whom, :mod:`.columns` the columns of an output and what is done with
them (:mod:`.transformations`). Three entities have it: the output (:mod:`.upstreams`), the job
(:mod:`.job_lineage`, with :mod:`.job_columns`) and the job's SQL (:mod:`.queries`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.datahub.lineage.feeding import fed
from airflow_provider_sparklineage.datahub.lineage.fields import Fields
from airflow_provider_sparklineage.datahub.lineage.job_columns import JobColumns
from airflow_provider_sparklineage.datahub.lineage.job_lineage import job_lineage
from airflow_provider_sparklineage.datahub.lineage.queries import queries, query_of
from airflow_provider_sparklineage.datahub.lineage.upstreams import upstreams

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
