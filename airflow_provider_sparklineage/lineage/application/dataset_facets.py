"""What single facets of a dataset say: its columns, its other names, bytes read or written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.spark.capture.events import decode_facet

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_sparklineage.lineage.application.accumulation import ActionDataset


class HasFacets(Protocol):
    """A dataset of an action, or of a task."""

    @property
    def facets(self) -> Mapping[str, msgspec.Raw]:
        """Give its dataset facets, undecoded."""


class Symlinks(msgspec.Struct):
    """The standard facet of a dataset's other names."""

    identifiers: list[dict[str, str | None]] | None = None


class _SchemaField(msgspec.Struct):
    name: str


class _Schema(msgspec.Struct):
    fields: list[_SchemaField] | None = None


def column_names(dataset: HasFacets) -> list[str]:
    """Read the names of the top-level columns; empty where the schema is not said."""
    schema = decode_facet(dataset.facets.get("schema"), _Schema)
    return [f.name for f in schema.fields or ()] if schema else []


def symlinks(dataset: HasFacets) -> set[DatasetName]:
    """Give the other names of a dataset."""
    links = decode_facet(dataset.facets.get("symlinks"), Symlinks)
    identifiers = (links.identifiers if links else None) or ()
    return {DatasetName(i.get("namespace") or "", i.get("name") or "") for i in identifiers}


class _Statistics(msgspec.Struct):
    size: int | None = None
    file_count: int | None = msgspec.field(name="fileCount", default=None)


def size_written(output: ActionDataset) -> int | None:
    """Read the bytes that a write wrote; None where nobody says."""
    statistics = decode_facet(output.side_facets.get("outputStatistics"), _Statistics)
    return statistics.size if statistics else None


def size_found(read: ActionDataset) -> int | None:
    """Read the bytes that the whole dataset held when it was read; None where nobody says.

    Statistics without a number of files are a catalog's, and may be of the partitions read only;
    those of Iceberg are of the files that a scan's filters left.
    """
    if "storage" in read.facets:  # said of tables of DataSource V2 catalogs
        return None
    statistics = decode_facet(read.side_facets.get("inputStatistics"), _Statistics)
    return statistics.size if statistics and statistics.file_count is not None else None
