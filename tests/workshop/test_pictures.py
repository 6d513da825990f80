"""The pictures of the docs: each is shown somewhere, exists, and is made by a command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("playwright", reason="it is in the environment for development only")

from benchmarks.report import PLOTS
from tests.pictures.screen import MAX_BYTES
from tests.pictures.subjects import PICTURES

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", *DOCS.rglob("*.md")])
FILES = sorted(p for kind in ("png", "svg", "jpg", "gif") for p in DOCS.rglob(f"*.{kind}"))
_SHOWN = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)")


def shown() -> set[Path]:
    """Find the pictures that the pages show."""
    return {
        (page.parent / name).resolve()
        for page in PAGES
        for name in _SHOWN.findall(page.read_text())
    }


def test_every_picture_that_is_shown_exists():
    assert len(shown()) >= 10
    assert sorted(shown() - set(FILES)) == []


def test_every_picture_is_shown():
    assert sorted(set(FILES) - shown()) == []


def test_every_picture_is_made_by_a_command():
    """``make bench`` draws its plots, ``make pictures`` makes all others."""
    others = {file.name for file in FILES if file.parent != PLOTS}
    assert others == set(PICTURES)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_picture_is_small(file):
    assert 0 < file.stat().st_size <= MAX_BYTES
