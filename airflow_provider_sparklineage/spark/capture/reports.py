"""Counts and problems of reading the files of a bundle."""

from __future__ import annotations

from msgspec import Struct


class LinesReport(Struct):
    """The result of reading the lines of one file; filled while they are consumed."""

    bytes: int = 0
    malformed: list[str] = []
    """``file:line: why`` of the first lines that could not be decoded."""
    malformed_lines: int = 0
    torn: bool = False
    cut: bool = False
    """Whether reading ended early because its time was up."""

    MALFORMED_NAMED = 5  # enough to find the cause; the rest is counted

    def add_malformed(self, where: str, why: object) -> None:
        """Count a line that was left out."""
        self.malformed_lines += 1
        if len(self.malformed) < self.MALFORMED_NAMED:
            self.malformed.append(f"{where}: {why}")


class ReadReport(LinesReport):
    """The result of reading events; filled while :func:`.events.read_events` is consumed."""

    events: int = 0
