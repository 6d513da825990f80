"""``SchemaMetadata`` of what was read and written.

The run that has written a dataset knows its schema, and replaces what DataHub has. What was only
read, or was left by a failed run, gets a schema only where DataHub has none: a connector's has
descriptions and tags, and is of the whole table.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.datahub.lenient import at, items, mapping, texts
from airflow_provider_sparklineage.datahub.naming.identities import is_named
from airflow_provider_sparklineage.datahub.naming.urns import platform_of
from airflow_provider_sparklineage.datahub.proposals import Proposal
from airflow_provider_sparklineage.datahub.schema.schema_fields import Schema
from airflow_provider_sparklineage.event.document import name_of
from airflow_provider_sparklineage.event.partition_facets import (
    BARE_PARTITIONS_KEY,
    CHECK_KEY,
    PARTITIONS_KEY,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_sparklineage.datahub.proposals import Json
    from airflow_provider_sparklineage.datahub.subject import Dataset, Subject
    from airflow_provider_sparklineage.event.document import Facets
    from airflow_provider_sparklineage.model.datasets import DatasetName

_MAX_NAME = 500
"""Characters of ``schemaName``, by its Avro schema."""


def schemas(subject: Subject) -> Iterator[Proposal]:
    """Give the schema of each dataset whose columns the event has."""
    if not subject.has_ended:
        return
    written = {dataset.urn for dataset in subject.outputs if _fields(dataset)}
    for urn, schema in subject.schemas.items():
        if fields := schema.fields:
            is_writer = urn in written and subject.state == "COMPLETE"
            aspect = _metadata(urn, fields, schema)
            yield Proposal(urn, "schemaMetadata", aspect, only_if_absent=not is_writer)


def by_urn(subject: Subject) -> dict[str, Schema]:
    """Give the schema of each dataset that the event has one of.

    One that was both read and written is as it was written: that is what DataHub has then.
    """
    checked = _checked(subject.run_facets)
    found: dict[str, Schema] = {}
    for dataset in (*subject.outputs, *subject.inputs):
        fields = _fields(dataset)
        if fields and dataset.urn not in found:
            keys = _partitioning(dataset, checked)
            found[dataset.urn] = Schema(fields, subject.naming(dataset.urn), keys)
    return found


def _fields(dataset: Dataset) -> list[Json]:
    return items(at(dataset.facets, "schema", "fields"))


def _partitioning(dataset: Dataset, checked: dict[DatasetName, Json]) -> frozenset[str]:
    """Give the columns that a dataset is partitioned by, also through a transform.

    Of an input only the run's facet has them.
    """
    entries = (
        at(dataset.facets, PARTITIONS_KEY),
        at(dataset.facets, BARE_PARTITIONS_KEY),
        checked.get(dataset.name),
    )
    dimensions = chain.from_iterable(items(at(entry, "dimensions")) for entry in entries)
    return frozenset(chain.from_iterable(texts(one.get("fields")) for one in dimensions))


def _checked(run_facets: Facets) -> dict[DatasetName, Json]:
    check = at(run_facets, CHECK_KEY)
    entries = chain(items(at(check, "reads")), items(at(check, "writes")))
    named = ((mapping(entry.get("dataset")), entry) for entry in entries)
    return {name_of(dataset): entry for dataset, entry in named if is_named(dataset)}


def _metadata(urn: str, fields: list[Json], schema: Schema) -> Json:
    """Give the aspect: without a time, so that the same schema is no new version of it."""
    return {
        "schemaName": urn.split(",")[1][:_MAX_NAME],
        "platform": platform_of(urn),
        "version": 0,
        "hash": "",
        "platformSchema": {"com.linkedin.schema.OtherSchema": {"rawSchema": _raw(schema)}},
        "fields": fields,
    }


def _raw(schema: Schema) -> str:
    """Say what is left out, where DataHub shows a schema as text; else it shows no text."""
    if not schema.left_out:
        return ""
    return f"{schema.left_out:,} more fields: beyond the limit, or with no path of their own."
