"""A part of a page, as a picture."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from playwright.sync_api import expect

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, BrowserContext, Locator, Page

MAX_BYTES = 400_000
MARGIN = 12  # pixels below the last element
TIMEOUT_S = 300  # of anything that is waited for, on a machine that has other work


def new_context(browser: Browser, width: int = 1280, height: int = 2000) -> BrowserContext:
    """Make a window in which nothing moves, as large as all that is to be seen."""
    context = browser.new_context(
        viewport={"width": width, "height": height}, reduced_motion="reduce", color_scheme="light"
    )
    context.set_default_timeout(TIMEOUT_S * 1000)
    expect.set_options(timeout=TIMEOUT_S * 1000)
    return context


def take(file: Path, first: Locator, last: Locator | None = None, height: float = 0) -> None:
    """Take a picture of an element, or of what two of them enclose.

    :param height: of the picture, at most
    """
    boxes = [box for element in (first, last or first) if (box := element.bounding_box())]
    left, top = min(box["x"] for box in boxes), min(box["y"] for box in boxes)
    right = max(box["x"] + box["width"] for box in boxes)
    bottom = max(box["y"] + box["height"] for box in boxes)
    bottom = min(bottom, top + height) if height else bottom
    take_part(file, first.page, left, top, right, bottom)


def take_window(file: Path, page: Page, last: Locator) -> None:
    """Take a picture of all that is in a window, down to the end of an element."""
    box = last.bounding_box()
    take_part(file, page, 0, 0, bottom=box["y"] + box["height"] + MARGIN if box else math.inf)


def take_part(
    file: Path,
    page: Page,
    left: float,
    top: float,
    right: float = math.inf,
    bottom: float = math.inf,
) -> None:
    """Take a picture of a part of a window."""
    window = page.viewport_size or {"width": 0, "height": 0}
    left, top = max(left, 0), max(top, 0)
    width, height = min(right, window["width"]) - left, min(bottom, window["height"]) - top
    content = page.screenshot(
        path=file,
        clip={"x": left, "y": top, "width": width, "height": height},
        animations="disabled",
        caret="hide",
    )
    if len(content) > MAX_BYTES:
        message = f"{file.name} has {len(content):,} bytes, which is too many for a page to load."
        raise ValueError(message)
