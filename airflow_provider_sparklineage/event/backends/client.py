"""One request to a backend: its answer, or in words what keeps it from answering.

A person chooses the URL, and Airflow's API server may be what asks: so of what answers nothing is
shown but its status, and it has a limited time and size for that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from airflow_provider_sparklineage.settings.checks import FIELDS, UrlPlace
from airflow_provider_sparklineage.storage.bounded import OutOfTimeError, within

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from requests import PreparedRequest

TIMEOUT_S = 5.0
"""As long as OpenLineage's own client waits; here for all of an answer."""
MAX_BYTES = 16 * 1024 * 1024
"""Of an answer: ten jobs with all facets of their latest runs."""
_EMPTY: Mapping[str, Any] = {}


@dataclass(frozen=True)
class Endpoint:
    """How a backend is reached.

    :param url: of the API, as
        :func:`~airflow_provider_sparklineage.settings.connection.api_url` gives it
    :param verify: check its certificate: as the ``verify`` of OpenLineage's HTTP transport
    :param place: where ``url`` and ``api_key`` stand
    :param web_place: where ``web_url`` stands
    :param port: where such a backend listens, in words
    :param headers: to be sent as well; one of them may authenticate, instead of ``api_key``
    :param cert: path to a certificate of one's own with its key, or paths to both
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
    """What came back.

    :param location: to which it sends on; empty if to nowhere
    """

    status: int
    content_type: str
    location: str
    body: bytes = field(repr=False)


@dataclass(frozen=True)
class Problem:
    """What is wrong, and what to do about it."""

    message: str
    fix: str


def ask(
    endpoint: Endpoint, method: str, path: str, document: Mapping[str, Any] = _EMPTY
) -> Answer | Problem:
    """Send a request, and give the answer whatever its status; redirects are not followed.

    :param path: below the endpoint's URL, from its first slash on
    :param document: what a POST sends
    """
    import requests
    import urllib3

    url = endpoint.url + path
    try:
        return within(
            endpoint.timeout,
            lambda: _answer(endpoint, method, url, document),
            "sparklineage-backend",
        )
    except requests.exceptions.SSLError as error:
        return _tls_problem(endpoint, url, str(error))
    except requests.exceptions.ProxyError:
        return Problem(
            f"The proxy on the way to {url} does not answer.",
            "Correct HTTP_PROXY and HTTPS_PROXY, or name the backend's host in NO_PROXY.",
        )
    except (OutOfTimeError, requests.exceptions.Timeout):
        return Problem(
            f"{url} does not answer within {endpoint.timeout:g} seconds.",
            f"Check {endpoint.place.of('host', 'port')}, and that no firewall drops what this "
            "machine sends there.",
        )
    except (requests.exceptions.ConnectionError, urllib3.exceptions.HTTPError) as error:
        return _connection_problem(endpoint, url, str(error))
    except (requests.exceptions.RequestException, ValueError) as error:
        return Problem(
            f"{url} cannot be asked ({type(error).__name__}).",
            f"Correct {endpoint.place.of('host', 'port', 'schema')}.",
        )


def _answer(
    endpoint: Endpoint, method: str, url: str, document: Mapping[str, Any]
) -> Answer | Problem:
    import requests

    with requests.request(
        method,
        url,
        auth=_authentication(endpoint),
        headers={**dict(endpoint.headers), "Accept-Encoding": "identity"},  # a small body stays one
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
                return Problem(
                    f"{url} answers with more than {MAX_BYTES // 1024 // 1024} MiB.",
                    f"Check {endpoint.place.of('host', 'port')}: a lineage backend gives a list "
                    "of a few names there.",
                )
        headers = response.headers
        return Answer(
            response.status_code,
            headers.get("Content-Type", ""),
            headers.get("Location", ""),
            bytes(body),
        )


def _authentication(endpoint: Endpoint) -> Callable[[PreparedRequest], PreparedRequest]:
    """Authenticate by the key, else as the URL says, and never by what ``.netrc`` has for all."""
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


def _tls_problem(endpoint: Endpoint, url: str, error: str) -> Problem:
    if re.search("WRONG_VERSION_NUMBER|UNKNOWN_PROTOCOL|RECORD_LAYER", error, re.IGNORECASE):
        return Problem(
            f"What answers at {url} does not speak TLS.",
            f"Use http instead of https in {endpoint.place.of('schema')}.",
        )
    return Problem(
        f"The certificate of {url} is not trusted by this machine.",
        "Set REQUESTS_CA_BUNDLE to a file with the certificate of its authority, for Airflow as "
        "for this check.",
    )


def _connection_problem(endpoint: Endpoint, url: str, error: str) -> Problem:
    place = endpoint.place
    if re.search("NameResolution|Name or service not known|getaddrinfo", error):
        return Problem(f"The host of {url} has no IP address.", f"Correct {place.of('host')}.")
    if "refused" in error:
        return Problem(
            f"Nothing listens at {url}.",
            f"Start the backend, or correct {place.of('host', 'port')} ({endpoint.port}).",
        )
    return Problem(
        f"What answers at {url} breaks the connection off.",
        f"If the backend wants TLS, use https in {place.of('schema')}, else check "
        f"{place.of('host', 'port')}.",
    )
