"""What templates render to, rendered once more; an expression that comes again only once.

To compile a template takes longer than all else that tracing does, and the templates of a task have
the same few expressions: fifty paths end in ``dt={{ ds }}``. So a template of nothing but text and
``{{ … }}``, in which no expression can change what another one gives, is not compiled. Each of its
expressions is, as a template of its own, once for a task. A test has that both give the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.templates.flow import DATE_VARIABLES, TemplateFlow
from airflow_provider_sparklineage.templates.markers import (
    MARKER,
    EvaluatedSpan,
    Expression,
    Rendering,
    Segment,
    render,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from jinja2 import Environment, nodes
    from jinja2.ext import Extension

log = logger(__name__)


class Again(NamedTuple):
    """A template of which it is known what it uses and, if all went well, what it renders to."""

    dates: tuple[str, ...] = ()
    rendering: Rendering | None = None


class _Expression(NamedTuple):
    """The text between ``{{`` and ``}}``."""

    text: str


class Renderer:
    """Renders the templates of one task once more.

    :param environment: that which rendered them
    :param context: that which they were rendered with; is not changed
    """

    def __init__(self, environment: Environment, context: Mapping[str, Any]) -> None:
        self._environment = environment
        self._context = context
        self._expressions: dict[str, Again] = {}

    def again(self, template: str) -> Again:
        """Render a template once more; never raises."""
        try:
            parts = _parts(template, self._environment)
            return self.whole(template) if parts is None else self._joined(parts)
        except Exception as error:  # whatever a user's template or extension raises
            _log(error)
            return Again()

    def whole(self, template: str) -> Again:
        """Render a template once more, compiled as it is.

        :raise Exception: whatever parsing it raises
        """
        tree = self._environment.parse(template)
        flow = TemplateFlow(tree, self._environment, self._context)
        dates = flow.of(tree).dates
        try:
            if not flow.closed:
                others = _of_others(tree, self._environment, self._context, set())
                dates = tuple(sorted({*dates, *others}))
            return Again(dates, render(tree, template, flow, self._context))
        except Exception as error:  # whatever a user's template, filter or value raises
            _log(error)
            return Again(dates)

    def _joined(self, parts: Sequence[str | _Expression]) -> Again:
        known = [self._of_part(part) for part in parts]
        dates = tuple(sorted({date for part in known for date in part.dates}))
        segments: list[Segment] = []
        unevaluated: list[Expression] = []
        text, evaluated = "", list[EvaluatedSpan]()
        for _, rendering in known:
            if rendering is None:
                return Again(dates)
            first, *others = rendering.segments
            evaluated += [span.moved(len(text)) for span in first.evaluated]
            text += first.text
            for expression, segment in zip(rendering.unevaluated, others, strict=True):
                segments.append(Segment(text, tuple(evaluated)))
                unevaluated.append(expression)
                text, evaluated = segment.text, [*segment.evaluated]
        segments.append(Segment(text, tuple(evaluated)))
        return Again(dates, Rendering(tuple(segments), tuple(unevaluated)))

    def _of_part(self, part: str | _Expression) -> Again:
        if isinstance(part, str):
            return Again((), Rendering((Segment(part, ()),), ()))
        known = self._expressions.get(part.text)
        if known is None:
            known = self._date(part.text) or self._alone(part.text)
            self._expressions[part.text] = known
        return known

    def _date(self, name: str) -> Again | None:
        """Look a date up that is a text, which Jinja would give as it is."""
        environment = self._environment
        if name not in DATE_VARIABLES or environment.autoescape or environment.finalize:
            return None
        value = self._context.get(name)
        if type(value) is not str or not value.isascii():
            return None
        span = EvaluatedSpan(0, len(value), Expression(name, (name,)))
        return Again((name,), Rendering((Segment(value, (span,)),), ()))

    def _alone(self, expression: str) -> Again:
        start, end = self._environment.variable_start_string, self._environment.variable_end_string
        return self.whole(f"{start} {expression} {end}")


def _log(error: Exception) -> None:
    log.debug("A template could not be rendered again to trace it: %s", type(error).__name__)


def _parts(template: str, environment: Environment) -> list[str | _Expression] | None:
    """Take a template apart; None if there is more in it than text and expressions."""
    if MARKER.search(template) or any(map(_changes_texts, environment.extensions.values())):
        return None
    parts: list[str | _Expression] = []
    tokens: list[str] | None = None
    for _, kind, token in environment.lex(template):
        if kind == "variable_begin":
            tokens = []
        elif kind == "variable_end" and tokens is not None:
            parts.append(_Expression("".join(tokens).strip()))
            tokens = None
        elif tokens is not None:
            tokens.append(token)
        elif kind == "data":
            parts.append(token.replace("\n", environment.newline_sequence))
        else:
            return None
    return parts if tokens is None else None


def _changes_texts(extension: Extension) -> bool:
    """Whether an extension may change more than which statements there are."""
    from jinja2.ext import Extension  # a task waits for imports, and has it if it has an extension

    of = type(extension)
    return (
        of.preprocess is not Extension.preprocess or of.filter_stream is not Extension.filter_stream
    )


def _of_others(
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
        yield from _of_others(other, environment, context, seen)
