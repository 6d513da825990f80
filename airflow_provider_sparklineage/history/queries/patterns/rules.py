"""Rules from the points of one axis to the points of another, and relations of several axes.

A relation has two sides. The *given* side has the partitions that a question starts from, e.g.
those that a run wrote; the *found* side has the partitions that follow from them, e.g. those that
the run read. A *given point* or *found point* is a point on an axis of that side.

A rule works both ways: :meth:`Rule.following` leads from a given point to the found points, and
:meth:`Rule.inverse` leads from a found point back to the given points. Each returns a ``range`` or
a short list.

A relation works both ways, too: :class:`Relation` leads from given to found partitions, and
:mod:`.inverse` leads from a found partition to the given ones, e.g. to the partitions to write
after another run has written a partition that the task reads.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import islice, product
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.history.queries.patterns.axes import (
    TEXT,
    Axes,
    Point,
    first_in,
    last_in,
    months_later,
)
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.model.timestamps import start_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence


_FARTHEST = 4_000_000_000
"""A limit for the numbers of all axes of times: 9999 years have fewer minutes."""


class Rule(Frozen, frozen=True):
    """A rule by which points on an axis follow from points on another axis.

    It leads from an axis of the given side to an axis of the found side; the module's docstring
    defines both sides. This base class of all rules is the rule for texts: the found text is the
    same as the given one.

    :param given: unit of the axis of the given partitions
    :param found: unit of the axis of the found partitions
    """

    given: str
    found: str

    kind = "same"
    order = 0
    """A simpler rule has a lower order; it is preferred to others that explain the same runs."""

    def following(self, point: Point) -> Collection[Point]:
        """Map a point of the given side (see the module) to the points that follow from it.

        These are points of the found side.
        """
        return (point,)

    def inverse(self, point: Point) -> Collection[Point] | None:
        """Map a point of the found side (see the module) to the points from which it follows.

        These are points of the given side.

        :return: None if it follows from every point
        """
        return (point,)

    def described(self, label: str) -> str:
        """Describe the rule in a short text.

        :param label: name of the axis from which the rule leads: ``dt``, or ``year/month`` if two
            dimensions form the axis
        """
        return label


class Bound(Frozen, frozen=True):
    """The first or last point of a span.

    :param anchor: unit of the period whose first (last) point this bound is; empty if the bound is
        always the same point
    :param shift: number of such periods from the period that contains the point of the given side;
        if the anchor is empty, the number of the bound's point
    """

    anchor: str
    shift: int


class Span(Rule, frozen=True):
    """A rule: all points between two bounds, which move with the point of the given side.

    If both units and both anchors are equal, the span is the same point, a point n units away, or a
    window of n points. The rules "month of a day" and "days of a month" are spans whose bounds both
    have shift 0.
    """

    first: Bound
    last: Bound

    @property
    def kind(self) -> str:  # type: ignore[override]
        """The kind of the rule, which follows from the units of its axes and from its bounds.

        ========== ==============================================================================
        ``same``   the same point
        ``offset`` one point, some units away: ``dt - 1 day``
        ``window`` a fixed number of points: ``dt - 6 days to dt``
        ``period`` points of a coarser unit, such as the month of a day: ``month of dt``
        ``parts``  points of a finer unit, such as all days of a month: ``days of month``
        ``span``   any other: ``first day of the month of dt to dt``
        ========== ==============================================================================
        """
        shifts = (self.first.shift, self.last.shift)
        if not self.is_plain:
            return "span"
        if self.given != self.found:
            return "period" if self._is_coarser else "parts"
        if shifts == (0, 0):
            return "same"
        return "offset" if shifts[0] == shifts[1] else "window"

    @property
    def order(self) -> int:  # type: ignore[override]
        """The rank of the rule among rules that explain the same runs; the lowest is preferred."""
        return {"same": 0, "offset": 1, "window": 2, "period": 4, "parts": 4, "span": 6}[self.kind]

    @property
    def is_plain(self) -> bool:
        """Whether both bounds have the same anchor: the coarser one of the two axes' units."""
        return self.first.anchor == self.last.anchor and self.first.anchor in (
            self.given,
            self.found,
        )

    @property
    def _is_coarser(self) -> bool:
        return self.first.anchor == self.found

    def following(self, point: Point) -> range:
        """Map a point of the given side (see the module) to the points between the bounds.

        These are points of the found side.

        :return: an empty range outside of the years 1 to 9999
        """
        try:
            return range(self._first(int(point)), self._last(int(point)) + 1)
        except (ValueError, OverflowError):
            return range(0)

    def inverse(self, point: Point) -> range:
        """Map a point of the found side (see the module) to the points whose span contains it.

        These are points of the given side. They are a range, which a bisection finds, because both
        bounds grow with the point of the given side.
        """
        at = int(point)
        return range(_least(lambda n: self._last(n) >= at), _least(lambda n: self._first(n) > at))

    def _first(self, point: int) -> int:
        bound = self.first
        if not bound.anchor:
            return bound.shift
        period = first_in(self.given, point, bound.anchor) + bound.shift
        return first_in(bound.anchor, period, self.found)

    def _last(self, point: int) -> int:
        bound = self.last
        period = last_in(self.given, point, bound.anchor) + bound.shift
        return last_in(bound.anchor, period, self.found)

    def described(self, label: str) -> str:
        """Describe the rule in a short text.

        E.g. ``dt - 1 day``, ``dt - 6 days to dt``, ``month of dt``, ``days of month``.

        :param label: name of the axis from which the rule leads: ``dt``, or ``month`` in the last
            example
        """
        first, last = self.first, self.last
        if self.kind in ("same", "offset"):
            return f"{label}{_shifted(first)}"
        if self.kind == "window":
            return f"{label}{_shifted(first)} to {label}{_shifted(last)}"
        if self.is_plain and first == last:
            named = f"{self.found} of {label}" if self._is_coarser else f"{self.found}s of {label}"
            return f"{named}{_shifted(first)}"
        return f"{self._bound('first', first, label)} to {self._bound('last', last, label)}"

    def _bound(self, which: str, bound: Bound, label: str) -> str:
        if not bound.anchor:
            return _point_text(self.found, bound.shift)
        if bound.anchor in (self.given, self.found):
            return f"{label}{_shifted(bound)}"
        return f"{which} {self.found} of the {bound.anchor} of {label}{_shifted(bound)}"


class Offsets(Rule, frozen=True):
    """A rule: a few points that are not all neighbours, such as a day and the day a week before.

    :param offsets: distances of these points of the found side from the point of the given side
        (see the module), in the unit of the axes
    """

    offsets: tuple[int, ...]

    kind = "offsets"
    order = 3

    def following(self, point: Point) -> Collection[Point]:
        """Give a point of the given side (see the module) plus each offset."""
        return tuple(int(point) + offset for offset in self.offsets)

    def inverse(self, point: Point) -> Collection[Point] | None:
        """Give a point of the found side (see the module) minus each offset."""
        return tuple(int(point) - offset for offset in reversed(self.offsets))

    def described(self, label: str) -> str:
        """Describe the rule in a short text, ``dt - 7 days, dt`` if ``label`` is ``dt``."""
        return ", ".join(f"{label}{_shifted(Bound(self.found, one))}" for one in self.offsets)


class Months(Rule, frozen=True):
    """A rule: the same day some months later, or the last day of a shorter month.

    SQL's ``add_months`` does the same.

    :param months: number of months from the given point to the found point (see the module)
    """

    months: int

    kind = "months"
    order = 5

    def following(self, point: Point) -> Collection[Point]:
        """Give the point some months after a point of the given side (see the module).

        :return: () if outside of the years 1 to 9999
        """
        try:
            return (months_later(self.found, int(point), self.months),)
        except (ValueError, OverflowError):
            return ()

    def inverse(self, point: Point) -> range:
        """Give the points from which a point of the found side (see the module) follows.

        They can be several: if :attr:`months` is 1, then 28 February of a common year follows from
        28, 29, 30 and 31 January. They can also be none: 31 March follows from no day.
        """
        at = int(point)
        later = self.months
        return range(
            _least(lambda n: months_later(self.found, n, later) >= at),
            _least(lambda n: months_later(self.found, n, later) > at),
        )

    def described(self, label: str) -> str:
        """Describe the rule in a short text, ``dt - 1 month`` if ``label`` is ``dt``."""
        return f"{label}{_shifted(Bound('month', self.months))}"


class Constant(Rule, frozen=True):
    """A rule: the same points of the found side follow from each point of the given side.

    The module's docstring defines both sides.
    """

    points: tuple[Point, ...]

    kind = "constant"
    order = 7

    def following(self, point: Point) -> Collection[Point]:
        """Give the rule's own points, for any point of the given side (see the module)."""
        return self.points

    def inverse(self, point: Point) -> Collection[Point] | None:
        """Tell whether a point of the found side (see the module) is one of the rule's own points.

        :return: None if it is, as it follows from every point of the given side; else ()
        """
        return None if point in self.points else ()

    def described(self, label: str) -> str:
        """Describe the rule by its first five points; ``label`` is not used."""
        return f"always {', '.join(_point_text(self.found, one) for one in self.points[:5])}"


class Every(Rule, frozen=True):
    """A rule for an axis of the found side: each point may follow from any given partition.

    The module's docstring defines both sides.
    """

    kind = "every"
    order = 8

    def inverse(self, point: Point) -> Collection[Point] | None:
        """Give None: the point may follow from every point of the given side (see the module)."""
        return None

    def described(self, label: str) -> str:
        """Describe the rule as ``every value``; ``label`` is not used."""
        return "every value"


def _least(holds: Callable[[int], bool]) -> int:
    """Find by bisection the least number for which a condition holds.

    The condition must be false for all smaller numbers, and true for all greater ones.
    """
    low, high = -_FARTHEST, _FARTHEST
    while low < high:
        middle = (low + high) // 2
        try:
            is_enough = holds(middle)
        except (ValueError, OverflowError):  # outside of the years 1 to 9999
            is_enough = middle > 0
        low, high = (low, middle) if is_enough else (middle + 1, high)
    return low


def _shifted(bound: Bound) -> str:
    if not bound.shift:
        return ""
    unit = "" if bound.anchor == "number" else f" {bound.anchor}{'s' * (abs(bound.shift) != 1)}"
    return f" {'-' if bound.shift < 0 else '+'} {abs(bound.shift)}{unit}"


def _point_text(unit: str, point: Point) -> str:
    if unit in (TEXT, "number"):
        return str(point)
    at = start_of(unit, int(point)).isoformat()
    return at[: {"year": 4, "month": 7, "day": 10, "week": 10, "hour": 13}.get(unit, 16)]


Points = tuple[Point, ...]

MOST_CELLS = 100_000
"""Greatest number of partitions in an answer: a wide rule could give too many to be of use."""

WHOLE, NONE = "whole", "none"


class Link(NamedTuple):
    """A rule of a relation, and the axis from which the rule leads."""

    axis: int
    """Index of the axis in :attr:`Relation.given`."""
    rule: Rule


class Relation(Frozen, frozen=True):
    """The relation between given and found partitions (see the module).

    It has a rule for each axis of the found side.

    :param given: axes of the given partitions, e.g. those that a run wrote
    :param found: axes of the found partitions, e.g. those that the run read
    :param links: a link for each axis of ``found``, in the order of the axes
    :param special: ``whole`` if the found side is the whole dataset, ``none`` if no rule is known;
        then there are no links
    """

    given: Axes
    found: Axes
    links: tuple[Link, ...] = ()
    special: str = ""

    @property
    def kind(self) -> str:
        """The kind of the relation: the kind of the rule of one axis.

        The first rule of times or numbers that is not ``same``, ``constant`` or ``every`` decides;
        else the first rule of times or numbers; else the first rule.
        """
        if self.special:
            return self.special
        timed = [link.rule for link in self.links if link.rule.found != TEXT]
        rules = [rule for rule in timed if rule.kind not in ("same", "constant", "every")]
        rules = rules or timed or [link.rule for link in self.links]
        return rules[0].kind if rules else WHOLE

    @property
    def kept(self) -> tuple[int, ...]:
        """The indexes of the axes of ``found`` whose rule is not :class:`Every`."""
        return tuple(n for n, link in enumerate(self.links) if not isinstance(link.rule, Every))

    @property
    def dependent(self) -> tuple[int, ...]:
        """The indexes of the axes of ``found`` whose points depend on the given partitions.

        Their rule is neither :class:`Constant` nor :class:`Every`.
        """
        return tuple(n for n in self.kept if not isinstance(self.links[n].rule, Constant))

    def described(self) -> str:
        """Describe the relation in a short text: ``dt = dt - 1 day, region = region``."""
        if self.special or not self.links:
            return {NONE: "no rule"}.get(self.special, "the whole dataset")
        each = zip(self.found.axes, self.links, strict=True)
        return ", ".join(
            f"{'/'.join(axis.labels)} = {link.rule.described(self.label(link))}"
            for axis, link in each
        )

    def label(self, link: Link) -> str:
        """Name the axis from which a link leads: ``dt``, ``year/month``; "" if there is no axis."""
        axes = self.given.axes
        return "/".join(axes[link.axis].labels) if axes else ""

    def boxes(self, given: Iterable[Points]) -> list[tuple[Collection[Point], ...]]:
        """Apply the rules to given points (see the module); return the found points as boxes.

        A box has a set of points for each axis of :attr:`kept`, and stands for all combinations of
        these points. Boxes with ranges that differ on one axis only are merged; others may overlap.
        """
        links = [self.links[n] for n in self.kept]
        axes = [link.axis for link in links]
        distinct = dict.fromkeys(tuple(points[n] for n in axes) for points in given)
        each = (
            tuple(link.rule.following(at) for link, at in zip(links, points, strict=True))
            for points in distinct
        )
        if len(axes) == 1:
            return [(merged,) for merged in _merged(box[0] for box in each)]
        boxes = [box for box in dict.fromkeys(each) if all(box)]
        for n, link in enumerate(links):
            # Only these ranges can overlap, and to merge others first could keep them apart.
            if isinstance(link.rule, Span) and any(len(box[n]) > 1 for box in boxes):
                boxes = _merged_along(n, boxes)
        return boxes

    def on_kept(self, found: Iterable[Points]) -> Iterable[Points]:
        """Reduce found points (see the module) to their coordinates on the axes of :attr:`kept`."""
        kept = self.kept
        if len(kept) == len(self.links):
            return found
        return (tuple(points[n] for n in kept) for points in found)


def product_of(boxes: Iterable[Sequence[Collection[Point]]]) -> Iterator[Points]:
    """Yield all combinations of one point from each set of a box, for each of the boxes.

    :return: at most :data:`MOST_CELLS` combinations
    """
    return islice((points for box in boxes for points in product(*box)), MOST_CELLS)


def _merged(sets: Iterable[Collection[Point]]) -> list[Collection[Point]]:
    """Join ranges that overlap or touch, and join all other sets into one set."""
    ranges, points = [], set()
    for one in sets:
        if isinstance(one, range):
            ranges.append(one)
        else:
            points |= set(one)
    joined: list[Collection[Point]] = [points] if points else []
    for one in sorted((r for r in ranges if r), key=lambda r: r.start):
        last = joined[-1] if joined else None
        if isinstance(last, range) and one.start <= last.stop:
            joined[-1] = range(last.start, max(last.stop, one.stop))
        else:
            joined.append(one)
    return joined


def _merged_along(
    axis: int, boxes: Iterable[tuple[Collection[Point], ...]]
) -> list[tuple[Collection[Point], ...]]:
    """Join boxes that differ only on one axis, as far as their ranges on this axis can be joined.

    :param axis: index of this axis
    :param boxes: boxes as :meth:`Relation.boxes` gives them
    """
    ranges = defaultdict(list)
    for box in boxes:
        ranges[box[:axis], box[axis + 1 :]].append(box[axis])
    return [
        (*before, joined, *after)
        for (before, after), on_axis in ranges.items()
        for joined in _merged(on_axis)
    ]
