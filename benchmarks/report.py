"""The page of the last measurement: ``docs/performance.md``, with a plot of each curve."""

from __future__ import annotations

import os
import platform
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.results import Curve, Result

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import date

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
PLOTS = PAGE.with_name("performance")

_HEAD = """\
# What lineage costs

<!-- Written by `make bench`. -->
Measured on {day} with {machine}. {met}

Figures are ratios wherever there is something to compare with, because seconds depend more on the
machine than on this package. *Decode* is reading the same bytes and making plain objects of all
that is in them; *stock* is Airflow's own `SparkSubmitOperator`. An *exponent* is the slope of
growth over at least four sizes: 1 is linear, 2 is square. Python's collector of garbage is on,
as in a task; it is off while decoding, which favours that.
"""


def write(found: Mapping[str, Sequence[Result | Curve]], day: date) -> None:
    """Write the page and its plots.

    :param found: by the title of the section
    """
    PLOTS.mkdir(exist_ok=True)
    for old in PLOTS.glob("*.svg"):
        old.unlink()
    for each in found.values():
        for curve in _curves(each):
            (PLOTS / f"{curve.file}.svg").write_text(plot(curve))
    PAGE.write_text(page(found, day))


def page(found: Mapping[str, Sequence[Result | Curve]], day: date) -> str:
    """Give the text of the page."""
    measured = [r for each in found.values() for r in _results(each) if r.figure is not None]
    with_goal = [result for result in measured if result.goal is not None]
    missed = sum(result.is_missed for result in with_goal)
    met = f"All {len(with_goal)} goals are met."
    if missed:
        met = f"{len(with_goal) - missed} of {len(with_goal)} goals are met."
    machine = f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}"
    parts = [_HEAD.format(day=f"{day:%Y-%m-%d}", machine=machine, met=met)]
    for title, each in found.items():
        parts += [f"## {title}\n", _table(_results(each))]
        parts += [f"![{c.title}](performance/{c.file}.svg)\n" for c in _curves(each)]
    return "\n".join(parts)


def _results(each: Iterable[Result | Curve]) -> list[Result]:
    return [item for item in each if isinstance(item, Result)]


def _curves(each: Iterable[Result | Curve]) -> list[Curve]:
    return [item for item in each if isinstance(item, Curve)]


def _table(results: Iterable[Result]) -> str:
    rows = ["| what | figure | goal | |", "|---|---|---|---|"]
    for result in results:
        figure, note = result.measured, result.details
        if result.is_missed:
            figure, note = f"**{figure}**", f"{note}. **Missed**: {result.why}"
        rows.append(" | ".join(("", result.name, figure, result.bound, note, "")).strip())
    return "\n".join(rows) + "\n"


def plot(curve: Curve) -> str:
    """Draw a curve as SVG, both axes logarithmic."""
    import pygal
    from pygal.style import CleanStyle

    # It adds a finder for its plugins, of which Python warns at each import from then on.
    sys.meta_path[:] = [f for f in sys.meta_path if not type(f).__module__.startswith("pygal")]
    chart = pygal.XY(
        title=curve.title,
        x_title=curve.sizes,
        y_title="seconds",
        logarithmic=True,
        legend_at_bottom=True,
        legend_at_bottom_columns=1,
        truncate_legend=-1,
        style=CleanStyle,
        js=[],
        no_prefix=True,
        width=720,
        height=460,
    )
    for name, growth in curve.lines.items():
        points = list(zip(growth.sizes, growth.seconds, strict=True))
        chart.add(f"{name}: exponent {growth.exponent:.2f}", points)
    # Its comments have the day, so that no two drawings would be equal; a picture runs no script.
    drawn = chart.render(is_unicode=True)
    return re.sub(r"<!--.*?-->|<script.*?</script>", "", drawn, flags=re.DOTALL) + "\n"
