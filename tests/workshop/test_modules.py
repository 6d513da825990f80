"""A module is what is changed together: 150 to 400 lines of code, in no circle, and seldom imports.

`make lint` runs this.
"""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import pytest

from tests.workshop.modules import (
    DRIVER,
    PACKAGE,
    ROOT,
    circle,
    imported,
    importers,
    modules,
)

if TYPE_CHECKING:
    from tests.workshop.modules import Module

SMALL = 80
"""Lines of code below which a module with one importer belongs into that importer."""

MOST_OF_IMPORTS = 0.10
"""The share of code that imports may take."""


@pytest.fixture(scope="module")
def found():
    return modules()


def entry_points() -> set[str]:
    """Modules that something outside of the package names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = [*project["scripts"].values()]
    named += [value for group in project["entry-points"].values() for value in group.values()]
    return {text.partition(":")[0].removeprefix(f"{PACKAGE.name}.") for text in named}


PUBLIC = {
    "cli.__main__",
    "datahub",
    "datahub.transport",
    "expectations",
    "history.engines.spark",
    "history.spark_jobs",
    "history.spark_jobs.build_history",
    "hooks.sparklineage",
    "links.lineage",
    "operators.adoption.listener",
    "operators.databricks",
    "operators.dataproc",
    "operators.emr",
    "operators.freshness_check",
    "operators.glue",
    "operators.livy",
    "operators.pyspark",
    "operators.spark_jdbc",
    "operators.spark_kubernetes",
    "operators.spark_pipelines",
    "operators.spark_sql",
    "operators.spark_submit",
    "operators.synapse",
    "plugins.history",  # until the two front ends are one
    "plugins.macros",
    "spark.driver.sitecustomize",
    "storage.hdfs",
}
"""Modules that users, Airflow or Spark import by name."""


def test_a_small_module_has_more_than_one_importer(found):
    counts = importers(found)
    free = entry_points() | PUBLIC
    small = [
        f"{name} ({len(module.code)} lines)"
        for name, module in found.items()
        if 0 < len(module.code) < SMALL
        and counts[name] <= 1
        and name not in free
        and not name.startswith(DRIVER)
        and not is_plug_in(module)
    ]
    assert small == []


def is_plug_in(module: Module) -> bool:
    """Whether a module is one of a list: a backend, an adapter, or the function of a command."""
    if module.name.startswith(("event.backends.", "operators.adapters.")):
        return True
    listed = (PACKAGE / "cli" / "command_line.py").read_text()
    return f'"{module.name.removeprefix("cli.")}:' in listed


def test_no_modules_import_each_other_in_a_circle(found):
    assert circle(found) == []


def test_imports_are_a_tenth_of_the_code_at_most(found):
    lines = sum(len(module.code) for module in found.values())
    share = sum(module.import_lines for module in found.values()) / lines
    assert share <= MOST_OF_IMPORTS, f"{share:.1%} of {lines} lines of code are imports"


@pytest.fixture
def written(tmp_path):
    def write(**texts):
        for name, text in texts.items():
            (tmp_path / "pkg").mkdir(exist_ok=True)
            (tmp_path / "pkg" / f"{name}.py").write_text(text)
        return modules(tmp_path / "pkg")

    return write


def test_blank_lines_comments_and_docstrings_are_no_code(written):
    text = '"""Doc."""\n\n# why\nimport os\n\n\ndef f():\n    """Doc."""\n    return """a\nb"""\n'
    module = written(a=text)["a"]
    assert (sorted(module.code), module.import_lines) == ([4, 7, 9, 10], 1)


def test_an_import_counts_wherever_it_stands(written):
    found = written(
        a="from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pkg.b import B\n",
        b="def f():\n    from pkg import c\n    return c\n",
        c="import pkg.a\n",
    )
    assert imported(found["b"], found, "pkg") == {"c"}
    assert set(circle(found, "pkg")) == {"a", "b", "c"}


def test_modules_without_a_circle_have_none(written):
    found = written(a="from pkg import b\n", b="from pkg.c import x\n", c="x = 1\n")
    assert circle(found, "pkg") == []
    assert importers(found, "pkg") == {"b": 1, "c": 1}
