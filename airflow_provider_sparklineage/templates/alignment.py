"""Where the pieces of a template's rendering, of which some are not known, are in the real text."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class Expression(NamedTuple):
    """An output expression of a template, or several that cannot be told apart in its text.

    :param text: as it is in the template, e.g. ``macros.ds_add(ds, -6)``
    :param variables: the context variables that it uses, sorted
    """

    text: str
    variables: tuple[str, ...]


class Made(NamedTuple):
    """Characters ``[start, end)``, and what made them."""

    start: int
    end: int
    expression: Expression

    def moved(self, by: int) -> Made:
        """Give the same ``by`` characters further on."""
        return Made(self.start + by, self.end + by, self.expression)


class Piece(NamedTuple):
    """Text between two holes, and what expressions made of it."""

    text: str
    made: tuple[Made, ...]


class Rendering(NamedTuple):
    """What a template renders to, as far as it could be rendered again.

    :param pieces: the text before the first hole, …, after the last
    :param holes: what makes the text between each two pieces
    """

    pieces: tuple[Piece, ...]
    holes: tuple[Expression, ...]

    def align(self, value: str) -> tuple[Made, ...] | None:
        """Find which characters of the real text were made by expressions; None if it is another.

        Where a piece could lie at several places (a ``/`` between two holes), it and the holes on
        both sides become one: their expressions joined with ``~``.
        """
        spots = _spots([piece.text for piece in self.pieces], value)
        if spots is None:
            return None
        made: list[Made] = list(self.pieces[0].made)
        end = len(self.pieces[0].text)
        unknown: list[Expression] = []
        for hole, piece, spot in zip(self.holes, self.pieces[1:], spots[1:], strict=True):
            unknown.append(hole)
            if spot is None:
                unknown += [m.expression for m in piece.made]
                continue
            made.append(Made(end, spot, _merged(unknown)))
            made += [m.moved(spot) for m in piece.made]
            end = spot + len(piece.text)
            unknown.clear()
        return tuple(made)


def _spots(pieces: Sequence[str], value: str) -> list[int | None] | None:
    """Find where each piece is in a text, in this order; None for one that may be at several.

    The leftmost and the rightmost place of each bound all others: where they are one, it is it.

    >>> _spots(["s3://", "/dt=", ""], "s3://lake/dt=5")
    [0, 9, 14]
    """
    first, last = pieces[0], pieces[-1]
    if len(pieces) == 1:
        return [0] if first == value else None
    end = len(value) - len(last)
    if end < len(first) or not value.startswith(first) or not value.endswith(last):
        return None
    left = [0]
    position = len(first)
    for piece in pieces[1:-1]:
        position = value.find(piece, position, end)
        if position < 0:
            return None
        left.append(position)
        position += len(piece)
    right = [end]
    for piece in reversed(pieces[1:-1]):
        right.append(value.rfind(piece, 0, right[-1]))
    right.append(0)
    return [a if a == b else None for a, b in zip((*left, end), reversed(right), strict=True)]


def _merged(expressions: Sequence[Expression]) -> Expression:
    different = list(dict.fromkeys(expressions))
    if len(different) == 1:
        return different[0]
    variables = {name for expression in different for name in expression.variables}
    return Expression(" ~ ".join(e.text for e in different), tuple(sorted(variables)))
