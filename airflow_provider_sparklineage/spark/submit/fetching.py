"""The cache of listener jars, and how a jar gets there: copied, downloaded or by Spark's resolver.

A jar is fetched only on request: by ``sparklineage fetch-listener``, or in a task if
``[sparklineage] fetch_listener`` allows it. A jar appears in the cache as a whole, with the pinned
digest, or not at all. If several processes need a jar, one of them fetches it and the others wait.
Both fetching and waiting have a time limit, which is shorter for a task. If a process holds the
lock of the cache for longer than that, it hangs, or is slow: then one other process fetches the jar
too, without waiting.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit, urlunsplit

from airflow_provider_sparklineage.model.exceptions import ListenerError
from airflow_provider_sparklineage.model.files import (
    digest_of,
    digests,
    identity_of,
    open_regular,
)
from airflow_provider_sparklineage.spark.capture import ownership
from airflow_provider_sparklineage.spark.submit.listener import PINS, VERSION, artifact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Fetcher = Callable[[Path], Path]
    """A function that brings the listener's jar into a folder, and returns the path of the jar."""
    Progress = Callable[[str], object]
    """A function that is called with a line of text for the user who waits."""

SILENCE_S = 60  # a download fails if no byte arrives for this time
LIMIT_S = 600
"""The time limit of a fetch, and of waiting for another process's fetch. The jar has 43 MB, and the
mirror may be slow."""
TASK_LIMIT_S = 30
"""The shorter limit for a fetch in a task, because a job waits for it: 43 MB at 1.5 MB/s."""
_SECOND_LOCK_FILE = ".lock-2"
_CHUNK = 1 << 20
_MAX_BYTES = 256_000_000  # six times the jar; a server may send without end


class BusyCacheError(ListenerError):
    """Raised when the fetch of another process has not ended in time; it may still succeed."""


def cache_folder(env: Mapping[str, str] = os.environ) -> Path:
    """Give the folder of the cache, into which listeners are fetched.

    :param env: the environment variables, of which XDG_CACHE_HOME and HOME are looked at
    """
    base = env.get("XDG_CACHE_HOME") or Path(env.get("HOME") or tempfile.gettempdir()) / ".cache"
    return Path(base) / "sparklineage"


def cached(scala: str, env: Mapping[str, str] = os.environ) -> Path:
    """Give the path in the cache of the listener for a Scala version; the file need not exist.

    :param scala: the binary version of Scala, e.g. ``2.13``
    :param env: the environment variables that name the folder of the cache
    """
    return cache_folder(env) / f"{artifact(scala)}-{VERSION}.jar"


def is_cached(scala: str, env: Mapping[str, str] = os.environ) -> bool:
    """Whether the cache has the listener for a Scala version, with the pinned digest.

    :param scala: the binary version of Scala, e.g. ``2.13``
    :param env: the environment variables that name the folder of the cache
    """
    return scala in PINS and cache_problem(scala, env) is None


def cache_problem(scala: str, env: Mapping[str, str] = os.environ) -> str | None:
    """Describe the fault of the listener's jar in the cache; None if the jar has the pinned digest.

    The description is a predicate without a subject, such as ``is not there``.

    :param scala: a version of Scala that :data:`.listener.PINS` has
    :param env: the environment variables that name the folder of the cache
    """
    try:
        digest = _digest_of_cached(cached(scala, env), PINS[scala])
    except FileNotFoundError:
        return "is not there"
    except OSError as error:
        return f"cannot be read ({error.strerror or error})"
    return None if digest == PINS[scala] else "is not the file that was published, by its digest"


def _digest_of_cached(jar: Path, pin: str) -> str:
    """Give the digest of a jar in the cache.

    A jar that had the pinned digest when a process of this user read it is not read again for a
    day, unless it has changed or other users may write it: each task would read 43 MB while its job
    waits.

    :raise OSError: if the jar cannot be read
    """
    status = jar.stat()
    identity = identity_of(status)
    is_closed = status.st_uid in (0, os.getuid()) and not status.st_mode & _OTHERS_MAY_WRITE
    if identity in digests or not is_closed:
        return digest_of(jar)
    note = jar.with_suffix(f".checked-{os.getuid()}")
    checked = [pin, *identity[1:]]  # the device, which is left out, is another for each mount
    if _noted(note, _CHECKED_S) == checked:
        digests[identity] = pin
        return digest_of(jar)
    digest = digest_of(jar)
    if digests.get(identity) == pin:  # else the jar has been replaced meanwhile, or is damaged
        _note(note, checked)
    return digest


def digest_problem(jar: Path, scala: str) -> str | None:
    """Describe how the digest of a jar differs from the pinned digest; None if they are equal.

    :param scala: the version of Scala whose digest in :data:`.listener.PINS` is expected
    :return: a clause for a message, such as ``listener.jar has the SHA-256 digest …, not …``
    :raise OSError: if the jar cannot be read
    """
    digest = digest_of(jar)
    if digest == PINS[scala]:
        return None
    return f"{jar.name} has the SHA-256 digest {digest}, not {PINS[scala]}"


def fetch(
    scala: str,
    fetcher: Fetcher,
    env: Mapping[str, str] = os.environ,
    progress: Progress = lambda _: None,
    *,
    limit_s: float = LIMIT_S,
) -> Path:
    """Fetch the listener for a Scala version into the cache, unless the cache has it already.

    A process that has waited for the fetch of another process does not try to fetch after that
    fetch has failed: otherwise each task on a worker would wait for the failures of all tasks
    before it.

    :param scala: the binary version of Scala, e.g. ``2.13``
    :param fetcher: the function that brings the jar, made by :func:`from_location` or by
        :func:`.commands.from_spark` (Spark's own resolver)
    :param env: the environment variables that name the folder of the cache
    :param progress: is called with lines of text for the user who waits
    :param limit_s: the time to wait for another process, in seconds; the fetcher has a limit of its
        own
    :return: the path of the jar in the cache
    :raise ListenerError: if there is no listener for this Scala version, the jar cannot be fetched,
        its digest is wrong, or the cache cannot be written; a :exc:`BusyCacheError` if the fetch of
        another process takes too long
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


_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
_CHECKED_S = 86_400.0
"""The time for which the digest of a file that does not change is remembered."""
_FAILURE_S = 900.0
"""The time during which tasks do not repeat a fetch that failed."""
_MAX_NOTE_BYTES = 1 << 16


def recent_failure(scala: str, env: Mapping[str, str]) -> ListenerError | None:
    """Give the error of the last fetch, if it failed within the last quarter of an hour.

    The fetch may have been that of another process: a file in the cache has the error, and the time
    of the file is the time of the failure.

    :param scala: the binary version of Scala, e.g. ``2.13``
    :param env: the environment variables that name the folder of the cache
    :return: None if there is no such failure, or if the file cannot be read
    """
    with contextlib.suppress(TypeError):
        return ListenerError(*_noted(_failure_file(scala, env), _FAILURE_S))
    return None


def note_failure(scala: str, env: Mapping[str, str], error: ListenerError) -> None:
    """Note that a fetch failed, if the cache can be written.

    :param scala: the binary version of Scala, e.g. ``2.13``
    :param env: the environment variables that name the folder of the cache
    :param error: the error of the fetch
    """
    _note(_failure_file(scala, env), [error.problem, error.fix])


def _failure_file(scala: str, env: Mapping[str, str]) -> Path:
    return cached(scala, env).with_suffix(".failed")


def _noted(file: Path, seconds: float) -> Any:
    """Give what another process of this user noted in the cache.

    :return: None if that was longer ago, or if the file cannot be read
    """
    with contextlib.suppress(OSError, ValueError, RecursionError), open_regular(file) as content:
        status = os.fstat(content.fileno())
        is_own = ownership.is_own(status, stat.S_IFREG)  # the cache may be open to other users
        if is_own and abs(time.time() - status.st_mtime) < seconds:
            return json.loads(content.read(_MAX_NOTE_BYTES))
    return None


def _note(file: Path, noted: Any) -> None:
    """Note something for other processes of this user, if the cache can be written."""
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        # A file of its own is put in place: another user's link there is not followed.
        with tempfile.TemporaryDirectory(prefix=".note-", dir=file.parent) as work:
            note = Path(work) / "note"
            note.touch(mode=0o600)
            note.write_text(json.dumps(noted), encoding="utf-8")
            note.replace(file)


_ABANDONED_S = 3600.0  # longer than any fetch takes


def _remove_abandoned(folder: Path) -> None:
    """Remove the folders of this user's fetches that were killed; each may have a whole jar."""
    for work in (*folder.glob(".fetch-*"), *folder.glob(".note-*")):
        with contextlib.suppress(OSError):
            status = work.lstat()
            is_own = ownership.is_own(status, stat.S_IFDIR)
            if is_own and abs(time.time() - status.st_mtime) > _ABANDONED_S:
                shutil.rmtree(work, ignore_errors=True)


def _fill(jar: Path, scala: str, fetcher: Fetcher, progress: Progress) -> None:
    _remove_abandoned(jar.parent)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=jar.parent) as work:
        fetched = fetcher(Path(work))
        progress(f"Checking the digest of {fetched.stat().st_size / 1e6:.0f} MB …")
        if problem := digest_problem(fetched, scala):
            problem = f"The fetched {problem}; it is not used."
            fix = f"A repository or a proxy gave another file than {artifact(scala)} {VERSION}."
            raise ListenerError(problem, fix)
        fetched.chmod(stat.S_IMODE(fetched.stat().st_mode) & ~_OTHERS_MAY_WRITE)
        put_in_place(fetched, jar)


def put_in_place(file: Path, target: Path) -> None:
    """Move a file to its target, which then has the whole file or nothing, even after a crash.

    :raise OSError: if the file cannot be moved or written to disk
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
    """Hold a lock of the cache, and give whether this process had to wait for it.

    The time of the first lock's file is the time at which the present holder took it. As long as
    that is less than ``limit_s`` ago, other processes wait for the holder. After that, one of them
    takes the second lock and goes on next to the holder.

    :param folder: the folder of the cache
    :param limit_s: the time that a holder may take, in seconds
    :param progress: is called with a line of text if another process holds the lock
    :raise BusyCacheError: if other processes hold both locks, or the holder takes too long
    """
    lock, has_waited = ownership.acquire_lock(folder), False
    if lock is not None:
        with contextlib.suppress(OSError):
            os.utime(folder / ownership.LOCK_FILE, follow_symlinks=False)
    # abs(): a time in the future is that of a wrong clock, and must not make tasks wait.
    elif (held_s := abs(time.time() - (folder / ownership.LOCK_FILE).lstat().st_mtime)) < limit_s:
        progress("Another process is filling the cache; waiting for it …")
        lock, has_waited = ownership.acquire_lock(folder, limit_s - held_s), True
    else:
        progress("Another process has been filling the cache for long; fetching as well …")
        lock = ownership.acquire_lock(folder, name=_SECOND_LOCK_FILE)
    if lock is None:
        problem = f"Another process has been filling the cache {folder} for {limit_s:.0f} s."
        raise BusyCacheError(problem, "If it hangs, end it, and run `sparklineage fetch-listener`.")
    try:
        yield has_waited
    finally:
        lock.release()


def from_location(
    location: str, progress: Progress = lambda _: None, *, limit_s: float = LIMIT_S
) -> Fetcher:
    """Make a fetcher that gets the jar from a path or a URL (http, https, file).

    A download uses the proxies of the environment. Messages do not show the user and password of
    the URL.

    :param location: the path or the URL
    :param progress: is called with lines of text for the user who waits
    :param limit_s: the time limit of the whole download, in seconds
    """

    def fetcher(work: Path) -> Path:
        target = work / "listener.jar"
        path = check_location(location)
        if path is None:
            _download(location, target, limit_s, progress)
        else:
            shutil.copyfile(path, target)
        return target

    return fetcher


def check_location(location: str) -> Path | None:
    """Give the file that a path or a ``file:`` URL names; None for a URL of http or https.

    :raise ListenerError: if there is no such file, or the location is a URL of another scheme
    """
    fix = "Give the path or the URL (http, https, file) of the listener jar."
    try:
        parts = urlsplit(location)
    except ValueError as error:
        problem = f"{location} is no URL."
        raise ListenerError(problem, fix) from error
    if parts.scheme in ("http", "https"):
        return None
    if parts.scheme != "file" and "://" in location:
        problem = f"A jar cannot be taken from {parts.scheme}:// here."
        raise ListenerError(problem, fix)
    path = Path(unquote(parts.path) if parts.scheme == "file" else location).expanduser()
    if not path.is_file():
        problem = f"There is no file {path}."
        raise ListenerError(problem, fix)
    return path


def _download(url: str, target: Path, limit_s: float, progress: Progress) -> None:
    import requests  # not at the top of the module, because a job waits for the imports there
    import urllib3

    parts = urlsplit(url)
    auth = None
    if parts.username is not None:  # passed separately, so that no error's text has the password
        auth = (unquote(parts.username), unquote(parts.password or ""))
    bare = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    shown = urlunsplit((*urlsplit(bare)[:3], "", ""))  # a query may have secrets
    fix = (
        "Check the URL and HTTPS_PROXY, or download the jar on another machine and give its path "
        "to --from."
    )
    plain = {"Accept-Encoding": "identity"}  # the bytes below must be those of the file
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
                if done > _MAX_BYTES:
                    problem = f"{shown} sends more than {_MAX_BYTES / 1e6:.0f} MB."
                    raise ListenerError(problem, fix)
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
    """Yield the bytes of a response as they arrive, so that the time is checked often enough.

    A slow server could need longer than the limit for one full chunk.

    :param ends: the end of the time limit, on the monotonic clock
    :param response: the response of urllib3, whose ``read1`` gives the bytes that have arrived
    :raise TimeoutError: if bytes arrive after the end of the time limit
    """
    while chunk := response.read1(_CHUNK):
        if time.monotonic() > ends:
            raise TimeoutError
        yield chunk


def _reason(error: BaseException) -> str:
    """Give the status with which a server answered, or else the text of the error's first cause."""
    response = getattr(error, "response", None)
    if response is not None:
        return f"{response.status_code} {response.reason}"
    while cause := error.__cause__ or error.__context__:
        error = cause
    return str(error)
