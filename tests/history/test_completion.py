"""Completion in a shell, as argcomplete drives it: by variables of the environment, to fd 8."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from airflow_provider_sparklineage import cli
from airflow_provider_sparklineage.cli.command_line import COMMANDS

MONTH = Path(__file__).parents[1] / "golden" / "history" / "flights_month.ndjson.gz"
SEPARATOR = "\013"
WORDS = ("unknown", "inexact", "cut")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("completion")
    assert cli.main(["history", "build", str(MONTH), "--store", str(folder / "store")]) == 0
    return folder / "store"


@pytest.fixture
def complete(tmp_path):
    """Press Tab at the end of a line; give what the shell gets."""

    def complete(line, **variables):
        env = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "_ARGCOMPLETE": "1",
            "_ARGCOMPLETE_SHELL": "bash",
            "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
            "_ARGCOMPLETE_COMP_WORDBREAKS": " \t\n\"'><=;|&(:",
            "IFS": SEPARATOR,
            "COMP_LINE": line,
            "COMP_POINT": str(len(line)),
            "COMP_TYPE": "9",
            **variables,
        }
        module = [sys.executable, "-m", "airflow_provider_sparklineage.cli"]
        done = subprocess.run(
            ["/bin/sh", "-c", 'exec "$@" 8>&1 9>&2 >/dev/null', "sh", *module],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
            env=env,
            cwd=tmp_path,
        )
        assert done.stderr == ""
        return set(filter(None, done.stdout.split(SEPARATOR)))

    return complete


@pytest.mark.parametrize(
    ("line", "completions"),
    [
        ("sparklineage st", {"stale"}),
        ("sparklineage history ", {"build", "show", "--help"}),
        ("sparklineage stale --un", {"--unjudged"}),
        ("sparklineage merge events.json --format data", {"datahub"}),
        ("sparklineage show partitions_", {f"partitions_{word}" for word in WORDS}),
        ("sparklineage trace daily", set()),
        ("sparklineage trace --store /nowhere daily", set()),
        ("sparklineage trace --store s3://lake/history daily", set()),
    ],
)  # fmt: skip
def test_commands_options_and_codes_are_completed(complete, line, completions):
    assert complete(line) == completions


def test_all_commands_are_offered(complete):
    names = {command.name for command in COMMANDS}
    assert complete("sparklineage ") == names | {"--help", "--version"}


@pytest.mark.parametrize(
    ("text", "completions"),
    [
        ("trace --store {store} da", {"daily_delays"}),
        ("stale --store {store} --ignore pl", {"planes", "planes.csv"}),
        ("impact --store {store} /flights/lake/week", {"/flights/lake/weekly_report"}),
        (
            "trace --store {store} daily_delays --partition flight_date=2013-01-3",
            {"2013-01-30"},  # the shell has the part before the = already
        ),
        ("trace --store {store} nothing --partition f", set()),
    ],
)
def test_datasets_and_partitions_of_the_store_are_completed(complete, store, text, completions):
    assert complete(f"sparklineage {text.format(store=store)}") == completions


def test_the_environment_names_the_store_too(complete, store):
    variable = {"AIRFLOW__SPARKLINEAGE__HISTORY_URL": store.as_uri()}
    assert complete("sparklineage gaps da", **variable) == {"daily_delays"}


def test_argcomplete_finds_its_mark_where_it_looks():
    """It reads the module of the command, and of ``python -m``."""
    [command] = entry_points(group="console_scripts", name="sparklineage")
    assert command.module == cli.__name__
    folder = Path(cli.__file__).parent
    for name in ("__init__.py", "__main__.py"):
        assert b"PYTHON_ARGCOMPLETE_OK" in (folder / name).read_bytes()[:1024]
