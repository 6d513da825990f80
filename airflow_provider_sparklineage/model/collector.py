"""Python's collector of garbage, paused where millions of objects are made that are no garbage."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def paused() -> Iterator[None]:
    """Spare the passes over all that is made meanwhile, which take longer than to make it.

    For work whose memory is bounded without the collector: of what merging makes, hardly anything
    is part of a cycle. Inside of another pause it does nothing. A timeout that fires in here leaves
    the collector as it was.
    """
    was_enabled = gc.isenabled()
    try:
        gc.disable()
        yield
    finally:
        if was_enabled:
            _take_as_old()
            gc.enable()


def _take_as_old() -> None:
    """Have what is there now looked at by the next full pass, and by none of the quick ones.

    The first of those would go through all that was made meanwhile, and the next ones again.
    """
    if not gc.get_freeze_count():  # what somebody else froze stays so
        gc.freeze()
        gc.unfreeze()
