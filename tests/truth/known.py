"""What may differ from the oracles, each by name and with its reason; nothing else may."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.truth.columns import Sources


@dataclass(frozen=True)
class Difference:
    """A column of which sqlglot knows other sources than are right."""

    sources: Sources
    reason: str


DIFFERENCES: Mapping[tuple[str, str], Difference] = {}
"""By query and column."""

TRUE_OF_ALL: Mapping[str, str] = {}
"""Codes of degradations that are true of these applications, whatever they run."""
