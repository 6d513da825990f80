"""Single files that Spark looked at for the columns of a dataset: no inputs of their own.

To find the columns of CSV and JSON files Spark reads one or all of them as text, in queries that
the listener reports. Where there is one file and no partition, it is named after that file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from airflow_provider_sparklineage.lineage.application.dataset_index import DatasetIndex
from airflow_provider_sparklineage.lineage.application.observed_actions import identities
from airflow_provider_sparklineage.model.datasets import looks_like_file

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_sparklineage.lineage.application.accumulation import SparkApplication
    from airflow_provider_sparklineage.model.datasets import DatasetName
    from airflow_provider_sparklineage.model.locations import Locator
    from airflow_provider_sparklineage.spark.capture.observations import ObservationRecord


def without_inferred_files(
    application: SparkApplication, records: Iterable[ObservationRecord], locator: Locator
) -> SparkApplication:
    """Leave out inputs that are files of other datasets and were looked at for columns alone."""
    looked_at: set[DatasetName] = set()
    opened: set[DatasetName] = set()
    for record in records:
        for read in record.reads:
            found = map(locator.locate, read.roots)
            names = {location.dataset for location in found if location is not None}
            (looked_at if read.inference else opened).update(names)
    index = DatasetIndex(identities(application), locator)
    files = {name for name in looked_at - opened if _is_inside(name, index)}
    if not files:
        return application
    actions = tuple(
        replace(action, inputs=tuple(d for d in action.inputs if d.name not in files))
        for action in application.actions
    )
    return replace(application, actions=actions)


def _is_inside(name: DatasetName, index: DatasetIndex) -> bool:
    return looks_like_file(name.name) and index.above(name) is not None
