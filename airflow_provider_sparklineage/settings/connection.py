"""A connection of type ``sparklineage``: the backend with its pages, and how lineage is collected.

The host is the URL of the backend's API, in full or with a port and a schema, and the password is
its API key. The extra is a JSON object of options
(:mod:`~airflow_provider_sparklineage.settings.options`), and may have keys of OpenLineage's client
configuration: with ``transport``, Airflow's ``[openlineage] config_conn_id`` can name the
connection, so that one connection is the full set-up.

This module also reads transports, which may come from a connection's extra, from Airflow's
configuration, or from OpenLineage's own configuration.
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
from airflow_provider_sparklineage.settings.checks import FIELDS, UrlPlace
from airflow_provider_sparklineage.settings.option_kinds import BackendName
from airflow_provider_sparklineage.settings.options import OPTIONS, SECTION, Option
from airflow_provider_sparklineage.settings.resolution import Origin, Source

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

CONN_TYPE = "sparklineage"
DEFAULT_CONN_ID = "sparklineage_default"

_CLIENT_KEYS = ("transport", "facets", "filters", "tags", "dataset")
"""The keys that OpenLineage's Python client reads; the client ignores all other keys."""
_OPTIONS = {option.name: option for option in OPTIONS}


@dataclass(frozen=True)
class LineageConnection:
    """The content of a connection of type ``sparklineage``.

    :param backend_url: the URL of the API, without a slash or ``/api/v1`` at its end, e.g.
        ``http://marquez:5000``; None if the connection has none
    :param api_key: the key for the API; None if the connection has none
    :param transport: the transport in the form of OpenLineage's client configuration; None if the
        connection has none
    :param values: the values of options, as JSON values
    :param place: the names of the fields that have ``backend_url`` and ``api_key``
    """

    conn_id: str
    backend_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    transport: Mapping[str, Any] | None = field(default=None, repr=False)
    values: Mapping[str, object] = field(default_factory=dict)
    place: UrlPlace = FIELDS

    @property
    def wanted_transport(self) -> str:
        """The transport, as JSON, that the extra needs so that Airflow sends events to the API."""
        auth = {"auth": {"type": "airflow_connection_api_key"}} if self.api_key else {}
        if self.values.get("backend") == BackendName.DATAHUB:
            url = self.backend_url or "http://gms:8080"
            return json.dumps({"type": DATAHUB_TRANSPORT, "server": url, **auth})
        url = self.backend_url or "http://marquez:5000"
        return json.dumps({"type": "http", "url": url, **auth})


def source_of(connection: LineageConnection | None) -> Source:
    """Give the values of a connection as a source, which is empty if there is no connection."""
    if connection is None:
        return Source(Origin.CONNECTION)
    return Source(Origin.CONNECTION, connection.values, connection.conn_id)


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

    :param host: the URL of the backend's API, in full, or without scheme and port
    :param schema: the scheme of the URL, if ``host`` has none: ``http`` or ``https``
    :param password: the key for the API
    :param extra: a JSON object as text
    :raise ConnectionFieldsError: if a field is impossible; the error names the connection
    """
    if conn_type != CONN_TYPE:
        raise _error(
            conn_id,
            f"is of type {conn_type!r}",
            f"Give lineage_conn_id a connection of type {CONN_TYPE}; that of Spark is conn_id.",
        )
    fields = _extra(conn_id, extra)
    transport = _transport(conn_id, fields)
    values = {key: value for key, value in fields.items() if key not in _CLIENT_KEYS}
    for key in values:
        _check_key(conn_id, key)
    path, sent = _transport_to_backend(transport or {}, str(values.get("backend") or ""))
    url_key, key = ("server", "token") if is_to_datahub(sent) else ("url", "auth")
    sent_to = api_url(str(sent.get(url_key) or "")) or None
    backend = _url(conn_id, host, port, schema) if host else sent_to
    # A host that is not the transport's must not get the transport's key.
    api_key = password or (api_key_of(sent) if backend == sent_to else None)
    url = ""
    if host and "://" in host:
        url = "the connection's host (API URL in its form)"
        if port and not urlsplit(host.strip()).port:  # of an old connection
            url = f"{url} and its port, which the form does not show"
    if not host:
        url = f"{path}.{url_key} in the connection's extra"
    place = UrlPlace(url)
    if api_key and not password:
        place = UrlPlace(url, f"{path}.{key} in the connection's extra")
    return LineageConnection(conn_id, backend, api_key, transport, values, place)


def _extra(conn_id: str, extra: str | None) -> dict[str, Any]:
    """Read the JSON object of the extra, and leave out the keys whose values are empty.

    The form of a connection also stores the fields that were not filled in.

    :param conn_id: the connection, which the error names
    :raise ConnectionFieldsError: if the extra is not a JSON object
    """
    if not extra or not extra.strip():
        return {}
    try:
        fields = json.loads(extra)
    except ValueError as error:
        reason = getattr(error, "msg", "it cannot be decoded")
        place = f" in line {line}" if (line := getattr(error, "lineno", None)) else ""
        raise _error(
            conn_id,
            f"has an extra that is no JSON ({reason}{place})",
            "Write the extra as a JSON object.",
        ) from None  # the error has the text, which may hold secrets
    if not isinstance(fields, dict):
        raise _error(
            conn_id,
            "has an extra that is no JSON object",
            'Write the extra as a JSON object, e.g. {"observe": false}.',
        )
    return {key: value for key, value in fields.items() if value not in (None, "", {})}


def _transport(conn_id: str, fields: Mapping[str, Any]) -> Mapping[str, Any] | None:
    transport = fields.get("transport")
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
    similar = difflib.get_close_matches(key, [*known, *_CLIENT_KEYS], n=1)
    fix = f"Did you mean {similar[0]}?" if similar else f"There are: {', '.join(known)}."
    raise _error(conn_id, f"has an unknown key {key!r} in its extra", fix)


def _transport_to_backend(
    transport: Mapping[str, Any], backend: str
) -> tuple[str, Mapping[str, Any]]:
    """Find the transport to the backend, and its path in the configuration.

    A transport of the backend's kind is preferred to other transports with a URL.

    :return: the path and the transport; ``transport`` and {} if no transport has a URL
    """
    types = (DATAHUB_TYPES, HTTP_TYPES)
    ordered = types if backend == BackendName.DATAHUB else reversed(types)
    transports = chain.from_iterable(transports_of(each, transport) for each in ordered)
    return next(transports, ("transport", {}))


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


# Transports in the form of OpenLineage's client configuration. A transport can have other
# transports in it (``composite``, ``transform``). This package can send requests by two types of
# transports: an HTTP transport has a ``url``, and the transport to DataHub has a ``server``.

DATAHUB_TRANSPORT = "airflow_provider_sparklineage.datahub.DataHubTransport"
"""The ``type`` of this package's transport to DataHub."""


def api_url(url: str) -> str:
    """Cut off the ends that people add to the URL of a backend's API: slashes, and API paths."""
    return url.strip().rstrip("/").removesuffix("/lineage").removesuffix("/api/v1")


HTTP_TYPES = ("http", "async_http")
DATAHUB_TYPES = (DATAHUB_TRANSPORT,)


def transports_of(
    types: Collection[str], transport: Mapping[str, Any], path: str = "transport"
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield a transport and the transports within it that are of these types, each with its path.

    :param types: :data:`HTTP_TYPES` or :data:`DATAHUB_TYPES`
    :param path: the path of ``transport`` in the configuration; transports within it have longer
        paths, such as ``transport.transports.a``
    """
    type_ = transport.get("type")
    if type_ in types:
        yield path, transport
    inner = transport.get("transports")
    if type_ == "composite" and inner:
        named = inner.items() if isinstance(inner, dict) else enumerate(inner)
        for name, below in named:
            if isinstance(below, dict):
                yield from transports_of(types, below, f"{path}.transports.{name}")
    if type_ == "transform" and isinstance(below := transport.get("transport"), dict):
        yield from transports_of(types, below, f"{path}.transport")


def types_of(transport: Mapping[str, Any]) -> Iterator[object]:
    """Yield the type of a transport, or the types of the transports in a composite one."""
    below = transport.get("transports")
    if transport.get("type") != "composite" or not below:
        yield transport.get("type")
        return
    for child in below.values() if isinstance(below, dict) else below:
        yield from types_of(child if isinstance(child, dict) else {})


def title_of(transport: Mapping[str, Any]) -> str:
    """Give the noun for a transport of this type in a sentence, such as ``http transport``."""
    if is_to_datahub(transport):
        return "transport to DataHub"
    return f"{transport.get('type') or 'unnamed'} transport"


def is_to_datahub(transport: Mapping[str, Any]) -> bool:
    """Whether a transport itself, not one within it, is this package's transport to DataHub."""
    return transport.get("type") == DATAHUB_TRANSPORT


def is_converted(transport: Mapping[str, Any] | None) -> bool:
    """Whether the transport, or a transport within it, converts events for DataHub.

    The conversion needs the same event as the archive and the XCom, not one adapted for a backend.

    :param transport: None if no transport is configured
    """
    return next(transports_of(DATAHUB_TYPES, transport or {}), None) is not None


def api_key_of(transport: Mapping[str, Any]) -> str | None:
    """Give the API key with which a transport authenticates; None if it has no key."""
    if is_to_datahub(transport) and transport.get("token"):
        return str(transport["token"])
    auth = transport.get("auth")
    if not isinstance(auth, dict) or auth.get("type") != "api_key":
        return None
    key = auth.get("apiKey") or auth.get("api_key")
    return str(key) if key else None


# The form of a connection in Airflow's pages, which is made from the table of options.


def connection_type() -> dict[str, Any]:
    """Give the entry for this connection type in the ``connection-types`` of the provider info."""
    fields = {option.name: _form_field(option) for option in OPTIONS if option.in_connection}
    first = {"web_url": fields.pop("web_url")}  # which most people set
    return {
        "connection-type": CONN_TYPE,
        "hook-class-name": "airflow_provider_sparklineage.hooks.sparklineage.SparkLineageHook",
        "hook-name": "Spark Lineage",
        "ui-field-behaviour": {
            # A host that is a URL needs no port and no schema. If a connection has a port or a
            # schema, saving the form does not delete it.
            "hidden-fields": ["login", "port", "schema"],
            "relabeling": {"host": "API URL", "password": "API key"},
            # The form shows placeholders like values, so their text says that they are examples.
            "placeholders": {
                "host": "e.g. http://marquez:5000, or http://gms:8080",
                "password": "only if the API wants one",
            },
        },
        "conn-fields": {**first, "transport": _TRANSPORT_FIELD, **fields},
    }


_TRANSPORT_FIELD = {
    "label": "Transport",
    "description": (
        "How Airflow sends lineage. It is needed if [openlineage] config_conn_id names this "
        'connection, because Airflow looks for the URL nowhere else: {"type": "http", "url": "…"}, '
        f'for DataHub {{"type": "{DATAHUB_TRANSPORT}", "server": "…"}}, '
        'and with an API key also "auth": {"type": "airflow_connection_api_key"}.'
    ),
    "schema": {"type": ["object", "null"]},
}


def _form_field(option: Option) -> dict[str, Any]:
    """Describe the form's field for an option; if the field is empty, the configuration is used."""
    choices = ("True", "False") if option.kind.type == "boolean" else option.kind.choices
    # Booleans are a choice of texts, because a switch has no third state for "not set". No field
    # has a default, which the form would save as if the user had set it.
    schema: dict[str, Any] = {"type": ["string", "null"], "enum": list(choices)}
    if not choices:
        schema = {"type": [option.kind.type, "null"]}
        if option.kind.type in ("integer", "number"):
            schema["minimum"] = 0
    default = f" By default {option.default}." if option.default else ""
    return {
        "label": option.name.replace("_", " ").capitalize().replace(" url", " URL"),
        "description": f"{option.description.replace('`', '')}{default}",
        "schema": schema,
    }
