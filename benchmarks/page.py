"""How quickly the page draws and answers, and what XCom and archive add to a task."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openlineage.client.serde import Serde

from airflow_provider_sparklineage.event import facets, xcom
from airflow_provider_sparklineage.event.archive import Archive
from airflow_provider_sparklineage.event.from_bundle import task_lineage
from airflow_provider_sparklineage.event.size import fitted_event
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
        said = facets.parts(task_lineage(bundle), bundle.report)
    event = facets.event_of(
        said,
        "COMPLETE",
        run_id=run_id(),
        job_namespace="bench",
        job_name="shop.revenue",
        event_time="2024-05-06T00:00:00Z",
    )
    task = TaskIdentity("shop", "revenue", "manual", 1)

    def smaller(allowed: int) -> dict[str, Any]:
        return Serde.to_dict(fitted_event(event, allowed, "")[0])

    with tempfile.TemporaryDirectory() as folder:
        archive = Archive(f"file://{folder}")

        def publish() -> None:
            document = Serde.to_dict(event)
            xcom.encode(document, DEFAULT_MAX_XCOM_BYTES, smaller)
            archive.write(task, document)

        took = best(publish) * 1000
    size = len(Serde.to_json(event)) / 1000
    return Result("XCom and archive of a task", took, 50, f"an event of {size:.0f} KB", " ms")
