"""The examples in docstrings: what they show is what comes out."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import airflow_provider_sparklineage

PACKAGE = Path(airflow_provider_sparklineage.__file__).parent
MODULES = [
    ".".join((PACKAGE.name, *file.relative_to(PACKAGE).with_suffix("").parts))
    for file in sorted(PACKAGE.rglob("*.py"))
    if ">>> " in file.read_text()
]


def test_there_are_some():
    assert MODULES


@pytest.mark.parametrize("name", MODULES)
def test_examples_show_what_comes_out(name):
    tried = doctest.testmod(import_module(name.removesuffix(".__init__")))
    assert tried.attempted > 0
    assert tried.failed == 0
