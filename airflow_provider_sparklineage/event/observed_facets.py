"""Facets of datasets that only the observer saw, as the listener would give them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from airflow_provider_sparklineage.event.producer import facet

if TYPE_CHECKING:
    from airflow_provider_sparklineage.model.datasets import DatasetName
    from airflow_provider_sparklineage.spark.capture.observations import SchemaRecord

_SPEC = "https://openlineage.io/spec/facets"
_SCHEMA = f"{_SPEC}/1-2-0/SchemaDatasetFacet.json#/$defs/SchemaDatasetFacet"
_DATA_SOURCE = f"{_SPEC}/1-0-1/DatasourceDatasetFacet.json#/$defs/DatasourceDatasetFacet"
_LIFECYCLE = (
    f"{_SPEC}/1-0-1/LifecycleStateChangeDatasetFacet.json#/$defs/LifecycleStateChangeDatasetFacet"
)


def observed_facets(
    name: DatasetName, schema: SchemaRecord | None, change: str
) -> dict[str, msgspec.Raw]:
    """Make the facets of a dataset.

    :param schema: its columns; None where they are not known
    :param change: ``OVERWRITE`` or ``CREATE``, for a dataset that was written; empty for none
    """
    made = {"dataSource": facet(_DATA_SOURCE, name=name.namespace, uri=name.namespace)}
    if change:
        made["lifecycleStateChange"] = facet(_LIFECYCLE, lifecycleStateChange=change)
    facets = {key: msgspec.Raw(msgspec.json.encode(value)) for key, value in made.items()}
    if schema is not None and schema.fields:
        try:
            columns = [_field(column.name, column.type) for column in schema.fields]
            facets["schema"] = msgspec.Raw(msgspec.json.encode(facet(_SCHEMA, fields=columns)))
        except RecursionError:  # a damaged record may be nested as deeply as it likes
            return facets
    return facets


def _field(name: str, kind: Any) -> dict[str, Any]:
    """Write a column as the listener does, with the parts of nested types below it.

    :param kind: the type as Spark writes it as JSON
    """
    if not isinstance(kind, dict):
        return {"name": name, "type": str(kind)}
    below: list[dict[str, Any]] = []
    match kind.get("type"):
        case "struct":
            fields = kind.get("fields")
            below = [
                _field(str(f.get("name", "")), f.get("type"))
                for f in (fields if isinstance(fields, list) else ())
                if isinstance(f, dict)
            ]
        case "array":
            below = [_field("_element", kind.get("elementType"))]
        case "map":
            below = [_field("key", kind.get("keyType")), _field("value", kind.get("valueType"))]
    nested = {"fields": below} if below else {}
    return {"name": name, "type": str(kind.get("type", "")), **nested}
