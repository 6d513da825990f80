"""A file system for HDFS by WebHDFS or HttpFS, because ``ObjectStoragePath`` has none.

A connection of any type gives the host of WebHDFS and the user. Its extra has the options of
``fsspec``'s ``WebHDFS`` (``kerberos``, ``kerb_kwargs``, ``token``, ``proxy_to``, ``data_proxy``,
``use_https``, ``session_cert``, ``session_verify``), or those of Airflow's own hook of HDFS
(``use_ssl``, ``verify``, ``cert``). Several hosts are the name nodes of one file system: requests
are sent to the active name node. Airflow imports this module when it looks for file systems, so the
module imports other packages only when a file system is used.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from airflow.sdk import Connection

    from airflow_provider_sparklineage.storage.webhdfs import WebHDFS

schemes = ["hdfs"]
"""The URL schemes for which Airflow registers :func:`get_fs`."""

_HTTP_PORT, _HTTPS_PORT = 9870, 9871  # the defaults of Hadoop 3
_OF_WEBHDFS = (
    *("kerberos", "kerb_kwargs", "token", "proxy_to", "data_proxy"),
    *("use_https", "session_cert", "session_verify"),
)
_IN_AIRFLOWS_HOOK = {"use_ssl": "use_https", "verify": "session_verify", "cert": "session_cert"}


def get_fs(conn_id: str | None, storage_options: dict[str, Any] | None = None) -> WebHDFS:
    """Give the file system of a connection.

    :param conn_id: the id of an Airflow connection; None for a file system without a connection
    :param storage_options: options whose ``host`` is used if the connection has no host
    :raise ValueError: if neither the connection nor the options have a host
    """
    return _file_system(conn_id, (storage_options or {}).get("host") or "")


def of_url(url: str) -> WebHDFS:
    """Give the file system of ``hdfs://[connection@]namenode[:port]/…``.

    Airflow's path drops the host of such a URL, although it is the name node if the URL has no
    connection.

    :raise ValueError: if neither the URL nor the connection has a host
    """
    parts = urlsplit(url)
    return _file_system(parts.username, parts.hostname or "")


@cache  # as in Airflow, because each look-up of a connection is a request to the API server
def _file_system(conn_id: str | None, namenode: str) -> WebHDFS:
    from airflow_provider_sparklineage.storage.webhdfs import WebHDFS

    if conn_id is None:
        return WebHDFS(**_options(None, namenode))
    from airflow.providers.common.compat.sdk import BaseHook

    return WebHDFS(**_options(BaseHook.get_connection(conn_id), namenode))


def _options(connection: Connection | None, namenode: str) -> dict[str, Any]:
    extra = dict(connection.extra_dejson) if connection else {}
    for theirs, ours in _IN_AIRFLOWS_HOOK.items():
        extra.setdefault(ours, extra.get(theirs))
    options = {name: extra[name] for name in _OF_WEBHDFS if extra.get(name) is not None}
    options["use_https"] = _is_true(options.get("use_https")) or (
        connection is not None and connection.schema == "https"
    )
    has_secret = "token" in options or bool(connection and connection.password)
    is_usual = not has_secret and _airflow_has_kerberos()
    options["kerberos"] = _is_true(options.get("kerberos", is_usual))
    verify = options.get("session_verify")
    if str(verify).lower() in ("true", "false"):  # a text of the connection's form is no path
        options["session_verify"] = _is_true(verify)
    options["host"] = (connection and connection.host) or namenode
    if not options["host"]:
        msg = "An hdfs:// URL has neither a host nor a connection that has one."
        raise ValueError(msg)
    options["port"] = (connection and connection.port) or (
        _HTTPS_PORT if options["use_https"] else _HTTP_PORT
    )
    if options["kerberos"]:
        pass  # the ticket says who asks
    elif connection and connection.login:
        options["user"], options["password"] = connection.login, connection.password or None
    elif "token" not in options:
        options["user"] = os.environ.get("HADOOP_USER_NAME") or _own_name()
    return options


def _airflow_has_kerberos() -> bool:
    """Whether Airflow's own hook of HDFS asks by Kerberos, which no connection says."""
    from airflow.providers.common.compat.sdk import conf

    return str(conf.get("core", "security", fallback="")).lower() == "kerberos"


def _is_true(value: object) -> bool:
    return str(value).lower() in ("true", "1")


def _own_name() -> str | None:
    """Give the name of this process's user, which Hadoop's clients send without authentication.

    :return: None if the user has no name
    """
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):  # in a container the user's number may have no name
        return None
