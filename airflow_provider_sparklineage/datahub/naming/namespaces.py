"""What the configuration says of namespaces: which platform, instance, environment they are.

::

    "namespaces": {
      "hive://metastore-eu:*": {"platform_instance": "eu"},
      "oss://*": {"platform": "oss", "env": "DEV"}
    }

The first glob that matches a dataset's namespace is taken, of a table's files that of its table.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.model.exceptions import SettingsError
from airflow_provider_sparklineage.model.globs import compiled
from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from collections.abc import Iterable

ENVS = (
    *("PROD", "DEV", "TEST", "QA", "UAT", "EI", "PRE", "STG", "NON_PROD"),
    *("CORP", "RVW", "PRD", "TST", "SIT", "SBX", "SANDBOX", "CERT"),
)
"""``com.linkedin.common.FabricType``; the server refuses any other."""


class Namespace(Frozen, frozen=True):
    """What is known of the namespaces that a glob matches; None for what it does not say.

    :param glob: of OpenLineage's namespaces
    :param platform: DataHub's name of it, by which datasets are named as well
    :param env: one of :data:`ENVS`
    :param platform_instance: empty for none, even if all others have one
    :param name_prefix: what names in DataHub begin with, such as ``catalog.``
    :param lower_case: whether names are in lower case
    """

    glob: str
    platform: str = ""
    env: str | None = None
    platform_instance: str | None = None
    name_prefix: str = ""
    lower_case: bool = False


def known_of(namespace: str, namespaces: Iterable[Namespace]) -> Namespace:
    """Give what is known of a namespace: of the first glob that matches it."""
    for one in namespaces:
        if compiled(one.glob).fullmatch(namespace):
            return one
    return _NOTHING_KNOWN


_NOTHING_KNOWN = Namespace("*")


def read(given: object) -> tuple[Namespace, ...]:
    """Read the key ``namespaces`` of a configuration, in its order.

    :raise SettingsError: if it is no object of objects, or has an unknown key or an impossible
        value
    """
    if not isinstance(given, dict):
        raise _error(None, "are no object", f"Write them as {_EXAMPLE}.")
    return tuple(_namespace(str(glob), says) for glob, says in given.items())


_EXAMPLE = '{"hive://*": {"platform_instance": "eu"}}'
_KEYS: dict[str, type] = {
    "platform": str,
    "env": str,
    "platform_instance": str,
    "name_prefix": str,
    "lower_case": bool,
}


def _namespace(glob: str, says: object) -> Namespace:
    if not isinstance(says, dict):
        raise _error(glob, "say nothing", f"Write them as {_EXAMPLE}.")
    known: dict[str, Any] = {}
    for key, value in says.items():
        _check(glob, key, value)
        known[key] = value.upper() if key == "env" else value
    return Namespace(glob, **known)


def _check(glob: str, key: str, value: object) -> None:
    kind = _KEYS.get(key)
    if kind is None:
        near = difflib.get_close_matches(str(key), _KEYS, n=1)
        fix = f"Did you mean {near[0]}?" if near else f"There are: {', '.join(_KEYS)}."
        raise _error(glob, f"have an unknown key {key!r}", fix)
    if not isinstance(value, kind):
        fix = f"Write {key} as {'true or false' if kind is bool else 'a JSON string'}."
        raise _error(glob, f"have an impossible {key} {value!r}", fix)
    if key == "env" and str(value).upper() not in ENVS:
        raise _error(glob, f"have an unknown env {value!r}", f"There are: {', '.join(ENVS)}.")


def _error(glob: str | None, problem: str, fix: str) -> SettingsError:
    of = "" if glob is None else f" {glob!r}"
    return SettingsError(f"The namespaces{of} of the transport to DataHub {problem}.", fix)
