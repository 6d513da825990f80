"""What drivers in a cluster delivered of a try, downloaded into a bundle on this machine."""

from __future__ import annotations

import os
import shutil
import tempfile
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from airflow_provider_sparklineage.model.budget import Budget
from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode
from airflow_provider_sparklineage.model.rule_files import open_regular
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.spark.capture.bundle import EVENTS, OBSERVATIONS, CaptureBundle
from airflow_provider_sparklineage.spark.capture.remote import SEGMENT, Folder
from airflow_provider_sparklineage.spark.capture.remote_bundles import manifest_of
from airflow_provider_sparklineage.spark.capture.undelivered import undelivered, unknown
from airflow_provider_sparklineage.storage.bounded import StoreError, asked
from airflow_provider_sparklineage.storage.objects import downloaded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_sparklineage.spark.capture.bundle import Manifest
    from airflow_provider_sparklineage.spark.capture.remote import Attempt

_FOR_LOOKING, _FOR_WAITING = 0.75, 0.5
_NAMED = 3  # files that could not be read; the rest is counted
_CHUNK = 1024 * 1024
MAX_BYTES = 2 * 1024 * 1024 * 1024
"""Of all that was delivered of a try: more than merging reads in its time, and no disk is full."""
_OF_DELIVERY = frozenset(
    {
        DegradationCode.DELIVERY_INCOMPLETE,
        DegradationCode.DRIVER_ELSEWHERE,
        DegradationCode.FOREIGN_EVENTS,
    }
)


class Delivered(Frozen, frozen=True):
    """How much of a try was delivered.

    :param has_begun: whether a driver of its application delivered anything
    :param has_ended: whether the last one reported that it delivered all
    :param failed: class of the exception that ended its Python, as far as it knew
    """

    has_begun: bool
    has_ended: bool
    degradations: tuple[Degradation, ...] = ()
    failed: str = ""

    def still_missing(self, manifest: Manifest) -> tuple[Degradation, ...]:
        """Give a manifest's degradations without those of which more is known now."""
        outdated = _OF_DELIVERY
        if self.has_ended:
            outdated |= {DegradationCode.APPLICATION_UNFINISHED}
        return tuple(d for d in manifest.degradations if d.code not in outdated)


def fetched(url: str, into: Path, budget: Budget) -> tuple[CaptureBundle, Delivered]:
    """Make a bundle on this machine of one that is remote, as far as there is one by now.

    :param url: of the try's folder, as Airflow knows it
    :param into: an empty folder of this user's alone
    :raise CaptureError: if there is no manifest, or it cannot be had in time
    """
    manifest = replace(manifest_of(url, budget), remote=url)
    delivered = received(manifest, into, budget, waits=False)
    missing = (*delivered.still_missing(manifest), *delivered.degradations)
    bundle = CaptureBundle(into, replace(manifest, degradations=missing))
    bundle.save()
    return bundle, delivered


def received(manifest: Manifest, into: Path, budget: Budget, *, waits: bool) -> Delivered:
    """Download what the drivers of a try delivered, in place of what is in a bundle's folder.

    :param manifest: with the URL of the try's folder
    :param waits: whether to give the last driver half of the time to report its end
    """
    folder = Folder(manifest.remote, manifest.application_run_id)
    waiting = budget.part(_FOR_WAITING) if waits else Budget(lambda: 0)
    try:
        attempts = asked(
            budget.part(_FOR_LOOKING), lambda: folder.awaited(waiting), "sparklineage-delivered"
        )
    except StoreError as error:
        return Delivered(False, False, (unknown(manifest, error),))
    own = [attempt for attempt in attempts if folder.is_own(attempt)]
    lost = _download(folder, own, into, budget)
    end = own[-1].end if own else None
    return Delivered(
        bool(own),
        end is not None,
        tuple(undelivered(manifest, attempts, own, lost)),
        end.failed if end else "",
    )


def _download(folder: Folder, own: Sequence[Attempt], into: Path, budget: Budget) -> list[str]:
    """Put the segments of attempts one after the other; give sentences on those that are lost."""
    sizes = {f"{a.name}/{name}": a.sizes[name] for a in own for name in a.segments()}
    sums = accumulate(sizes.values())
    fitting = [name for name, total in zip(sizes, sums, strict=True) if total <= MAX_BYTES]
    lost: list[str] = []
    if len(fitting) < len(sizes):
        lost.append(f"{len(sizes) - len(fitting)} file(s) are beyond {MAX_BYTES} bytes.")
        sizes = {name: sizes[name] for name in fitting}
    left = len(sizes)
    try:
        with _work_folder(into) as work, _work_folder(into) as segments:
            for name, segment in downloaded(folder.objects, sizes, Path(segments), budget):
                left -= 1
                if isinstance(segment, StoreError):
                    lost.append(f"{name} could not be read ({segment}).")
                    continue
                try:
                    _append(segment, Path(work, _file_of(name)))
                except OSError as error:  # no space is left
                    lost.append(f"The worker could not keep {left + 1} file(s) of it ({error}).")
                    left = 0
                    break
            for file in (EVENTS, OBSERVATIONS):
                if (whole := Path(work, file)).exists():
                    whole.replace(into / file)
    except OSError as error:
        return [f"The worker could not keep it ({error})."]
    if len(lost) > _NAMED:
        lost[_NAMED:] = [f"{len(lost) - _NAMED} more file(s) could not be read either."]
    if left:
        lost.append(
            f"{left} of {len(sizes)} files could not be downloaded in time; raise [sparklineage] "
            "collect_timeout."
        )
    return lost


def _work_folder(into: Path) -> tempfile.TemporaryDirectory[str]:
    # A download that hangs may write to it still.
    return tempfile.TemporaryDirectory(prefix=".delivered-", dir=into, ignore_cleanup_errors=True)


def _file_of(segment: str) -> str:
    match = SEGMENT.fullmatch(segment.rpartition("/")[2])
    return EVENTS if match and match["kind"] == "events" else OBSERVATIONS


def _append(segment: Path, whole: Path) -> None:
    """Append the lines of a segment to those before it, all of them or none; and remove it."""
    with (
        open_regular(segment) as source,
        os.fdopen(os.open(whole, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as target,
    ):
        before = target.seek(0, os.SEEK_END)
        try:
            shutil.copyfileobj(source, target, _CHUNK)
            target.flush()
            end = target.tell()
            if end > before and os.pread(target.fileno(), 1, end - 1) != b"\n":
                target.write(b"\n")  # it would make one line of two
                target.flush()
        except OSError:
            os.ftruncate(target.fileno(), before)
            raise
    segment.unlink()
