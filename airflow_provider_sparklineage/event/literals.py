"""Hiding of the literals in filters and descriptions, for users who want none in the backend."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, assert_never

from msgspec.structs import replace

from airflow_provider_sparklineage.lineage.columns.edges import ColumnLineage, changed, mapped
from airflow_provider_sparklineage.lineage.partitions.selection import Selected, extent
from airflow_provider_sparklineage.model.allowance import UNLIMITED, Allowance, Stage, cut_short
from airflow_provider_sparklineage.model.subset import (
    Binary,
    Compare,
    Condition,
    Description,
    Locations,
    Partitions,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_sparklineage.lineage.columns.edges import Transformations
    from airflow_provider_sparklineage.lineage.dataset import LineageDataset, TaskLineage

    Hide = Callable[[str], str]

HIDDEN = "?"
"""The sign that replaces a literal."""


@lru_cache(maxsize=4096)  # many edges have the same description
def hidden(text: str) -> str:
    """Hide the literals of an SQL expression; hide all of a text that cannot be read as SQL.

    A comment could contain a literal, so a text with a comment is also hidden as a whole.
    """
    from sqlglot.dialects.spark import Spark  # takes half a second, so only if literals are hidden
    from sqlglot.errors import TokenError

    try:
        tokens = Spark().tokenize(text)
    except TokenError:
        return HIDDEN
    if any(token.comments for token in tokens):
        return HIDDEN
    made, done = "", 0
    for token in tokens:
        if token.token_type.name.endswith(("STRING", "NUMBER")) and token.start >= done:
            between = text[done : token.start]
            # Two strings in a row are one, with a quote in it.
            made += between if not between and made.endswith(HIDDEN) else between + HIDDEN
            done = token.end + 1
    return made + text[done:]


def without_literals(lineage: TaskLineage, allowance: Allowance = UNLIMITED) -> TaskLineage:
    """Hide the literals in the conditions and descriptions of a task's lineage.

    This is done before the event is made, because the event repeats conditions in summaries.
    Partitions and locations stay, for they are the content of the event.

    :param allowance: once the stage is over, texts are hidden as a whole, and a degradation reports
        that
    """

    def hide(text: str) -> str:
        return HIDDEN if allowance.is_over(Stage.LITERALS) else hidden(text)

    inputs = tuple(_dataset(d, hide) for d in lineage.inputs)
    outputs = tuple(_dataset(d, hide) for d in lineage.outputs)
    cut = (_CUT,) if allowance.is_over(Stage.LITERALS) else ()
    return replace(
        lineage, inputs=inputs, outputs=outputs, degradations=(*lineage.degradations, *cut)
    )


_CUT = cut_short("Hiding literals took too long, so some texts are hidden as a whole")


def _dataset(dataset: LineageDataset, hide: Hide) -> LineageDataset:
    def hidden_in(transformations: Transformations) -> Transformations:
        return tuple(
            t._replace(description=hide(t.description)) if t.description else t
            for t in transformations
        )

    columns = dataset.columns and ColumnLineage(
        mapped(dataset.columns.fields, lambda edges: changed(edges, hidden_in)),
        changed(dataset.columns.dataset, hidden_in),
    )
    return replace(dataset, columns=columns, selected=_selected(dataset.selected, hide))


def _selected(selected: Selected, hide: Hide) -> Selected:
    condition = selected.condition
    if condition is None or (
        selected.partitions is not None
        and condition == Description(extent(selected.partitions).summary)
    ):
        return selected
    return replace(selected, condition=_condition(condition, hide))


def _condition(condition: Condition, hide: Hide) -> Condition:
    match condition:
        case Partitions() | Locations():
            return condition
        case Compare():
            return replace(condition, value=HIDDEN)
        case Description(text):
            return Description(hide(text))
        case Binary(operator, left, right):
            return Binary(operator, _condition(left, hide), _condition(right, hide))
        case _:
            assert_never(condition)
