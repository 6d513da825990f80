"""A template rendered once more, with a marker before and after the result of each expression.

Markers are put into the syntax tree as if they were text of the template. They are characters of
Unicode's private planes, a pair for each expression, so filters around them (``upper``,
``replace``) do not change them. If a filter's result depends on the markers, the text differs from
the text that Airflow rendered, and
:meth:`~airflow_provider_sparklineage.templates.markers.Rerendered.align` notices the difference.

An expression that must not be evaluated again is called *unevaluated*. Its result is the part of
the real text, the text that Airflow rendered, between the known segments on both sides.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from jinja2 import meta, nodes

from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.templates.flow import DATE_VARIABLES, TemplateFlow, of_kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from jinja2 import Environment

log = logger(__name__)


# --- the places of a rendering's segments in the real text ----------------------------------------


class Expression(NamedTuple):
    """An output expression of a template, or several whose results cannot be distinguished.

    :param text: the expression's text in the template, e.g. ``macros.ds_add(ds, -6)``
    :param variables: the context variables that the expression uses, sorted
    """

    text: str
    variables: tuple[str, ...]


class Span(Frozen, frozen=True):
    """Characters ``[start, end)`` of a text that come from one expression.

    :param expression: the expression's text in the template, e.g. ``macros.ds_add(ds, -6)``;
        several expressions that cannot be separated are joined with ``~``
    :param variables: all context variables that the expression uses, also through ``set``,
        ``for`` and macros, sorted; ``dag_run`` with its attribute, as in ``dag_run.logical_date``
    """

    start: int
    end: int
    expression: str
    variables: tuple[str, ...]

    @property
    def dates(self) -> tuple[str, ...]:
        """The variables that are execution dates."""
        return tuple(name for name in self.variables if name in DATE_VARIABLES)

    def within(self, start: int, end: int) -> Span | None:
        """Give the part of the span that is in the characters ``[start, end)`` of the text.

        :return: a span whose positions count from ``start``; None if no character is in both
        """
        first, last = max(self.start, start), min(self.end, end)
        if first >= last:
            return None
        return Span(first - start, last - start, self.expression, self.variables)


class Segment(NamedTuple):
    """A text between two unevaluated expressions, with the spans of evaluated expressions."""

    text: str
    spans: tuple[Span, ...]


class Rerendered(NamedTuple):
    """The result of rendering a template again, without its unevaluated expressions.

    :param dates: date variables that the template uses, also by way of templates that it includes
    :param segments: the texts before, between and after the unevaluated expressions; empty if the
        rendering might have had side effects, or failed
    :param unevaluated: the unevaluated expressions, one between each two segments
    """

    dates: tuple[str, ...] = ()
    segments: tuple[Segment, ...] = ()
    unevaluated: tuple[Expression, ...] = ()

    def align(self, value: str) -> tuple[Span, ...] | None:
        """Find the spans of all expressions in the real text.

        If a segment could start at several positions (a ``/`` between two unevaluated
        expressions), the segment and the expressions on both sides become one span, whose
        expressions are joined with ``~``.

        :param value: the real text
        :return: None if the real text does not have the segments in this order
        """
        starts = self.segments and _starts([segment.text for segment in self.segments], value)
        if not starts:
            return None
        spans = list(self.segments[0].spans)
        end = len(self.segments[0].text)
        unknown: list[Expression] = []
        for expression, segment, start in zip(
            self.unevaluated, self.segments[1:], starts[1:], strict=True
        ):
            unknown.append(expression)
            if start is None:
                unknown += [Expression(s.expression, s.variables) for s in segment.spans]
                continue
            spans.append(Span(end, start, *_merged(unknown)))
            spans += [
                Span(s.start + start, s.end + start, s.expression, s.variables)
                for s in segment.spans
            ]
            end = start + len(segment.text)
            unknown.clear()
        return tuple(spans)


def _starts(segments: Sequence[str], value: str) -> list[int | None] | None:
    """Find where each segment starts in the text ``value``; None for one with several places.

    If the leftmost and the rightmost start of a segment are equal, it has only one place. If the
    text does not have all segments in their order, the function returns None in place of the list.

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


def rerendered(template: str, environment: Environment, context: Mapping[str, Any]) -> Rerendered:
    """Render a template once more; never raises.

    :param environment: the environment that rendered the template
    :param context: the context that the template was rendered with; it is not changed
    """
    dates: tuple[str, ...] = ()
    try:
        tree = environment.parse(template)
        flow = TemplateFlow(tree, environment, context)
        dates = flow.flow_into(tree).dates
        if not flow.closed:
            others = _dates_of_others(tree, environment, context, set())
            return Rerendered(tuple(sorted({*dates, *others})))
        marker = _Marker(flow, _texts(template, flow, environment))
        if not marker.insert() or not flow.flow_into(tree).repeatable:
            return Rerendered(dates)
        code = environment.compile(tree)
        compiled = environment.template_class.from_code(
            environment, code, environment.make_globals(None)
        )
        # As Airflow does, because Template.render() would copy the context to a dict, and so fetch
        # its lazy values
        values = {**compiled.globals, **context}
        frame = environment.context_class(environment, values, None, compiled.blocks)
        marked = "".join(map(str, compiled.root_render_func(frame)))
        return Rerendered(dates, *marker.read(marked))
    except (Exception, SystemExit) as error:  # of a template, extension, filter or value of a user
        log.debug("A template could not be rendered again to trace it: %s", type(error).__name__)
        return Rerendered(dates)


def _dates_of_others(
    tree: nodes.Template, environment: Environment, context: Mapping[str, Any], seen: set[str]
) -> Iterator[str]:
    """Yield the date variables of the templates that a template includes, imports or extends.

    :param tree: the syntax tree of the template
    :param environment: as for :func:`rerendered`
    :param context: as for :func:`rerendered`
    :param seen: names of templates that were visited; the function adds those that it visits
    """
    for name in meta.find_referenced_templates(tree):
        if name is None or name in seen or environment.loader is None:
            continue
        seen.add(name)
        other = environment.parse(environment.loader.get_source(environment, name)[0])
        yield from TemplateFlow(other, environment, context).flow_into(other).dates
        yield from _dates_of_others(other, environment, context, seen)


_OPEN, _CLOSE = 0xF0000, 0x100000
MARKER = re.compile("([\U000f0000-\U0010ffff])")
# Nodes whose text is passed to a filter, a macro or a name before it is output. If an unevaluated
# expression were in such a node, less text would be passed on than in the real rendering.
_INDIRECT: tuple[type[nodes.Node], ...] = (
    nodes.AssignBlock,
    nodes.CallBlock,
    nodes.FilterBlock,
    nodes.Macro,
)


class _Marker:
    """Puts markers into the syntax tree of a template, and finds them in the rendered text."""

    def __init__(self, flow: TemplateFlow, texts: Iterable[str]) -> None:
        self._flow = flow
        self._texts = iter(texts)
        self._expressions: list[Expression] = []
        self._unevaluated: set[int] = set()

    def insert(self) -> bool:
        """Put the markers into the tree, and return whether the tree can be rendered.

        It cannot if an unevaluated expression is in a block or macro (:data:`_INDIRECT`). If there
        are more expressions than markers, :meth:`read` finds no pairs and gives no segments.
        """
        for assign in of_kind(self._flow.nodes, nodes.Assign):
            if not self._flow.flow_into(assign.node).repeatable:
                assign.node = nodes.Const(None)  # expressions that use it are unevaluated, too
        blocks = of_kind(self._flow.nodes, _INDIRECT)
        indirect = {id(output) for block in blocks for output in block.find_all(nodes.Output)}
        for output in of_kind(self._flow.nodes, nodes.Output):
            before = len(self._unevaluated)
            marked: list[nodes.Expr] = []
            for child in output.nodes:
                if isinstance(child, nodes.TemplateData):
                    marked.append(child)
                    continue
                text = next(self._texts, "")
                for part in _parts(child):
                    marked += self._marked(part, text)
            output.nodes = marked
            if len(self._unevaluated) > before and id(output) in indirect:
                return False
        return True

    def _marked(self, part: nodes.Expr, text: str) -> list[nodes.Expr]:
        flow = self._flow.flow_into(part)
        if isinstance(part, nodes.Const) or (flow.repeatable and self._is_template_text(part)):
            return [part]
        number = len(self._expressions)
        self._expressions.append(Expression(text or ", ".join(flow.variables), flow.variables))
        if not flow.repeatable:
            self._unevaluated.add(number)
        inner = [part] if flow.repeatable else []
        start, end = (
            nodes.TemplateData(chr(base + number), lineno=part.lineno, environment=part.environment)
            for base in (_OPEN, _CLOSE)
        )
        return [start, *inner, end]

    def _is_template_text(self, part: nodes.Expr) -> bool:
        """Whether ``part`` is the text of a macro or block, which has its own markers."""
        if isinstance(part, nodes.Name):
            return part.name in self._flow.blocks
        if not isinstance(part, nodes.Call) or not isinstance(part.node, nodes.Name):
            return False
        return part.node.name == "caller" or part.node.name in self._flow.macros

    def read(self, marked: str) -> tuple[tuple[Segment, ...], tuple[Expression, ...]]:
        """Remove the markers from a rendered text.

        :return: the segments and the unevaluated expressions; both are empty if the markers in the
            text do not form pairs
        """
        segments: list[Segment] = []
        unevaluated: list[Expression] = []
        spans: list[Span] = []
        opened: list[tuple[int, int]] = []  # the expression's number, and the count of spans before
        text, start = "", 0
        for token in MARKER.split(marked):
            if not MARKER.match(token):
                text += token
                continue
            closes, number = divmod(ord(token) - _OPEN, _CLOSE - _OPEN)
            is_wrong = closes and (not opened or opened[-1][0] != number)
            if is_wrong or number >= len(self._expressions):
                return (), ()
            if opened and (len(text) > start or (closes and len(spans) == opened[-1][1])):
                spans.append(Span(start, len(text), *self._expressions[opened[-1][0]]))
            start = len(text)
            if not closes:
                opened.append((number, len(spans)))
                continue
            opened.pop()
            if number in self._unevaluated:
                if opened:
                    return (), ()
                segments.append(Segment(text, tuple(spans[:-1])))
                unevaluated.append(self._expressions[number])
                spans, text, start = [], "", 0
        segments.append(Segment(text, tuple(spans)))
        return ((), ()) if opened else (tuple(segments), tuple(unevaluated))


def _parts(expression: nodes.Expr) -> Iterator[nodes.Expr]:
    """Yield the operands of a concatenation of texts; for any other expression, the expression.

    The operands, output one after the other, give the same text as the concatenation.
    """
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


def _texts(template: str, flow: TemplateFlow, environment: Environment) -> list[str]:
    """Give the source text of each output expression of the template, in order.

    :param flow: the flow of the same template, which has its nodes
    :param environment: the environment that reads the template

    :return: [] if the numbers of texts and of expressions differ
    """
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
    outputs = (n for output in of_kind(flow.nodes, nodes.Output) for n in output.nodes)
    count = sum(not isinstance(node, nodes.TemplateData) for node in outputs)
    return texts if count == len(texts) else []
