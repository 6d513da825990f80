"""What XCom and archive add to a task."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.event import xcom
from airflow_provider_sparklineage.event.archive import Archive
from airflow_provider_sparklineage.event.document import Written
from airflow_provider_sparklineage.event.from_bundle import merged_event, task_lineage
from airflow_provider_sparklineage.event.steps.size import ever_smaller
from airflow_provider_sparklineage.model.representation import DEFAULT_MAX_XCOM_BYTES
from airflow_provider_sparklineage.spark.capture.bundle import (
    EVENTS,
    CaptureBundle,
    Manifest,
    TaskIdentity,
)
from benchmarks.amplification import amplified, run_id
from benchmarks.measuring import cpu_s
from benchmarks.results import Result

if TYPE_CHECKING:
    from collections.abc import Iterator


def measured() -> Iterator[Result]:
    """Measure it for small and for large events."""
    yield publishing(1)
    yield publishing(20)


def publishing(copies: int) -> Result:
    """Make the XCom and write the archive; Airflow's own request for an XCom is not in it."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / EVENTS).write_bytes(b"".join(amplified(copies)))
        bundle = CaptureBundle(Path(folder), Manifest(application_run_id=run_id()))
        event = merged_event(bundle, task_lineage(bundle))
    task = TaskIdentity("shop", "revenue", "manual", 1)

    with tempfile.TemporaryDirectory() as folder:
        archive = Archive(f"file://{folder}")

        def publish() -> None:
            written = Written(event)
            xcom.encode(written, DEFAULT_MAX_XCOM_BYTES, ever_smaller(event, ""))
            archive.write(task, written)

        took = cpu_s(publish) * 1000
    size = len(json.dumps(event)) / 1000
    return Result("XCom and archive of a task", took, 50, f"an event of {size:.0f} KB", " ms")
