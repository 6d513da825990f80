"""A template rendered once more, with a marker before and after what each expression gives.

Markers are put into the syntax tree as if they were text of the template. They are characters of
Unicode's private planes, one per expression: filters around them (``upper``, ``replace``) leave
them as they are. If a filter changes more than that, the text between the markers is not the real
one, which :meth:`~airflow_provider_sparklineage.templates.markers.Rendering.align` sees.

An expression that must not be evaluated again stays *unevaluated*. Its text is what the real text
has between the known segments on both sides.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from jinja2 import nodes

from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.templates.flow import TemplateFlow

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from jinja2 import Environment

log = logger(__name__)


# --- where the segments of a rendering are in the real text; some parts are unevaluated -----------


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


# --- rendering ------------------------------------------------------------------------------------


class Rerendered(NamedTuple):
    """A template that was rendered once more.

    :param dates: date variables that it uses, also by way of templates that it includes
    :param rendering: None if it could not be rendered without a risk, or failed
    """

    dates: tuple[str, ...] = ()
    rendering: Rendering | None = None


def rerendered(template: str, environment: Environment, context: Mapping[str, Any]) -> Rerendered:
    """Render a template once more; never raises.

    :param environment: that which rendered it
    :param context: that which it was rendered with; is not changed
    """
    dates: tuple[str, ...] = ()
    try:
        tree = environment.parse(template)
        flow = TemplateFlow(tree, environment, context)
        dates = flow.of(tree).dates
        if not flow.closed:
            others = _dates_of_others(tree, environment, context, set())
            dates = tuple(sorted({*dates, *others}))
        return Rerendered(dates, render(tree, template, flow, context))
    except Exception as error:  # raised by a template, extension, filter or value of the user's own
        log.debug("A template could not be rendered again to trace it: %s", type(error).__name__)
        return Rerendered(dates)


def _dates_of_others(
    tree: nodes.Template, environment: Environment, context: Mapping[str, Any], seen: set[str]
) -> Iterator[str]:
    """Yield the date variables of the templates that one includes, imports or extends."""
    from jinja2 import meta  # few templates have others, and a task waits for imports

    for name in meta.find_referenced_templates(tree):
        if name is None or name in seen or environment.loader is None:
            continue
        seen.add(name)
        other = environment.parse(environment.loader.get_source(environment, name)[0])
        yield from TemplateFlow(other, environment, context).of(other).dates
        yield from _dates_of_others(other, environment, context, seen)


_OPEN, _CLOSE = 0xF0000, 0x100000
MARKER = re.compile("([\U000f0000-\U0010ffff])")
# The text in these is input of something else before it is output: an unevaluated expression would
# give that something less text than it had.
_INDIRECT: tuple[type[nodes.Node], ...] = (
    nodes.AssignBlock,
    nodes.CallBlock,
    nodes.FilterBlock,
    nodes.Macro,
)


def render(
    tree: nodes.Template, template: str, flow: TemplateFlow, context: Mapping[str, Any]
) -> Rendering | None:
    """Render a template once more, without what must not be repeated; None if that is of no use.

    :param tree: the parsed template; is changed
    :raises Exception: whatever rendering raises
    """
    environment: Environment = tree.environment  # type: ignore[assignment]  # set by the parser
    if not flow.closed:
        return None
    marker = _Marker(flow, _texts(template, flow, environment))
    if not marker.insert() or not flow.of(tree).repeatable:
        return None
    code = environment.compile(tree)
    compiled = environment.template_class.from_code(
        environment, code, environment.make_globals(None)
    )
    # As Airflow does it: Template.render() would copy the context into a dict and fetch lazy values
    values = {**compiled.globals, **context}
    frame = environment.context_class(environment, values, None, compiled.blocks)
    marked = "".join(map(str, compiled.root_render_func(frame)))
    return marker.read(marked)


class _Marker:
    """Puts markers into a tree, and reads them from the text that it renders to."""

    def __init__(self, flow: TemplateFlow, texts: Sequence[str] | None) -> None:
        self._flow = flow
        self._texts = texts
        self._expressions: list[Expression] = []
        self._unevaluated: set[int] = set()

    def insert(self) -> bool:
        """Put the markers in; False if an unevaluated expression is where it must not be.

        With more expressions than a plane has characters, the markers do not pair up.
        """
        for assign in self._flow.nodes.of(nodes.Assign):
            if not self._flow.of(assign.node).repeatable:
                assign.node = nodes.Const(None)  # nothing that uses it will be evaluated either
        blocks = [block for kind in _INDIRECT for block in self._flow.nodes.of(kind)]
        indirect = {id(output) for block in blocks for output in block.find_all(nodes.Output)}
        texts = iter(self._texts or ())
        for output in self._flow.nodes.of(nodes.Output):
            before = len(self._unevaluated)
            marked: list[nodes.Expr] = []
            for child in output.nodes:
                if isinstance(child, nodes.TemplateData):
                    marked.append(child)
                    continue
                text = next(texts, None)
                for part in _parts(child):
                    marked += self._marked(part, text)
            output.nodes = marked
            if len(self._unevaluated) > before and id(output) in indirect:
                return False
        return True

    def _marked(self, part: nodes.Expr, text: str | None) -> list[nodes.Expr]:
        flow = self._flow.of(part)
        if isinstance(part, nodes.Const) or (flow.repeatable and self._is_template_text(part)):
            return [part]
        number = len(self._expressions)
        self._expressions.append(Expression(text or ", ".join(flow.variables), flow.variables))
        if not flow.repeatable:
            self._unevaluated.add(number)
        inner = [part] if flow.repeatable else []
        start, end = (_data(chr(base + number), part) for base in (_OPEN, _CLOSE))
        return [start, *inner, end]

    def _is_template_text(self, part: nodes.Expr) -> bool:
        """Whether it is what a macro or block gives: then the markers in it show more."""
        if isinstance(part, nodes.Name):
            return part.name in self._flow.blocks
        if not isinstance(part, nodes.Call) or not isinstance(part.node, nodes.Name):
            return False
        return part.node.name == "caller" or part.node.name in self._flow.macros

    def read(self, marked: str) -> Rendering | None:
        """Take the markers out of a rendered text; None if they are not as they were put in."""
        segments: list[Segment] = []
        unevaluated: list[Expression] = []
        evaluated: list[EvaluatedSpan] = []
        opened: list[tuple[int, int]] = []  # number, and how many spans there were before it
        text, start = "", 0
        for token in MARKER.split(marked):
            if not MARKER.match(token):
                text += token
                continue
            closes, number = divmod(ord(token) - _OPEN, _CLOSE - _OPEN)
            if number >= len(self._expressions) or (closes and _top(opened) != number):
                return None
            if opened and (len(text) > start or (closes and len(evaluated) == opened[-1][1])):
                evaluated.append(EvaluatedSpan(start, len(text), self._expressions[opened[-1][0]]))
            start = len(text)
            if not closes:
                opened.append((number, len(evaluated)))
                continue
            opened.pop()
            if number in self._unevaluated:
                if opened:
                    return None
                segments.append(Segment(text, tuple(evaluated[:-1])))
                unevaluated.append(self._expressions[number])
                evaluated, text, start = [], "", 0
        segments.append(Segment(text, tuple(evaluated)))
        return None if opened else Rendering(tuple(segments), tuple(unevaluated))


def _top(opened: Sequence[tuple[int, int]]) -> int | None:
    return opened[-1][0] if opened else None


def _parts(expression: nodes.Expr) -> Iterator[nodes.Expr]:
    """Yield what a concatenation of texts is made of: its parts output one by one are the same."""
    if isinstance(expression, nodes.Concat):
        for node in expression.nodes:
            yield from _parts(node)
    elif isinstance(expression, nodes.Add) and _is_text(expression):
        yield from _parts(expression.left)
        yield from _parts(expression.right)
    else:
        yield expression


def _is_text(node: nodes.Node) -> bool:
    if isinstance(node, nodes.Add):
        return _is_text(node.left) or _is_text(node.right)
    return isinstance(node, nodes.Concat) or (
        isinstance(node, nodes.Const) and isinstance(node.value, str)
    )


def _data(text: str, like: nodes.Node) -> nodes.TemplateData:
    return nodes.TemplateData(text, lineno=like.lineno, environment=like.environment)


def _texts(template: str, flow: TemplateFlow, environment: Environment) -> list[str] | None:
    """Give the template's text of each output expression, in order; None if they do not pair up."""
    texts: list[str] = []
    current: list[str] | None = None
    for _, kind, token in environment.lex(template):
        if kind == "variable_begin":
            current = []
        elif kind == "variable_end" and current is not None:
            texts.append("".join(current).strip())
            current = None
        elif current is not None:
            current.append(token)
    outputs = flow.nodes.of(nodes.Output)
    count = sum(not isinstance(n, nodes.TemplateData) for output in outputs for n in output.nodes)
    return texts if count == len(texts) else None
