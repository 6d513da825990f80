"""How quickly the page draws and answers."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sparklineage.plugins import page
from benchmarks.results import Result
from tests.browser.events import wide_event

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

RUNS = 5
_MEASURE = "performance.getEntriesByName('sparklineage:draw', 'measure')[0]"


def measured() -> Iterator[Result]:
    """Draw in Chromium, measured by the browser's own marks; nothing where there is none."""
    from playwright.sync_api import sync_playwright

    found = shutil.which("chromium")
    if found is None:
        print("       the page is not measured: there is no Chromium")
        return
    with sync_playwright() as playwright:
        arguments = ["--headless", "--no-sandbox", "--disable-gpu"]
        browser = playwright.chromium.launch(executable_path=found, args=arguments)
        name = "draw 20 datasets of 200 columns"
        drawn = _drawn(browser, wide_event(datasets=10, columns=200))
        yield Result(name, drawn.draw_ms, 1000, f"the best of {RUNS} times", " ms")
        drawn = _drawn(browser, wide_event(datasets=1, columns=1000))
        # What takes less than this is felt to be at once.
        name, details = "choose one of 1,000 columns", "until it is on the screen; drawn in"
        yield Result(name, drawn.choose_ms, 100, f"{details} {drawn.draw_ms:.0f} ms", " ms")
        yield from _large(_drawn(browser, wide_event(datasets=150, columns=200)))
        browser.close()


def _large(drawn: _Drawn) -> Iterator[Result]:
    name, details = "300 datasets of 200 columns", f"one page, the best of {RUNS} times"
    yield Result(f"{name}: open", drawn.open_ms, 1000, "from the click to what is drawn", " ms")
    yield Result(f"{name}: draw", drawn.draw_ms, 600, details, " ms")
    yield Result(f"{name}: choose a column", drawn.choose_ms, 100, details, " ms")
    yield Result(f"{name}: elements", drawn.elements, 5000, "what is in view", "")
    yield Result(f"{name}: size of the page", drawn.size_mb, 2, "with all of its columns", " MB")


class _Drawn(NamedTuple):
    """What the quickest of some drawings took, and what was drawn."""

    open_ms: float
    draw_ms: float
    choose_ms: float
    elements: int
    size_mb: float


def _drawn(browser: Browser, event: dict[str, Any]) -> _Drawn:
    """Draw an event some times, and choose a column."""
    opens, draws, chooses = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "lineage.html"
        file.write_text(page.self_contained([event]))
        for _ in range(RUNS):
            opened = browser.new_page()
            opened.goto(file.as_uri())
            opened.wait_for_function(_MEASURE)  # which the page takes once it is drawn
            begun, took = opened.evaluate(f"[{_MEASURE}.startTime, {_MEASURE}.duration]")
            opens.append(begun + took)
            draws.append(took)
            elements = opened.evaluate("document.getElementsByTagName('*').length")
            chooses.append(opened.evaluate(_CHOOSE))
            opened.close()
        size_mb = file.stat().st_size / 1e6
    return _Drawn(min(opens), min(draws), min(chooses), elements, size_mb)


_CHOOSE = """async () => {
    // In the middle of what is in view.
    const row = document.querySelectorAll(".pane:last-child .row")[8];
    const begun = performance.now();
    row.click();
    // The next frame but one is drawn after the screen shows the change.
    for (let n = 0; n < 2; n++) await new Promise(requestAnimationFrame);
    return performance.now() - begun;
}"""
