"""What a DAG author declared (``inlets``, ``outlets``, ``reads``, ``writes``) to dataset names."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from airflow.providers.common.compat.sdk import Asset
from openlineage.client.event_v2 import Dataset

from airflow_provider_sparklineage.datasets import DatasetName, from_uri

if TYPE_CHECKING:
    from collections.abc import Iterable

log = logging.getLogger(__name__)

# Schemes that Spark reads as files; all others are for the provider of the scheme to name.
_FILE_SCHEMES = frozenset(
    "file s3 s3a s3n gs abfs abfss wasb wasbs hdfs viewfs dbfs".split()  # noqa: SIM905  (reads better)
)


def dataset_names(entries: Iterable[object]) -> tuple[DatasetName, ...]:
    """Name declared datasets as the Spark listener would; log and leave out what has no name.

    :param entries: URIs and absolute paths, assets, OpenLineage datasets, or what Airflow's
        OpenLineage provider converts from ``inlets`` and ``outlets``
    """
    names: dict[DatasetName, None] = {}
    for entry in entries:
        if isinstance(entry, str) and ("{{" in entry or "{%" in entry):
            continue  # its template could not be rendered, so it names nothing
        name = _name(entry)
        if name is None:
            log.info("No OpenLineage dataset is known for the declared %r; it is left out.", entry)
        else:
            names[name] = None
    return tuple(names)


def _name(entry: object) -> DatasetName | None:
    if isinstance(entry, str):
        return from_uri(entry)
    if isinstance(entry, Dataset):
        return DatasetName(entry.namespace, entry.name)
    if isinstance(entry, Asset):
        if urlsplit(entry.uri).scheme in _FILE_SCHEMES:
            return from_uri(entry.uri)
        from airflow.providers.openlineage.utils.utils import translate_airflow_asset

        found = translate_airflow_asset(entry, None)
    else:
        from airflow.providers.openlineage.extractors.manager import ExtractorManager

        found = ExtractorManager.convert_to_ol_dataset(entry)
    return DatasetName(found.namespace, found.name) if found is not None else None
