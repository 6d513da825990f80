"""Ask a backend whether lineage can be sent to it and looked at, without storing anything.

Marquez has no URL for that. A list that it gives shows that it is one, and an empty event,
which it refuses in its own words before it stores anything, that the way for events is open.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.event.backends.answers import (
    document_of,
    failed,
    is_html,
    unusable,
)
from airflow_provider_sparklineage.event.backends.client import Endpoint, Problem, ask
from airflow_provider_sparklineage.settings.checks import Check, Status
from airflow_provider_sparklineage.settings.connection import (
    api_url,
    datahub_transports,
    http_transports,
    title_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_sparklineage.event.backends.client import Answer
    from airflow_provider_sparklineage.settings.connection import LineageConnection

READ, WRITE, WEB = "backend, read", "backend, write", "backend, web pages"
TRANSPORT = "transport"

_LISTS = (("/api/v1/namespaces?limit=1", "namespaces"), ("/api/v1/jobs?limit=10", "jobs"))


def check(endpoint: Endpoint, *, is_marquez: bool = True) -> list[Check]:
    """Check the way of reading, that of events, and the web pages if there is a URL of them.

    Events are not tried where reading has shown that this is no Marquez: others might store one.

    :param is_marquez: False if it is configured as another backend; then any answer is enough
    """
    read = _checked_read(endpoint) if is_marquez else _checked_answer(endpoint)
    checks = [read]
    if is_marquez and read.status is Status.OK:
        checks.append(_checked_write(endpoint))
    if endpoint.web_url:
        checks.append(checked_web(endpoint))
    return checks


def _checked_answer(endpoint: Endpoint) -> Check:
    answer = ask(endpoint, "GET", "")
    problem = answer if isinstance(answer, Problem) else unusable(endpoint, answer, endpoint.url)
    if problem:
        return failed(problem, READ)
    message = f"There is a server at {endpoint.url}; whether it takes events is not tried."
    return Check(READ, Status.OK, message)


def _checked_read(endpoint: Endpoint) -> Check:
    for path, key in _LISTS:
        url = endpoint.url + path
        answer = ask(endpoint, "GET", path)
        if isinstance(answer, Problem):
            return failed(answer, READ)
        if problem := unusable(endpoint, answer, url):
            return failed(problem, READ)
        if answer.status == 500:
            return failed(_POISONED, READ)
        if answer.status != 200 or not isinstance(document_of(answer).get(key), list):
            return failed(_not_marquez(endpoint, answer, url), READ)
    return Check(READ, Status.OK, f"Marquez answers at {endpoint.url}.")


def _checked_write(endpoint: Endpoint) -> Check:
    url = f"{endpoint.url}/api/v1/lineage"
    answer = ask(endpoint, "POST", "/api/v1/lineage")
    if isinstance(answer, Problem):
        return failed(answer, WRITE)
    if problem := unusable(endpoint, answer, url):
        return failed(problem, WRITE)
    if answer.status == 422 and b"run must not be null" in answer.body:
        return Check(
            WRITE, Status.OK, "It reads events; an empty one was refused, as it should be."
        )
    unlike = Problem(
        f"{url} answers {answer.status} to an empty event, where Marquez answers 422.",
        "Look at what stands between this machine and Marquez: a proxy may let no POST through.",
    )
    return failed(unlike, WRITE)


def checked_web(endpoint: Endpoint) -> Check:
    """Check the web pages of a backend, whichever it is."""
    url = str(endpoint.web_url).rstrip("/")
    # Another host than the API's, so it is not given the API's key.
    answer = ask(replace(endpoint, url=url, api_key=None, headers=(), cert=None), "GET", "/")
    fix = (
        f"Correct {endpoint.web_place}: it is the URL at which you open the backend's pages in a "
        "browser."
    )
    if isinstance(answer, Problem):
        return Check(WEB, Status.WARNING, answer.message, fix)
    if answer.status >= 400 or not is_html(answer):
        message = f"{url} gives no web page (it answers {answer.status})."
        return Check(WEB, Status.WARNING, message, fix)
    return Check(WEB, Status.OK, f"There are web pages at {url}.")


# --- problems -------------------------------------------------------------------------------------


_POISONED = Problem(
    "Marquez answers 500 to its own lists: its database most likely holds a name that it cannot "
    "read back, from an event that somebody sent, and its pages are empty for everybody.",
    "Look for the name in Marquez's log and remove its rows from the tables namespaces and "
    "datasets; lineage of this provider does not contain such names.",
)


def _not_marquez(endpoint: Endpoint, answer: Answer, url: str) -> Problem:
    place = endpoint.place.of("host", "port")
    what = "with a web page" if is_html(answer) else f"{answer.status}, and not as Marquez"
    return Problem(
        f"{url} answers {what}: there is no API of Marquez.",
        f"Give the URL of the API without /api/v1 in {place} (Marquez has it at port 5000 and its "
        "pages at 3000, which go into web_url). Another backend may take lineage all the same; it "
        "cannot be checked, and with backend = generic any answer is enough.",
    )


# --- Airflow's transport --------------------------------------------------------------------------


def compare(
    connection: LineageConnection | None,
    transport: Mapping[str, Any] | None,
    config_conn_id: str = "",
) -> Check:
    """Compare where Airflow sends lineage with where the connection looks at it.

    :param transport: that of Airflow's OpenLineage provider; None if it has none
    :param config_conn_id: Airflow's ``[openlineage] config_conn_id``
    """
    if transport is None:
        return Check(TRANSPORT, Status.FAILED, _NO_TRANSPORT, _transport_fix(connection))
    title = title_of(transport)
    if connection is None:
        return Check(TRANSPORT, Status.OK, f"Airflow sends lineage by its {title}.")
    if connection.transport and config_conn_id != connection.conn_id:
        return Check(
            TRANSPORT,
            Status.WARNING,
            f"Connection {connection.conn_id} has a transport, but Airflow sends by another.",
            _transport_fix(connection),
        )
    sent_to = [(api_url(str(t.get("url") or "")), t) for t in http_transports(transport)]
    to_datahub = [t for _, t in datahub_transports(transport) if t.get("server")]
    sent_to += [(api_url(str(t["server"])), t) for t in to_datahub]
    urls = sorted({url for url, _ in sent_to})
    if not urls or connection.backend_url is None:
        message = f"Airflow sends lineage by its {title}, which is not compared with a URL."
        return Check(TRANSPORT, Status.OK, message)
    if connection.backend_url in urls:
        ways = [t for url, t in sent_to if url == connection.backend_url]
        if connection.api_key and not any(any(map(t.get, _KEYS)) for t in ways):
            return _keyless(connection)
        message = f"Airflow sends lineage to {connection.backend_url}, where it is looked at."
        return Check(TRANSPORT, Status.OK, message)
    looked_at = connection.place.of("host", "port", "schema")
    sent = f"of connection {config_conn_id}" if config_conn_id else "of Airflow's [openlineage]"
    return Check(
        TRANSPORT,
        Status.WARNING,
        f"Airflow sends lineage to {', '.join(urls)}, and connection {connection.conn_id} looks at "
        f"it at {connection.backend_url}.",
        f"If these are not two URLs of one backend, correct {looked_at}, or the transport {sent}.",
    )


_KEYS = ("auth", "token", "custom_headers", "headers")
"""What a transport may authenticate by: those of HTTP, and that to DataHub."""


def _keyless(connection: LineageConnection) -> Check:
    auth = {"type": "airflow_connection_api_key", "conn_id": connection.conn_id}
    return Check(
        TRANSPORT,
        Status.WARNING,
        f"Airflow sends lineage to {connection.backend_url} without the API key that connection "
        f"{connection.conn_id} has.",
        f'Add "auth": {json.dumps(auth)} to the transport.',
    )


_NO_TRANSPORT = (
    "Airflow's OpenLineage provider has no transport, so no lineage is sent and none collected."
)


def _transport_fix(connection: LineageConnection | None) -> str:
    if connection is not None and connection.transport:
        return f"Set AIRFLOW__OPENLINEAGE__CONFIG_CONN_ID={connection.conn_id}."
    return (
        "Put the transport into the extra of a sparklineage connection and set "
        "AIRFLOW__OPENLINEAGE__CONFIG_CONN_ID to the connection's id."
    )


def endpoint_of(
    connection: LineageConnection, web_url: str | None, web_place: str = "web_url"
) -> Endpoint | None:
    """Give what a connection looks at; None if it has no URL.

    :param web_place: where ``web_url`` stands
    """
    if connection.backend_url is None:
        return None
    same = (
        transport
        for transport in http_transports(connection.transport or {})
        if api_url(str(transport.get("url") or "")) == connection.backend_url
    )
    verify = all(transport.get("verify") is not False for transport in same)
    return Endpoint(
        connection.backend_url,
        connection.api_key,
        web_url,
        verify,
        place=connection.place,
        web_place=web_place,
    )
