"""A RunEvent to proposals: pure, and the same for the same event.

START has the run, and nothing of datasets: what it names is what the run before did.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.datahub.datasets import datasets
from airflow_provider_sparklineage.datahub.lineage import lineage
from airflow_provider_sparklineage.datahub.options import DEFAULT_CONVERSION, Conversion
from airflow_provider_sparklineage.datahub.partitions.operations import operations
from airflow_provider_sparklineage.datahub.partitions.partition_checks import partition_checks
from airflow_provider_sparklineage.datahub.partitions.profiles import profiles
from airflow_provider_sparklineage.datahub.partitions.quality import quality
from airflow_provider_sparklineage.datahub.partitions.run_datasets import run_datasets
from airflow_provider_sparklineage.datahub.runs import instances as runs
from airflow_provider_sparklineage.datahub.runs import jobs
from airflow_provider_sparklineage.datahub.runs.silent_jobs import silent_jobs
from airflow_provider_sparklineage.datahub.schema.schemas import schemas
from airflow_provider_sparklineage.datahub.subject import Subject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from airflow_provider_sparklineage.datahub.proposals import Proposal
    from airflow_provider_sparklineage.event.document import Event

_PARTS: tuple[Callable[[Subject], Iterator[Proposal]], ...] = (
    jobs.flow,
    jobs.job,
    silent_jobs,
    runs.run,
    datasets,
    schemas,
    lineage,
    run_datasets,
    operations,
    profiles,
    partition_checks,
    quality,
)
"""Each gives its proposals; what is pointed at comes before what points there."""


def proposals(event: Event, how: Conversion = DEFAULT_CONVERSION) -> Iterator[Proposal]:
    """Convert an event.

    :param event: as plain JSON, of any producer
    """
    subject = Subject(event, how)
    return chain.from_iterable(part(subject) for part in _PARTS)
