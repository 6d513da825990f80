"""What is missing of what the drivers of a try delivered, as degradations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.model.credentials import scrub
from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode
from airflow_provider_sparklineage.model.exceptions import SettingsError
from airflow_provider_sparklineage.spark.capture.bundle import collect_command
from airflow_provider_sparklineage.spark.capture.location import in_spark
from airflow_provider_sparklineage.spark.capture.remote import END, START

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from airflow_provider_sparklineage.spark.capture.bundle import Manifest
    from airflow_provider_sparklineage.spark.capture.remote import Attempt
    from airflow_provider_sparklineage.storage.bounded import StoreError

_NAMED = 3
_PACKAGES = {
    **dict.fromkeys(("s3", "s3a", "s3n"), "apache-airflow-providers-amazon[s3fs]"),
    **dict.fromkeys(("gs", "gcs"), "apache-airflow-providers-google"),
    **dict.fromkeys(("abfs", "abfss", "adl"), "apache-airflow-providers-microsoft-azure"),
}


def unknown(manifest: Manifest, error: StoreError) -> Degradation:
    """Report that nobody could look at what was delivered."""
    url = manifest.remote
    return _incomplete(
        f"What the driver delivered to {url} could not be collected ({error}). {fix(url)}"
        f"{_later(manifest)}"
    )


def _later(manifest: Manifest) -> str:
    task = manifest.task
    return f" To collect it later: {collect_command(task)}" if task else ""


def fix(url: str) -> str:
    """Say what to do where a capture location cannot be worked with."""
    package = _PACKAGES.get(url.partition(":")[0])
    needed = f" needs {package} on the worker, and" if package else ""
    return (
        f"[sparklineage] capture_location{needed} a connection with which the worker may read and "
        "write there; `airflow sparklineage doctor` tries it."
    )


def undelivered(
    manifest: Manifest, attempts: Sequence[Attempt], own: Sequence[Attempt], lost: Sequence[str]
) -> Iterator[Degradation]:
    """Report what is missing.

    :param attempts: all that there are in the try's folder, the earliest first
    :param own: those of the try's application
    :param lost: sentences on what was delivered and could not be downloaded
    """
    url = manifest.remote
    others = [a for a in attempts if a.start is not None and a not in own]
    if others:
        yield Degradation(
            DegradationCode.FOREIGN_EVENTS,
            scrub(
                f"{len(others)} folder(s) in {url} are of another application than "
                f"{manifest.application_run_id} and were left out: {_named(others)}."
            ),
        )
    if not own:
        yield _nothing(manifest)
    for attempt in attempts:
        if attempt not in others:
            yield from _of_attempt(attempt, f"{url}/{attempt.name}")
    if lost:
        yield _incomplete(
            f"Not all that was delivered to {url} could be collected. {' '.join(lost)}"
            f"{_later(manifest)}"
        )


def _nothing(manifest: Manifest) -> Degradation:
    location, _, name = manifest.remote.rpartition("/")
    try:
        given = manifest.settings.get("capture_location_in_spark", "")
        theirs = in_spark(location, given, name)
    except SettingsError:
        theirs = manifest.remote
    message = (
        f"No driver delivered anything to {manifest.remote}. Either it made no SparkSession, or it "
        f"could not write there: it calls that folder {theirs}, which may be on another "
        "file system, or closed to it. Its log has a line that begins with `sparklineage:`, and "
        "`airflow sparklineage doctor --spark-submit` tries whether driver and worker reach the "
        "same folder."
    )
    return Degradation(DegradationCode.DRIVER_ELSEWHERE, scrub(message))


def _of_attempt(attempt: Attempt, url: str) -> Iterator[Degradation]:
    if attempt.problems:
        yield _incomplete(f"What a driver delivered to {url}: {'; '.join(attempt.problems)}.")
    if attempt.start is None:
        if attempt.segments():
            yield _incomplete(f"{url} was left out: by its {START} nobody knows whose it is.")
        return
    if attempt.end is None:
        yield _incomplete(
            f"The driver reported no end ({END}) of what it delivered to {url}: it was killed, or "
            "could not write there any more, so what it captured after its last delivery is "
            "missing. It delivers after each query that writes, and every 30 s."
        )
    elif attempt.end.errors:
        reasons = "; ".join(attempt.end.errors[:_NAMED])
        yield _incomplete(f"The driver had trouble while it delivered to {url}: {reasons}.")
    if gaps := [_gap(*gap) for gap in attempt.missing()]:
        if len(gaps) > _NAMED:
            gaps[_NAMED:] = [f"{len(gaps) - _NAMED} more gaps"]
        yield _incomplete(
            f"Files that the driver had delivered are not in {url}: {', '.join(gaps)}."
        )


def _gap(kind: str, first: int, last: int) -> str:
    return f"{kind} {first}" if first == last else f"{kind} {first} to {last}"


def _named(attempts: Sequence[Attempt]) -> str:
    names = [attempt.name for attempt in attempts]
    return ", ".join([*names[:_NAMED], *(["…"] if len(names) > _NAMED else [])])


def _incomplete(sentence: str) -> Degradation:
    return Degradation(DegradationCode.DELIVERY_INCOMPLETE, scrub(sentence))
