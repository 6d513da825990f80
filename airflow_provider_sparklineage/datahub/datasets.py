"""Datasets as entities: their existence, platform instance, other names and schemas.

Entries that other writers have stored for a dataset remain: properties are patched one by one. An
aspect that can only be replaced as a whole is proposed only where DataHub has none, unless the run
knows the aspect's content for certain.

========================  ==========================================================================
``status``                shows whether an output exists or was dropped; for an input, it makes the
                          dataset known: DataHub shows no lineage of datasets that it does not know
``dataPlatformInstance``  is proposed only if the configuration names a platform instance
``datasetProperties``     has the namespace and the name that the dataset has in the event: the URN
                          has no server, and may be shortened. For an output, the properties also
                          have the description, the version and the storage
``siblings``              links files to the table that they make up. If one job writes the table
                          and another job reads the files, DataHub shows both as one dataset
``schemaMetadata``        replaces the stored schema for an output of a run that completed, because
                          that run knows the schema. For an input, or after a failed run, it is
                          stored only where DataHub has none: the schema of a connector has
                          descriptions and tags, and all columns of the table
========================  ==========================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.datahub import naming
from airflow_provider_sparklineage.datahub.proposals import Json, Proposal, add, plain, stored
from airflow_provider_sparklineage.event import model
from airflow_provider_sparklineage.model.credentials import scrub_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_sparklineage.datahub.schema import Schema
    from airflow_provider_sparklineage.datahub.subject import Dataset, Subject


def datasets(subject: Subject) -> Iterator[Proposal]:
    """Yield the aspects of each dataset that the event's run accessed; nothing before its end.

    A dataset that was both read and written is described once, as an output.
    """
    if not subject.has_ended:
        return
    written = {one.urn: one for one in reversed(subject.outputs)}
    read = {one.urn: one for one in reversed(subject.inputs) if one.urn not in written}
    is_done = subject.state == "COMPLETE"  # a run that failed may have written nothing
    for one in written.values():
        removed = is_done and one.lifecycle == "DROP"
        yield Proposal(one.urn, "status", {"removed": removed}, only_if_absent=not is_done)
        yield from _described(one, subject, [*_openlineage_names(one), *_output_properties(one)])
    for one in read.values():
        yield Proposal(one.urn, "status", {"removed": False}, only_if_absent=True)
        yield from _described(one, subject, _openlineage_names(one))


def _described(one: Dataset, subject: Subject, properties: list[Json]) -> Iterator[Proposal]:
    yield Proposal(one.urn, "datasetProperties", properties, is_patch=True)
    identity = subject.identity(one.name)
    if identity.instance:
        platform = naming.platform_urn_of(one.urn)
        instance = naming.platform_instance_urn(identity.platform, identity.instance)
        aspect = {"platform": platform, "instance": instance}
        yield Proposal(one.urn, "dataPlatformInstance", aspect)
    files = subject.files(one.name)
    if files != one.urn:
        yield _siblings(files, one.urn, is_primary=False)
        yield _siblings(one.urn, files, is_primary=True)


def _siblings(urn: str, other: str, *, is_primary: bool) -> Proposal:
    aspect = {"siblings": [other], "primary": is_primary}
    return Proposal(urn, "siblings", aspect, only_if_absent=True)


# --- properties -----------------------------------------------------------------------------------


def _openlineage_names(one: Dataset) -> list[Json]:
    names = (("openlineage.namespace", one.name.namespace), ("openlineage.name", one.name.name))
    return [_property(key, scrub_name(stored(value))) for key, value in names]


def _output_properties(one: Dataset) -> Iterator[Json]:
    storage = model.read_facet(one.facets, "storage", model.Storage)
    version = model.read_facet(one.facets, "version", model.Version)
    # The names of these properties are those of DataHub's own converter.
    properties = {
        "openlineage.datasetVersion": version.datasetVersion,
        "storageLayer": storage.storageLayer,
        "fileFormat": storage.fileFormat,
    }
    for key, value in properties.items():
        if text := plain(value):
            yield _property(key, text)
    documentation = model.read_facet(one.facets, model.DOCUMENTATION_KEY, model.Documentation)
    if description := plain(documentation.description, _MAX_DESCRIPTION):
        yield add("description", value=description)


_MAX_DESCRIPTION = 10_000  # the most characters of a description; it may be a page of Markdown


def _property(key: str, value: str) -> Json:
    return add("customProperties", key, value=value)


# --- schemas --------------------------------------------------------------------------------------

_MAX_SCHEMA_NAME = 500
"""The most characters of ``schemaName`` that DataHub's Avro schema allows."""


def schemas(subject: Subject) -> Iterator[Proposal]:
    """Yield the schema of each dataset whose columns the event has.

    Nothing is yielded before the run has ended.
    """
    if not subject.has_ended:
        return
    written = {dataset.urn for dataset in subject.outputs if dataset.schema_fields}
    for urn, schema in subject.schemas.items():
        if fields := schema.fields:
            is_writer = urn in written and subject.state == "COMPLETE"
            aspect = _schema_metadata(urn, fields, schema)
            yield Proposal(urn, "schemaMetadata", aspect, only_if_absent=not is_writer)


def _schema_metadata(urn: str, fields: list[Json], schema: Schema) -> Json:
    """Give the aspect ``schemaMetadata``.

    It has no time, so that DataHub makes no new version for an equal schema.

    :param urn: URN of the dataset
    :param fields: the fields of ``schema`` that the aspect has
    """
    return {
        "schemaName": urn.split(",")[1][:_MAX_SCHEMA_NAME],
        "platform": naming.platform_urn_of(urn),
        "version": 0,
        "hash": "",
        "platformSchema": {"com.linkedin.schema.OtherSchema": {"rawSchema": _left_out(schema)}},
        "fields": fields,
    }


def _left_out(schema: Schema) -> str:
    """Give a sentence with the number of fields that are left out of a schema; empty if none are.

    DataHub shows the sentence as the raw text of the schema.
    """
    if not schema.left_out:
        return ""
    return f"{schema.left_out:,} more fields: beyond the limit, or with no path of their own."
