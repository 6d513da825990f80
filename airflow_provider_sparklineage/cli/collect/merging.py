"""A capture bundle to the event of its try, as the task would have made it."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from msgspec.structs import replace

from airflow_provider_sparklineage.cli.collect import database
from airflow_provider_sparklineage.event.document import Written
from airflow_provider_sparklineage.event.from_bundle import merged_event, task_lineage
from airflow_provider_sparklineage.model.degradations import DegradationCode
from airflow_provider_sparklineage.model.exceptions import CaptureError
from airflow_provider_sparklineage.operators.collecting import is_kept
from airflow_provider_sparklineage.operators.masking import masked
from airflow_provider_sparklineage.spark.capture import bundle as capture
from airflow_provider_sparklineage.spark.capture import delivered, remote_bundles
from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle

if TYPE_CHECKING:
    from airflow_provider_sparklineage.cli.collect.finding import Found
    from airflow_provider_sparklineage.lineage.dataset import TaskLineage
    from airflow_provider_sparklineage.model.budget import Budget
    from airflow_provider_sparklineage.settings.resolution import Settings
    from airflow_provider_sparklineage.spark.capture.bundle import Manifest, TaskIdentity


Outcome = Literal["", "COMPLETE", "FAIL"]
_NOT_AWAITED = DegradationCode.APPLICATION_UNFINISHED


class Merged(NamedTuple):
    """What a bundle has.

    :param found: as it was
    :param manifest: as it is now
    :param unfinished: why the job is not known to have ended; empty if it is
    """

    found: Found
    task: TaskIdentity
    manifest: Manifest
    lineage: TaskLineage
    written: Written
    unfinished: str

    @property
    def is_left(self) -> bool:
        """Whether the worker was done with the bundle."""
        before = self.found.manifest
        codes = {d.code for d in before.degradations}
        return bool(before.ended) or before.of_command or _NOT_AWAITED in codes

    @property
    def is_news(self) -> bool:
        """Whether more is known now than when the bundle was merged, if it ever was."""
        before = self.found.manifest
        return not before.outcome or {*before.degradations} != {*self.manifest.degradations}


def merged(found: Found, work: Path, budget: Budget) -> Merged:
    """Merge a bundle, as if nobody had.

    :param work: an empty folder
    :raise CaptureError: if the bundle cannot be read
    """
    before = found.manifest
    if before.task is None:
        problem = f"The manifest of {found.place} names no task."
        raise CaptureError(problem)
    # Why a command was given nothing is no less true by now.
    was_refused = before.of_command and not before.injected
    rest = [d for d in before.degradations if was_refused or not d.code.is_of_collecting]
    outcome, unfinished = before.outcome, "It has not reported its end."
    # Airflow's own event has it, and a job can end by an exit that Spark does not see.
    state = database.state_of(before.task) if before.of_command else ""
    known: Outcome = "" if state == "RUNNING" else state
    if found.is_remote:
        bundle, came = delivered.fetched(found.place, work, budget)
        rest += came.degradations
        if came.has_ended:
            outcome = outcome or known or ("FAIL" if came.failed else "COMPLETE")
        elif not came.has_begun:
            unfinished = " ".join(d.message for d in came.degradations)
    else:
        bundle = capture.load(Path(found.place))
        outcome = outcome or known  # with the task its driver ended, which was on the worker
    manifest = replace(bundle.manifest, degradations=tuple(rest), outcome=outcome)
    bundle = replace(bundle, manifest=manifest)
    lineage = task_lineage(bundle)
    written = Written(merged_event(bundle, lineage, masked))
    if state == "RUNNING":
        unfinished = "Its task is running, and may submit once more."
    elif outcome or (lineage.application and lineage.application.finished):
        unfinished = ""
    return Merged(found, before.task, manifest, lineage, written, unfinished)


def end(merged: Merged, settings: Settings, budget: Budget) -> None:
    """Be done with a bundle as its task would have been: keep it, or remove it.

    One that a driver or a worker may still be at is left to that one.

    :raise CaptureError: if it cannot be noted there that it was collected
    """
    if merged.unfinished:
        return
    place, is_remote = merged.found.place, merged.found.is_remote
    if not merged.is_left or is_kept(settings, merged.lineage, merged.written.event):
        manifest = replace(
            merged.manifest,
            outcome=merged.lineage.outcome.value,
            # When the job ended, as far as is known: --again sends the same event.
            ended=datetime.fromisoformat(merged.written.event["eventTime"]),
        )
        if is_remote:
            remote_bundles.announce(manifest, budget)
        else:
            CaptureBundle(Path(place), manifest).save()
    elif is_remote:
        remote_bundles.remove(place, budget)
    else:
        CaptureBundle(Path(place), merged.manifest).remove()
