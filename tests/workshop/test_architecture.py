"""The pages about the structure of the code name what there is."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from tests import write_modules

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "airflow_provider_sparklineage"
DOCS = ROOT / "docs"
FOLDERS = sorted(p.name for p in PACKAGE.iterdir() if (p / "__init__.py").exists())


def paths_in(text: str) -> list[str]:
    return re.findall(r"`([\w./-]+(?:\.py|\.md|\.json|\.cfg|/))`", text)


BASES = (
    PACKAGE,
    PACKAGE / "lineage",
    PACKAGE / "spark",
    PACKAGE / "spark" / "driver" / "sparklineage_observer",
    DOCS,
    ROOT,
)


def exists(path: str) -> bool:
    return any((base / path).exists() for base in BASES)


def test_every_path_on_the_page_exists():
    named = paths_in((DOCS / "architecture.md").read_text().partition(write_modules.BEGIN)[0])
    assert len(named) > 40
    assert [path for path in named if not exists(path)] == []


def test_the_page_says_where_more_than_two_dozen_changes_begin():
    text = (DOCS / "architecture.md").read_text().split("## Where do I change")[1]
    assert len(re.findall(r"^\| \*\*", text, re.MULTILINE)) >= 24


def test_the_page_has_every_module():
    text = write_modules.DOCUMENT.read_text()
    assert text == write_modules.documented(text), "run: python -m tests.write_modules"


@pytest.mark.parametrize("page", [DOCS / "architecture.md", PACKAGE / "__init__.py"], ids=str)
def test_every_folder_of_the_package_is_explained(page):
    text = page.read_text()
    assert FOLDERS
    assert [folder for folder in FOLDERS if f"`{folder}/" not in text] == []


def test_the_root_has_a_dozen_folders_and_two():
    entries = [p.name for p in PACKAGE.iterdir() if p.name != "__pycache__"]
    assert len(entries) <= 15 + len(["__init__.py", "get_provider_info.py", "py.typed"])


def test_the_picture_is_drawn_from_its_text():
    text, picture = (DOCS / "flow.dot").read_text(), (DOCS / "flow.svg").read_text()
    labels = re.findall(r'label = "([^"]*)"', text)
    written = [line.strip() for label in labels for line in label.split("\\n")]
    drawn = [html.unescape(t).strip() for t in re.findall(r"<text [^>]*>([^<]*)</text>", picture)]
    assert len(written) > 30
    assert sorted(drawn) == sorted(written)


def test_every_decision_stands_on_a_page_that_the_index_lists():
    index = (DOCS / "decisions" / "README.md").read_text()
    pages = {p.name for p in (DOCS / "decisions").glob("*.md")} - {"README.md"}
    assert pages
    assert pages == set(re.findall(r"\]\((\w+\.md)\)", index))
