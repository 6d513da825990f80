"""How DataHub's server applies patches: what its templates do, modelled from reading them.

- ``arrayFieldToMap`` / ``transformedMapToArray`` (ArrayMergingTemplate): a list is an object by its
  keys while it is patched; a list of texts is one by the texts.
- ``GenericPatchTemplate``: only the lists that ``arrayPrimaryKeys`` names.
- ``UpstreamLineageTemplate`` with ``FineGrainedLineageTemplateHelper``: column edges are an object
  by transformation, downstream, query and upstream; one of several downstreams is refused.
- ``DataFlowInfoTemplate``, ``DataJobInfoTemplate`` and ``DatasetPropertiesTemplate``: what they
  have not is no properties.
- ``populateTopLevelKeys`` (TemplateUtil): what is above the last key of a path is made.
"""

from __future__ import annotations

import copy
from functools import reduce
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_sparklineage.datahub.proposals import Proposal

Json = dict[str, Any]


class RefusedError(Exception):
    """The server does not apply the patch."""


class Stored(dict[tuple[str, str], Json]):
    """Aspects as DataHub has stored them, by URN and name."""

    def take(self, proposals: Iterable[Proposal]) -> Stored:
        for one in proposals:
            key = (one.urn, one.aspect_name)
            aspect = patched(self.get(key), one) if one.is_patch else one.aspect
            self[key] = copy.deepcopy(aspect)
        return self


def patched(aspect: Json | None, proposal: Proposal) -> Json:
    """Apply a patch to an aspect that is stored; None is none."""
    if isinstance(proposal.aspect, dict):
        return _generic(aspect or {}, proposal.aspect["arrayPrimaryKeys"], proposal.aspect["patch"])
    if proposal.aspect_name in ("dataFlowInfo", "dataJobInfo", "datasetProperties"):
        return _applied(aspect or {"customProperties": {}}, proposal.aspect)
    assert proposal.aspect_name == "upstreamLineage", "the only other template that is modelled"
    return _upstream_lineage(aspect or {"upstreams": []}, proposal.aspect)


def _generic(aspect: Json, keys: dict[str, list[str]], patch: list[Json]) -> Json:
    mapped = aspect | {of: _to_map(aspect.get(of) or [], by) for of, by in keys.items()}
    changed = _applied(mapped, patch)
    return changed | {of: _to_list(changed[of], len(by)) for of, by in keys.items()}


def _to_map(items: list[Any], by: list[str]) -> Json:
    if not by:
        return {text: text for text in items}
    mapped: Json = {}
    for item in items:
        if not all(key in item for key in by):
            raise RefusedError  # a NullPointerException, before April 2026
        _below(mapped, [str(item[key]) for key in by]).update(item)
    return mapped


def _to_list(mapped: Json | list[Any], depth: int) -> list[Any]:
    if isinstance(mapped, list):  # put there by the patch as a whole
        return mapped
    if depth <= 1:
        return list(mapped.values())
    return [item for below in mapped.values() for item in _to_list(below, depth - 1)]


def _upstream_lineage(aspect: Json, patch: list[Json]) -> Json:
    mapped = aspect | {
        "upstreams": _to_map(aspect["upstreams"], ["dataset"]),
        "fineGrainedLineages": _by_keys(aspect.get("fineGrainedLineages") or []),
    }
    changed = _applied(mapped, patch)
    return changed | {
        "upstreams": _to_list(changed["upstreams"], 1),
        "fineGrainedLineages": _from_keys(changed["fineGrainedLineages"]),
    }


def _by_keys(lineages: list[Json]) -> Json:
    mapped: Json = {}
    for one in lineages:
        if len(one.get("downstreams") or ()) != 1:
            raise RefusedError
        keys = [
            one.get("transformOperation", "NONE"),
            *one["downstreams"],
            one.get("query", "NONE"),
        ]
        value = {key: one[key] for key in ("upstreamType", "downstreamType", "confidenceScore")}
        _below(mapped, keys).update(dict.fromkeys(one["upstreams"], value))
    return mapped


def _from_keys(mapped: Json) -> list[Json]:
    return [
        _lineage(operation, downstream, query, upstreams)
        for operation, downstreams in mapped.items()
        for downstream, queries in downstreams.items()
        for query, upstreams in queries.items()
        if upstreams
    ]


def _lineage(operation: str, downstream: str, query: str, upstreams: Json) -> Json:
    values = list(upstreams.values())
    made = {
        "downstreams": [downstream],
        "upstreams": list(upstreams),
        "upstreamType": values[-1].get("upstreamType", "FIELD_SET"),
        "downstreamType": values[-1].get("downstreamType", "FIELD"),
        "confidenceScore": min(value.get("confidenceScore", 1.0) for value in values),
        "transformOperation": operation,
    }
    return made | ({} if query == "NONE" else {"query": query})


def _applied(document: Json, patch: list[Json]) -> Json:
    changed = copy.deepcopy(document)
    for operation in patch:  # all that is above a key is made before anything is changed
        *above, last = _keys(operation)
        parent = _below(changed, above)
        if operation["op"] == "remove":
            parent.setdefault(last, {})
    for operation in patch:
        *above, last = _keys(operation)
        parent = reduce(lambda found, key: found[key], above, changed)
        if operation["op"] == "remove":
            del parent[last]
        else:
            parent[last] = copy.deepcopy(operation["value"])
    return changed


def _keys(operation: Json) -> list[str]:
    return [key.replace("~1", "/").replace("~0", "~") for key in operation["path"].split("/")[1:]]


def _below(document: Json, keys: list[str]) -> Json:
    for key in keys:
        document = document.setdefault(key, {})
        assert isinstance(document, dict), f"{key} is no object"
    return document
