"""Owners and tags of a job, as patches that leave alone what people have added in DataHub.

An entry is named by what every entry has. The SDK's builders name it by ``typeUrn`` and
``attribution`` too, and servers of before April 2026 fail at an entry that is stored without those
(``ArrayMergingTemplate.arrayFieldToMap``), as nearly all are. What such a server, or somebody, has
stored of the same entry stays: its keys are set one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.datahub.lenient import at, items, text
from airflow_provider_sparklineage.datahub.naming import urns
from airflow_provider_sparklineage.datahub.patches import add, keyed
from airflow_provider_sparklineage.datahub.values import plain
from airflow_provider_sparklineage.model.credentials import is_secret

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from airflow_provider_sparklineage.datahub.proposals import Json
    from airflow_provider_sparklineage.event.document import Facets

MAX_ENTRIES = 100
"""Owners, or tags, of one entity."""
_OWNER_KEYS = ("owner", "type")
_NOBODY = "airflow"
"""The owner that Airflow gives to a task of which nobody has named one (``default_owner``)."""
_KINDS = {"user": "corpuser", "team": "corpGroup", "group": "corpGroup"}
"""What comes before a name in OpenLineage (``team:data``), as DataHub's entities."""
_TYPES = frozenset({"TECHNICAL_OWNER", "BUSINESS_OWNER", "DATA_STEWARD", "DATAOWNER", "PRODUCER"})
_TYPE = "TECHNICAL_OWNER"
"""Airflow knows no kinds; DataHub's plugin writes DEVELOPER, which DataHub has deprecated."""


def owners(facets: Facets, names: Iterable[str] = ()) -> Json:
    """Give the patch of ``ownership``: the owners of the job facet, and more of them.

    :param names: as Airflow has them; its default owner is nobody
    """
    facet = items(at(facets, "ownership", "owners"))
    given = [(plain(one.get("name")).strip(), one.get("type")) for one in facet]
    given += [(name.strip(), None) for name in names]
    found = dict.fromkeys(
        (_owner(name), _type(kind))
        for name, kind in given[:MAX_ENTRIES]
        if name not in ("", _NOBODY)
    )
    return keyed("owners", _OWNER_KEYS, [key for one in found for key in _owned(*one)])


def tags(facets: Facets) -> Json:
    """Give the patch of ``globalTags``: the tags of the job facet."""
    found = dict.fromkeys(_tags(facets))
    return keyed("tags", ["tag"], [add("tags", tag, "tag", value=tag) for tag in found])


def _owned(owner: str, kind: str) -> list[Json]:
    named = dict(zip(_OWNER_KEYS, (owner, kind), strict=True))
    return [add("owners", owner, kind, key, value=value) for key, value in named.items()]


def _owner(name: str) -> str:
    prefix, _, rest = name.partition(":")
    kind = _KINDS.get(prefix) if rest else None
    before = f"urn:li:{kind or 'corpuser'}:"
    return before + urns.fitted(rest if kind else name, before, "")


def _type(kind: Any) -> str:
    found = text(kind).upper()
    return found if found in _TYPES else _TYPE


def _tags(facets: Facets) -> Iterator[str]:
    for one in items(at(facets, "tags", "tags"))[:MAX_ENTRIES]:
        key, value = plain(one.get("key")).strip(), plain(one.get("value")).strip()
        is_key_all = value in ("", "true", key) or is_secret(key)
        if name := key if is_key_all else f"{key}:{value}":
            yield "urn:li:tag:" + urns.fitted(name, "urn:li:tag:", "")
