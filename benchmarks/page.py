"""How quickly the page draws and answers, and what XCom and archive add to a task."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.event import xcom
from airflow_provider_sparklineage.event.archive import Archive
from airflow_provider_sparklineage.event.from_bundle import merged_event, task_lineage
from airflow_provider_sparklineage.event.steps.size import fitted
from airflow_provider_sparklineage.model.representation import DEFAULT_MAX_XCOM_BYTES
from airflow_provider_sparklineage.plugins import page
from airflow_provider_sparklineage.spark.capture.bundle import (
    EVENTS,
    CaptureBundle,
    Manifest,
    TaskIdentity,
)
from benchmarks.amplification import amplified, run_id
from benchmarks.results import Result
from tests.browser.events import wide_event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser

RUNS = 5
_MEASURES = "performance.getEntriesByName('sparklineage:{}', 'measure').map(m => m.duration)"


def drawing() -> Iterator[Result]:
    """Draw in Chromium, measured by the browser's own marks; nothing where there is none."""
    from playwright.sync_api import sync_playwright

    found = shutil.which("chromium")
    if found is None:
        print("       the page is not measured: there is no Chromium")
        return
    with sync_playwright() as playwright:
        arguments = ["--headless", "--no-sandbox", "--disable-gpu"]
        browser = playwright.chromium.launch(executable_path=found, args=arguments)
        draw, _ = _drawn(browser, wide_event(datasets=10, columns=200))
        name = "draw 20 datasets of 200 columns"
        yield Result(name, draw, 1000, f"the best of {RUNS} times", " ms")
        draw, choose = _drawn(browser, wide_event(datasets=1, columns=1000))
        # What takes less than this is felt to be at once.
        name = "choose one of 1,000 columns"
        yield Result(name, choose, 100, f"until it is on the screen; drawn in {draw:.0f} ms", " ms")
        browser.close()


def _drawn(browser: Browser, event: dict[str, Any]) -> tuple[float, float]:
    """Draw an event some times; milliseconds of the quickest drawing, and of choosing a column."""
    draws, chooses = [], []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "lineage.html"
        file.write_text(page.self_contained([event]))
        for _ in range(RUNS):
            opened = browser.new_page()
            opened.goto(file.as_uri())
            draws += opened.evaluate(_MEASURES.format("draw"))
            chooses.append(
                opened.evaluate(
                    """async () => {
                        const rows = document.querySelectorAll(".pane:last-child .row");
                        const row = rows[rows.length >> 1];
                        const begun = performance.now();
                        row.click();
                        // The next frame but one is drawn after the screen shows the change.
                        for (let n = 0; n < 2; n++) await new Promise(requestAnimationFrame);
                        return performance.now() - begun;
                    }"""
                )
            )
            opened.close()
    return min(draws), min(chooses)


def publishing(copies: int, best: Callable[[Callable[[], object]], float]) -> Result:
    """Make the XCom and write the archive; Airflow's own request for an XCom is not in it."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / EVENTS).write_bytes(b"".join(amplified(copies)))
        bundle = CaptureBundle(Path(folder), Manifest(application_run_id=run_id()))
        event = merged_event(bundle, task_lineage(bundle))
    task = TaskIdentity("shop", "revenue", "manual", 1)

    def smaller(allowed: int) -> dict[str, Any]:
        return fitted(event, allowed, "")

    with tempfile.TemporaryDirectory() as folder:
        archive = Archive(f"file://{folder}")

        def publish() -> None:
            xcom.encode(event, DEFAULT_MAX_XCOM_BYTES, smaller)
            archive.write(task, event)

        took = best(publish) * 1000
    size = len(json.dumps(event)) / 1000
    return Result("XCom and archive of a task", took, 50, f"an event of {size:.0f} KB", " ms")
