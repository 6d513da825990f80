"""Drivers in a cluster, as far as a worker sees them: what they put into a remote folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.spark.submit import submitted_files
from tests.conftest import golden

if TYPE_CHECKING:
    from collections.abc import Mapping

STARTED_MS = 1_700_000_000_000


class RemoteDriver:
    """One driver that delivers into a folder of this machine.

    :param folder: of the try
    :param run_id: OpenLineage run id of its application
    :param number: of its attempt
    """

    def __init__(self, folder: Path, run_id: str, number: int = 1, tail: str = "0123abcd") -> None:
        self.run_id = run_id
        self.folder = folder / f"{number:05d}-{STARTED_MS + number:013d}-{tail}"
        self.folder.mkdir(parents=True)
        self.counts = {"events": 0, "observations": 0}

    def starts(self, **other: object) -> RemoteDriver:
        """Deliver ``start.json``."""
        start = {
            "application_run_id": self.run_id,
            "application_id": "application_1700000000000_0001",
        }
        return self.puts("start.json", json.dumps({**start, "started_ms": STARTED_MS, **other}))

    def delivers(self, kind: str, *segments: str | bytes) -> RemoteDriver:
        """Deliver segments; None is one that got lost."""
        for segment in segments:
            self.counts[kind] += 1
            self.puts(f"{kind}-{self.counts[kind]:05d}.ndjson", _as_packed(segment))
        return self

    def loses(self, kind: str, count: int = 1) -> RemoteDriver:
        """Deliver segments that are not there afterwards."""
        self.counts[kind] += count
        return self

    def ends(self, **other: object) -> RemoteDriver:
        """Deliver ``end.json``."""
        end = {"application_run_id": self.run_id, "segments": self.counts, **other}
        return self.puts("end.json", json.dumps(end))

    def puts(self, name: str, content: str | bytes) -> RemoteDriver:
        """Put a file there, whole or not at all: a reader may be listing the folder."""
        content = content if isinstance(content, bytes) else content.encode()
        part = self.folder.parents[1] / f".{self.folder.name}.part"  # where nobody lists
        part.write_bytes(content)
        part.replace(self.folder / name)
        return self


def _as_packed(segment: str | bytes) -> bytes:
    """Let the observer's start have the digest that is left out of recordings."""
    content = segment if isinstance(segment, bytes) else segment.encode()
    start = b'{"kind":"start",'
    own = f'"observer":"{submitted_files.observer_digest()}",'.encode()
    return content.replace(start, start + own)


def deliver(conf: dict[str, str], lines_each: int = 3) -> None:
    """Deliver what a driver with these properties has written, and end.

    :param lines_each: how many lines a segment has
    """
    observations = Path(conf["spark.sparklineage.observations"])
    folder = Path(conf["spark.sparklineage.deliver"].removeprefix("file://"))
    driver = RemoteDriver(folder, conf["spark.sparklineage.run"]).starts()
    for kind in ("events", "observations"):
        file = observations.with_name(f"{kind}.ndjson")
        lines = file.read_bytes().splitlines(keepends=True) if file.exists() else []
        for at in range(0, len(lines), lines_each):
            driver.delivers(kind, b"".join(lines[at : at + lines_each]))
    driver.ends()


class RecordedDriver:
    """What a service's driver does: it writes recorded events, and delivers them.

    :param events: the name of the recorded application
    """

    def __init__(self, folder: Path, events: str = "staging_chain") -> None:
        self._folder = folder
        self._events = golden(events)
        self._observed = self._events.parent / "observed" / self._events.name

    def __call__(self, conf: Mapping[str, str]) -> None:
        """Deliver, if these properties of a job ask for it."""
        if "spark.sparklineage.deliver" not in conf:
            return
        first = json.loads(self._events.read_text().splitlines()[0])
        recorded_as, run_id = first["run"]["runId"], conf["spark.openlineage.applicationRunId"]
        self._folder.mkdir(parents=True, exist_ok=True)
        text = self._events.read_text().replace(recorded_as, run_id)
        (self._folder / "events.ndjson").write_text(text)
        (self._folder / "observations.ndjson").write_bytes(self._observed.read_bytes())
        here = str(self._folder / "observations.ndjson")
        deliver({**conf, "spark.sparklineage.observations": here})
