"""What a measurement gives: a figure beside its goal."""

from __future__ import annotations

from typing import NamedTuple


class Result(NamedTuple):
    """A measured figure and what it should not exceed.

    :param unit: of figure and goal; empty for a ratio
    :param details: the figures behind it, in words
    """

    name: str
    figure: float
    goal: float
    details: str
    unit: str = ""

    def __str__(self) -> str:
        """Say all of it in one line."""
        word = "ok    " if self.figure <= self.goal else "MISSED"
        said = f"{self.figure:.2f}{self.unit} (goal {self.goal:g}{self.unit})"
        return f"{word} {self.name}: {said}; {self.details}"
