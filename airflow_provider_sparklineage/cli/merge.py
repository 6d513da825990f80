"""The command ``merge``: what was captured to one event, or to what DataHub is asked to store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from airflow_provider_sparklineage.cli.commands import Argument, Command
from airflow_provider_sparklineage.cli.output import note, say_json, say_json_array
from airflow_provider_sparklineage.cli.remote_inputs import downloaded
from airflow_provider_sparklineage.model.exceptions import UnusableInputError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle


_EVENT, _DATAHUB = "openlineage", "datahub"


def _merge(args: argparse.Namespace) -> int:
    from airflow_provider_sparklineage.event.from_bundle import merged_event, task_lineage
    from airflow_provider_sparklineage.spark.capture.event_files import (
        materialised,
        merged_events,
        open_bundle,
    )

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
        say_json_array(_proposals(event))
    else:
        say_json(event, sort_keys=True)
    return _notes(event, strict=args.strict)


def _proposals(event: dict[str, Any]) -> Iterator[dict[str, Any]]:
    from airflow_provider_sparklineage.datahub.conversion import proposals

    return (proposal.document() for proposal in proposals(event))


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
