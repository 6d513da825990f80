"""Traces of rendered templates, which show from which execution dates their characters come.

For the template ``s3://lake/orders/dt={{ ds }}`` and the text that Airflow rendered, the trace is::

    TracedText(
        field="application_args[1]",
        template="s3://lake/orders/dt={{ ds }}",
        value="s3://lake/orders/dt=2024-05-06",
        spans=(Span(start=20, end=30, expression="ds", variables=("ds",)),),
        variables=("ds",),
    )

Tracing never changes the rendered value, repeats no side effect and never raises. A trace has spans
only if rendering the template once more gives exactly the same text. Otherwise it has only the date
variables that the template uses.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Set
from dataclasses import fields, is_dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.templates.flow import DATE_VARIABLES
from airflow_provider_sparklineage.templates.markers import Span, rerendered

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jinja2 import Environment

    from airflow_provider_sparklineage.templates.markers import Rerendered

__all__ = ["DATE_VARIABLES", "Span", "TracedText", "Tracer"]

log = logger(__name__)

_CONTAINERS = (list, tuple, set, frozenset, dict)


class TracedText(Frozen, frozen=True):
    """A rendered text, and the known sources of its characters.

    :param field: the place of the text: ``application_args[5]``, ``conf[spark.x.y]``,
        ``env_vars[DAY]``, ``reads[0].partitions[dt]``
    :param template: the text before rendering; equal to ``value`` if the text was not a template
    :param value: the text that Airflow rendered
    :param spans: spans of expressions, in order and without overlap; all other characters are the
        template's own text, unless there are no spans (see ``variables``)
    :param variables: date variables used anywhere in the template, also in its conditions; with
        variables and no spans, it is not known which characters come from them
    """

    field: str
    template: str
    value: str
    spans: tuple[Span, ...] = ()
    variables: tuple[str, ...] = ()


class Tracer:
    """Traces the rendered texts of one task back to their templates.

    :param environment: the environment that rendered the templates; its filters, delimiters and
        undefined type change the result
    :param context: the context that the templates were rendered with; it is not changed
    """

    def __init__(self, environment: Environment, context: Mapping[str, Any]) -> None:
        self._rerendered = partial(rerendered, environment=environment, context=context)

    def trace(self, field: str, template: str, rendered: object) -> TracedText:
        """Trace one rendered template; never raises.

        :param field: the place of the text, as in :class:`TracedText`
        :param rendered: the value that Airflow rendered; if native rendering gave a value that is
            not a text, its ``str()`` is traced
        """
        try:
            value = str(rendered)
        except Exception:  # native rendering may give an object of the user's own
            return TracedText(field, template, "")
        if value == template:  # it was not a template, or was not rendered, as in expanded XComs
            return TracedText(field, template, value)
        rerendering = self._rerendered(template)
        spans = rerendering.align(value) or ()
        if not spans and isinstance(rendered, str):
            [(_, _, spans)] = _leaves(rerendering, field, rendered)
        return TracedText(field, template, value, spans, rerendering.dates)

    def trace_all(self, field: str, template: object, rendered: object) -> list[TracedText]:
        """Trace all texts in nested lists, tuples, sets, dicts and dataclasses; never raises.

        The templates and the rendered values are walked together. If the template of a text is not
        known, because it was an XComArg or the shapes differ, the trace has the text itself as its
        template. Other leaves (numbers, None, assets) are left out. Keys of dicts are never
        rendered, so they are part of the field's name; elements of sets are sorted.

        :param field: the place of the outermost value, e.g. ``conf``
        :return: [] if an object of the user's code raises an error
        """
        try:
            return list(self._pairs(field, template, rendered))
        except Exception:  # a cycle, or an __eq__ or __getattr__ of the user's code that raises
            log.debug("The templates in %s could not be traced", field, exc_info=True)
            return []

    def _pairs(self, field: str, template: object, rendered: object) -> Iterator[TracedText]:
        """Yield the traces of one or more templates, with the parameters of :meth:`trace_all`."""
        if isinstance(template, str) and isinstance(rendered, _CONTAINERS):
            rerendering = self._rerendered(template)
            for name, leaf, spans in _leaves(rerendering, field, rendered):
                yield TracedText(name, template, leaf, spans, rerendering.dates)
        elif isinstance(template, str):
            yield self.trace(field, template, rendered)
        elif isinstance(template, (set, frozenset)) and isinstance(rendered, (set, frozenset)):
            yield from self._of_set(field, template, rendered)
        else:
            ours, theirs = list(_items(field, template)), list(_items(field, rendered))
            if not _alike(template, rendered) or [n for n, _ in ours] != [n for n, _ in theirs]:
                yield from _untraced(field, rendered)
                return
            for (name, value), (_, rendered_value) in zip(ours, theirs, strict=True):
                yield from self._pairs(name, value, rendered_value)

    def _of_set(
        self, field: str, template: Set[object], rendered: Set[object]
    ) -> Iterator[TracedText]:
        """Yield the traces of a set's elements, each with the template that renders to it.

        A set has no order by which its templates and its rendered elements could be paired. The
        parameters are those of :meth:`trace_all`.
        """
        templates = sorted(t for t in template if isinstance(t, str) and t not in rendered)
        each = {t: self._rerendered(t) for t in templates}
        for name, value in _items(field, rendered):
            if not isinstance(value, str) or value in template:
                yield from _untraced(name, value)
                continue
            aligned = ((t, one.align(value)) for t, one in each.items())
            fit = [(t, spans) for t, spans in aligned if spans is not None]
            if len(fit) == 1:
                [(own, spans)] = fit
                yield TracedText(name, own, value, spans, each[own].dates)
            else:
                dates = {date for one in each.values() for date in one.dates}
                yield TracedText(name, value, value, (), tuple(sorted(dates)))


def _leaves(
    rerendering: Rerendered, field: str, rendered: object
) -> Iterator[tuple[str, str, tuple[Span, ...]]]:
    """Yield the texts in the value that native rendering made, each with its field and spans.

    Native rendering reads the rendered text as a Python literal. The texts are in the literal in
    the same order, in quotes; a text with escapes is not found in the literal, and has no spans.

    :param rerendering: the template of the value, rendered once more
    :param field: the place of the value
    :return: triples of field, text and spans
    """
    text = ""
    spans: tuple[Span, ...] = ()
    if len(rerendering.segments) == 1:
        [segment] = rerendering.segments
        if _evaluates(segment.text, rendered):
            text, spans = segment
    end = 0
    for name, leaf in _texts(field, rendered):
        quoted = [text.find(f"{quote}{leaf}{quote}", end) + 1 for quote in "'\""]
        start = min((position for position in quoted if position), default=None)
        if start is not None:
            end = start + len(leaf)
        if name is not None:
            within = [span.within(start, end) for span in spans] if start is not None else ()
            yield name, leaf, tuple(span for span in within if span)


def _evaluates(text: str, rendered: object) -> bool:
    """Whether native rendering converts ``text`` to the rendered value."""
    if text == str(rendered):
        return True
    try:
        return bool(ast.literal_eval(text) == rendered)
    except Exception:  # the text is not a literal or is nested too deep, or a __eq__ raises
        return False


def _untraced(field: str, rendered: object) -> Iterator[TracedText]:
    return (
        TracedText(name, leaf, leaf) for name, leaf in _texts(field, rendered) if name is not None
    )


def _texts(field: str, value: object) -> Iterator[tuple[str | None, str]]:
    """Yield pairs of field and text for all texts in a value; the field of a dict's key is None."""
    if isinstance(value, str):
        yield field, value
        return
    for name, item in _items(field, value):
        if isinstance(value, Mapping):
            key = name[len(field) + 1 : -1]
            yield None, key
        yield from _texts(name, item)


def _items(field: str, value: object) -> Iterator[tuple[str, object]]:
    """Yield pairs of field and item for a container's items; nothing for any other value."""
    if isinstance(value, Mapping):
        yield from ((f"{field}[{key}]", item) for key, item in value.items())
    elif isinstance(value, (list, tuple, set, frozenset)):
        ordered = value if isinstance(value, (list, tuple)) else sorted(value, key=str)
        yield from ((f"{field}[{position}]", item) for position, item in enumerate(ordered))
    elif is_dataclass(value) and not isinstance(value, type):
        for own in fields(value):
            item = getattr(value, own.name)
            # A rendered declaration has the unrendered declaration in its field ``template``.
            if own.name != "template" or not (item is None or isinstance(item, type(value))):
                yield f"{field}.{own.name}", item


def _alike(template: object, rendered: object) -> bool:
    """Whether a rendered value has a type that can result from this template.

    For a template in a subclass of list or dict, Airflow gives a plain list or dict.
    """
    return type(template) is type(rendered) or any(
        isinstance(template, kind) and isinstance(rendered, kind) for kind in (list, tuple, Mapping)
    )
