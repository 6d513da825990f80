"""A fault: what breaks, and what the task and its event have to show for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class Lane(StrEnum):
    """By what a fault is tried."""

    DOUBLE = "double"
    """By a spark-submit that is a script of ours, next to the stock operator."""
    SPARK = "Spark"
    """By a real Spark, next to the stock operator."""
    SCHEDULER = "scheduler"
    """By a real scheduler and its workers."""


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong while a task with lineage runs.

    :param name: a sentence for the users who read ``docs/reliability.md``
    :param happens: breaks something in the bench of its lane
    :param declares: codes of all degradations that the event has because of it
    :param warns: where there is no event, or none that is ours: what the task's log has instead
    :param leaves: globs of what it may leave on disk, but for a capture bundle that is kept
    :param within: seconds that it may add; ten times what it takes, or the deadline with a margin
    :param changes: why the datasets are others although nothing is lost
    :param ends: how the stock operator ends: ``succeeds``, or the type of its exception
    :param slow: whether only ``make faults`` has the time to try it
    :param differs: the switch with which a user wants another outcome than the stock operator's
    """

    name: str
    area: str
    happens: Callable[[Any], object]
    declares: tuple[str, ...] = ()
    warns: str = ""
    leaves: tuple[str, ...] = ()
    within: float = 10.0
    changes: str = ""
    ends: str = "succeeds"
    differs: str = ""
    lane: Lane = Lane.DOUBLE
    slow: bool = False

    @property
    def kind(self) -> tuple[object, ...]:
        """What it shares with the faults that take the same way through the package."""
        expected = (self.declares, self.warns, self.leaves, self.changes, self.ends, self.differs)
        return (self.area, *expected)


@dataclass
class Area:
    """Faults of one kind, with a sentence about them for the page."""

    title: str
    about: str
    faults: list[Fault] = field(default_factory=list)

    def fault(self, name: str, *declares: str, **further: Any) -> Callable[[Any], Any]:
        """Make a fault of a function that takes the bench."""

        def added(happens: Callable[[Any], object]) -> Callable[[Any], object]:
            self.faults.append(Fault(name, self.title, happens, declares, **further))
            return happens

        return added


def areas() -> tuple[Area, ...]:
    """Give all areas, in the order of a task's life."""
    from tests.faults.areas import ALL

    return ALL


def faults(lane: Lane | None = None) -> list[Fault]:
    """List all faults, or those of a lane."""
    return [f for area in areas() for f in area.faults if lane in (None, f.lane)]
