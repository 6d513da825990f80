"""Datasets that have another name than the listener gives them here.

The listener trims the folders of a path that it takes for partitions. A rule with a layout can know
of more: ``/lake/clicks/2024-05-06/10`` is hour 10 of ``/lake/clicks``. Then the dataset is renamed
on every side and in column lineage, and its former name is kept as a location.

A table of a database has one name, whatever settings the URL has by which an action read it.

Column lineage can also name a single file, where the inputs name its folder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from airflow_provider_sparklineage.lineage.application.datasets import united_locations
from airflow_provider_sparklineage.model.datasets import is_files, looks_like_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from airflow_provider_sparklineage.lineage.application.accumulation import (
        Action,
        SparkApplication,
    )
    from airflow_provider_sparklineage.lineage.application.datasets import ActionDataset
    from airflow_provider_sparklineage.model.datasets import DatasetName
    from airflow_provider_sparklineage.model.locations import Locator


def with_canonical_names(application: SparkApplication, locator: Locator) -> SparkApplication:
    """Rename the datasets of an application; the same application if all keep their names."""
    names = {d.name for a in application.actions for d in (*a.inputs, *a.outputs)}
    renamed = {name: locator.renamed(name) for name in names}
    moved = {name: known for name, known in renamed.items() if known != name}
    if not moved:
        return application
    return replace(application, actions=tuple(_action(a, moved) for a in application.actions))


def _action(action: Action, moved: Mapping[DatasetName, DatasetName]) -> Action:
    return replace(
        action,
        inputs=_joined(action.inputs, moved),
        outputs=_joined(action.outputs, moved),
        moved={**action.moved, **moved},
    )


def _joined(
    datasets: Iterable[ActionDataset], moved: Mapping[DatasetName, DatasetName]
) -> tuple[ActionDataset, ...]:
    """Rename, and join those that were several folders of one dataset."""
    found: dict[DatasetName, ActionDataset] = {}
    for dataset in datasets:
        name = moved.get(dataset.name, dataset.name)
        locations = dataset.locations
        if name != dataset.name and is_files(name):
            locations = locations or frozenset({dataset.name.name})
        known = found.get(name)
        if known is None:
            found[name] = replace(dataset, name=name, locations=locations)
            continue
        found[name] = replace(
            known,
            facets={**known.facets, **dataset.facets},
            side_facets={**known.side_facets, **dataset.side_facets},
            locations=united_locations(known.locations, locations),
            left_out=known.left_out | dataset.left_out,
        )
    return tuple(found[name] for name in sorted(found))


def input_names(action: Action) -> Callable[[DatasetName], DatasetName]:
    """Find the input that a name in column lineage stands for: itself, else the longest above."""
    names = {d.name for d in action.inputs}

    def input_name(reported: DatasetName) -> DatasetName:
        name = action.moved.get(reported, reported)
        if name in names or not looks_like_file(name.name):
            return name
        above = [
            n
            for n in names
            if n.namespace == name.namespace and name.name.startswith(n.name.rstrip("/") + "/")
        ]
        return max(above, key=lambda n: len(n.name), default=name)

    return input_name
