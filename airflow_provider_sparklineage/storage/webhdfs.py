"""A file system of HDFS: ``fsspec``'s WebHDFS, made reliable, for the active name node of several.

It differs in these points: a file is written in one request, a rename replaces an existing file,
the answers of data nodes are checked, errors are Python's own, each thread has its own session, and
requests are sent to the active one of several name nodes.
"""

from __future__ import annotations

import threading
from functools import partial
from importlib import import_module
from io import BytesIO
from typing import Any
from urllib.parse import quote, urlsplit

import requests
from fsspec.implementations.webhdfs import WebHDFS as Base

from airflow_provider_sparklineage.model.texts import truncated

_FOLDER, _FILE = "770", "660"  # driver and worker run as two users of one group
_TIMEOUT_S = 5.0, 30.0  # for connecting, and for waiting from one byte to the next
# While a file is sent, the time limit for connecting is the one for sending each block of it.
_SENDING_TIMEOUT_S = 30.0, 30.0
_CHUNK = 1 << 20
_LONGEST_REASON = 500


class _StandbyError(OSError):
    """Raised when a name node is on standby, or not ready yet."""


_ERRORS = {
    "StandbyException": _StandbyError,
    "RetriableException": _StandbyError,
    "FileNotFoundException": FileNotFoundError,
    "FileAlreadyExistsException": FileExistsError,
    "AccessControlException": PermissionError,
    "SecurityException": PermissionError,
}


class WebHDFS(Base):  # type: ignore[misc]  # fsspec has no types
    """The file system of an HDFS.

    :param host: the host of the name node, or several hosts with commas between; each may have a
        port
    :param port: the port of the hosts that have no port in ``host``
    """

    protocol = "hdfs"
    cachable = False  # hdfs._file_system() caches file systems

    def __init__(self, host: str, port: int, **options: Any) -> None:
        self._sessions = threading.local()
        super().__init__(host, port, **options)
        scheme = "https" if options.get("use_https") else "http"
        hosts = [one.strip() for one in host.split(",")]
        places = [one if ":" in one else f"{one}:{port}" for one in hosts]
        self._name_nodes = [f"{scheme}://{place}/webhdfs/v1" for place in places]
        self.url: str = self._name_nodes[0]

    # --- files ------------------------------------------------------------------------------------

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> None:
        """Write the bytes ``value`` as a file, with one CREATE operation.

        :raise FileExistsError: if the file exists, and the mode is not ``overwrite``
        """
        overwrite = "true" if mode == "overwrite" else "false"
        self._call("CREATE", "put", path, value, overwrite=overwrite, permission=_FILE)

    def cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **_: Any
    ) -> bytes:
        """Give a file's bytes from ``start`` to ``end``; negative numbers count from its end."""
        if any(limit is not None and limit < 0 for limit in (start, end)):
            start, end, _step = slice(start, end).indices(self.info(path)["size"])
        offset = start or 0
        if end is None:
            return self._call("OPEN", path=path, offset=offset).content
        if end <= offset:
            return b""
        return self._call("OPEN", path=path, offset=offset, length=end - offset).content

    def get_file(self, rpath: str, lpath: str, **_: Any) -> None:
        """Copy the file ``rpath`` to the local ``lpath``, without holding all of it in memory."""
        with self._call("OPEN", path=rpath, stream=True) as answer, open(lpath, "wb") as file:
            for chunk in answer.iter_content(_CHUNK):
                file.write(chunk)

    def mv(self, path1: str, path2: str, **_: Any) -> None:
        """Rename the file ``path1`` to ``path2``, and replace a file that has the new name."""
        rename = partial(self._call, "RENAME", "put", path1, destination=path2)
        if not _refused(rename(renameoptions="OVERWRITE")):
            return
        # HttpFS has no such option. For an instant path2 does not exist, but is never incomplete.
        self._call("DELETE", "delete", path2)
        if _refused(rename()):
            msg = f"{path1} could not be renamed to {path2}"
            raise OSError(msg)

    def rm(self, path: str, recursive: bool = False, **_: Any) -> None:
        """Delete a file or folder; a folder that is not empty only if ``recursive`` is true.

        :raise FileNotFoundError: if it does not exist
        """
        if _refused(self._call("DELETE", "delete", path, recursive=str(recursive).lower())):
            raise FileNotFoundError(path)

    def mkdir(self, path: str, **_: Any) -> None:
        """Make a folder, and the folders above it."""
        self._call("MKDIRS", "put", path, permission=_FOLDER)

    def exists(self, path: str, **_: Any) -> bool:
        """Whether a file or folder exists; raises an error if the name node does not answer."""
        try:
            self.info(path)
        except FileNotFoundError:
            return False
        return True

    def find(self, path: str, *args: Any, **kwargs: Any) -> Any:
        """List all files below a folder; raises an error if any folder there cannot be listed.

        The arguments and the result are those of ``fsspec``.
        """
        return super().find(path, *args, **{"on_error": "raise", **kwargs})

    @staticmethod
    def _process_info(info: dict[str, Any]) -> dict[str, Any]:
        """Add the keys that ``fsspec`` needs to a file's information, in place."""
        mtime = info["modificationTime"] / 1000
        info.update(type=info["type"].lower(), size=info["length"], mtime=mtime)
        return info

    # --- requests ---------------------------------------------------------------------------------

    def _connect(self) -> None:
        """Do nothing, because each thread connects when it first needs its session."""

    @property
    def session(self) -> requests.Session:
        """The session of this thread, as two threads must not share a Kerberos authentication.

        :raise PermissionError: if Kerberos is asked for, and this process has no valid ticket
        :raise ImportError: if the package for Kerberos is missing
        """
        if not hasattr(self._sessions, "session"):
            # requests-kerberos would log four tracebacks, and give the answer 401.
            if self._asks_by_ticket and (problem := _ticket_problem()):
                raise PermissionError(problem)
            super()._connect()
        session: requests.Session = self._sessions.session
        return session

    @session.setter
    def session(self, session: requests.Session) -> None:
        self._sessions.session = session

    def _call(
        self,
        op: str,
        method: str = "get",
        path: str = "",
        data: bytes | None = None,
        redirect: bool = True,
        stream: bool = False,
        **parameters: Any,
    ) -> requests.Response:
        """Send a request to the active name node, and to the data node that its answer names.

        :param op: the operation of WebHDFS, such as ``OPEN``
        :param method: the HTTP method, e.g. ``put``
        :param path: the path of a file or folder in HDFS
        :param data: the content for the data node
        :param redirect: whether a redirect to a data node is followed, as it always is for
            ``OPEN``; otherwise the name node's answer is returned
        :param stream: whether the answer's content is only read when it is used
        :param parameters: further parameters of the URL
        :raise OSError: if a request fails
        """
        below = quote(self._strip_protocol(path), safe="/=")
        parameters = {**parameters, **self.pars, "op": op}

        answer = self._of_active(method, below, params=parameters, stream=stream)
        # fsspec's files would follow the redirect themselves, and take an error for the content.
        if not answer.is_redirect or not (redirect or op == "OPEN"):
            return answer
        place = self._apply_proxy(answer.headers["Location"])
        # A data node trusts the token of the redirect, so other hosts do not get the password.
        is_elsewhere = urlsplit(place).netloc != urlsplit(answer.url).netloc
        return self._ask(
            method,
            place,
            # Python's time limit for sending is one for all bytes that it is given at once.
            data=BytesIO(data) if data else data,
            stream=stream,
            headers={"Content-Type": "application/octet-stream"},
            auth=_nobody if is_elsewhere else None,
            timeout=_SENDING_TIMEOUT_S if data else _TIMEOUT_S,
        )

    def _of_active(self, method: str, path: str, **options: Any) -> requests.Response:
        """Send a request to the active name node; the one that answered last is tried first.

        :param method: the HTTP method, e.g. ``put``
        :param path: the path of the request's URL
        :param options: further arguments of requests' ``Session.request``
        :raise OSError: if no name node is active
        """
        failed: list[OSError] = []
        for name_node in sorted(self._name_nodes, key=self.url.__ne__):
            try:
                answer = self._ask(method, self._apply_proxy(name_node + path), **options)
            except (_StandbyError, ConnectionError) as error:
                failed.append(error)
                continue
            self.url = name_node
            return answer
        raise failed[0]

    def _ask(
        self, method: str, url: str, timeout: tuple[float, float] = _TIMEOUT_S, **options: Any
    ) -> requests.Response:
        try:
            answer = self.session.request(
                method.upper(),
                url,
                allow_redirects=False,
                timeout=timeout,
                # REQUESTS_CA_BUNDLE would override `verify` if only the session had it.
                verify=self.session.verify,
                **options,
            )
        except requests.Timeout:
            msg = f"{_host(url)} does not answer"
            raise TimeoutError(msg) from None
        except requests.ConnectionError as error:  # the text has the URL, which may have a token
            msg = f"{_host(url)} cannot be reached: {_reason(error)}"
            raise ConnectionError(msg) from None
        if answer.ok:
            return answer
        with answer:
            if answer.status_code == requests.codes.unauthorized:
                raise self._unauthorized(answer)
            raise _error(answer)

    @property
    def _asks_by_ticket(self) -> bool:
        return self.kerb and not {"principal", "password"} & self.kerb_kwargs.keys()

    def _unauthorized(self, answer: requests.Response) -> PermissionError:
        """Make the error for an answer that says who is asking is not known, with the fix."""
        text = str(_error(answer))
        if self._asks_by_ticket and (problem := _ticket_problem()):
            text += f". {problem}"
        elif not self.kerb and "negotiate" in answer.headers.get("WWW-Authenticate", "").lower():
            text += '. It demands Kerberos: set "kerberos": true in the extra of the connection.'
        return PermissionError(text)


def _ticket_problem() -> str:
    """Say why this process has no valid Kerberos ticket; empty if it has one.

    :raise ImportError: if the package for Kerberos is missing
    """
    try:
        gssapi = import_module("gssapi")
        import_module("requests_kerberos")  # fsspec imports it, and its error has no fix
    except ImportError as error:
        msg = f"Kerberos needs the package requests-kerberos ({error}): pip install it."
        raise ImportError(msg) from None
    try:
        gssapi.Credentials(usage="initiate").inquire()
    except gssapi.exceptions.GSSError as error:
        reasons = error.get_all_statuses(error.min_code, False)
        if reasons == ["Success"]:  # as for an expired ticket
            reasons = error.get_all_statuses(error.maj_code, True)
        reason = "; ".join(reasons)
        return f"No valid Kerberos ticket: {reason}. Run `kinit`, or `airflow kerberos`."
    return ""


def _nobody(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request


def _refused(answer: requests.Response) -> bool:
    return answer.content.strip() == b'{"boolean":false}'


def _host(url: str) -> str:
    return f"WebHDFS at {urlsplit(url).netloc}"


def _reason(error: BaseException) -> str:
    """Find the operating system's reason among an error's causes; else give the error's class."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
        if isinstance(cause, ConnectionError | TimeoutError) and str(cause):
            return str(cause)
        cause = cause.__context__
    return type(error).__name__


def _error(answer: requests.Response) -> OSError:
    try:
        remote = answer.json()["RemoteException"]
        kind, message = str(remote["exception"]), str(remote["message"])
    except (ValueError, KeyError, TypeError):
        text = f"{_host(answer.url)} answers {answer.status_code} {answer.reason}"
        return (PermissionError if answer.status_code in (401, 403) else OSError)(text)
    first = truncated(message.strip().partition("\n")[0], _LONGEST_REASON)  # a Java stack follows
    if kind in _ERRORS:
        return _ERRORS[kind](first)
    return OSError(f"{kind}: {first}")
