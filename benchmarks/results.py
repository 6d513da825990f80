"""What a measurement gives: a figure and its goal."""

from __future__ import annotations

from typing import NamedTuple


class Result(NamedTuple):
    """A measured figure and what it should not exceed.

    :param goal: None where the figure is to be known, and nobody has set a bound for it
    :param unit: of figure and goal; empty for a ratio
    :param details: the figures behind it, in words
    """

    name: str
    figure: float
    goal: float | None
    details: str
    unit: str = ""

    def __str__(self) -> str:
        """Describe all of it in one line."""
        if self.goal is None:
            return f"       {self.name}: {self.figure:.2f}{self.unit}; {self.details}"
        word = "ok    " if self.figure <= self.goal else "MISSED"
        figure = f"{self.figure:.2f}{self.unit} (goal {self.goal:g}{self.unit})"
        return f"{word} {self.name}: {figure}; {self.details}"
