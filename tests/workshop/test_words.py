"""The words of the field: private words that the code had for them stay out."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("airflow_provider_sparklineage", "benchmarks", "dags_examples", "docs", "tests")
TEXTS = sorted(
    path
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*")
    if path.suffix in {".py", ".md", ".ts", ".tsx", ".mjs", ".css", ".json"}
    and path != Path(__file__)
    # Recorded by Spark and Airflow.
    and not (path.suffix == ".json" and "golden" in path.parts)
    # Libraries of others, and what is built of them.
    and not {"node_modules", "static"} & set(path.parts)
)

# Each with the word of the field; docs/architecture.md has the others.
RETIRED = {
    "mend|mends|mended": "fix, or repair (of events for a backend)",
    "told|untold": "reported, known",
    "telling": "report",
    "said": "reported, written, in the event",
    "untied": "unmatched",
    "undone": "failed writes",
    "meant": "expected, selected",
    "touched|touches": "read and written, accessed",
    "likewise": "also",
    "lacking": "missing",
    "beside|besides": "next to, also",
    "spelled|spelling|spells": "written, format",
    "relocation|relocated": "canonical name",
    "without a word": "silently",
    "moments": "timestamps",
}


# Codes in events, and columns of recorded queries, keep their names.
KEPT = re.compile(r"observation_untied|(?:if_function|unpivoted)\.told|\+ told <-", re.IGNORECASE)


@cache
def lines() -> list[tuple[str, str]]:
    """Give each line of each text, with where it is."""
    return [
        (f"{path.relative_to(ROOT)}:{number}", KEPT.sub("", line))
        for path in (*TEXTS, ROOT / "README.md")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    ]


def uses(word: str) -> list[str]:
    """Find a word where it is one, and in the parts of an identifier."""
    pattern = re.compile(rf"(?<![a-z])(?:{word})(?![a-z])", re.IGNORECASE)
    return [f"{place} {line.strip()[:120]}" for place, line in lines() if pattern.search(line)]


def test_all_kinds_of_texts_are_read():
    assert {path.suffix for path in TEXTS} == {
        *(".py", ".md", ".ts", ".tsx", ".mjs", ".css", ".json"),
    }


@pytest.mark.parametrize(("word", "instead"), RETIRED.items(), ids=RETIRED)
def test_a_retired_word_is_not_used(word, instead):
    assert uses(word) == [], f"write {instead}"


def test_no_text_has_both_sides_of_a_merge():
    marks = ("<" * 7, ">" * 7)
    assert [place for place, line in lines() if line.startswith(marks)] == []
