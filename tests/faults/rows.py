"""What came of a fault: one row of the table, and what is wrong with it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from fnmatch import fnmatch
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.model.degradations import DegradationCode

if TYPE_CHECKING:
    from tests.faults.registry import Fault

BUNDLE = "capture bundle"


@dataclass(frozen=True)
class Run:
    """How a task ended, and what is left of it.

    :param outcome: ``succeeds``, or the type of the exception with the job's exit code
    :param declared: codes in the event; None where there is no event of ours
    :param datasets: inputs and outputs of the event
    :param log: what it logged as warnings
    :param left: files, processes and threads that were not there before
    """

    outcome: str
    seconds: float
    declared: tuple[str, ...] | None = None
    datasets: Any = None
    log: str = ""
    left: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    """What the fault itself expects, and did not find."""


@dataclass
class Row:
    """A fault as it was tried."""

    fault: str
    area: str
    lane: str
    stock: str
    outcome: str
    declared: list[str]
    warned: bool
    seconds: float
    left: list[str]
    problems: list[str] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """Give it as JSON."""
        return asdict(self)


def row(fault: Fault, stock: Run, ours: Run, healthy: Any = None) -> Row:
    """Compare what the stock operator and ours made of a fault.

    :param healthy: the datasets of the same task without any fault; None if they are not compared
    """
    seconds = ours.seconds - stock.seconds
    return Row(
        fault.name,
        fault.area,
        str(fault.lane),
        stock.outcome,
        ours.outcome,
        sorted(ours.declared or ()),
        bool(fault.warns) and fault.warns in ours.log,
        round(max(0.0, seconds), 2),
        sorted(ours.left),
        list(_problems(fault, stock, ours, seconds, healthy)),
    )


def _problems(fault: Fault, stock: Run, ours: Run, seconds: float, healthy: Any) -> Any:
    if (ours.outcome == stock.outcome) is bool(fault.differs):
        yield f"the task: {ours.outcome}, with the stock operator: {stock.outcome}"
    if fault.ends not in stock.outcome:
        yield f"the stock operator {stock.outcome}, which should have been: {fault.ends}"
    declared = ours.declared or ()
    if set(declared) != set(fault.declares):
        yield f"declared: {sorted(declared)}, expected: {sorted(fault.declares)}"
    if ours.declared is None and not fault.warns:
        yield "there is no event"
    if fault.warns not in ours.log:
        yield f"no warning has {fault.warns!r}: {ours.log!r}"
    if any(DegradationCode(code).needs_attention for code in declared) and not ours.log:
        yield "nobody is warned"
    loses = fault.declares or fault.warns or fault.changes
    if healthy is not None and not loses and ours.datasets != healthy:
        yield "the event has other datasets, and says nothing of it"
    yield from ours.broken
    if seconds > fault.within:
        yield f"it took {seconds:.1f} s more, {fault.within} at most are allowed"
    allowed = (BUNDLE, *fault.leaves)
    if more := [left for left in ours.left if not any(fnmatch(left, a) for a in allowed)]:
        yield f"left behind: {more}"
