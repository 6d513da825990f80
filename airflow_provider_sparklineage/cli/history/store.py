"""The store of the history: ``history build`` and ``history show``, and how commands open it.

A command asks the store that ``--store`` names, or else the store in Airflow's configuration. If
tasks have delivered events that are not in the tables yet, or the store is old, this is noted on
stderr. With ``--events``, a
store is made from bundles and files for one question.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import msgspec

from airflow_provider_sparklineage.cli import commands, show
from airflow_provider_sparklineage.cli.history import tables
from airflow_provider_sparklineage.history import incoming
from airflow_provider_sparklineage.history.bounds import Bound, within
from airflow_provider_sparklineage.history.engines import building
from airflow_provider_sparklineage.history.engines.duckdb import History
from airflow_provider_sparklineage.history.facts import Try
from airflow_provider_sparklineage.history.queries.answers import at_utc_if_known
from airflow_provider_sparklineage.history.queries.datasets import names_in
from airflow_provider_sparklineage.history.sources import MAX_BYTES, source_of
from airflow_provider_sparklineage.history.store import Store, local_path
from airflow_provider_sparklineage.model import exceptions
from airflow_provider_sparklineage.model.datasets import DatasetName

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from airflow_provider_sparklineage.spark.capture.bundle import Manifest


# --- the store that a command asks ----------------------------------------------------------------


FRESH = timedelta(hours=1)
"""The age from which a store is noted as old."""

STORE_VARIABLE = "AIRFLOW__SPARKLINEAGE__HISTORY_URL"
"""The environment variable of the option, which Airflow prefers to all other places of it."""
_EXPANDED = {"$", "~"}  # Airflow expands variables and the user's home

_NO_AIRFLOW = "Without Airflow there is no configuration that has the store."


def store_url(args: argparse.Namespace) -> str:
    """Give the URL that ``--store`` names, or else the URL in Airflow's configuration.

    Airflow is imported only if neither the option nor the environment has the URL: that takes a
    second, which is three times as long as a question.

    :raise UnusableInputError: if there is no ``--store``, and Airflow is not installed
    :raise SettingsError: if the configuration has no URL
    """
    if args.store:
        return str(args.store)
    url = os.environ.get(STORE_VARIABLE, "")
    if url and not _EXPANDED & {*url}:
        # Where the option names the store, a question does not need these modules.
        from airflow_provider_sparklineage.settings.resolution import Origin, Source, value

        return str(value("history_url", Source(Origin.CONFIGURATION, {"history_url": url})))
    with commands.logging_to_stderr():
        try:
            from airflow_provider_sparklineage.hooks import sources
        except ImportError:
            commands.refuse(_NO_AIRFLOW, "Name it: --store URL.")
        return sources.history_url()


@contextmanager
def opened(args: argparse.Namespace) -> Iterator[History]:
    """Open a store for questions: an existing store, or one made from the inputs of ``--events``.

    An answer that takes longer than ``--seconds`` is given up.

    :raise HistoryError: if there is no store, or no engine to read it
    :raise UnusableInputError: if the events cannot be read
    """
    if inputs := getattr(args, "events", None):
        with _store_of(inputs) as store, History(store) as history, within(_bound(args)):
            yield history
        return
    store = Store.open(store_url(args))
    if behind := behind_of(store, datetime.now(UTC)):
        commands.note(f"note: {behind}")
    with History(store) as history, within(_bound(args)):
        yield history


def _bound(args: argparse.Namespace) -> Bound | None:
    return Bound.of(args.seconds, _FIX_TIME) if args.seconds else None


_FIX_TIME = (
    "Ask for one dataset, partition or column, or for less depth, or allow more time: --seconds N "
    "(0 for no limit)."
)


@contextmanager
def _store_of(inputs: Sequence[str]) -> Iterator[Store]:
    """Build a store from bundles and files of events, in a folder that is removed afterwards.

    :raise UnusableInputError: if an input does not exist, or no input names a dataset
    """
    from airflow_provider_sparklineage.cli.events import downloaded
    from airflow_provider_sparklineage.spark.capture.event_files import materialised

    with (
        downloaded(inputs) as here,
        materialised(here) as paths,
        TemporaryDirectory(prefix="sparklineage-", ignore_cleanup_errors=True) as folder,
    ):
        store = Store(str(Path(folder) / "store"))
        merged = _with_application_merged(paths, Path(folder))
        sources = [source_of(path, merged_document) for path in merged]
        with commands.progress("Reading events", None) as reached:
            built = building.build(store, sources, progress=reached)
        _note_skipped(built)
        if not built.rows["accesses"]:
            fix = "Give capture bundles, or files of OpenLineage events."
            commands.refuse("The input names no dataset.", fix)
        yield store


_OF_LISTENER = "/integration/spark"


class _Produced(msgspec.Struct):
    producer: str = ""


def _with_application_merged(paths: Sequence[str], folder: Path) -> list[str]:
    """Give the paths, with one file in place of all files of a Spark application's events.

    This file has the merged event. If the files have events of several applications, the paths are
    returned unchanged, and each action of Spark becomes a run of its own.

    :param folder: the folder in which the file is written
    """
    files = [path for path in paths if Path(path).is_file() and _is_of_listener(Path(path))]
    if not files:
        return [*paths]
    try:
        event, _ = _merged(files)
    except exceptions.UnusableInputError:
        return [*paths]
    merged = folder / "merged.json"
    merged.write_bytes(msgspec.json.encode(event))
    return [*(path for path in paths if path not in files), str(merged)]


def _is_of_listener(file: Path) -> bool:
    """Whether the first line of a file is an event from the Spark listener."""
    try:
        with file.open("rb") as stream:
            line = stream.readline(MAX_BYTES)
        return _OF_LISTENER in msgspec.json.decode(line, type=_Produced).producer
    except (OSError, ValueError, RecursionError):  # the reader of the file reports it
        return False


def behind_of(store: Store, now: datetime) -> str:
    """Say how far the tables of a store are behind; empty if they are not, as far as is known."""
    count, built_at = len(incoming.waiting(store).names), store.manifest.built_at
    if count:
        events = "1 event" if count == 1 else f"{count:,} events"
        text = f"{events} of tasks that have ended {'is' if count == 1 else 'are'} not in the "
        return f"{text}history yet; add: sparklineage history build --delivered --store {store.url}"
    if now - built_at <= FRESH:
        return ""
    when = built_at.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
    text = f"The history was built {ago(built_at, now)}, on {when}. No task has delivered an event "
    return f"{text}since; runs that deliver none are not in it."


def ago(time: datetime, now: datetime) -> str:
    """Say how long ago a time was, in the largest unit of which at least two have passed."""
    seconds = max(0, int((now - time).total_seconds()))
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length} {unit} ago"
    return "just now" if seconds < 60 else "a minute ago"


# --- history build and show -----------------------------------------------------------------------


def build(args: argparse.Namespace) -> int:
    """Add events to the store; return the exit code."""
    url = store_url(args)
    store, texts = Store(url), list(args.source)
    if args.delivered:
        # A new store has the events of the archive: tasks deliver events only to a store.
        texts = [] if store.manifest.generation else _archive_if_any()
    elif not texts:
        texts = [_archive_url()]
    sources = [source_of(text, merged_document) for text in texts]
    keep, has_skipped, is_done = args.keep, False, False
    while not is_done:
        with commands.progress("Reading events", None) as reached:
            built = building.build(store, sources, progress=reached, say=commands.note, keep=keep)
        _print_built(args, built, url)
        has_skipped |= bool(built.skipped)
        is_done = not (built.waiting and built.delivered)
        sources, keep = [], None  # what is left are delivered events
    return 1 if args.strict and has_skipped else 0


def merged_document(folder: Path) -> tuple[bytes, Try | None]:
    """Merge the bundle in a folder to its event; see :data:`.history.sources.Merge`.

    :return: the event as JSON, and its try; None for the try if the bundle names no task
    """
    event, manifest = _merged([str(folder)])
    of, task = None, manifest.task
    if task is not None:
        text = manifest.started.isoformat() if manifest.started else ""
        of = Try(task.dag_id, task.task_id, task.run_id, task.map_index, task.try_number, text)
    return json.dumps(event).encode(), of


def _merged(inputs: Sequence[str]) -> tuple[dict[str, Any], Manifest]:
    # These imports are here because questions do not need them: the code that merges bundles would
    # add two thirds to the time that a question needs to start.
    from airflow_provider_sparklineage.event.pipeline import merged_event
    from airflow_provider_sparklineage.lineage.bundle import task_lineage
    from airflow_provider_sparklineage.spark.capture.event_files import open_bundle

    with open_bundle(inputs) as bundle:
        return merged_event(bundle, task_lineage(bundle)), bundle.manifest


def _archive_if_any() -> list[str]:
    """Give the path or URL of the archive if it is there, else nothing."""
    with suppress(exceptions.UnusableInputError):
        url = _archive_url()
        path = local_path(url)
        return [url] if path is None or path.exists() else []
    return []


def _archive_url() -> str:
    """Give the URL of the archive that is configured.

    :raise UnusableInputError: if there is no archive, or Airflow is not installed
    """
    fix = "Name the sources of events: sparklineage history build SOURCE…"
    with commands.logging_to_stderr():
        try:
            from airflow_provider_sparklineage.hooks.sources import archive_url
        except ImportError:
            problem = "Without Airflow there is no configuration that has the archive."
            commands.refuse(problem, fix)
        url = archive_url()
    if not url:
        commands.refuse("No archive is configured.", fix)
    return url


def _print_built(args: argparse.Namespace, built: building.Built, url: str) -> None:
    """Print the result of a build; skipped events are in a note, because no table has them."""
    if args.json:
        document = {"store": url, "events": built.events, "new": built.new}
        commands.say_json(
            {
                **document,
                "skipped": dict(built.skipped),
                "rows": dict(built.rows),
                "seconds": round(built.seconds, 3),
            }
        )
        return
    if built.events:
        events = "1 event was" if built.events == 1 else f"{built.events:,} events were"
        new = "1 is" if built.new == 1 else f"{built.new:,} are"
        commands.say(f"{events} read in {built.seconds:.1f} s, {new} new.")
    # Two tables exist twice, with the same rows in another order; the second ones are left out.
    rows = [f"{name} {count:,}" for name, count in built.rows.items() if "_by_" not in name]
    commands.say(f"{url} has {', '.join(rows)}.")
    _note_skipped(built)


def _note_skipped(built: building.Built) -> None:
    for reason, count in built.skipped.items():
        commands.note(f"note: skipped: {reason.replace('_', ' ')}: {count:,}")


_DATASETS = """
SELECT namespace, name,
    CAST(count(DISTINCT cell) AS BIGINT) AS partitions,
    CAST(count(DISTINCT run_id) FILTER (WHERE side = 'write') AS BIGINT) AS written_by,
    CAST(count(DISTINCT run_id) FILTER (WHERE side = 'read') AS BIGINT) AS read_by,
    max(accessed_at) FILTER (WHERE side = 'write') AS last_written
FROM accesses GROUP BY namespace, name ORDER BY namespace, name
"""
_RUNS = """
SELECT CAST(count(*) AS BIGINT) AS runs, CAST(count(DISTINCT (namespace, job)) AS BIGINT) AS jobs,
    min(ended) AS first, max(ended) AS last FROM runs
"""


def show_datasets(args: argparse.Namespace) -> int:
    """Print the datasets in the store, and the number of runs; return the exit code."""
    with opened(args) as history:
        rows = history.rows(_DATASETS)
        [runs] = history.rows(_RUNS)
        names = names_in(history)
    for row in rows:
        row["last_written"] = at_utc_if_known(row["last_written"])
    datasets: list[dict[str, Any]] = msgspec.to_builtins(rows)
    for row in datasets:
        row["dataset"] = {"namespace": row.pop("namespace"), "name": row.pop("name")}
    if args.json:
        commands.say_json_lines(datasets)
        return 0
    out = show.console(sys.stdout)
    what = f"{runs['runs']:,} runs of {runs['jobs']:,} jobs"
    if runs["first"]:
        what += f", from {tables.time_text(runs['first'])} to {tables.time_text(runs['last'])} UTC"
    out.print(show.escape(f"{store_url(args)}: {what}"), soft_wrap=True)
    datasets.sort(key=lambda row: str(DatasetName(**row["dataset"])).rpartition("/"))
    tables.print_table(_dataset_columns(names), datasets, sys.stdout)
    return 0


def _dataset_columns(names: tables.Names) -> Sequence[tables.Column]:
    def full(row: tables.Document) -> str:
        return str(DatasetName(**row["dataset"]))

    def below_folder(row: tables.Document) -> str:
        name = full(row).rpartition("/")[2]
        return max(name, tables.dataset_text(row["dataset"], names), key=len)

    return (
        tables.Column(
            "dataset",
            full,
            "cyan",
            heading=lambda row: full(row).rpartition("/")[0] or "/",
            below_heading=below_folder,
        ),
        tables.Column(
            "partitions", lambda row: f"{row['partitions']:,}" if row["partitions"] else ""
        ),
        tables.Column("written by", lambda row: _runs_text(row["written_by"])),
        tables.Column("read by", lambda row: _runs_text(row["read_by"])),
        tables.Column(
            "last written (UTC)", lambda row: tables.time_text(row["last_written"]), detail=2
        ),
    )


def _runs_text(count: int) -> str:
    return "" if not count else "1 run" if count == 1 else f"{count:,} runs"
