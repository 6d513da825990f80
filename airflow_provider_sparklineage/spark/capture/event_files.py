"""What commands are given (bundles, event files, stdin, merged events) to what merging reads."""

from __future__ import annotations

import shutil
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from airflow_provider_sparklineage.model.exceptions import CaptureError, UnusableInputError
from airflow_provider_sparklineage.model.jobs import JobName
from airflow_provider_sparklineage.spark.capture import bundle as capture
from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle, Manifest
from airflow_provider_sparklineage.spark.capture.events import SparkEvent, as_lines, read_events
from airflow_provider_sparklineage.spark.capture.lines import UnreadableError, decoded, open_regular

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


@dataclass(frozen=True)
class EventFiles(CaptureBundle):
    """Event files without a manifest, read like a bundle."""

    files: tuple[Path, ...] = ()
    applications: set[str] = field(default_factory=set)
    """Run ids that turned out to be applications while they were read."""

    def events(self, past_deadline: Callable[[], bool] = lambda: False) -> Iterator[SparkEvent]:
        """Read the events of all files, one file after the other."""
        for file in self.files:
            try:
                with open_regular(file) as stream:
                    lines = as_lines(stream)
                    for event in read_events(
                        lines, self.report, source=str(file), past_deadline=past_deadline
                    ):
                        if event.job_type == "APPLICATION":
                            self.applications.add(event.run.run_id)
                        yield event
            except OSError as error:
                msg = f"{file} cannot be read: {error.strerror or error}."
                raise UnusableInputError(msg) from error


@contextmanager
def materialised(paths: Sequence[str]) -> Iterator[list[str]]:
    """Give paths that can be read more than once: stdin (``-``) becomes a temporary file.

    :raise UnusableInputError: if a path does not exist
    """
    with tempfile.TemporaryDirectory(prefix="sparklineage-") as work:
        copy = Path(work) / "stdin"
        if "-" in paths:
            with copy.open("wb") as file:
                shutil.copyfileobj(sys.stdin.buffer, file)
        for path in paths:
            if path != "-" and not Path(path).exists():
                msg = f"{path} does not exist."
                raise UnusableInputError(msg)
        yield [str(copy) if path == "-" else path for path in paths]


@contextmanager
def open_bundle(paths: Sequence[str], application: str | None = None) -> Iterator[CaptureBundle]:
    """Open what a command was given as one bundle.

    :param paths: one bundle directory, or event files
    :param application: run id of the application to take, where the files hold several
    :raise UnusableInputError: if that is not the capture of exactly one application
    """
    directories = [p for p in paths if Path(p).is_dir()]
    if directories:
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
    """Find the run id of the application that the events are of."""
    parents = {e.run.run_id: e.parent_run_id for e in files.events()}
    with_children = set(parents.values())
    found: dict[str, None] = {}
    for run_id, parent in parents.items():
        if parent in parents:
            continue  # an action of an application whose own events are here
        # Else the application itself, or an action whose application's events are missing.
        is_application = parent is None or run_id in with_children or run_id in files.applications
        found[run_id if is_application else str(parent)] = None
    report = files.report
    if not found:
        why = report.malformed[0] if report.malformed else f"{files.files[0]}:1: no complete event"
        msg = f"There is no Spark event in the input: {why}."
        raise UnusableInputError(msg)
    if wanted is not None:
        if wanted not in found:
            problem = f"There is no application {wanted} in the input."
            fix = f"There are: {', '.join(found)}."
            raise UnusableInputError(problem, fix)
        return wanted
    if len(found) > 1:
        problem = (
            f"The input holds events of {len(found)} applications ({', '.join(list(found)[:5])})."
        )
        fix = "Choose one with --application RUN_ID."
        raise UnusableInputError(problem, fix)
    return next(iter(found))


class _Facets(msgspec.Struct):
    capture: msgspec.Raw = msgspec.field(name="sparkLineage_capture", default=msgspec.Raw(b""))


class _Run(msgspec.Struct):
    facets: _Facets = msgspec.field(default_factory=_Facets)


class _Merged(msgspec.Struct):
    run: _Run
    job: JobName


_MERGED = msgspec.json.Decoder(_Merged)


def merged_events(paths: Sequence[str]) -> list[dict[str, Any]]:
    """Find merged events in files, the last of each job; none if a path is no file."""
    last: dict[JobName, bytes] = {}
    for path in paths:
        if not Path(path).is_file():
            return []
        with Path(path).open("rb") as stream:
            for line in as_lines(stream):
                try:
                    event = decoded(line, _MERGED)
                except UnreadableError:
                    continue
                if bytes(event.run.facets.capture):
                    job = event.job
                    last.pop(job, None)  # jobs in the order of their last events
                    last[job] = bytes(line)
    return [msgspec.json.decode(line) for line in last.values()]
