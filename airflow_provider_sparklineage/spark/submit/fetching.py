"""The cache of listener jars, and how it is filled.

Nothing is fetched unless somebody asks for it: ``sparklineage fetch-listener``, or a task where
``[sparklineage] fetch_listener`` allows it. A jar appears in the cache complete, with the pinned
digest, or not at all; of several processes one fetches and the others wait for it. All of that is
within a limit, which for a task is a short one.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit, urlunsplit

from airflow_provider_sparklineage.model.exceptions import ListenerError
from airflow_provider_sparklineage.spark.capture import ownership
from airflow_provider_sparklineage.spark.submit import listener
from airflow_provider_sparklineage.spark.submit.listener import PINS, VERSION, artifact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Fetcher = Callable[[Path], Path]
    """Bring a listener into a folder and give its path."""
    Progress = Callable[[str], object]
    """Take a line for the user who waits."""

SILENCE_S = 60  # without a byte, of a download
LIMIT_S = 600
"""How long a fetch may take, or waiting for that of another process: 43 MB by a slow mirror."""
TASK_LIMIT_S = 120
"""The same, in a task: its job waits."""
_CHUNK = 1 << 20


def cache_folder(env: Mapping[str, str] = os.environ) -> Path:
    """Where fetched listeners are kept."""
    base = env.get("XDG_CACHE_HOME") or Path(env.get("HOME") or tempfile.gettempdir()) / ".cache"
    return Path(base) / "sparklineage"


def cached(scala: str, env: Mapping[str, str] = os.environ) -> Path:
    """Where the listener for a Scala version is, or would be, in the cache."""
    return cache_folder(env) / f"{artifact(scala)}-{VERSION}.jar"


def is_cached(scala: str, env: Mapping[str, str] = os.environ) -> bool:
    """Whether the cache has the listener for a Scala version, by its digest."""
    return scala in PINS and cache_problem(scala, env) is None


def cache_problem(scala: str, env: Mapping[str, str] = os.environ) -> str | None:
    """Give what is wrong with the listener in the cache, as a predicate; None if it is whole."""
    jar, pin = cached(scala, env), PINS[scala]
    try:
        size = jar.stat().st_size
        if size != pin.size:
            return f"has {size} bytes, not {pin.size}"
        digest = listener.digest_of(jar)
    except FileNotFoundError:
        return "is not there"
    except OSError as error:
        return f"cannot be read ({error.strerror or error})"
    return None if digest == pin.sha256 else "is not the file that was published, by its digest"


def digest_problem(jar: Path, scala: str) -> str | None:
    """Give what is wrong with a jar that is another file than the pinned one; None if it is that.

    :raise OSError: if it cannot be read
    """
    found = listener.digest_of(jar)
    if found == PINS[scala].sha256:
        return None
    return f"{jar.name} has the SHA-256 digest {found}, not {PINS[scala].sha256}"


def fetch(
    scala: str,
    fetcher: Fetcher,
    env: Mapping[str, str] = os.environ,
    progress: Progress = lambda _: None,
    *,
    limit_s: float = LIMIT_S,
) -> Path:
    """Fetch the listener for a Scala version into the cache; at once if it is there.

    Who has waited for another process to fetch it, in vain, does not try what that one has tried:
    of the tasks on a worker each would wait for all before it.

    :param fetcher: where it comes from: :func:`from_location`, or Spark's own resolver
        (:func:`.commands.from_spark`)
    :param progress: takes lines for the user who waits
    :param limit_s: how long to wait for another process; the fetcher has a limit of its own
    :raise ListenerError: if there is no such listener, it cannot be had, its digest is wrong, or
        the cache cannot be written
    """
    if scala not in PINS:
        problem = f"There is no listener for Scala {scala}."
        fix = f"There are listeners for {' and '.join(PINS)}."
        raise ListenerError(problem, fix)
    jar = cached(scala, env)
    if is_cached(scala, env):
        return jar
    try:
        jar.parent.mkdir(parents=True, exist_ok=True)
        with _alone(jar.parent, limit_s, progress) as has_waited:
            if is_cached(scala, env):  # another process has brought it
                return jar
            if has_waited:
                problem = "Another process has just failed to fetch the listener, and says why."
                raise ListenerError(problem, "Run `sparklineage fetch-listener`.")
            _fill(jar, scala, fetcher, progress)
    except OSError as error:
        problem = (
            f"The listener cannot be put into the cache {jar.parent} ({error.strerror or error})."
        )
        fix = (
            "Make it writable, set XDG_CACHE_HOME to a folder that is, or put the jar anywhere on "
            "the worker and set [sparklineage] listener_jar to its path."
        )
        raise ListenerError(problem, fix) from error
    return jar


def _fill(jar: Path, scala: str, fetcher: Fetcher, progress: Progress) -> None:
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=jar.parent) as work:
        fetched = fetcher(Path(work))
        progress(f"Checking the digest of {fetched.stat().st_size / 1e6:.0f} MB …")
        if problem := digest_problem(fetched, scala):
            problem = f"The fetched {problem}; it is not used."
            fix = f"A repository or a proxy gave another file than {artifact(scala)} {VERSION}."
            raise ListenerError(problem, fix)
        put_in_place(fetched, jar)


def put_in_place(file: Path, target: Path) -> None:
    """Give a file its name, so that a machine that crashes then has all of it there or nothing.

    :raise OSError: if it cannot be written
    """
    _to_disk(file)
    file.replace(target)
    _to_disk(target.parent)


def _to_disk(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def _alone(folder: Path, limit_s: float, progress: Progress) -> Iterator[bool]:
    """Hold the lock of the cache, and give whether another process had it first.

    :raise ListenerError: if that one does not end
    """
    lock = ownership.acquire_lock(folder)
    has_waited = lock is None
    if has_waited:
        progress("Another process is filling the cache; waiting for it …")
        lock = ownership.acquire_lock(folder, limit_s)
    if lock is None:
        problem = (
            f"Another process has been filling the cache {folder} for {limit_s / 60:.0f} minutes."
        )
        raise ListenerError(problem, "If it hangs, end it, and run `sparklineage fetch-listener`.")
    try:
        yield has_waited
    finally:
        lock.release()


def from_location(
    location: str, progress: Progress = lambda _: None, *, limit_s: float = LIMIT_S
) -> Fetcher:
    """Make a fetcher of a path or a URL (http, https, file).

    Proxies of the environment apply. Users and passwords in the URL are in no message.

    :param limit_s: how long a download may take in all
    """
    scheme = urlsplit(location).scheme

    def fetcher(work: Path) -> Path:
        target = work / "listener.jar"
        if scheme in ("http", "https"):
            _download(location, target, limit_s, progress)
            return target
        path = Path(unquote(urlsplit(location).path) if scheme == "file" else location).expanduser()
        if not path.is_file():
            problem = f"There is no file {path}."
            raise ListenerError(problem, "Give the path or the URL of the listener jar.")
        shutil.copyfile(path, target)
        return target

    return fetcher


def _download(url: str, target: Path, limit_s: float, progress: Progress) -> None:
    import requests  # a job waits for what is imported above
    import urllib3

    parts = urlsplit(url)
    auth = None
    if parts.username is not None:  # given apart, so that it is in no text of an error
        auth = (unquote(parts.username), unquote(parts.password or ""))
    bare = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    shown = urlunsplit((*urlsplit(bare)[:3], "", ""))  # of a query nobody knows what is secret
    fix = (
        "Check the URL and HTTPS_PROXY, or download the jar on another machine and give its path "
        "to --from."
    )
    plain = {"Accept-Encoding": "identity"}  # what is read below is what was sent
    ends = time.monotonic() + limit_s
    try:
        with (
            requests.get(
                bare, auth=auth, headers=plain, stream=True, timeout=SILENCE_S
            ) as response,
            target.open("wb") as file,
        ):
            response.raise_for_status()
            total = int(response.headers.get("Content-Length") or 0)
            done, tenths = 0, 0
            for chunk in _until(ends, response.raw):
                file.write(chunk)
                done += len(chunk)
                if total and done * 10 // total > tenths:
                    tenths = done * 10 // total
                    progress(f"{done / 1e6:.0f} of {total / 1e6:.0f} MB")
    except TimeoutError as error:
        problem = f"{shown} could not be fetched within {limit_s:.0f} s."
        raise ListenerError(problem, fix) from error
    except (requests.RequestException, urllib3.exceptions.HTTPError, ValueError) as error:
        problem = f"{shown} could not be fetched ({_reason(error)})."
        raise ListenerError(problem, fix) from error


def _until(ends: float, response: Any) -> Iterator[bytes]:
    """Yield what comes until a time, as it comes: a chunk could take a slow server for ever.

    :raise TimeoutError: if there is more by then
    """
    while chunk := response.read1(_CHUNK):
        if time.monotonic() > ends:
            raise TimeoutError
        yield chunk


def _reason(error: BaseException) -> str:
    """Give the answer of a server, or the first cause of there being none."""
    response = getattr(error, "response", None)
    if response is not None:
        return f"{response.status_code} {response.reason}"
    while cause := error.__cause__ or error.__context__:
        error = cause
    return str(error)
