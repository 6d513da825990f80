"""The command ``merge``: what was captured to one event, or to what DataHub is asked to store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from airflow_provider_sparklineage.cli.commands import Argument, Command
from airflow_provider_sparklineage.cli.output import note, say_json, say_json_array
from airflow_provider_sparklineage.cli.remote_inputs import downloaded
from airflow_provider_sparklineage.model.exceptions import UnusableInputError

if TYPE_CHECKING:
    import argparse

    from airflow_provider_sparklineage.datahub.options import Conversion
    from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle, TaskIdentity


_EVENT, _DATAHUB = "openlineage", "datahub"
_EXAMPLE = """E.g. --transport '{"env": "DEV", "platform_instance": "eu"}'."""


def _merge(args: argparse.Namespace) -> int:
    from airflow_provider_sparklineage.datahub.conversion import proposals
    from airflow_provider_sparklineage.event.from_bundle import merged_event, task_lineage
    from airflow_provider_sparklineage.spark.capture.event_files import (
        materialised,
        merged_events,
        open_bundle,
    )

    how = _conversion(args)
    with downloaded(args.input) as inputs, materialised(inputs) as paths:
        if merged_events(paths).events:
            problem = "The input has merged events already."
            fix = "See them with `sparklineage show`."
            raise UnusableInputError(problem, fix)
        with open_bundle(paths, application=args.application) as opened:
            bundle = _with_limit(opened, args.max_event_bytes)
            event = merged_event(bundle, task_lineage(bundle))
    if args.job_namespace:
        event["job"]["namespace"] = args.job_namespace
    if args.job_name:
        event["job"]["name"] = args.job_name
    if args.format == _DATAHUB:
        placed = _placed(event, bundle.manifest.task)
        say_json_array(proposal.document() for proposal in proposals(placed, how))
    else:
        say_json(event, sort_keys=True)
    return _notes(event, strict=args.strict)


def _placed(event: dict[str, Any], task: TaskIdentity | None) -> dict[str, Any]:
    """Name the try in the event as Airflow does when it sends it: a job's name has dots of ids."""
    from airflow_provider_sparklineage.event.document import replaced

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
    """Read how events are converted for DataHub; where they are sent to is of no interest.

    :raise UnusableInputError: if it is no JSON object
    :raise SettingsError: if a key of it is unknown, or a value impossible
    """
    from airflow_provider_sparklineage.datahub import configuration

    given: Any = None
    text: str = args.transport or "{}"
    try:
        given = json.loads(text if "{" in text else Path(text).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        problem = f"--transport is neither JSON nor a file of it ({type(error).__name__})."
        raise UnusableInputError(problem, _EXAMPLE) from None
    if not isinstance(given, dict):
        msg = "--transport is no JSON object."
        raise UnusableInputError(msg, _EXAMPLE)
    if args.format != _DATAHUB and args.transport:
        msg = "--transport is for --format datahub."
        raise UnusableInputError(msg, "Leave it out, or give both.")
    goes_nowhere = {} if "server" in given or "folder" in given else {"folder": "."}
    return configuration.read({**given, **goes_nowhere}).conversion


def _with_limit(bundle: CaptureBundle, max_event_bytes: int | None) -> CaptureBundle:
    if max_event_bytes is None:
        return bundle
    manifest = replace(bundle.manifest, max_event_bytes=max_event_bytes)
    return replace(bundle, manifest=manifest)


def _notes(event: dict[str, Any], *, strict: bool) -> int:
    from airflow_provider_sparklineage.event import reading

    missing = reading.degradations(event)
    for entry in missing:
        note(f"note: {entry['code']}: {entry['message']}")
    if more := reading.unlisted_degradations(event):
        note(f"note: {more} more are not listed in the event")
    if reading.misses_detail(event):
        note("note: --max-event-bytes N gives an event of up to N bytes, whatever is configured")
    return 1 if strict and missing else 0


_INPUT = Argument(
    ("input",),
    {
        "nargs": "+",
        "metavar": "BUNDLE_OR_FILE",
        "help": (
            "a capture bundle (directory, or URL where a driver in a cluster delivered it), or "
            "files of captured Spark events (NDJSON or JSON, - for stdin)"
        ),
    },
)
APPLICATION = Argument(
    ("--application",),
    {
        "metavar": "RUN_ID",
        "help": "OpenLineage run id of the application, if the files have several",
    },
)
STRICT = Argument(
    ("--strict",),
    {"action": "store_true", "help": "exit with 1 if anything is missing from the lineage"},
)

COMMAND = Command(
    "merge",
    "Merge captured Spark events into one OpenLineage RunEvent",
    _merge,
    (
        _INPUT,
        Argument(
            ("--format",),
            {
                "choices": (_EVENT, _DATAHUB),
                "default": _EVENT,
                "help": (
                    "what to print: the event, or what DataHub is asked to store, as `datahub "
                    "ingest` reads it from a file"
                ),
            },
        ),
        Argument(
            ("--transport",),
            {
                "metavar": "JSON_OR_FILE",
                "help": (
                    "with --format datahub: configuration of the DataHubTransport that names are "
                    'to be those of, e.g. \'{"env": "DEV"}\''
                ),
            },
        ),
        Argument(
            ("--job-namespace",),
            {"metavar": "NS", "help": "namespace of the merged event's job"},
        ),
        Argument(("--job-name",), {"metavar": "NAME", "help": "name of the merged event's job"}),
        Argument(
            ("--max-event-bytes",),
            {
                "type": int,
                "metavar": "N",
                "help": "how large the event may be, instead of [sparklineage] max_event_bytes",
            },
        ),
        APPLICATION,
        STRICT,
    ),
)
