"""The transport's configuration, key by key; see docs/datahub.md for the table.

The input is the dictionary that OpenLineage's client has for the transport. The output is a
:class:`Configuration`: the settings of the conversion (:class:`Conversion`, with the settings of
namespaces), and the server or the folder that the proposals go to.
"""

from __future__ import annotations

import difflib
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlsplit

from airflow_provider_sparklineage.model.credentials import scrub
from airflow_provider_sparklineage.model.exceptions import SettingsError
from airflow_provider_sparklineage.model.globs import compiled
from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


class FieldPaths(StrEnum):
    """The form of the paths by which DataHub names a schema's fields; see ``datahub/schema.py``."""

    V1 = "v1"
    """Paths such as ``address.street``; two fields can have the same path."""
    V2 = "v2"
    """Paths such as ``[version=2.0].[type=struct].[type=struct].address.[type=string].street``; a
    column that is not nested has such a path only if its platform's connector uses such paths."""


class Conversion(Frozen, frozen=True):
    """The settings of the conversion of events.

    :param env: the environment of datasets (``FabricType``)
    :param cluster: the cluster of DataFlows; DataHub's own Airflow plugin uses ``prod``
    :param platform_instance: the instance of datasets, flows and jobs; empty if there is only one
    :param field_paths: the form of the paths of fields, above all of nested fields
    :param indirect: whether filters, joins and groupings are part of column lineage
    :param symlinks: whether the files of a table and the table are one dataset in DataHub
    :param namespaces: settings for some namespaces; they override the settings above
    """

    env: str = "PROD"
    cluster: str = "prod"
    platform_instance: str = ""
    field_paths: FieldPaths = FieldPaths.V2
    indirect: bool = True
    symlinks: bool = True
    namespaces: tuple[Namespace, ...] = ()


DEFAULT_CONVERSION = Conversion()


# The key ``namespaces`` gives the platform, the instance and the environment of namespaces:
#
#     "namespaces": {
#       "hive://metastore-eu:*": {"platform_instance": "eu"},
#       "oss://*": {"platform": "oss", "env": "DEV"}
#     }
#
# The first glob that matches the namespace of a dataset decides. For the files of a table, the
# namespace of the table is matched.

ENVS = (
    *("PROD", "DEV", "TEST", "QA", "UAT", "EI", "PRE", "STG", "NON_PROD"),
    *("CORP", "RVW", "PRD", "TST", "SIT", "SBX", "SANDBOX", "CERT"),
)
"""The values of ``com.linkedin.common.FabricType``; the server refuses any other value."""


class Namespace(Frozen, frozen=True):
    """The settings of the namespaces that a glob matches.

    :param glob: a glob that is matched with OpenLineage's namespaces
    :param platform: DataHub's name of the platform, which also decides the form of datasets' names;
        empty if it is not set
    :param env: one of :data:`ENVS`; None if it is not set
    :param platform_instance: the instance; empty for no instance, even if :class:`Conversion` has
        one; None if it is not set
    :param name_prefix: a text that is put before each name in DataHub, such as ``catalog.``
    :param lower_case: whether names in DataHub are in lower case
    """

    glob: str
    platform: str = ""
    env: str | None = None
    platform_instance: str | None = None
    name_prefix: str = ""
    lower_case: bool = False


def namespace_settings(namespace: str, namespaces: Iterable[Namespace]) -> Namespace:
    """Give the settings of the first glob that matches a namespace.

    If no glob matches, nothing is set in the result.
    """
    matching = (one for one in namespaces if compiled(one.glob).fullmatch(namespace))
    return next(matching, Namespace("*"))


def read_namespaces(value: object) -> tuple[Namespace, ...]:
    """Read the value of the configuration's key ``namespaces``, an object whose keys are globs.

    The globs stay in the order in which they are written, because the first that matches is used.

    :raise SettingsError: if the value is not an object of objects, or if an inner object has an
        unknown key or an impossible value
    """
    if not isinstance(value, dict):
        raise _namespace_error(None, "are no object", f"Write them as {_NAMESPACES_EXAMPLE}.")
    return tuple(_namespace(str(glob), says) for glob, says in value.items())


_NAMESPACES_EXAMPLE = '{"hive://*": {"platform_instance": "eu"}}'
_NAMESPACE_KEYS = Namespace.__struct_fields__[1:]


def _namespace(glob: str, says: object) -> Namespace:
    if not isinstance(says, dict):
        raise _namespace_error(glob, "say nothing", f"Write them as {_NAMESPACES_EXAMPLE}.")
    known: dict[str, Any] = {}
    for key, value in says.items():
        if key not in _NAMESPACE_KEYS:
            fix = _hint(key, _NAMESPACE_KEYS)
            raise _namespace_error(glob, f"have an unknown key {key!r}", fix)
        is_flag = key == "lower_case"
        if not isinstance(value, bool if is_flag else str):
            fix = f"Write {key} as {'true or false' if is_flag else 'a JSON string'}."
            raise _namespace_error(glob, f"have an impossible {key} {value!r}", fix)
        if key == "env" and str(value).upper() not in ENVS:
            problem = f"have an unknown env {value!r}"
            raise _namespace_error(glob, problem, f"There are: {', '.join(ENVS)}.")
        known[key] = str(value).upper() if key == "env" else value
    return Namespace(glob, **known)


def _namespace_error(glob: str | None, problem: str, fix: str) -> SettingsError:
    of = "" if glob is None else f" {glob!r}"
    return SettingsError(f"The namespaces{of} of the transport to DataHub {problem}.", fix)


DEFAULT_TIMEOUT_S = 8.0
"""Seconds for a whole event: Airflow gives its provider 10 s to make the event and to send it."""

_OF_SERVER = ("server", "token", "auth", "timeout", "async", "verify", "cert", "headers")
_OF_THE_CLIENT = ("type", "name", "priority")
KEYS = (*_OF_SERVER, "folder", *Conversion.__struct_fields__)


class Server(Frozen, frozen=True):
    """The address of GMS, and the settings of requests to it.

    :param url: the URL, e.g. ``http://gms:8080``, or ``https://datahub.example.com/api/gms``
    :param bearer: a function that gives the value of the header ``Authorization``, or None if there
        is no authentication
    :param timeout: seconds for all requests of one event together
    :param is_async: whether GMS answers once its queue has the proposals; if not, GMS answers once
        its database has the proposals
    :param verify: whether the server's certificate is verified; or the path to the certificates of
        trusted authorities
    :param cert: path to one file with the client's certificate and key, or paths to two files
    :param headers: other headers of each request
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
    """The configuration of a transport; it has either a server or a folder.

    :param server: the server that proposals are sent to; None if they are written to files
    :param folder: the folder that files are written to; None if proposals are sent
    """

    conversion: Conversion
    server: Server | None = None
    folder: Path | None = None


def read(config: Mapping[str, Any]) -> Configuration:
    """Read a transport's configuration.

    :param config: the configuration, as OpenLineage's client hands it to the transport
    :raise SettingsError: if a key is unknown, or a value is impossible; the error's text shows no
        secret
    """
    known = {key: value for key, value in config.items() if value is not None}
    for key in known:
        if key not in KEYS and key not in _OF_THE_CLIENT:
            _refuse(f"has an unknown key {key!r}", _hint(key, KEYS))
    if ("server" in known) == ("folder" in known):
        is_both = "server" in known
        problem = f"is {'to a server and' if is_both else 'neither to a server nor'} to a folder"
        _refuse(problem, f'Give it one of both: {{"server": "{_SERVER_EXAMPLE}"}}, or a "folder".')
    conversion = conversion_of(known)
    if "folder" in known:
        if surplus := [key for key in _OF_SERVER if key in known]:
            fix = f"Remove {', '.join(surplus)}."
            _refuse("writes to a folder, and has what is for a server", fix)
        return Configuration(conversion, folder=_folder(_text(known, "folder")))
    return Configuration(conversion, _server(known))


_SERVER_EXAMPLE = "http://gms:8080"


def conversion_of(config: Mapping[str, Any]) -> Conversion:
    """Read the conversion's settings from a configuration; all other keys are ignored.

    :raise SettingsError: if a value is impossible
    """
    env = _text(config, "env", "PROD").upper()
    if env not in ENVS:
        _refuse(f"has an unknown env {env!r}", f"There are: {', '.join(ENVS)}.")
    paths = str(config.get("field_paths", FieldPaths.V2))
    if paths not in list(FieldPaths):
        _refuse(f"has unknown field_paths {paths!r}", "There are: v1, v2.")
    return Conversion(
        env=env,
        cluster=_text(config, "cluster", "prod"),
        platform_instance=_text(config, "platform_instance", ""),
        field_paths=FieldPaths(paths),
        indirect=_flag(config, "indirect", default=True),
        symlinks=_flag(config, "symlinks", default=True),
        namespaces=read_namespaces(config.get("namespaces", {})),
    )


def _hint(key: object, keys: Iterable[str]) -> str:
    similar = difflib.get_close_matches(str(key), list(keys), n=1)
    return f"Did you mean {similar[0]}?" if similar else f"There are: {', '.join(keys)}."


def _server(config: Mapping[str, Any]) -> Server:
    timeout = config.get("timeout", DEFAULT_TIMEOUT_S)
    try:
        seconds = float(timeout)
    except (TypeError, ValueError):
        seconds = 0.0
    if not 0 < seconds <= 3600:
        _refuse(f"has an impossible timeout {timeout!r}", "Give a number of seconds.")
    return Server(
        url=_url(_text(config, "server")),
        bearer=_bearer(config),
        timeout=seconds,
        is_async=_flag(config, "async", default=True),
        verify=_verify(config),
        cert=_cert(config),
        headers=_headers(config),
    )


def _folder(text: str) -> Path:
    if "\0" in text:
        _refuse("has an impossible folder", "Give a path.")
    path = Path(text)
    with suppress(RuntimeError):  # raised for a user without a home
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
        fix = f"Give it that of GMS, e.g. {_SERVER_EXAMPLE}; a token goes into the key token."
        _refuse("has no URL as its server", fix)
    return text


def _bearer(config: Mapping[str, Any]) -> Callable[[], str | None]:
    token, auth = config.get("token"), config.get("auth")
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
    except Exception as error:  # any, as the provider is others' code; its text may have a secret
        problem = f"has auth that cannot be used ({type(error).__name__})"
        fix = 'Give it that of an HTTP transport of OpenLineage, or a "token".'
        raise _settings_error(problem, fix) from None


def _verify(config: Mapping[str, Any]) -> bool | str:
    value = config.get("verify", True)
    if isinstance(value, str) and value.lower() not in ("true", "false"):
        return value
    return _flag(config, "verify", default=True)


def _cert(config: Mapping[str, Any]) -> str | tuple[str, str] | None:
    match config.get("cert"):
        case None | str() as whole:
            return whole
        case [str() as cert, str() as key]:
            return cert, key
    problem, fix = "has an impossible cert", "Give a path, or those of certificate and key."
    raise _settings_error(problem, fix)


def _headers(config: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    headers = config.get("headers", {})
    if not isinstance(headers, dict):
        _refuse("has headers that are no object", 'Write them as {"name": "value"}.')
    pairs = tuple((str(name), str(value)) for name, value in headers.items())
    if not all(text.isascii() and text.isprintable() for header in pairs for text in header):
        _refuse("has headers that cannot be sent", "Write them in ASCII, each on one line.")
    return pairs


def _text(config: Mapping[str, Any], key: str, default: str | None = None) -> str:
    value = config.get(key, default)
    if not isinstance(value, str) or (default is None and not value.strip()):
        _refuse(f"has no text as {key}", f"Write {key} as a JSON string.")
    return value


def _flag(config: Mapping[str, Any], key: str, *, default: bool) -> bool:
    value = config.get(key, default)
    # OpenLineage's client gives a value as text if it is not JSON, as from environment variables.
    flag = {"true": True, "false": False}.get(str(value).lower())
    if flag is None:
        _refuse(f"has {key} that is neither true nor false", "Write it as true or false.")
    return flag


def _refuse(problem: str, fix: str) -> NoReturn:
    raise _settings_error(problem, fix)


def _settings_error(problem: str, fix: str) -> SettingsError:
    return SettingsError(f"The transport to DataHub {problem}.", fix)
