"""The SQL of transformations, put into each other and kept short.

``sum(amount_eur) AS revenue`` of an intermediate whose ``amount_eur`` was ``(amount * rate) AS
amount_eur`` reads ``sum((amount * rate)) AS revenue``: of the columns that are named as sources.
"""

from __future__ import annotations

import re
from functools import lru_cache

from airflow_provider_sparklineage.model.texts import truncated

MAX_DESCRIPTION = 1000
"""Characters of a composed description; in one that would be longer, … is what a column was."""

_ALIAS = re.compile(r"(?P<text>.*\S)\s+AS\s+(?:`[^`]+`|\w+)", re.DOTALL | re.IGNORECASE)


@lru_cache(maxsize=4096)  # many columns have the same few texts
def composed(outer: str, column: str, inner: str) -> str:
    """Put what a column was made of into a text about that column.

    :param outer: the later action's text
    :param column: the intermediate's column
    :param inner: the earlier action's text, which made the column
    :return: ``outer`` where it does not name the column
    """
    aliased = _ALIAS.fullmatch(inner)
    source = aliased["text"] if aliased else inner
    if not source or source == column or column not in outer:
        return shortened(outer)
    end = _ALIAS.fullmatch(outer)
    text, alias = (end["text"], outer[len(end["text"]) :]) if end else (outer, "")
    parts, count = _reference(column).subn(lambda m: m[0] if m[1] else "\0", text)
    named = parts.count("\0")
    if not count or not named:
        return shortened(outer)
    if len(parts) + named * len(source) + len(alias) > MAX_DESCRIPTION:
        source = "…"
    return shortened(parts.replace("\0", source) + alias)


def shortened(text: str) -> str:
    """Shorten a text that is too long by itself."""
    return truncated(text, MAX_DESCRIPTION)


@lru_cache(maxsize=4096)
def _reference(column: str) -> re.Pattern[str]:
    """Match texts in quotes (group 1), and a column's name outside of them, qualified or not."""
    name = re.escape(column)
    return re.compile(
        r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
        rf"|(?<![\w.`])(?<!\bAS )(?:(?:\w+|`[^`]+`)\.)*(?:`{name}`|{name})(?![\w`.(])",
        re.DOTALL,
    )
