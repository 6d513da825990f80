"""Checks whether a backend takes events and shows lineage; the checks store nothing in it.

:func:`ask` sends one request and gives the answer; a :exc:`.BackendError` says why there is none. A
person chooses the URL, and Airflow's API server may send the request: so the messages show only the
status of an answer, and its time and size are limited. Some answers come from a proxy or a login
page instead of the backend; :func:`backend_answer` refuses them for all backends.

Marquez has no URL for a check, so :func:`check` sends two kinds of requests. Lists of namespaces
and jobs show that the server is a Marquez. An empty event shows that events get there: Marquez
refuses it in its own words before it stores anything. :func:`compare` checks that Airflow sends
lineage to the backend that a connection names.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from airflow_provider_sparklineage.model.exceptions import BackendError
from airflow_provider_sparklineage.settings.checks import FIELDS, Check, Status, UrlPlace, failed
from airflow_provider_sparklineage.settings.connection import (
    DATAHUB_TYPES,
    HTTP_TYPES,
    api_url,
    title_of,
    transports_of,
)
from airflow_provider_sparklineage.storage.bounded import OutOfTimeError, within

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from requests import PreparedRequest

    from airflow_provider_sparklineage.settings.connection import LineageConnection


TIMEOUT_S = 5.0
"""Seconds for a complete answer; OpenLineage's own client waits as long."""
MAX_BYTES = 16 * 1024 * 1024
"""Limit of an answer: ten jobs with all facets of their latest runs fit."""
_EMPTY: Mapping[str, Any] = {}


@dataclass(frozen=True)
class Endpoint:
    """The URLs and credentials of a backend.

    :param url: URL of the API, as
        :func:`~airflow_provider_sparklineage.settings.connection.api_url` gives it
    :param api_key: the key that is sent in ``Authorization: Bearer``; None if there is none
    :param web_url: URL of the backend's web pages; None if it is not set
    :param verify: whether to check the backend's certificate, or the path of a file of trusted
        certificates; like ``verify`` of OpenLineage's HTTP transport
    :param timeout: time limit of one request, in seconds
    :param place: the settings that hold ``url`` and ``api_key``, for messages
    :param web_place: the setting that holds ``web_url``, for messages
    :param port: a half-sentence on the usual port of such a backend
    :param headers: further headers; one of them may authenticate instead of ``api_key``
    :param cert: path to a client certificate with its key, or paths to both
    """

    url: str
    api_key: str | None = field(default=None, repr=False)
    web_url: str | None = None
    verify: bool | str = True
    timeout: float = TIMEOUT_S
    place: UrlPlace = FIELDS
    web_place: str = "web_url"
    port: str = "Marquez has its API at port 5000"
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    cert: str | tuple[str, str] | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Answer:
    """The answer to a request.

    :param location: target of a redirect; empty if the answer is no redirect
    """

    status: int
    content_type: str
    location: str
    body: bytes = field(repr=False)


def ask(endpoint: Endpoint, method: str, path: str, document: Mapping[str, Any] = _EMPTY) -> Answer:
    """Send a request, and give the answer whatever its status; do not follow redirects.

    :param method: ``GET`` or ``POST``
    :param path: path below the endpoint's URL, from its first slash on
    :param document: body of a POST, as JSON; a GET has none
    :raise BackendError: if no complete answer came within the limits of time and size
    """
    import requests
    import urllib3

    url, place = endpoint.url + path, endpoint.place
    try:
        return within(
            endpoint.timeout,
            lambda: _answer(endpoint, method, url, document),
            "sparklineage-backend",
        )
    except requests.exceptions.SSLError as error:
        raise _tls_error(place, url, str(error)) from error
    except requests.exceptions.ProxyError as error:
        problem = f"The proxy on the way to {url} does not answer."
        fix = "Correct HTTP_PROXY and HTTPS_PROXY, or name the backend's host in NO_PROXY."
        raise BackendError(problem, fix) from error
    except (OutOfTimeError, requests.exceptions.Timeout) as error:
        problem = f"{url} does not answer within {endpoint.timeout:g} seconds."
        fix = (
            f"Check {place.name('host', 'port')}, and that no firewall drops the requests of this "
            "machine."
        )
        raise BackendError(problem, fix) from error
    except (requests.exceptions.ConnectionError, urllib3.exceptions.HTTPError) as error:
        raise _connection_error(endpoint, url, str(error)) from error
    except (requests.exceptions.RequestException, ValueError) as error:
        problem = f"{url} cannot be asked ({type(error).__name__})."
        raise BackendError(problem, f"Correct {place.name('host', 'port', 'schema')}.") from error


def _answer(endpoint: Endpoint, method: str, url: str, document: Mapping[str, Any]) -> Answer:
    import requests

    with requests.request(
        method,
        url,
        auth=_authentication(endpoint),
        headers={**dict(endpoint.headers), "Accept-Encoding": "identity"},  # nothing to unpack
        json=document if method == "POST" else None,
        allow_redirects=False,
        timeout=endpoint.timeout,
        verify=endpoint.verify,
        cert=endpoint.cert,
        stream=True,
    ) as response:
        body = bytearray()
        while part := response.raw.read(64 * 1024, decode_content=False):
            body += part
            if len(body) > MAX_BYTES:
                problem = f"{url} answers with more than {MAX_BYTES // 1024 // 1024} MiB."
                fix = (
                    f"Check {endpoint.place.name('host', 'port')}: a lineage backend gives a "
                    "list of a few names there."
                )
                raise BackendError(problem, fix)
        headers = response.headers
        return Answer(
            response.status_code,
            headers.get("Content-Type", ""),
            headers.get("Location", ""),
            bytes(body),
        )


def _authentication(endpoint: Endpoint) -> Callable[[PreparedRequest], PreparedRequest]:
    """Give a function that authenticates requests by the API key, else by the URL's credentials.

    If there are neither, the function changes nothing. ``requests`` never adds a password from
    ``.netrc`` to a request that has its own authentication.
    """
    from requests.auth import HTTPBasicAuth

    parts = urlsplit(endpoint.url)

    def authenticated(request: PreparedRequest) -> PreparedRequest:
        if endpoint.api_key:
            request.headers["Authorization"] = f"Bearer {endpoint.api_key}"
        elif parts.username is not None:
            user, password = unquote(parts.username), unquote(parts.password or "")
            return HTTPBasicAuth(user, password)(request)
        return request

    return authenticated


def _tls_error(place: UrlPlace, url: str, error: str) -> BackendError:
    if re.search("WRONG_VERSION_NUMBER|UNKNOWN_PROTOCOL|RECORD_LAYER", error, re.IGNORECASE):
        return BackendError(
            f"The server at {url} does not speak TLS.",
            f"Use http instead of https in {place.name('schema')}.",
        )
    return BackendError(
        f"The certificate of {url} is not trusted by this machine.",
        "Set REQUESTS_CA_BUNDLE to a file with the certificate of its authority, for Airflow as "
        "for this check.",
    )


def _connection_error(endpoint: Endpoint, url: str, error: str) -> BackendError:
    place = endpoint.place
    if re.search("NameResolution|Name or service not known|getaddrinfo", error):
        return BackendError(
            f"The host of {url} has no IP address.", f"Correct {place.name('host')}."
        )
    if "refused" in error:
        return BackendError(
            f"Nothing listens at {url}.",
            f"Start the backend, or correct {place.name('host', 'port')} ({endpoint.port}).",
        )
    return BackendError(
        f"The server at {url} breaks the connection off.",
        f"If the backend wants TLS, use https in {place.name('schema')}, else check "
        f"{place.name('host', 'port')}.",
    )


# --- the content of an answer ---------------------------------------------------------------------


def backend_answer(endpoint: Endpoint, method: str, path: str) -> Answer:
    """Send a request, and give the backend's own answer.

    :param method: ``GET`` or ``POST``; a POST has an empty object as its body
    :param path: path below the endpoint's URL, from its first slash on
    :raise BackendError: if :func:`ask` gets no answer, or a proxy or a login page gave it
    """
    answer = ask(endpoint, method, path)
    refuse_other_servers(endpoint, answer, endpoint.url + path)
    return answer


def refuse_other_servers(endpoint: Endpoint, answer: Answer, url: str) -> None:
    """Refuse an answer that does not come from the backend itself.

    :param endpoint: the backend, for the message
    :param url: the URL that gave the answer, for the message
    :raise BackendError: if a proxy or a login page gave the answer
    """
    code, place = answer.status, endpoint.place
    if 300 <= code < 400:
        problem = f"{url} sends elsewhere, to {_host_of(answer.location)}."
        fix = (
            f"Give the URL without a detour in {place.name('host', 'port', 'schema')}; if that is "
            f"a page for logging in, the API key in {place.key} is missing or wrong."
        )
        raise BackendError(problem, fix)
    if code in (401, 403, 407):
        problem = f"{url} lets nobody in without a valid key (it answers {code})."
        fix = f"Put the API key into {place.key}."
        raise BackendError(problem, fix)
    if code in (502, 503, 504):
        problem = f"A proxy before the backend at {url} does not reach it (it answers {code})."
        fix = "Start the backend, or look at the configuration of that proxy."
        raise BackendError(problem, fix)


def is_html(answer: Answer) -> bool:
    """Whether the answer is a web page, which no API gives."""
    return "html" in answer.content_type


def document_of(answer: Answer) -> dict[str, Any]:
    """Give the JSON object in an answer; {} if there is none."""
    try:
        document = json.loads(answer.body)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _host_of(location: str) -> str:
    """Give the scheme and host of a redirect's target, or ``another path`` if it has no host.

    Path and query are left out, because they may contain a session's key.

    :param location: the target, as the header ``Location`` has it
    """
    try:
        parts = urlsplit(location)
        host = parts.hostname or ""
    except ValueError:
        host = ""
    return f"{parts.scheme}://{host[:100]}" if host else "another path"


# --- checks ---------------------------------------------------------------------------------------


READ, WRITE, WEB = "backend, read", "backend, write", "backend, web pages"
TRANSPORT = "transport"

_LISTS = (("/api/v1/namespaces?limit=1", "namespaces"), ("/api/v1/jobs?limit=10", "jobs"))


def check(endpoint: Endpoint, *, is_marquez: bool = True) -> list[Check]:
    """Check that a backend can be read and takes events, and that its web pages can be opened.

    The web pages are checked only if their URL is set.

    The check of events is left out if reading shows that the server is not Marquez: another backend
    might store the empty event.

    :param is_marquez: False if another backend is configured; then the check of events is left out,
        too, and any answer of the backend shows that it can be read
    :return: the results of the checks, in the order in which they were made
    """
    if is_marquez:
        return checked(endpoint, (READ, _checked_read), (WRITE, _checked_write))
    return checked(endpoint, (READ, _checked_answer))


def checked(endpoint: Endpoint, *steps: tuple[str, Callable[[Endpoint], Check]]) -> list[Check]:
    """Do checks of a backend one by one; at last check its web pages, if their URL is set.

    A check has failed if it raises a :exc:`.BackendError`; then the later ``steps`` are left out.

    :param steps: the checks before that of the web pages, each with its name
    :return: the results of the checks, in the order in which they were made
    """
    results: list[Check] = []
    for name, step in steps:
        try:
            results.append(step(endpoint))
        except BackendError as error:
            results.append(failed(name, error))
            break
    if endpoint.web_url:
        results.append(checked_web(endpoint))
    return results


def _checked_answer(endpoint: Endpoint) -> Check:
    backend_answer(endpoint, "GET", "")
    message = f"There is a server at {endpoint.url}; whether it takes events is not tried."
    return Check(READ, Status.OK, message)


def _checked_read(endpoint: Endpoint) -> Check:
    for path, key in _LISTS:
        answer = backend_answer(endpoint, "GET", path)
        if answer.status == 500:
            problem = (
                "Marquez answers 500 to its own lists: its database most likely holds a name that "
                "it cannot read back, from an event that somebody sent, and its pages are empty "
                "for everybody."
            )
            fix = (
                "Look for the name in Marquez's log and remove its rows from the tables namespaces "
                "and datasets; lineage of this provider does not contain such names."
            )
            raise BackendError(problem, fix)
        if answer.status != 200 or not isinstance(document_of(answer).get(key), list):
            place = endpoint.place.name("host", "port")
            api = f"{answer.status}, and not as Marquez"
            problem = (
                f"{endpoint.url}{path} answers {'with a web page' if is_html(answer) else api}: "
                "there is no API of Marquez."
            )
            fix = (
                f"Give the URL of the API without /api/v1 in {place} (Marquez has it at port 5000 "
                "and its pages at 3000, which go into web_url). Another backend may take lineage "
                "all the same; it cannot be checked, and with backend = generic any answer is "
                "enough."
            )
            raise BackendError(problem, fix)
    return Check(READ, Status.OK, f"Marquez answers at {endpoint.url}.")


def _checked_write(endpoint: Endpoint) -> Check:
    path = "/api/v1/lineage"
    answer = backend_answer(endpoint, "POST", path)
    if answer.status == 422 and b"run must not be null" in answer.body:
        text = "It reads events; an empty one was refused, as it should be."
        return Check(WRITE, Status.OK, text)
    problem = (
        f"{endpoint.url}{path} answers {answer.status} to an empty event, where Marquez answers "
        "422."
    )
    fix = (
        "Look at the proxies between this machine and Marquez: one of them may let no POST through."
    )
    raise BackendError(problem, fix)


def checked_web(endpoint: Endpoint) -> Check:
    """Check that a backend's ``web_url`` is that of a web page; a problem is only a warning."""
    url = str(endpoint.web_url).rstrip("/")
    fix = (
        f"Correct {endpoint.web_place}: it is the URL at which you open the backend's pages in a "
        "browser."
    )
    try:
        # It is another host than the API's, so it must not get the API's key.
        answer = ask(replace(endpoint, url=url, api_key=None, headers=(), cert=None), "GET", "/")
    except BackendError as error:
        return Check(WEB, Status.WARNING, error.problem, fix)
    if answer.status >= 400 or not is_html(answer):
        message = f"{url} gives no web page (it answers {answer.status})."
        return Check(WEB, Status.WARNING, message, fix)
    return Check(WEB, Status.OK, f"There are web pages at {url}.")


# --- Airflow's transport --------------------------------------------------------------------------


def compare(
    connection: LineageConnection | None,
    transport: Mapping[str, Any] | None,
    config_conn_id: str = "",
) -> Check:
    """Check that Airflow's transport sends lineage to the backend's URL in a connection.

    :param connection: the connection; None if there is none
    :param transport: the transport of Airflow's OpenLineage provider; None if it has none
    :param config_conn_id: Airflow's ``[openlineage] config_conn_id``
    """
    if transport is None:
        return failed(TRANSPORT, _NO_TRANSPORT, _transport_fix(connection))
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
    by_http = [t for _, t in transports_of(HTTP_TYPES, transport)]
    sent_to = [(api_url(str(t.get("url") or "")), t) for t in by_http]
    to_datahub = [t for _, t in transports_of(DATAHUB_TYPES, transport) if t.get("server")]
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
    looked_at = connection.place.name("host", "port", "schema")
    sent = f"of connection {config_conn_id}" if config_conn_id else "of Airflow's [openlineage]"
    return Check(
        TRANSPORT,
        Status.WARNING,
        f"Airflow sends lineage to {', '.join(urls)}, and connection {connection.conn_id} looks at "
        f"it at {connection.backend_url}.",
        f"If these are not two URLs of one backend, correct {looked_at}, or the transport {sent}.",
    )


_KEYS = ("auth", "token", "custom_headers", "headers")
"""Keys of a transport, over HTTP or to DataHub, that may contain credentials."""


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
    """Give the endpoint of a connection's backend; None if the connection has no URL.

    :param web_place: the setting that holds ``web_url``, for messages
    """
    if connection.backend_url is None:
        return None
    same = (
        transport
        for _, transport in transports_of(HTTP_TYPES, connection.transport or {})
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
