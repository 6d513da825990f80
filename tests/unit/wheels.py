"""A wheel of a copy of the sources, as it is published."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FOLDERS = ("airflow_provider_sparklineage", "dags_examples")
_FILES = ("pyproject.toml", "setup.cfg", "README.md", "LICENSE")
_MADE = shutil.ignore_patterns("__pycache__", "node_modules")


def run_python(*arguments, **settings):
    """Run Python, which must succeed."""
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        **settings,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def build(sources, folder):
    """Copy the sources into one folder, and build their wheel into another; gives its path."""
    for name in _FOLDERS:
        shutil.copytree(ROOT / name, sources / name, ignore=_MADE)
    for name in _FILES:
        shutil.copy(ROOT / name, sources)
    command = ["-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index"]
    run_python(*command, "--wheel-dir", folder, sources)
    [built] = folder.glob("*.whl")
    return built
