"""The frame of the benchmarks: what it says of figures must be right, whatever the figures are."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from datetime import date
from xml.etree import ElementTree

import pytest

from benchmarks import __main__ as benchmarks
from benchmarks import report
from benchmarks.measuring import Growth, peak_mb
from benchmarks.results import Curve, Result

SQUARE = Growth((10, 20, 40, 80), (0.1, 0.4, 1.6, 6.4))


def test_the_exponent_is_the_slope_of_growth():
    assert SQUARE.exponent == pytest.approx(2)


def test_three_sizes_are_no_growth():
    with pytest.raises(ValueError, match="at least 4"):
        Growth.of((1, 2, 3), lambda _: lambda: None)


# The test runner has threads, and the child only measures and ends.
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_the_peak_is_what_an_action_has_at_most_and_not_what_it_leaves():
    assert 63 < peak_mb(lambda: bytearray(b"x") * (64 << 20) and None) < 80


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_an_action_that_fails_has_no_peak(capfd):
    with pytest.raises(RuntimeError, match="failed"):
        peak_mb(lambda: 1 / 0)
    assert "ZeroDivisionError" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("figure", "goal", "begins"),
    [
        pytest.param(1.04, 1.05, "ok     import: 1.04 (goal 1.05)", id="met"),
        pytest.param(1.05, 1.05, "ok     import: 1.05", id="just met"),
        pytest.param(1.06, 1.05, "MISSED import: 1.06", id="missed"),
        pytest.param(243_088, 5000, "MISSED import: 243,088 (goal 5,000)", id="large"),
        pytest.param(1.06, None, "       import: 1.06", id="without a goal"),
        pytest.param(None, 1.05, "       import: not measured; of both", id="not measured"),
    ],
)
def test_a_line_says_whether_the_goal_is_met(figure, goal, begins):
    result = Result("import", figure, goal, "of both")
    assert str(result).startswith(begins)
    assert ("missed because: not known" in str(result)) == begins.startswith("MISSED")


def test_the_page_counts_goals_and_gives_the_reason_of_each_that_is_missed():
    results = [
        Result("a", 1, 2, "met"),
        Result("b", 3, 2, "not met", missed="it is hard"),
        Result("c", 9, None, "without a goal"),
    ]
    page = report.page({"Merging": results}, date(2024, 5, 6))
    assert "1 of 2 goals are met." in page
    assert "| b | **3.00** | 2 | not met. **Missed**: it is hard |" in page
    assert "All 1 goals" in report.page({"Merging": results[:1]}, date(2024, 5, 6))


def test_what_could_not_be_measured_is_neither_met_nor_missed():
    results = [Result("a", 1, 2, "met"), Result("b", None, 5, "there is no HDFS", " s")]
    page = report.page({"Merging": results}, date(2024, 5, 6))
    assert "All 1 goals are met." in page
    assert "| b | not measured | 5 s | there is no HDFS |" in page


def test_a_plot_is_the_same_each_time_and_has_its_exponent():
    if importlib.util.find_spec("pygal") is None:
        pytest.skip("what draws plots is in the environment for development only")
    curve = Curve("merging", "Merge", "actions", {"merge": SQUARE})
    drawn = report.plot(curve)
    assert drawn == report.plot(curve)
    assert "merge: exponent 2.00" in "".join(ElementTree.fromstring(drawn).itertext())


def test_each_name_is_a_module_that_measures():
    # In a process of its own, because the import of one adds the observer to the path.
    names = [f"benchmarks.{name}" for name in (*benchmarks.MODULES, *benchmarks.LONG)]
    code = f"import importlib\nfor name in {names}: importlib.import_module(name).measured"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_unknown_name_is_refused(capsys):
    with pytest.raises(SystemExit):
        benchmarks.main(["mergin"])
    assert "no such benchmark: mergin" in capsys.readouterr().err
