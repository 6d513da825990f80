"""Wait for what a page does by itself: for its requests, and until nothing in it moves."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

TIMEOUT_S = 60  # as of what is expected of a page
_FRAMES = 6  # that are drawn alike when a page is at rest
# The browser tells observers of sizes and of what is in view once a frame.
_STILL = """frames => new Promise((resolve) => {
    const all = (root) =>
        [...root.querySelectorAll("*")]
            .flatMap((one) => [one, ...(one.shadowRoot ? all(one.shadowRoot) : [])]);
    const seen = () => all(document).map((one) => {
        const { x, y, width, height } = one.getBoundingClientRect();
        return [one.localName, x, y, width, height].join();
    }).join();
    let [before, still] = ["", 0];
    const look = () => {
        const now = seen();
        still = now === before ? still + 1 : 0;
        before = now;
        if (still < frames) requestAnimationFrame(look);
        else resolve();
    };
    look();
})"""


def at_rest(page: Page) -> None:
    """Wait until some frames in a row have the same elements in the same places.

    It waits for no answer of a server: expect first what the page shows of that.
    """
    page.evaluate(_STILL, _FRAMES)


def until(page: Page, is_so: Callable[[], object], otherwise: Callable[[], str]) -> None:
    """Let a page go on until something is so that the test knows and the page does not show.

    :param otherwise: gives the message of the failure
    """
    deadline = time.monotonic() + TIMEOUT_S
    while not is_so():
        if time.monotonic() > deadline:
            pytest.fail(otherwise())
        page.wait_for_timeout(20)
