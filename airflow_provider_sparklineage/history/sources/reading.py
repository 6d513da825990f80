"""All sources to lines of facts, and what the next build has to know."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.history.facts import Skipped, facts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from airflow_provider_sparklineage.history.facts import Line
    from airflow_provider_sparklineage.history.sources import Piece, Source

LEFT_OUT = "part_left_out"
"""Count of the parts of events that were not of their shape; their events are not skipped."""


class Reading:
    """One build's reading of its sources.

    :param known: marks of the build before; none if all is to be read
    """

    def __init__(self, known: Mapping[str, str] | None = None) -> None:
        self._known = known or {}
        self.marks = dict(self._known)
        """Marks by places, also those of the build before: for the next one."""
        self.events = 0
        """How many documents were read, those that were skipped among them."""
        self.skipped: Counter[str] = Counter()
        """How many were skipped, by :class:`.Skip`, :class:`.Reason` or :data:`LEFT_OUT`."""

    def lines(self, sources: Iterable[Source]) -> Iterator[Line]:
        """Give the facts of all events that are new.

        A file's mark is noted when all of it was taken.

        :raise UnusableInputError: if a source is not there
        """
        for source in sources:
            for piece in source.pieces(self._known, self.skipped):
                yield from self._of(piece)
                if piece.mark:
                    self.marks[piece.place] = piece.mark

    def _of(self, piece: Piece) -> Iterator[Line]:
        for document in piece.documents(self.skipped):
            self.events += 1
            found = facts_of(document.text, piece.source, document.of)
            if isinstance(found, Skipped):
                self.skipped[found.reason] += 1
                continue
            if found.left_out:
                self.skipped[LEFT_OUT] += found.left_out
            yield found
