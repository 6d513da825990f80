"""The results of reading a bundle's files: counts, and the problems that were met."""

from __future__ import annotations

from msgspec import Struct


class LinesReport(Struct):
    """The result of reading the lines of one file; it grows while the lines are consumed."""

    bytes: int = 0
    malformed: list[str] = []
    """The first lines that could not be decoded, each as ``file:line: reason``."""
    malformed_lines: int = 0
    """The number of all lines that could not be decoded, without a torn last line."""
    torn: bool = False
    """Whether the last line has no line end and could not be decoded."""
    cut: bool = False
    """Whether reading ended early because its time was up."""

    MALFORMED_NAMED = 5  # enough to find the cause; further lines are only counted

    def add_malformed(self, where: str, why: object) -> None:
        """Count a line that could not be decoded, and note it if it is one of the first."""
        self.malformed_lines += 1
        if len(self.malformed) < self.MALFORMED_NAMED:
            self.malformed.append(f"{where}: {why}")


class ReadReport(LinesReport):
    """The result of reading events; it grows while :func:`.events.read_events` is consumed."""

    events: int = 0
