"""Read the conversion's settings from Airflow's configuration; check the transports to DataHub."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.hooks import sources
from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.model.exceptions import SparkLineageError
from airflow_provider_sparklineage.settings.checks import Check, Status
from airflow_provider_sparklineage.settings.connection import api_url, datahub_transports
from airflow_provider_sparklineage.settings.option_kinds import BackendName

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_sparklineage.datahub.configuration import Conversion
    from airflow_provider_sparklineage.event.backends.checks import Endpoint

log = logger(__name__)

_KEY_OF_CONNECTION = "airflow_connection_api_key"


def conversion() -> Conversion:
    """Give the settings by which Airflow's transport to DataHub converts events.

    :return: the settings of the first transport to DataHub; the default if no transport is to
        DataHub, or if the transport cannot be read, which the doctor reports
    """
    from airflow_provider_sparklineage.datahub import configuration
    from airflow_provider_sparklineage.datahub.configuration import DEFAULT_CONVERSION

    try:
        transport, _ = sources.transport()
        given = next((found for _, found in datahub_transports(transport or {})), {})
        return configuration.conversion_of(given)
    except SparkLineageError as error:
        log.debug("The transport to DataHub cannot be read: %s", error)
        return DEFAULT_CONVERSION


def backend_checks(
    endpoint: Endpoint | None, backend: BackendName, transport: Mapping[str, Any], place: str
) -> list[Check]:
    """Check the backend that shows lineage, and each DataHub that lineage is sent to.

    :param endpoint: the API and pages of the backend that shows lineage; None if they are not known
    :param backend: the kind of that backend
    :param transport: the configured transport, which may be composed of other transports
    :param place: the place of the transport in the configuration, in words
    """
    from airflow_provider_sparklineage.event.backends import checks
    from airflow_provider_sparklineage.hooks import datahub_checks as datahub

    found = list(datahub_transports(transport))
    servers = {api_url(str(given.get("server") or "")) for _, given in found}
    done: list[Check] = []
    if endpoint is not None and endpoint.url in servers:
        done += _checked_pages(endpoint, backend)
    elif endpoint is not None and backend is BackendName.DATAHUB:
        done += datahub.check(replace(endpoint, port=datahub.PORT))
    elif endpoint is not None:
        done += checks.check(endpoint, is_marquez=backend is BackendName.MARQUEZ)
    for path, given in found:
        done += datahub.check_transport(given, path, place)
    return done


def _checked_pages(endpoint: Endpoint, backend: BackendName) -> list[Check]:
    """Check only the pages of a DataHub; its API is checked with the transport that sends to it.

    :return: [] if no URL of pages is configured
    """
    from airflow_provider_sparklineage.event.backends.checks import WEB, checked_web

    if not endpoint.web_url:
        return []
    if backend is BackendName.DATAHUB:
        return [checked_web(endpoint)]
    message = f"Lineage is sent to DataHub, and links at {endpoint.web_url} are those of {backend}."
    fix = "Set [sparklineage] backend to datahub; what is sent to DataHub is the same."
    return [Check(WEB, Status.WARNING, message, fix)]


def with_key(transport: Mapping[str, Any], key: str | None) -> dict[str, Any]:
    """Put a connection's key into each part of its transport that refers to the connection's key.

    When Airflow sends events, Airflow itself finds the key, by the connection's id. A connection
    that is being tested is still in a form and has no id.

    :return: a new transport; it equals the given one if ``key`` is None
    """

    def resolved(value: Any) -> Any:
        if isinstance(value, list):
            return list(map(resolved, value))
        if not isinstance(value, dict):
            return value
        if key and value.get("type") == _KEY_OF_CONNECTION and not value.get("conn_id"):
            return {"type": "api_key", "apiKey": key}
        return {name: resolved(below) for name, below in value.items()}

    found: dict[str, Any] = resolved(dict(transport))
    return found
