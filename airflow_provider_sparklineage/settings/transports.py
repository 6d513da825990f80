"""Transports as OpenLineage's client is configured with them: which there are, and to where.

A transport can have others in it (``composite``, ``transform``). Of those that this package can ask
something, an HTTP one has a ``url``, and the one to DataHub a ``server``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

DATAHUB_TRANSPORT = "airflow_provider_sparklineage.datahub.DataHubTransport"
"""The ``type`` of this package's transport to DataHub."""


def api_url(url: str) -> str:
    """Cut what people add to the URL of a backend's API: slashes, and the path of the API."""
    return url.strip().rstrip("/").removesuffix("/lineage").removesuffix("/api/v1")


def http_transports(transport: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the HTTP transports of a transport: itself, or those in a composite one."""
    return (found for _, found in located_transports(transport))


def located_transports(
    transport: Mapping[str, Any], path: str = "transport"
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the HTTP transports of a transport, each with where it stands.

    :param path: of the transport itself, e.g. ``transport``; one below has a longer one
    """
    return _located(transport, ("http", "async_http"), path)


def datahub_transports(
    transport: Mapping[str, Any], path: str = "transport"
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the transports to DataHub of a transport, each with where it stands."""
    return _located(transport, (DATAHUB_TRANSPORT,), path)


def types_of(transport: Mapping[str, Any]) -> Iterator[object]:
    """Yield the types of what a transport sends by: its own, or of those in a composite one."""
    below = transport.get("transports")
    if transport.get("type") != "composite" or not below:
        yield transport.get("type")
        return
    for child in below.values() if isinstance(below, dict) else below:
        yield from types_of(child if isinstance(child, dict) else {})


def title_of(transport: Mapping[str, Any]) -> str:
    """Name a transport in a sentence."""
    if is_to_datahub(transport):
        return "transport to DataHub"
    return f"{transport.get('type') or 'unnamed'} transport"


def is_to_datahub(transport: Mapping[str, Any]) -> bool:
    """Whether a transport is this package's to DataHub, itself and not in another one."""
    return transport.get("type") == DATAHUB_TRANSPORT


def is_converted(transport: Mapping[str, Any] | None) -> bool:
    """Whether one of the transports converts events, and wants them as they are kept.

    :param transport: None if there is none
    """
    return next(datahub_transports(transport or {}), None) is not None


def _located(
    transport: Mapping[str, Any], kinds: Collection[str], path: str
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    kind = transport.get("type")
    if kind in kinds:
        yield path, transport
    inner = transport.get("transports")
    if kind == "composite" and inner:
        named = inner.items() if isinstance(inner, dict) else enumerate(inner)
        for name, below in named:
            if isinstance(below, dict):
                yield from _located(below, kinds, f"{path}.transports.{name}")
    if kind == "transform" and isinstance(below := transport.get("transport"), dict):
        yield from _located(below, kinds, f"{path}.transport")


def api_key_of(transport: Mapping[str, Any]) -> str | None:
    """Give the API key that a transport authenticates with, if it has one."""
    if is_to_datahub(transport) and transport.get("token"):
        return str(transport["token"])
    auth = transport.get("auth")
    if not isinstance(auth, dict) or auth.get("type") != "api_key":
        return None
    key = auth.get("apiKey") or auth.get("api_key")
    return str(key) if key else None
