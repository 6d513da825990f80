"""Datasets as such: that they are there, of which instance, what else they are called.

What somebody else has stored of a dataset stays: properties are patched one by one, and what can
only be put in its place as a whole is proposed where there is none.

========================  ==========================================================================
``status``                what was written is there, or was dropped; what was read is made known to
                          DataHub, which shows no lineage of what it does not know
``dataPlatformInstance``  where the configuration says one
``datasetProperties``     OpenLineage's own namespace and name, which have the server and the whole
                          name; of what was written: description, version, storage
``siblings``              files and the table that they are, so that DataHub shows as one what one
                          job writes as a table and another one reads as files
========================  ==========================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.datahub import lenient
from airflow_provider_sparklineage.datahub.naming import urns
from airflow_provider_sparklineage.datahub.patches import add
from airflow_provider_sparklineage.datahub.proposals import Json, Proposal
from airflow_provider_sparklineage.datahub.values import plain
from airflow_provider_sparklineage.model.credentials import scrub_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_sparklineage.datahub.subject import Dataset, Subject


def datasets(subject: Subject) -> Iterator[Proposal]:
    """Give the datasets that the run has read or written; each once, as written if it is both."""
    if not subject.has_ended:
        return
    written = {one.urn: one for one in reversed(subject.outputs)}
    read = {one.urn: one for one in reversed(subject.inputs) if one.urn not in written}
    for one in written.values():
        yield _written(one, subject.state)
        yield from _described(one, subject, [*_names(one), *_facts(one)])
    for one in read.values():
        yield Proposal(one.urn, "status", {"removed": False}, only_if_absent=True)
        yield from _described(one, subject, _names(one))


def _written(one: Dataset, state: str) -> Proposal:
    """Say what became of a dataset; a run that failed may have written nothing."""
    change = lenient.at(one.facets, "lifecycleStateChange", "lifecycleStateChange")
    is_done = state == "COMPLETE"
    removed = is_done and change == "DROP"
    return Proposal(one.urn, "status", {"removed": removed}, only_if_absent=not is_done)


def _described(one: Dataset, subject: Subject, properties: list[Json]) -> Iterator[Proposal]:
    yield Proposal(one.urn, "datasetProperties", properties, is_patch=True)
    identity = subject.identity(one.name)
    if identity.instance:
        platform = urns.platform_of(one.urn)
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

_FACTS = (
    ("openlineage.datasetVersion", ("version", "datasetVersion")),
    ("storageLayer", ("storage", "storageLayer")),
    ("fileFormat", ("storage", "fileFormat")),
)
"""By what DataHub's own converter calls them."""


def _names(one: Dataset) -> list[Json]:
    names = (("openlineage.namespace", one.name.namespace), ("openlineage.name", one.name.name))
    return [_property(key, scrub_name(lenient.text(value))) for key, value in names]


def _facts(one: Dataset) -> Iterator[Json]:
    for key, path in _FACTS:
        if value := plain(lenient.at(one.facets, *path)):
            yield _property(key, value)
    if description := plain(lenient.at(one.facets, "documentation", "description"), _LONG):
        yield add("description", value=description)


_LONG = 10_000  # characters of a description, which may be a page of Markdown


def _property(key: str, value: str) -> Json:
    return add("customProperties", key, value=value)
