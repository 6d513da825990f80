"""Datasets as entities: their existence, platform instance, other names and schemas.

Entries that others have stored for a dataset stay: properties are patched one by one, and an aspect
that can only be replaced as a whole is proposed only where DataHub has none.

========================  ==========================================================================
``status``                whether an output exists or was dropped; an input is made known to
                          DataHub, which shows no lineage of datasets that it does not know
``dataPlatformInstance``  only if the configuration names one
``datasetProperties``     OpenLineage's own namespace and name, which have the server and the whole
                          name; of an output also description, version, storage
``siblings``              files and the table that they make up, so that DataHub shows them as one
                          if one job writes the table and another job reads its files
``schemaMetadata``        replaces the stored schema for an output of a run that completed, because
                          that run knows it. For an input, or after a failed run, it is stored only
                          where DataHub has none: the schema of a connector has descriptions and
                          tags, and is that of the whole table
========================  ==========================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.datahub import lenient, naming
from airflow_provider_sparklineage.datahub.proposals import Json, Proposal, add, plain
from airflow_provider_sparklineage.model.credentials import scrub_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_sparklineage.datahub.schema import Schema
    from airflow_provider_sparklineage.datahub.subject import Dataset, Subject


def datasets(subject: Subject) -> Iterator[Proposal]:
    """Yield the aspects of the datasets that a run accessed, once it has ended; each dataset once.

    A dataset that was both read and written is described as written.
    """
    if not subject.has_ended:
        return
    written = {one.urn: one for one in reversed(subject.outputs)}
    read = {one.urn: one for one in reversed(subject.inputs) if one.urn not in written}
    for one in written.values():
        yield _output_status(one, subject.state)
        yield from _described(one, subject, [*_openlineage_names(one), *_output_properties(one)])
    for one in read.values():
        yield Proposal(one.urn, "status", {"removed": False}, only_if_absent=True)
        yield from _described(one, subject, _openlineage_names(one))


def _output_status(one: Dataset, state: str) -> Proposal:
    """Give the status of an output, removed if a completed run dropped it.

    A run that failed may have written nothing, so its status is stored only where none is.
    """
    change = lenient.at(one.facets, "lifecycleStateChange", "lifecycleStateChange")
    is_done = state == "COMPLETE"
    removed = is_done and change == "DROP"
    return Proposal(one.urn, "status", {"removed": removed}, only_if_absent=not is_done)


def _described(one: Dataset, subject: Subject, properties: list[Json]) -> Iterator[Proposal]:
    yield Proposal(one.urn, "datasetProperties", properties, is_patch=True)
    identity = subject.identity(one.name)
    if identity.instance:
        platform = naming.platform_urn_of(one.urn)
        aspect = {"platform": platform, "instance": identity.instance_urn}
        yield Proposal(one.urn, "dataPlatformInstance", aspect)
    files = subject.files(one.name)
    if files != one.urn:
        yield _siblings(files, one.urn, is_primary=False)
        yield _siblings(one.urn, files, is_primary=True)


def _siblings(urn: str, other: str, *, is_primary: bool) -> Proposal:
    aspect = {"siblings": [other], "primary": is_primary}
    return Proposal(urn, "siblings", aspect, only_if_absent=True)


# --- properties -----------------------------------------------------------------------------------

_OUTPUT_PROPERTIES = (
    ("openlineage.datasetVersion", ("version", "datasetVersion")),
    ("storageLayer", ("storage", "storageLayer")),
    ("fileFormat", ("storage", "fileFormat")),
)
"""Custom properties, by the names that DataHub's own converter gives them, with their facets."""


def _openlineage_names(one: Dataset) -> list[Json]:
    names = (("openlineage.namespace", one.name.namespace), ("openlineage.name", one.name.name))
    return [_property(key, scrub_name(lenient.text(value))) for key, value in names]


def _output_properties(one: Dataset) -> Iterator[Json]:
    for key, path in _OUTPUT_PROPERTIES:
        if value := plain(lenient.at(one.facets, *path)):
            yield _property(key, value)
    if description := plain(
        lenient.at(one.facets, "documentation", "description"), _MAX_DESCRIPTION
    ):
        yield add("description", value=description)


_MAX_DESCRIPTION = 10_000  # characters of a description, which may be a page of Markdown


def _property(key: str, value: str) -> Json:
    return add("customProperties", key, value=value)


# --- schemas --------------------------------------------------------------------------------------

_MAX_SCHEMA_NAME = 500
"""Characters of ``schemaName``, by its Avro schema."""


def schemas(subject: Subject) -> Iterator[Proposal]:
    """Yield the schema of each dataset whose columns the event has, once the run has ended."""
    if not subject.has_ended:
        return
    written = {dataset.urn for dataset in subject.outputs if dataset.schema_fields}
    for urn, schema in subject.schemas.items():
        if fields := schema.fields:
            is_writer = urn in written and subject.state == "COMPLETE"
            aspect = _schema_metadata(urn, fields, schema)
            yield Proposal(urn, "schemaMetadata", aspect, only_if_absent=not is_writer)


def _schema_metadata(urn: str, fields: list[Json], schema: Schema) -> Json:
    """Give the aspect; it has no time, so that the same schema makes no new version of it."""
    return {
        "schemaName": urn.split(",")[1][:_MAX_SCHEMA_NAME],
        "platform": naming.platform_urn_of(urn),
        "version": 0,
        "hash": "",
        "platformSchema": {"com.linkedin.schema.OtherSchema": {"rawSchema": _left_out(schema)}},
        "fields": fields,
    }


def _left_out(schema: Schema) -> str:
    """Tell how many fields are left out, for the text of a schema in DataHub; empty if none are."""
    if not schema.left_out:
        return ""
    return f"{schema.left_out:,} more fields: beyond the limit, or with no path of their own."
