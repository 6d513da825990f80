"""A dataset as an action reports it; of its facets is decoded, once, what merging looks at."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import msgspec

from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.spark.capture.raw_facets import decode_facet

if TYPE_CHECKING:
    from collections.abc import Mapping


class DecodedFacets:
    """A dataset of an action or of a task: what its facets are, decoded when first asked for."""

    facets: Mapping[str, msgspec.Raw]
    """Dataset facets, undecoded: most of them are only passed on."""

    @cached_property
    def column_names(self) -> tuple[str, ...]:
        """Names of the top-level columns; empty where there is no schema."""
        facet = self.facets.get("schema")
        return _column_names(bytes(facet)) if facet is not None else ()

    @cached_property
    def symlinks(self) -> frozenset[DatasetName]:
        """The other names of the dataset."""
        facet = self.facets.get("symlinks")
        return _symlinks(bytes(facet)) if facet is not None else frozenset()


class ActionDataset(DecodedFacets, Frozen, frozen=True, dict=True):
    """A dataset on one side of an action.

    :param side_facets: ``inputFacets`` or ``outputFacets``, undecoded
    :param locations: partition locations that the listener trimmed off the name; None is the full
        dataset
    :param left_out: facets that were reported, and that there was no room for
    """

    name: DatasetName
    facets: Mapping[str, msgspec.Raw]
    side_facets: Mapping[str, msgspec.Raw]
    locations: frozenset[str] | None = None
    left_out: frozenset[str] = frozenset()

    @cached_property
    def lifecycle(self) -> str:
        """What an output's write did to it: OVERWRITE, CREATE, … or nothing."""
        facet = decode_facet(self.facets.get("lifecycleStateChange"), _Lifecycle)
        return (facet.change if facet else None) or ""

    @cached_property
    def size_written(self) -> int | None:
        """Bytes that the write of an output wrote; None where they are not reported."""
        statistics = decode_facet(self.side_facets.get("outputStatistics"), _Statistics)
        return statistics.size if statistics else None

    @cached_property
    def size_found(self) -> int | None:
        """Bytes that all of an input held when it was read; None where they are not reported.

        Statistics without a number of files are a catalog's, and may be of the partitions read
        only; those of Iceberg are of the files that a scan's filters left.
        """
        if "storage" in self.facets:  # tables of DataSource V2 catalogs have this facet
            return None
        statistics = decode_facet(self.side_facets.get("inputStatistics"), _Statistics)
        return statistics.size if statistics and statistics.file_count is not None else None


def united_locations(
    one: frozenset[str] | None, other: frozenset[str] | None
) -> frozenset[str] | None:
    """Unite locations of one dataset; None, which is the full dataset, makes it full."""
    return None if one is None or other is None else one | other


class Symlinks(msgspec.Struct):
    """The standard facet of a dataset's other names."""

    identifiers: list[dict[str, str | None]] | None = None


class _SchemaField(msgspec.Struct):
    name: str


class _Schema(msgspec.Struct):
    fields: list[_SchemaField] | None = None


class _Statistics(msgspec.Struct):
    size: int | None = None
    file_count: int | None = msgspec.field(name="fileCount", default=None)


class _Lifecycle(msgspec.Struct):
    change: str | None = msgspec.field(name="lifecycleStateChange", default=None)


# A thousand actions report the same schema and the same symlinks of one table.
@lru_cache(maxsize=128)
def _column_names(facet: bytes) -> tuple[str, ...]:
    schema = decode_facet(msgspec.Raw(facet), _Schema)
    return tuple(f.name for f in schema.fields or ()) if schema else ()


@lru_cache(maxsize=128)
def _symlinks(facet: bytes) -> frozenset[DatasetName]:
    links = decode_facet(msgspec.Raw(facet), Symlinks)
    identifiers = (links.identifiers if links else None) or ()
    return frozenset(
        DatasetName(i.get("namespace") or "", i.get("name") or "") for i in identifiers
    )
