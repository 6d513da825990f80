"""A connection of type ``sparklineage``: where lineage is looked at, and how it is collected.

The host is the URL of the backend's API, in full or with a port and a schema, and the password is
its API key. The extra is a JSON object of options
(:mod:`~airflow_provider_sparklineage.settings.options`), and may have keys of OpenLineage's client
configuration: with ``transport`` the connection can be what Airflow's ``[openlineage]
config_conn_id`` names, so that one connection is the full set-up.
"""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow_provider_sparklineage.model.credentials import scrub
from airflow_provider_sparklineage.model.exceptions import ConnectionFieldsError
from airflow_provider_sparklineage.settings.option_kinds import BackendName
from airflow_provider_sparklineage.settings.options import OPTIONS, SECTION
from airflow_provider_sparklineage.settings.resolution import NO_CONNECTION, Origin, Source
from airflow_provider_sparklineage.settings.transports import (
    DATAHUB_TRANSPORT,
    api_key_of,
    api_url,
    datahub_transports,
    is_to_datahub,
    located_transports,
)
from airflow_provider_sparklineage.settings.url_place import FIELDS, UrlPlace

if TYPE_CHECKING:
    from collections.abc import Mapping

CONN_TYPE = "sparklineage"
DEFAULT_CONN_ID = "sparklineage_default"

_CLIENT = ("transport", "facets", "filters", "tags", "dataset")
"""What OpenLineage's Python client reads of its configuration; it ignores all else."""
_OPTIONS = {option.name: option for option in OPTIONS}


@dataclass(frozen=True)
class LineageConnection:
    """What a connection says.

    :param backend_url: of the API, without a slash or ``/api/v1`` at its end, e.g.
        ``http://marquez:5000``; None if the connection says none
    :param api_key: for the API
    :param transport: as OpenLineage's client configuration has it
    :param values: of options, as JSON has them
    :param place: where ``backend_url`` and ``api_key`` stand
    """

    conn_id: str
    backend_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    transport: Mapping[str, Any] | None = field(default=None, repr=False)
    values: Mapping[str, object] = field(default_factory=dict)
    place: UrlPlace = FIELDS

    @property
    def wanted_transport(self) -> str:
        """Give the transport to the API, as JSON: what Airflow needs in the extra to send there."""
        auth = {"auth": {"type": "airflow_connection_api_key"}} if self.api_key else {}
        if self.values.get("backend") == BackendName.DATAHUB:
            url = self.backend_url or "http://gms:8080"
            return json.dumps({"type": DATAHUB_TRANSPORT, "server": url, **auth})
        url = self.backend_url or "http://marquez:5000"
        return json.dumps({"type": "http", "url": url, **auth})

    @property
    def source(self) -> Source:
        """Give the values as a source of settings."""
        return Source(Origin.CONNECTION, self.values, self.conn_id)


def source_of(connection: LineageConnection | None) -> Source:
    """Give the values of a connection that need not be there."""
    return connection.source if connection else NO_CONNECTION


def read(
    conn_id: str,
    *,
    conn_type: str = CONN_TYPE,
    host: str | None = None,
    port: int | None = None,
    schema: str | None = None,
    password: str | None = None,
    extra: str | None = None,
) -> LineageConnection:
    """Read the fields of a connection.

    :param extra: JSON as text
    :raise ConnectionFieldsError: if they are impossible; names the connection
    """
    if conn_type != CONN_TYPE:
        raise _error(
            conn_id,
            f"is of type {conn_type!r}",
            f"Give lineage_conn_id a connection of type {CONN_TYPE}; that of Spark is conn_id.",
        )
    found = _extra(conn_id, extra)
    transport = _transport(conn_id, found)
    values = {key: value for key, value in found.items() if key not in _CLIENT}
    for key in values:
        _check_key(conn_id, key)
    path, sent = _looked_at(transport or {}, str(values.get("backend") or ""))
    url_key, key = ("server", "token") if is_to_datahub(sent) else ("url", "auth")
    sent_to = api_url(str(sent.get(url_key) or "")) or None
    backend = _url(conn_id, host, port, schema) if host else sent_to
    # Another host is not given the transport's key.
    api_key = password or (api_key_of(sent) if backend == sent_to else None)
    url = ""
    if host and "://" in host:
        url = "the connection's host (API URL in its form)"
        if port and not urlsplit(host.strip()).port:  # left by the form, which hides it
            url = f"{url} and its port, which the form does not show"
    if not host:
        url = f"{path}.{url_key} in the connection's extra"
    place = UrlPlace(url)
    if api_key and not password:
        place = UrlPlace(url, f"{path}.{key} in the connection's extra")
    return LineageConnection(conn_id, backend, api_key, transport, values, place)


def _extra(conn_id: str, extra: str | None) -> dict[str, Any]:
    """Give what the extra sets; what a form left empty is nothing."""
    if not extra or not extra.strip():
        return {}
    try:
        found = json.loads(extra)
    except ValueError as error:
        what = getattr(error, "msg", "it cannot be decoded")
        place = f" in line {line}" if (line := getattr(error, "lineno", None)) else ""
        raise _error(
            conn_id,
            f"has an extra that is no JSON ({what}{place})",
            "Write the extra as a JSON object.",
        ) from None  # the error holds the text, and that may hold secrets
    if not isinstance(found, dict):
        raise _error(
            conn_id,
            "has an extra that is no JSON object",
            'Write the extra as a JSON object, e.g. {"observe": false}.',
        )
    return {key: value for key, value in found.items() if value not in (None, "", {})}


def _transport(conn_id: str, found: Mapping[str, Any]) -> Mapping[str, Any] | None:
    transport = found.get("transport")
    if transport is None:
        return None
    if isinstance(transport, dict) and isinstance(transport.get("type"), str):
        return transport
    raise _error(
        conn_id,
        "has a transport that is no JSON object with a type",
        'Write it as an object and not as text, e.g. "transport": '
        '{"type": "http", "url": "http://marquez:5000"}.',
    )


def _check_key(conn_id: str, key: str) -> None:
    option = _OPTIONS.get(key)
    if option is not None and option.in_connection:
        return
    if option is not None:
        raise _error(
            conn_id,
            f"sets {key}, which is no option of a connection",
            f"Set it in Airflow's configuration, [{SECTION}] {key}.",
        )
    known = [name for name, option in _OPTIONS.items() if option.in_connection]
    similar = difflib.get_close_matches(key, [*known, *_CLIENT], n=1)
    selected = f"Did you mean {similar[0]}?" if similar else f"There are: {', '.join(known)}."
    raise _error(conn_id, f"has an unknown key {key!r} in its extra", selected)


def _looked_at(transport: Mapping[str, Any], backend: str) -> tuple[str, Mapping[str, Any]]:
    """Find of several transports that to the backend; else the first one with a URL."""
    ways = (located_transports(transport), datahub_transports(transport))
    ordered = reversed(ways) if backend == BackendName.DATAHUB else ways
    return next(chain.from_iterable(ordered), ("transport", {}))


def _url(conn_id: str, host: str, port: int | None, schema: str | None) -> str:
    text = host.strip() if "://" in host else f"{schema or 'http'}://{host.strip()}"
    try:
        split = urlsplit(text)
        usable = split.scheme in ("http", "https") and split.hostname and scrub(text) == text
        netloc = split.netloc if split.port or not port else f"{split.netloc}:{port}"
    except ValueError:
        usable = False
    if not usable:
        raise _error(
            conn_id,
            "has no URL as its host",
            "Give the URL of the API, e.g. http://marquez:5000; the key goes into the password.",
        )
    return api_url(f"{split.scheme}://{netloc}{split.path}")


def _error(conn_id: str, problem: str, fix: str) -> ConnectionFieldsError:
    return ConnectionFieldsError(f"Connection {conn_id} {problem}.", fix)
