"""Patches: what is added to an aspect, so that what others have written there stays.

The server applies them to the aspect as it is stored (``AspectTemplateEngine``; of lists it makes
maps by the keys of their entries), so that the same patch again changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_sparklineage.datahub.proposals import Json


def add(*path: str, value: Any) -> Json:
    """Give the operation that adds a value, or puts it in the place of the one that is there.

    :param path: keys from the aspect down, as they are; RFC 6901 writes ``~`` and ``/`` otherwise
    """
    return {"op": "add", "path": f"/{'/'.join(map(escaped, path))}", "value": value}


def remove(*path: str) -> Json:
    """Give the operation that removes a value; nothing happens if it is not there."""
    return {"op": "remove", "path": f"/{'/'.join(map(escaped, path))}"}


def escaped(key: str) -> str:
    """Give a key as a path has it."""
    return key.replace("~", "~0").replace("/", "~1")


def keyed(name: str, keys: Sequence[str], operations: list[Json]) -> Json:
    """Give a patch of a list, whose entries are named by some of their values (GenericJsonPatch).

    :param name: of the list
    :param keys: what names an entry, in the order of the operations' paths
    """
    return {"arrayPrimaryKeys": {name: list(keys)}, "patch": operations}
