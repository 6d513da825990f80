"""What the transport's configuration says, key by key; see docs/datahub.md for the table."""

from __future__ import annotations

import difflib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlsplit

from airflow_provider_sparklineage.datahub.naming import namespaces
from airflow_provider_sparklineage.datahub.naming.namespaces import ENVS
from airflow_provider_sparklineage.datahub.options import Conversion, FieldPaths
from airflow_provider_sparklineage.model.credentials import scrub
from airflow_provider_sparklineage.model.exceptions import SettingsError
from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

DEFAULT_TIMEOUT_S = 8.0
"""For all of an event: Airflow gives its provider 10 s to make it and to send it."""

_OF_CONVERSION = (
    *("env", "cluster", "platform_instance", "field_paths", "indirect", "symlinks", "namespaces"),
)
_OF_SERVER = ("server", "token", "auth", "timeout", "async", "verify", "cert", "headers")
_OF_THE_CLIENT = ("type", "name", "priority")
KEYS = (*_OF_SERVER, "folder", *_OF_CONVERSION)


class Server(Frozen, frozen=True):
    """How GMS is reached.

    :param url: e.g. ``http://gms:8080``, or ``https://datahub.example.com/api/gms``
    :param bearer: gives the value of ``Authorization``; None if there is no authentication
    :param timeout: seconds for all requests that an event takes
    :param is_async: whether GMS answers once its queue has the proposals, or its database
    :param verify: the server's certificate; a path to those of authorities to trust
    :param cert: path to the client's certificate with its key, or paths to both
    :param headers: to be sent as well
    """

    url: str
    bearer: Callable[[], str | None] = lambda: None
    timeout: float = DEFAULT_TIMEOUT_S
    is_async: bool = True
    verify: bool | str = True
    cert: str | tuple[str, str] | None = None
    headers: tuple[tuple[str, str], ...] = ()

    def __repr__(self) -> str:
        return f"Server({self.url!r})"  # headers may have secrets


class Configuration(Frozen, frozen=True):
    """What the configuration says: how to convert, and where to.

    :param server: to send to, or
    :param folder: to write files to
    """

    conversion: Conversion
    server: Server | None = None
    folder: Path | None = None


def read(given: Mapping[str, Any]) -> Configuration:
    """Read a transport's configuration.

    :param given: as OpenLineage's client hands it to its transports
    :raise SettingsError: if a key is unknown, or a value is impossible; no value of a secret is in
        its text
    """
    known = {key: value for key, value in given.items() if value is not None}
    _check_keys(known)
    if ("server" in known) == ("folder" in known):
        problem = "is neither to a server nor to a folder"
        if "server" in known:
            problem = "is to a server and to a folder"
        _refuse(problem, f'Give it one of both: {{"server": "{_EXAMPLE}"}}, or a "folder".')
    conversion = conversion_of(known)
    if "folder" in known:
        if surplus := [key for key in _OF_SERVER if key in known]:
            fix = f"Remove {', '.join(surplus)}."
            _refuse("writes to a folder, and has what is for a server", fix)
        return Configuration(conversion, folder=_folder(_text(known, "folder")))
    return Configuration(conversion, _server(known))


_EXAMPLE = "http://gms:8080"


def conversion_of(given: Mapping[str, Any]) -> Conversion:
    """Read what the configuration says of the conversion; other keys are not looked at.

    :raise SettingsError: if a value is impossible
    """
    env = _text(given, "env", "PROD").upper()
    if env not in ENVS:
        _refuse(f"has an unknown env {env!r}", f"There are: {', '.join(ENVS)}.")
    paths = str(given.get("field_paths", FieldPaths.V2))
    if paths not in list(FieldPaths):
        _refuse(f"has unknown field_paths {paths!r}", "There are: v1, v2.")
    return Conversion(
        env=env,
        cluster=_text(given, "cluster", "prod"),
        platform_instance=_text(given, "platform_instance", ""),
        field_paths=FieldPaths(paths),
        indirect=_flag(given, "indirect", default=True),
        symlinks=_flag(given, "symlinks", default=True),
        namespaces=namespaces.read(given.get("namespaces", {})),
    )


def _check_keys(given: Mapping[str, Any]) -> None:
    for key in given:
        if key not in KEYS and key not in _OF_THE_CLIENT:
            similar = difflib.get_close_matches(str(key), [*KEYS, "server"], n=1)
            fix = f"Did you mean {similar[0]}?" if similar else f"There are: {', '.join(KEYS)}."
            _refuse(f"has an unknown key {key!r}", fix)


def _server(given: Mapping[str, Any]) -> Server:
    timeout = given.get("timeout", DEFAULT_TIMEOUT_S)
    try:
        seconds = float(timeout)
    except (TypeError, ValueError):
        seconds = 0.0
    if not 0 < seconds <= 3600:
        _refuse(f"has an impossible timeout {timeout!r}", "Give a number of seconds.")
    return Server(
        url=_url(_text(given, "server")),
        bearer=_bearer(given),
        timeout=seconds,
        is_async=_flag(given, "async", default=True),
        verify=_verify(given),
        cert=_cert(given),
        headers=_headers(given),
    )


def _folder(text: str) -> Path:
    if "\0" in text:
        _refuse("has an impossible folder", "Give a path.")
    path = Path(text)
    with suppress(RuntimeError):  # of a user without a home
        return path.expanduser()
    return path


def _url(text: str) -> str:
    text = text.strip().rstrip("/")
    try:
        split = urlsplit(text)
        usable = split.scheme in ("http", "https") and split.hostname and split.port != 0
    except ValueError:
        usable = False
    if not usable or scrub(text) != text or "?" in text or "#" in text:
        fix = f"Give it that of GMS, e.g. {_EXAMPLE}; a token goes into the key token."
        _refuse("has no URL as its server", fix)
    return text


def _bearer(given: Mapping[str, Any]) -> Callable[[], str | None]:
    token, auth = given.get("token"), given.get("auth")
    if token and auth:
        _refuse("has a token and auth", "Give it one of both.")
    if token:
        value = f"Bearer {str(token).strip().removeprefix('Bearer ')}"
        if not value.isascii() or not value.isprintable():
            _refuse("has a token that fits into no header", "Copy it again.")
        return lambda: value
    if not auth:
        return lambda: None
    if not isinstance(auth, dict):
        _refuse("has auth that is no object", 'Write it as {"type": "api_key", "apiKey": "…"}.')
    from openlineage.client.transport.http import create_token_provider

    try:
        return create_token_provider(auth).get_bearer
    except Exception as error:  # whatever a provider makes of what it is given, which is a secret
        problem = f"has auth that cannot be used ({type(error).__name__})"
        fix = 'Give it that of an HTTP transport of OpenLineage, or a "token".'
        raise _error(problem, fix) from None


def _verify(given: Mapping[str, Any]) -> bool | str:
    value = given.get("verify", True)
    if isinstance(value, str) and value.lower() not in ("true", "false"):
        return value
    return _flag(given, "verify", default=True)


def _cert(given: Mapping[str, Any]) -> str | tuple[str, str] | None:
    match given.get("cert"):
        case None | str() as whole:
            found: str | tuple[str, str] | None = whole
        case [str() as cert, str() as key]:
            found = cert, key
        case _:
            _refuse("has an impossible cert", "Give a path, or those of certificate and key.")
    return found


def _headers(given: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    headers = given.get("headers", {})
    if not isinstance(headers, dict):
        _refuse("has headers that are no object", 'Write them as {"name": "value"}.')
    found = tuple((str(name), str(value)) for name, value in headers.items())
    if not all(text.isascii() and text.isprintable() for header in found for text in header):
        _refuse("has headers that cannot be sent", "Write them in ASCII, each on one line.")
    return found


def _text(given: Mapping[str, Any], key: str, default: str | None = None) -> str:
    value = given.get(key, default)
    if not isinstance(value, str) or (default is None and not value.strip()):
        _refuse(f"has no text as {key}", f"Write {key} as a JSON string.")
    return value


def _flag(given: Mapping[str, Any], key: str, *, default: bool) -> bool:
    value = given.get(key, default)
    # OpenLineage's client gives a value that is no JSON, as in an environment variable, as text.
    found = {"true": True, "false": False}.get(str(value).lower())
    if found is None:
        _refuse(f"has {key} that is neither true nor false", "Write it as true or false.")
    return found


def _refuse(problem: str, fix: str) -> NoReturn:
    raise _error(problem, fix)


def _error(problem: str, fix: str) -> SettingsError:
    return SettingsError(f"The transport to DataHub {problem}.", fix)
