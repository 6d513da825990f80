"""Convert a RunEvent to proposals, without side effects: equal events give equal proposals.

A START event gives proposals for the flow, the job and the run, but none for the datasets in the
event, because these datasets are those of the job's previous run.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.datahub import jobs, runs
from airflow_provider_sparklineage.datahub.assertions import partition_checks, quality
from airflow_provider_sparklineage.datahub.configuration import DEFAULT_CONVERSION, Conversion
from airflow_provider_sparklineage.datahub.datasets import datasets, schemas
from airflow_provider_sparklineage.datahub.lineage import lineage
from airflow_provider_sparklineage.datahub.partitions import operations, profiles
from airflow_provider_sparklineage.datahub.subject import Subject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from airflow_provider_sparklineage.datahub.proposals import Json, Proposal

_PARTS: tuple[Callable[[Subject], Iterator[Proposal]], ...] = (
    jobs.flow,
    jobs.job,
    jobs.silent_jobs,
    runs.run,
    datasets,
    schemas,
    lineage,
    runs.run_datasets,
    operations,
    profiles,
    partition_checks,
    quality,
)
"""The parts of the conversion, in order: an entity comes before the aspects that refer to it."""


def proposals(event: Json, how: Conversion = DEFAULT_CONVERSION) -> Iterator[Proposal]:
    """Convert an event to the proposals that DataHub stores.

    :param event: the event as plain JSON, from any producer
    :param how: the settings of the conversion
    """
    subject = Subject(event, how)
    return chain.from_iterable(part(subject) for part in _PARTS)
