"""Where the segments of a template's rendering are in the real text; some parts are unevaluated."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class Expression(NamedTuple):
    """An output expression of a template, or several that cannot be separated in its text.

    :param text: as it is in the template, e.g. ``macros.ds_add(ds, -6)``
    :param variables: the context variables that it uses, sorted
    """

    text: str
    variables: tuple[str, ...]


class EvaluatedSpan(NamedTuple):
    """Characters ``[start, end)``, and the expression that gave them."""

    start: int
    end: int
    expression: Expression

    def moved(self, by: int) -> EvaluatedSpan:
        """Give the same ``by`` characters further on."""
        return EvaluatedSpan(self.start + by, self.end + by, self.expression)


class Segment(NamedTuple):
    """Text between two unevaluated expressions, and which expressions gave which part of it."""

    text: str
    evaluated: tuple[EvaluatedSpan, ...]


class Rendering(NamedTuple):
    """What a template renders to, as far as it could be rendered again.

    :param segments: the text before the first unevaluated expression, …, after the last
    :param unevaluated: the expressions between each two segments
    """

    segments: tuple[Segment, ...]
    unevaluated: tuple[Expression, ...]

    def align(self, value: str) -> tuple[EvaluatedSpan, ...] | None:
        """Find which characters of the real text expressions gave; None if the text is another.

        If a segment could start at several positions (a ``/`` between two unevaluated
        expressions), it and the expressions on both sides become one, joined with ``~``.
        """
        starts = _starts([segment.text for segment in self.segments], value)
        if starts is None:
            return None
        evaluated: list[EvaluatedSpan] = list(self.segments[0].evaluated)
        end = len(self.segments[0].text)
        unknown: list[Expression] = []
        for expression, segment, start in zip(
            self.unevaluated, self.segments[1:], starts[1:], strict=True
        ):
            unknown.append(expression)
            if start is None:
                unknown += [m.expression for m in segment.evaluated]
                continue
            evaluated.append(EvaluatedSpan(end, start, _merged(unknown)))
            evaluated += [m.moved(start) for m in segment.evaluated]
            end = start + len(segment.text)
            unknown.clear()
        return tuple(evaluated)


def _starts(segments: Sequence[str], value: str) -> list[int | None] | None:
    """Find where each segment starts in a text, in this order; None if it may be at several.

    The leftmost and the rightmost start bound all others: if they are equal, there is one only.

    >>> _starts(["s3://", "/dt=", ""], "s3://lake/dt=5")
    [0, 9, 14]
    """
    first, last = segments[0], segments[-1]
    if len(segments) == 1:
        return [0] if first == value else None
    end = len(value) - len(last)
    if end < len(first) or not value.startswith(first) or not value.endswith(last):
        return None
    left = [0]
    position = len(first)
    for segment in segments[1:-1]:
        position = value.find(segment, position, end)
        if position < 0:
            return None
        left.append(position)
        position += len(segment)
    right = [end]
    for segment in reversed(segments[1:-1]):
        right.append(value.rfind(segment, 0, right[-1]))
    right.append(0)
    return [a if a == b else None for a, b in zip((*left, end), reversed(right), strict=True)]


def _merged(expressions: Sequence[Expression]) -> Expression:
    different = list(dict.fromkeys(expressions))
    if len(different) == 1:
        return different[0]
    variables = {name for expression in different for name in expression.variables}
    return Expression(" ~ ".join(e.text for e in different), tuple(sorted(variables)))
