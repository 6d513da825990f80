"""The lineage of a task's event as a document with the same paths for all, and how two differ."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from openlineage.client.serde import Serde

from tests.dag_runs.documents import normalised

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.cluster.mini_cluster import MiniCluster
    from tests.cluster.submitting import Ran


def document(ran: Ran, names: Mapping[str, str]) -> Any:
    """Give what a task's event has of its lineage.

    :param names: paths that are replaced, and by what
    """
    lineage = ran.lineage
    event = {
        "inputs": [Serde.to_dict(dataset) for dataset in lineage.inputs],
        "outputs": [Serde.to_dict(dataset) for dataset in lineage.outputs],
        "run": {"facets": {n: Serde.to_dict(facet) for n, facet in lineage.run_facets.items()}},
        "job": {"facets": {n: Serde.to_dict(facet) for n, facet in lineage.job_facets.items()}},
    }
    text = json.dumps(event)
    for theirs, ours in names.items():
        text = text.replace(theirs, ours)
    return _in_order(normalised(json.loads(text), "/lake"))


def in_cluster(ran: Ran, lake: str, cluster: MiniCluster) -> Any:
    """Give the document of a job in a cluster, with paths as if its lake were a folder here."""
    folder = lake.removeprefix(cluster.hdfs)
    return document(ran, {lake: "/lake", folder: "/lake", cluster.hdfs: "file"})


def differences(ours: Any, theirs: Any) -> list[str]:
    """Name the places where two documents differ, with what is there."""
    return list(_differences(ours, theirs, ""))


def _differences(ours: Any, theirs: Any, place: str) -> Iterator[str]:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted(ours.keys() | theirs.keys()):
            yield from _differences(ours.get(key), theirs.get(key), f"{place}.{key}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for number, pair in enumerate(zip(ours, theirs, strict=True)):
            yield from _differences(*pair, f"{place}[{number}]")
    elif ours != theirs:
        yield f"{place}: {ours} != {theirs}"


def _in_order(value: Any) -> Any:
    """Sort what the listener gives in the order of a hash map, which is of names."""
    if isinstance(value, list):
        return [_in_order(each) for each in value]
    if not isinstance(value, dict):
        return value
    value = {key: _in_order(each) for key, each in value.items()}
    if "transformations" in value:
        value["transformations"].sort(key=json.dumps)
    if text := value.get("transformationDescription"):
        value["transformationDescription"] = "; ".join(sorted(text.split("; ")))
    return value
