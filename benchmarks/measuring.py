"""How things are measured that run in this process: CPU time, growth, and the peak of memory.

CPU time and not the clock, because the clock runs for everything else on the machine, too. The run
that a quarter of the runs beat: noise adds, but the clock of CPU time may also lose 10 ms of a run.
The collector of garbage is on, as in a task.
"""

from __future__ import annotations

import gc
import os
import re
import statistics
import time
import traceback
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Action = Callable[[], Any]

RUNS = 5
_SIZES = 4


def cpu_s(action: Action, runs: int = RUNS) -> float:
    """Seconds for which an action keeps a core busy, as :func:`in_turns` finds them."""
    return in_turns(action, runs=runs)[0]


def in_turns(*actions: Action, runs: int = RUNS) -> list[float]:
    """CPU seconds of each action, all measured in turns.

    What else the machine does falls on all of them alike.
    """
    seconds = [[_once(action) for action in actions] for _ in range(runs)]
    return [usual(column) for column in zip(*seconds, strict=True)]


def usual(cpu_times: Sequence[float]) -> float:
    """Give that CPU time of some runs which a quarter of them beat."""
    return sorted(cpu_times)[len(cpu_times) // 4]


def _once(action: Action) -> float:
    gc.collect()
    start = time.process_time()
    action()
    return time.process_time() - start


def peak_mb(action: Action) -> float:
    """Megabytes by which resident memory rises while an action runs, in a process of its own.

    To be called before the action runs in this one: what is free here is used again, uncounted.
    """
    gc.collect()
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        _measure_peak(action, writing)
    os.close(writing)
    with open(reading) as result:
        text = result.read()
    os.waitpid(child, 0)
    if not text:
        msg = "the action failed in the process in which its memory was measured"
        raise RuntimeError(msg)
    return float(text)


def _measure_peak(action: Action, writing: int) -> None:
    status = 1
    try:
        Path("/proc/self/clear_refs").write_text("5")  # the peak is what is resident now
        before = _resident_mb("VmRSS")
        action()
        os.write(writing, str(_resident_mb("VmHWM") - before).encode())
        status = 0
    except BaseException:  # it must not go on as a second copy of the parent
        traceback.print_exc()
    finally:
        os._exit(status)


def _resident_mb(what: str) -> float:
    found = re.search(rf"{what}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found, what
    return int(found[1]) / 1024


@dataclass(frozen=True)
class Growth:
    """How long something takes at each of some sizes."""

    sizes: tuple[int, ...]
    seconds: tuple[float, ...]

    @classmethod
    def of(cls, sizes: Sequence[int], make: Callable[[int], Action], runs: int = 3) -> Growth:
        """Measure what is made for each size, in turns; making it is not measured."""
        if len(sizes) < _SIZES:
            msg = f"{len(sizes)} sizes show no growth: take at least {_SIZES}"
            raise ValueError(msg)
        return cls(tuple(sizes), tuple(in_turns(*map(make, sizes), runs=runs)))

    @property
    def exponent(self) -> float:
        """The slope of the line through the points, both axes logarithmic: 1 is linear."""
        slope, _ = statistics.linear_regression(
            [log(size) for size in self.sizes], [log(seconds) for seconds in self.seconds]
        )
        return slope

    def __str__(self) -> str:
        """List the points."""
        points = zip(self.sizes, self.seconds, strict=True)
        return ", ".join(f"{size:,}: {seconds:.3f} s" for size, seconds in points)
