"""What commands are given (bundles, event files, stdin, merged events) to what merging reads."""

from __future__ import annotations

import shutil
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from airflow_provider_sparklineage.exceptions import CaptureError, UnusableInputError
from airflow_provider_sparklineage.spark import capture
from airflow_provider_sparklineage.spark.capture import CaptureBundle, Manifest
from airflow_provider_sparklineage.spark.events import ReadReport, SparkEvent, as_lines, read_events

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


@dataclass(frozen=True)
class EventFiles(CaptureBundle):
    """Event files without a manifest, read like a bundle."""

    files: tuple[Path, ...] = ()

    def events(self, expired: Callable[[], bool] = lambda: False) -> Iterator[SparkEvent]:
        """Read the events of all files, one file after the other."""
        for file in self.files:
            try:
                with file.open("rb") as stream:
                    yield from read_events(
                        as_lines(stream), self.report, source=str(file), expired=expired
                    )
            except OSError as error:
                msg = f"{file} cannot be read: {error.strerror or error}."
                raise UnusableInputError(msg) from error


@contextmanager
def open_bundle(paths: Sequence[str], application: str | None = None) -> Iterator[CaptureBundle]:
    """Open what a command was given as one bundle.

    :param paths: one bundle directory, or event files (``-`` for stdin, read once)
    :param application: run id of the application to take, where the files hold several
    :raise UnusableInputError: if that is not the capture of exactly one application
    """
    directories = [p for p in paths if Path(p).is_dir()]
    if directories:
        if len(paths) > 1:
            msg = f"{directories[0]} is a capture bundle; give one bundle, or event files only."
            raise UnusableInputError(msg)
        try:
            yield capture.load(Path(directories[0]))
        except CaptureError as error:
            raise UnusableInputError(str(error)) from error
        return
    with tempfile.TemporaryDirectory(prefix="sparklineage-") as work:
        files = tuple(_file(p, Path(work)) for p in paths)
        bundle = EventFiles(None, Manifest(application_run_id=""), files=files)
        run_id = _application(bundle, application)
        yield EventFiles(None, Manifest(application_run_id=run_id), ReadReport(), files)


def _file(path: str, work: Path) -> Path:
    if path != "-":
        if not Path(path).is_file():
            msg = f"{path} does not exist."
            raise UnusableInputError(msg)
        return Path(path)
    # Files are read twice (which application, then its events), stdin cannot be.
    copy = work / "stdin"
    with copy.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return copy


def _application(files: EventFiles, wanted: str | None) -> str:
    """Find the run id of the application that the events are of."""
    found: dict[str, None] = {}
    for event in files.events():
        is_application = event.job_type == "APPLICATION" or event.parent_run_id is None
        run_id = event.run.run_id if is_application else event.parent_run_id
        found[str(run_id)] = None
    report = files.report
    if not found:
        why = report.malformed[0] if report.malformed else f"{files.files[0]}:1: no complete event"
        msg = f"There is no Spark event in the input: {why}."
        raise UnusableInputError(msg)
    if wanted is not None:
        if wanted not in found:
            msg = f"There is no application {wanted} in the input; there are: {', '.join(found)}."
            raise UnusableInputError(msg)
        return wanted
    if len(found) > 1:
        msg = (
            f"The input holds events of {len(found)} applications ({', '.join(list(found)[:5])}); "
            "choose one with --application RUN_ID."
        )
        raise UnusableInputError(msg)
    return next(iter(found))


class _Facets(msgspec.Struct):
    capture: msgspec.Raw = msgspec.field(name="sparkLineage_capture", default=msgspec.Raw(b""))


class _Run(msgspec.Struct):
    facets: _Facets = msgspec.field(default_factory=_Facets)


class _Job(msgspec.Struct):
    namespace: str
    name: str


class _Merged(msgspec.Struct):
    run: _Run
    job: _Job


_MERGED = msgspec.json.Decoder(_Merged)


def merged_events(paths: Sequence[str]) -> list[dict[str, Any]]:
    """Find merged events in files, the last of each job; none if a path is no file."""
    last: dict[tuple[str, str], bytes] = {}
    for path in paths:
        if not Path(path).is_file():
            return []
        with Path(path).open("rb") as stream:
            for line in as_lines(stream):
                try:
                    event = _MERGED.decode(line)
                except msgspec.MsgspecError:
                    continue
                if bytes(event.run.facets.capture):
                    job = (event.job.namespace, event.job.name)
                    last.pop(job, None)  # jobs in the order of their last events
                    last[job] = bytes(line)
    return [msgspec.json.decode(line) for line in last.values()]
