"""Open the inputs of commands (bundles, event files, stdin, merged events) for merging."""

from __future__ import annotations

import errno
import gzip
import shutil
import sys
import tempfile
import zlib
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar, NamedTuple

import msgspec

from airflow_provider_sparklineage.model.exceptions import CaptureError, UnusableInputError
from airflow_provider_sparklineage.model.files import open_regular
from airflow_provider_sparklineage.model.terms import JobName
from airflow_provider_sparklineage.spark.capture import bundle as capture
from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle, Manifest
from airflow_provider_sparklineage.spark.capture.events import (
    MAX_DOCUMENT_BYTES,
    SparkEvent,
    as_lines,
    is_json,
    read_events,
)
from airflow_provider_sparklineage.spark.capture.lines import (
    LongLine,
    ReadReport,
    UnreadableError,
    decoded,
    opened,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


class EventFiles(CaptureBundle, frozen=True):
    """Event files without a manifest, which are read as if they were a bundle."""

    is_in_order: ClassVar[bool] = False  # the order of the files is not known
    files: tuple[Path, ...] = ()
    applications: set[str] = msgspec.field(default_factory=set)
    """The run ids of applications, as far as the events that were read by now show them."""

    def events(self, past_deadline: Callable[[], bool] = lambda: False) -> Iterator[SparkEvent]:
        """Read the events of all files, one file after the other.

        :param past_deadline: is called before each line of a file; if it returns True, reading the
            file ends
        :raise UnusableInputError: if a file cannot be read
        """
        for file in self.files:
            with opened(file, UnusableInputError) as stream:
                for event in read_events(
                    as_lines(stream), self.report, source=str(file), past_deadline=past_deadline
                ):
                    if event.job_type == "APPLICATION":
                        self.applications.add(event.run.run_id)
                    yield event


@contextmanager
def materialised(paths: Sequence[str]) -> Iterator[list[str]]:
    """Give paths of files that can be read more than once.

    Stdin (``-``), and files that are compressed by gzip, as large events of the archive are, are
    copied to temporary files.

    :param paths: paths of files; ``-`` stands for stdin
    :return: the paths, with that of the temporary file in place of a copied file
    :raise UnusableInputError: if a path does not exist, or cannot be copied
    """
    for path in paths:
        if path != "-":
            _require(Path(path))
    with ExitStack() as folders:

        def here(path: str) -> str:
            if path != "-" and not _is_compressed(Path(path)):
                return path
            work = folders.enter_context(tempfile.TemporaryDirectory(prefix="sparklineage-"))
            copy = Path(work) / ("stdin" if path == "-" else Path(path).name)
            try:
                with copy.open("wb") as file:
                    if path == "-":
                        shutil.copyfileobj(sys.stdin.buffer, file)
                    else:
                        _unpack(Path(path), file)
            except (OSError, EOFError, zlib.error) as error:
                name = "The standard input" if path == "-" else path
                why = getattr(error, "strerror", None) or error
                msg = f"{name} cannot be kept in {work}: {why}."
                raise UnusableInputError(msg) from error
            return str(copy)

        yield [here(path) for path in paths]


_GZIP = b"\x1f\x8b"


def _is_compressed(path: Path) -> bool:
    try:
        with open_regular(path) as stream:
            return stream.read(len(_GZIP)) == _GZIP
    except OSError:  # a folder; another file that cannot be read is reported when it is read
        return False


def _unpack(path: Path, into: IO[bytes]) -> None:
    """Unpack a compressed file of at most :data:`MAX_DOCUMENT_BYTES`.

    :raise OSError: if it is larger, or damaged
    """
    with open_regular(path) as stream, gzip.GzipFile(fileobj=stream) as unpacked:
        left = MAX_DOCUMENT_BYTES
        while chunk := unpacked.read(1024 * 1024):
            left -= len(chunk)
            if left < 0:
                raise OSError(errno.EFBIG, f"it has more than {MAX_DOCUMENT_BYTES:,} bytes")
            into.write(chunk)


def _require(path: Path) -> None:
    try:
        path.stat()
    except FileNotFoundError as error:
        msg = f"{path} does not exist."
        raise UnusableInputError(msg) from error
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror or error}."
        raise UnusableInputError(msg) from error


@contextmanager
def open_bundle(paths: Sequence[str], application: str | None = None) -> Iterator[CaptureBundle]:
    """Open the paths that a command was given as one bundle.

    :param paths: the directory of one bundle, or event files
    :param application: the run id of the wanted application; None if the files hold only one
    :raise UnusableInputError: if the paths are not the capture of exactly one application, or if an
        application is wanted of a bundle
    """
    directories = [p for p in paths if Path(p).is_dir()]
    if directories:
        if application is not None:
            problem = f"{directories[0]} is a capture bundle, which has one application."
            raise UnusableInputError(problem, "Leave out --application.")
        if len(paths) > 1:
            problem = f"{directories[0]} is a capture bundle."
            fix = "Give one bundle, or event files only."
            raise UnusableInputError(problem, fix)
        try:
            yield capture.load(Path(directories[0]))
        except CaptureError as error:
            raise UnusableInputError(error.problem, error.fix) from error
        return
    files = tuple(map(Path, paths))
    bundle = EventFiles(None, Manifest(application_run_id=""), files=files)
    run_id = _application(bundle, application)
    yield EventFiles(None, Manifest(application_run_id=run_id), files=files)


def _application(files: EventFiles, wanted: str | None) -> str:
    """Find the run id of the one application whose events the files hold.

    :param wanted: the run id of the application to choose; None for the only one
    :raise UnusableInputError: if the files hold no event, or not the wanted application, or several
        applications and none is wanted
    """
    parents = {e.run.run_id: e.parent_run_id for e in files.events()}
    with_children = set(parents.values())
    run_ids: dict[str, None] = {}
    for run_id, parent in parents.items():
        if parent in parents:
            continue  # this is an action of an application whose own events are here
        # Else this is an application, or an action of an application whose events are missing.
        is_application = parent is None or run_id in with_children or run_id in files.applications
        run_ids[run_id if is_application else str(parent)] = None
    report = files.report
    if not run_ids:
        why = report.malformed[0] if report.malformed else f"{files.files[0]}:1: no complete event"
        msg = f"There is no Spark event in the input: {why}."
        raise UnusableInputError(msg)
    if wanted is not None:
        if wanted not in run_ids:
            problem = f"There is no application {wanted} in the input."
            fix = f"There are: {', '.join(run_ids)}."
            raise UnusableInputError(problem, fix)
        return wanted
    if len(run_ids) > 1:
        some = ", ".join(list(run_ids)[:5])
        problem = f"The input holds events of {len(run_ids)} applications ({some})."
        fix = "Choose one with --application RUN_ID."
        raise UnusableInputError(problem, fix)
    return next(iter(run_ids))


class _Facets(msgspec.Struct):
    capture: msgspec.Raw = msgspec.field(name="sparkLineage_capture", default=msgspec.Raw(b""))


class _Run(msgspec.Struct):
    facets: _Facets = msgspec.field(default_factory=_Facets)


class _Merged(msgspec.Struct):
    run: _Run
    job: JobName


_MERGED = msgspec.json.Decoder(_Merged)
_DOCUMENT = msgspec.json.Decoder(dict[str, Any])


class MergedEvents(NamedTuple):
    """The merged events in files, and the lines that are not JSON.

    :param events: pairs of ``file:line`` and the event, as parsed JSON
    :param malformed: the first lines that are not JSON, each as ``file:line: reason``
    """

    events: list[tuple[str, dict[str, Any]]]
    malformed: list[str]


def merged_events(paths: Sequence[str]) -> MergedEvents:
    """Find the last merged event of each job in files; give none if a path is not a regular file.

    :raise UnusableInputError: if one of the files cannot be read
    """
    last: dict[JobName, tuple[str, bytes]] = {}
    report = ReadReport()
    for path in paths:
        if not Path(path).is_file():
            return MergedEvents([], [])
        with opened(Path(path), UnusableInputError) as stream:
            for number, line in enumerate(as_lines(stream), start=1):
                place = f"{path}:{number}"
                try:
                    job = _job_of_merged(line)
                except UnreadableError as error:
                    report.add_malformed(place, error)
                    continue
                if job is not None and isinstance(line, bytes):
                    last.pop(job, None)  # so that the jobs are in the order of their last events
                    last[job] = place, line
    events = [(place, _document(place, line)) for place, line in last.values()]
    return MergedEvents(events, report.malformed)


def _job_of_merged(line: bytes | LongLine) -> JobName | None:
    """Give the job of a merged event; None if the line is blank, or JSON but no merged event.

    :raise UnreadableError: if the line is not JSON
    """
    try:
        event = decoded(line, _MERGED)
    except UnreadableError:
        if isinstance(line, bytes) and (line.isspace() or is_json(line)):
            return None
        raise
    return event.job if bytes(event.run.facets.capture) else None


def _document(place: str, line: bytes) -> dict[str, Any]:
    try:
        return decoded(line, _DOCUMENT)
    except UnreadableError as error:
        msg = f"{place}: {error}."
        raise UnusableInputError(msg) from error
