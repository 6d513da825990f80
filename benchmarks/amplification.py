"""Large inputs, made of recorded events by a seeded generator."""

from __future__ import annotations

import json
import random
import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

GOLDEN = Path(__file__).parents[1] / "tests" / "golden" / "spark-4.0" / "staging_chain.ndjson"
ACTIONS = 2
"""SQL actions of the recorded application."""


def run_id() -> str:
    """Give the run id of the recorded application."""
    with GOLDEN.open() as events:
        return str(json.loads(events.readline())["run"]["runId"])


def amplified(copies: int, lakes: int | None = None, seed: int = 1) -> Iterator[bytes]:
    """Give the lines of the recorded application, its actions repeated as runs of their own.

    Each repetition begins when the one before it has ended, for a listener writes as time goes on.

    :param lakes: how many copies of the recorded datasets there are, from which each repetition
        takes one at random; None: each has its own
    """
    lines = GOLDEN.read_text().splitlines()
    application = run_id()
    actions = [line for line in lines if json.loads(line)["run"]["runId"] != application]
    runs = sorted({json.loads(line)["run"]["runId"] for line in actions})
    took = max(map(_time, lines)) - min(map(_time, lines))
    chance = random.Random(seed)
    yield f"{lines[0]}\n".encode()
    for copy in range(copies):
        lake = copy if lakes is None else chance.randrange(lakes)
        for line in actions:
            text = _later(line, copy * took).replace("/lake/", f"/lake{lake}/")
            for number, run in enumerate(runs):
                text = text.replace(run, f"00000000-0000-0000-{number:04x}-{copy:012x}")
            yield f"{text}\n".encode()
    yield f"{_later(lines[-1], copies * took)}\n".encode()


_EVENT_TIME = re.compile(r'(?<="eventTime":")[^"]+')


def _time(line: str) -> datetime:
    found = _EVENT_TIME.search(line)
    assert found, line
    return datetime.fromisoformat(found[0])


def _later(line: str, by: timedelta) -> str:
    return _EVENT_TIME.sub((_time(line) + by).isoformat(), line, count=1)
