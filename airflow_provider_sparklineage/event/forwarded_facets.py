"""Facets of the listener that are passed on as they came, if they are what they should be.

One facet that is not as the specification has it makes the full event invalid, and a backend that
looks refuses all of it. So such a facet is left out, and that is declared. Facets that the
specification does not know are passed on if they are facets at all.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from airflow_provider_sparklineage.event.walk import without_nulls
from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode
from airflow_provider_sparklineage.spark.capture.raw_facets import is_too_deep

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_sparklineage.event.document import Facets
    from airflow_provider_sparklineage.model.datasets import DatasetName


class Facet(msgspec.Struct):
    """What each facet has."""

    _producer: str
    _schemaURL: str  # noqa: N815  (the specification's name)


class SchemaField(msgspec.Struct):
    """A column, and the fields of a struct."""

    name: str
    type: str = ""
    description: str = ""
    fields: list[SchemaField] = []


class Schema(Facet):
    """Dataset facet ``schema``."""

    fields: list[SchemaField] = []


class _DataSource(Facet):
    name: str = ""
    uri: str = ""


class _Identifier(msgspec.Struct):
    namespace: str
    name: str
    type: str


class _Symlinks(Facet):
    identifiers: list[_Identifier] = []


class _Storage(Facet, kw_only=True):
    storage_layer: str = msgspec.field(name="storageLayer")
    file_format: str = msgspec.field(name="fileFormat", default="")


class _Catalog(Facet):
    framework: str
    type: str
    name: str


class _Version(Facet):
    version: str = msgspec.field(name="datasetVersion")


class _Lifecycle(Facet):
    change: Literal["ALTER", "CREATE", "DROP", "OVERWRITE", "RENAME", "TRUNCATE"] = msgspec.field(
        name="lifecycleStateChange"
    )


class _Statistics(Facet):
    rows: int = msgspec.field(name="rowCount", default=0)
    size: int = 0
    files: int = msgspec.field(name="fileCount", default=0)


_SHAPES: dict[str, type[Facet]] = {
    "schema": Schema,
    "dataSource": _DataSource,
    "symlinks": _Symlinks,
    "storage": _Storage,
    "catalog": _Catalog,
    "version": _Version,
    "lifecycleStateChange": _Lifecycle,
    "inputStatistics": _Statistics,
    "outputStatistics": _Statistics,
}


class Forwarding:
    """Decodes the facets of an event's datasets; many have the same, which are one object then.

    :param lost: what has to be left out is added to it
    """

    def __init__(self, lost: list[Degradation]) -> None:
        self._lost = lost
        self._decoded = lru_cache(maxsize=_REMEMBERED)(_decoded)

    def of(self, facets: Mapping[str, msgspec.Raw], dataset: DatasetName) -> Facets:
        """Decode the facets of one side of a dataset."""
        kept: Facets = {}
        for name in sorted(facets):
            try:
                kept[name] = self._decoded(name, bytes(facets[name]))
            except (ValueError, RecursionError) as error:  # among them all that msgspec raises
                reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
                message = (
                    f"The facet {name} that the listener reported of {dataset} is not as it should "
                    f"be and was left out: {reason}."
                )
                degradation = Degradation(DegradationCode.MALFORMED_EVENTS, message, dataset)
                self._lost.append(degradation)
        return kept


_REMEMBERED = 512
"""Facets; what the datasets of a job share is among the last ones that were met."""


_ABSENT = re.compile(rb"null|\{\s*\}")


def _decoded(name: str, text: bytes) -> dict[str, Any]:
    facet: dict[str, Any] = msgspec.json.decode(text, type=dict[str, Any])
    if is_too_deep(text, facet):
        raise RecursionError
    if _ABSENT.search(text):
        facet = without_nulls(facet)
    msgspec.convert(facet, _SHAPES.get(name, Facet))
    return facet
