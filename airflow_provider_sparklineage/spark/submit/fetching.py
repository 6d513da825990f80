"""The cache of listener jars, and how it is filled.

Nothing is fetched unless somebody asks for it: ``sparklineage fetch-listener``, or a task where
``[sparklineage] fetch_listener`` allows it. A jar appears in the cache whole, with the pinned
digest, or not at all; of several processes one fetches and the others wait for it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.model.credentials import scrub
from airflow_provider_sparklineage.model.exceptions import ListenerError
from airflow_provider_sparklineage.spark.submit.listener import PINS, VERSION, artifact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Fetcher = Callable[[Path], Path]
    """Bring a listener into a folder and give its path."""
    Tell = Callable[[str], object]
    """Take a line of progress."""

TIMEOUT_S = 60  # without a byte, of a download
_CHUNK = 1 << 20
_LOCK = ".lock"


def cache_folder(env: Mapping[str, str] = os.environ) -> Path:
    """Where fetched listeners are kept."""
    base = env.get("XDG_CACHE_HOME") or Path(env.get("HOME") or tempfile.gettempdir()) / ".cache"
    return Path(base) / "sparklineage"


def cached(scala: str, env: Mapping[str, str] = os.environ) -> Path:
    """Where the listener for a Scala version is, or would be, in the cache."""
    return cache_folder(env) / f"{artifact(scala)}-{VERSION}.jar"


def is_cached(scala: str, env: Mapping[str, str] = os.environ) -> bool:
    """Whether the cache has the listener for a Scala version, of the size that it should have."""
    pin = PINS.get(scala)
    with contextlib.suppress(OSError):
        return pin is not None and cached(scala, env).stat().st_size == pin.size
    return False


def digest_problem(jar: Path, scala: str) -> str | None:
    """Tell whether a jar is another file than the pinned one; None if it is that one.

    :raise OSError: if it cannot be read
    """
    with jar.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found == PINS[scala].sha256:
        return None
    return f"{jar.name} has the SHA-256 digest {found}, not {PINS[scala].sha256}"


def fetch(
    scala: str, fetcher: Fetcher, env: Mapping[str, str] = os.environ, tell: Tell = lambda _: None
) -> Path:
    """Bring the listener for a Scala version into the cache; at once if it is there.

    Who has waited for another process to fetch it, in vain, does not try what that one has tried:
    of the tasks on a worker each would wait for all before it.

    :param fetcher: where it comes from: :func:`from_location`, or Spark's :mod:`.resolver`
    :param tell: takes lines of progress
    :raise ListenerError: if there is no such listener, it cannot be had, its digest is wrong, or
        the cache cannot be written
    """
    if scala not in PINS:
        msg = f"There is no listener for Scala {scala}; there are those for {' and '.join(PINS)}."
        raise ListenerError(msg)
    jar = cached(scala, env)
    if is_cached(scala, env):
        return jar
    try:
        jar.parent.mkdir(parents=True, exist_ok=True)
        with _alone(jar.parent, tell) as has_waited:
            if is_cached(scala, env):  # another process has brought it
                return jar
            if has_waited:
                msg = (
                    "Another process has just failed to fetch the listener, and says why; run "
                    "`sparklineage fetch-listener`."
                )
                raise ListenerError(msg)
            _fill(jar, scala, fetcher, tell)
    except OSError as error:
        msg = (
            f"The listener cannot be put into the cache {jar.parent} ({error.strerror or error}). "
            "Make it writable, set XDG_CACHE_HOME to a folder that is, or put the jar anywhere "
            "on the worker and set [sparklineage] listener_jar to its path."
        )
        raise ListenerError(msg) from error
    return jar


def _fill(jar: Path, scala: str, fetcher: Fetcher, tell: Tell) -> None:
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=jar.parent) as work:
        fetched = fetcher(Path(work))
        tell(f"Checking the digest of {fetched.stat().st_size / 1e6:.0f} MB …")
        if problem := digest_problem(fetched, scala):
            msg = (
                f"The fetched {problem}; it is not used. A repository or a proxy gave another "
                f"file than {artifact(scala)} {VERSION}."
            )
            raise ListenerError(msg)
        fetched.replace(jar)


@contextlib.contextmanager
def _alone(folder: Path, tell: Tell) -> Iterator[bool]:
    """Hold the lock of the cache, and tell whether another process had it first.

    The system lets go of it if the process is killed.
    """
    with (folder / _LOCK).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell("Another process is filling the cache; waiting for it …")
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield True
        else:
            yield False


def from_location(location: str, tell: Tell = lambda _: None) -> Fetcher:
    """Bring the listener from a file, or from an address (http, https, file).

    Proxies of the environment apply. Users and passwords in the address are never told.
    """

    def fetcher(work: Path) -> Path:
        target = work / "listener.jar"
        scheme = urllib.parse.urlsplit(location).scheme
        if scheme not in ("http", "https", "file"):
            path = Path(location).expanduser()
            if not path.is_file():
                msg = f"There is no file {path}; give the path or the address of the listener jar."
                raise ListenerError(msg)
            shutil.copyfile(path, target)
            return target
        try:
            _download(location, target, tell)
        except (urllib.error.URLError, TimeoutError, ValueError, EOFError) as error:
            reason = getattr(error, "reason", None) or error
            msg = (
                f"{location} could not be fetched ({reason}). Check the URL and HTTPS_PROXY, or "
                "download the jar on another machine and give its path to --from."
            )
            raise ListenerError(scrub(msg)) from error
        return target

    return fetcher


def _download(address: str, target: Path, tell: Tell) -> None:
    parts = urllib.parse.urlsplit(address)
    user, found, host = parts.netloc.rpartition("@")
    request = urllib.request.Request(  # noqa: S310  (one of three schemes)
        urllib.parse.urlunsplit(parts._replace(netloc=host))
    )
    if found:
        import base64

        token = base64.b64encode(urllib.parse.unquote(user).encode()).decode()
        request.add_unredirected_header("Authorization", f"Basic {token}")
    with (
        urllib.request.urlopen(request, timeout=TIMEOUT_S) as response,  # noqa: S310
        target.open("wb") as file,
    ):
        total = int(response.headers.get("Content-Length") or 0)
        done, said = 0, 0
        while chunk := response.read(_CHUNK):
            file.write(chunk)
            done += len(chunk)
            if total and done * 10 // total > said:
                said = done * 10 // total
                tell(f"{done / 1e6:.0f} of {total / 1e6:.0f} MB")
    if total and done != total:
        msg = f"{done} of {total} bytes came"
        raise EOFError(msg)
