"""What a measurement gives: a figure and its goal, or a curve."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.measuring import Growth

_MANY = 100


class Result(NamedTuple):
    """A measured figure and what it should not exceed.

    :param figure: None where it could not be measured here; then ``details`` say why
    :param goal: None where the figure is to be known, and nobody has set a bound for it
    :param details: the figures behind it, in words
    :param unit: of figure and goal; empty for a ratio
    :param missed: why the goal is not met, where that is known
    """

    name: str
    figure: float | None
    goal: float | None
    details: str
    unit: str = ""
    missed: str = ""

    @property
    def is_missed(self) -> bool:
        """Whether there is a goal, and it is not met."""
        return self.goal is not None and self.figure is not None and self.figure > self.goal

    @property
    def why(self) -> str:
        """Why the goal is not met; empty if it is."""
        if not self.is_missed:
            return ""
        return self.missed or "not known"

    @property
    def measured(self) -> str:
        """The figure as text, with its unit."""
        if self.figure is None:
            return "not measured"
        digits = 2 if self.figure < _MANY else 0
        return f"{self.figure:,.{digits}f}{self.unit}"

    @property
    def bound(self) -> str:
        """The goal as text, with its unit; empty if there is none."""
        return "" if self.goal is None else f"{self.goal:,g}{self.unit}"

    def __str__(self) -> str:
        """Describe all of it in one line."""
        if self.goal is None or self.figure is None:
            return f"       {self.name}: {self.measured}; {self.details}"
        word = "MISSED" if self.is_missed else "ok    "
        why = f"; missed because: {self.why}" if self.is_missed else ""
        return f"{word} {self.name}: {self.measured} (goal {self.bound}); {self.details}{why}"


class Curve(NamedTuple):
    """How something grows, for a plot.

    :param file: name of the plot, without ``.svg``
    :param title: what grows
    :param sizes: what the sizes count
    :param lines: what is measured, by name
    """

    file: str
    title: str
    sizes: str
    lines: Mapping[str, Growth]

    def __str__(self) -> str:
        """List the points."""
        return "\n".join(f"       {self.title}, {name}: {g}" for name, g in self.lines.items())


def printed(name: str) -> list[Result | Curve]:
    """Measure all that a module of this package measures, and print each as it comes."""
    found = []
    for item in importlib.import_module(f"benchmarks.{name}").measured():
        print(item, flush=True)
        found.append(item)
    return found
