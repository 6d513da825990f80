"""Commands on captured and merged events: ``merge`` and ``show``.

Their input is capture bundles, files of captured Spark events, or merged events. A bundle is a
folder, or the URL to which a driver in a cluster delivered it; a bundle at a URL is downloaded for
the time of the command. ``merge`` makes one event of captured events, or the metadata that DataHub
is asked to store; ``show`` prints events or writes the page of Airflow's tab.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from airflow_provider_sparklineage.cli import commands, show
from airflow_provider_sparklineage.event import model, stored
from airflow_provider_sparklineage.event.document import replaced
from airflow_provider_sparklineage.event.pipeline import merged_event
from airflow_provider_sparklineage.lineage.bundle import task_lineage
from airflow_provider_sparklineage.model import credentials, exceptions, texts
from airflow_provider_sparklineage.model.budget import UNLIMITED
from airflow_provider_sparklineage.model.degradations import DegradationCode
from airflow_provider_sparklineage.plugins import page
from airflow_provider_sparklineage.settings.resolution import resolve
from airflow_provider_sparklineage.spark.capture import event_files
from airflow_provider_sparklineage.spark.capture.bundle import in_spark
from airflow_provider_sparklineage.spark.capture.remote_bundles import fetched

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from airflow_provider_sparklineage.datahub.configuration import Conversion
    from airflow_provider_sparklineage.spark.capture.bundle import TaskIdentity


# --- bundles at URLs ------------------------------------------------------------------------------


_URL = re.compile("[a-z][a-z0-9+.-]*://", re.IGNORECASE)


@contextmanager
def downloaded(inputs: Sequence[str]) -> Iterator[list[str]]:
    """Give the inputs of a command, with a temporary folder in the place of each bundle's URL.

    The bundles are downloaded to these folders, which are removed at the end of the ``with`` block.

    :raise UnusableInputError: if there is no bundle at a URL
    """
    with ExitStack() as folders:

        def here(text: str) -> str:
            if not _URL.match(text):
                return text
            folder = tempfile.TemporaryDirectory(prefix="sparklineage-", ignore_cleanup_errors=True)
            _download(text.rstrip("/"), Path(folders.enter_context(folder)))
            return folder.name

        yield [here(given) for given in inputs]


def _download(url: str, into: Path) -> None:
    with commands.logging_to_stderr():  # Airflow is imported for its connections
        place = _as_configured(url)
        try:
            fetched(place, into, UNLIMITED)  # the user can stop it if it takes long
        except exceptions.CaptureError as error:
            commands.refuse(error.problem, f"{error.fix}{_elsewhere(place)}")


def _as_configured(url: str) -> str:
    """Add the connection of the capture location to a URL below that location.

    URLs in logs of tasks are without the connection (``CONN_ID@``), because the part before ``@``
    could be a name and a password. URLs in logs of drivers have the form that Spark uses.

    :return: the URL unchanged if it has a connection, or is not below the capture location
    """
    if "@" in url:
        return url
    from airflow_provider_sparklineage.hooks import sources

    settings = resolve(sources.configuration("capture_location", "capture_location_in_spark"))
    location = settings.capture_location.url
    names = []
    if location:
        names.append(credentials.scrub(location))
        with suppress(exceptions.SettingsError):  # the URL for Spark cannot be derived
            names.append(in_spark(location, settings.capture_location_in_spark))
    for name in names:
        if url.startswith(f"{name}/"):
            return location + url.removeprefix(name)
    return url


def _elsewhere(url: str) -> str:
    if "@" not in url or os.environ.get("_AIRFLOW_PROCESS_CONTEXT") == "server":
        return ""
    return (
        " Here only connections in environment variables are known; `airflow sparklineage` with "
        "the same arguments knows all of Airflow's."
    )


# --- merge ----------------------------------------------------------------------------------------


_DATAHUB = "datahub"
_TRANSPORT_EXAMPLE = """E.g. --transport '{"env": "DEV", "platform_instance": "eu"}'."""


def merge(args: argparse.Namespace) -> int:
    """Merge captured events into one event; print it, or DataHub's metadata, as ``--format`` says.

    :return: the exit code
    """
    from airflow_provider_sparklineage.datahub.conversion import proposals

    how = _conversion(args)
    with downloaded(args.input) as inputs, event_files.materialised(inputs) as paths:
        if event_files.merged_events(paths).events:
            commands.refuse(
                "The input has merged events already.", "See them with `sparklineage show`."
            )
        with event_files.open_bundle(paths, application=args.application) as bundle:
            if args.max_event_bytes is not None:
                manifest = replace(bundle.manifest, max_event_bytes=args.max_event_bytes)
                bundle = replace(bundle, manifest=manifest)
            event = merged_event(bundle, task_lineage(bundle))
    if args.job_namespace:
        event["job"]["namespace"] = args.job_namespace
    if args.job_name:
        event["job"]["name"] = args.job_name
    if args.format == _DATAHUB:
        placed = _placed(event, bundle.manifest.task)
        commands.say_json_array(proposal.document() for proposal in proposals(placed, how))
    else:
        commands.say_json(event, sort_keys=True)
    return _notes(event, strict=args.strict)


def _placed(event: dict[str, Any], task: TaskIdentity | None) -> dict[str, Any]:
    """Add the facet ``airflow``, which names the task and the try, to an event.

    Airflow adds this facet when it sends an event. The job's name is not enough to name the task,
    because ids can have dots.

    :param task: the try that the event is about; if it is None, the event is not changed
    """
    if task is None:
        return event
    attempt = {"try_number": task.try_number, "map_index": task.map_index}
    facet = {
        "dag": {"dag_id": task.dag_id},
        "dagRun": {"dag_id": task.dag_id, "run_id": task.run_id},
        "task": {"task_id": task.task_id},
        "taskInstance": {key: number for key, number in attempt.items() if number >= 0},
    }
    return replaced(event, run_facets={**event["run"]["facets"], "airflow": facet})


def _conversion(args: argparse.Namespace) -> Conversion:
    """Read from the option ``--transport`` how to convert events for DataHub.

    The option is a JSON object, or the path of a file that has one. Nothing is sent to the URL in
    it. Without the option, the defaults are used.

    :raise UnusableInputError: if the option is neither
    :raise SettingsError: if a key of the object is unknown, or a value impossible
    """
    from airflow_provider_sparklineage.datahub import configuration

    document: Any = None
    text: str = args.transport or "{}"
    try:
        document = json.loads(text if "{" in text else Path(text).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        commands.refuse(
            f"--transport is neither JSON nor a file of it ({type(error).__name__}).",
            _TRANSPORT_EXAMPLE,
        )
    if not isinstance(document, dict):
        commands.refuse("--transport is no JSON object.", _TRANSPORT_EXAMPLE)
    goes_nowhere = {} if "server" in document or "folder" in document else {"folder": "."}
    return configuration.read({**document, **goes_nowhere}).conversion


def _notes(event: dict[str, Any], *, strict: bool) -> int:
    capture = model.read_document(event).capture
    missing = capture.degradations or []
    for entry in missing:
        commands.note(f"note: {entry.code}: {entry.message}")
    if missing:
        commands.note(f"note: {show.HOW_TO_ASK}")
    if more := capture.unlisted:
        commands.note(f"note: {more} more are not listed in the event")
    if stored.misses_detail(event):
        commands.note(
            "note: --max-event-bytes N gives an event of up to N bytes, whatever is configured"
        )
    return 1 if strict and missing else 0


# --- show -----------------------------------------------------------------------------------------


def show_events(args: argparse.Namespace) -> int:
    """Print the merged events of the input, or write an HTML page of them (``--html``).

    In place of the input there may be codes of degradations, whose meanings are printed.

    :return: the exit code
    """
    if codes := _codes(args):
        show.print_codes(codes, sys.stdout)
        return 0
    events = events_of(args.input, args.application)
    if args.html:
        _write_page(Path(args.html), [one.document for one in events])
    else:
        for one in events:
            show.print_event(one.event, sys.stdout)
    missing = any(one.event.capture.degradations for one in events)
    return 1 if args.strict and missing else 0


def _codes(args: argparse.Namespace) -> list[DegradationCode]:
    """Give the codes of degradations that are named in place of the input; [] if there are none.

    :raise UnusableInputError: if there are codes and inputs, or options that are about an input; if
        there is no such file, and a code is similar
    """
    names = [text for text in args.input if not Path(text).exists()]
    codes = [DegradationCode(name) for name in names if name in list(DegradationCode)]
    if not codes:
        for name in names:
            if near := texts.did_you_mean(name, DegradationCode):
                commands.refuse(f"{name} does not exist.", near)
    elif len(codes) < len(args.input) or args.html or args.application or args.strict:
        commands.refuse(f"{codes[0]} is the code of a degradation.", "Give codes alone.")
    return codes


def _write_page(file: Path, events: list[dict[str, Any]]) -> None:
    try:
        file.write_text(page.self_contained(events), encoding="utf-8")
    except OSError as error:
        commands.refuse(f"{file} cannot be written: {error.strerror or error}.")
    print(file)  # not escaped: a script uses the line as a path


def events_of(inputs: Sequence[str], application: str | None = None) -> list[stored.Stored]:
    """Give the merged events of the input.

    Each bundle is merged into one event. If the files have merged events, these are given; else all
    files together are merged into one event.

    :param application: run id of the Spark application to merge, if captured events are of several
    :raise UnusableInputError: if the input has no event, or an application is wanted of what is
        merged already
    """

    def merged(of: list[str], application: str | None = None) -> stored.Stored:
        with event_files.open_bundle(of, application=application) as bundle:
            return stored.readable(merged_event(bundle, task_lineage(bundle)))

    def checked(place: str, event: dict[str, Any]) -> stored.Stored:
        try:
            return stored.readable(event)
        except exceptions.DocumentError as error:
            commands.refuse(f"{place}: {error.problem}", error.fix)

    with downloaded(inputs) as here, event_files.materialised(here) as paths:
        files = [path for path in paths if not Path(path).is_dir()]
        if application is not None and not files:
            commands.refuse("A capture bundle has one application.", "Leave out --application.")
        events = [merged([path]) for path in paths if Path(path).is_dir()]
        if files:
            in_files = event_files.merged_events(files)
            if application is not None and in_files.events:
                commands.refuse("The events are merged already.", "Leave out --application.")
            for line in in_files.malformed if in_files.events else ():
                commands.note(f"note: left out: {line}")
            checked_events = [checked(*event) for event in in_files.events]
            events += checked_events or [merged(files, application)]
    return events
