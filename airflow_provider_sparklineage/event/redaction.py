"""What must not leave the worker in an event: secrets, credentials, and literals on request.

Airflow's redactor goes through a whole event, and knows what it must hide by the names of keys:
a column called ``password`` loses its lineage to it, and 16 MB of column lineage take it half of
the ten seconds after which Airflow drops an event. Our facets therefore ask it to leave them alone
(``_skip_redact``), and so what they say is cleaned here:

- *secrets*: values that Airflow masks in logs, in descriptions, conditions, locations, values and
  templates; never in names of datasets and columns, which are identities
- *credentials* (:mod:`~airflow_provider_sparklineage.model.credentials`), in names too:
  ``s3a://key:secret@bucket/x`` becomes ``s3a://bucket/x``
- *literals*: in predicates and descriptions, where they are not wanted in the backend

Secrets and literals are hidden in whole texts, before any is cut to a length: half a secret would
not be known as one.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, assert_never

import msgspec

from airflow_provider_sparklineage.event.cleaning import Cleaning
from airflow_provider_sparklineage.lineage.columns import ColumnLineage
from airflow_provider_sparklineage.lineage.partitions.selection import extent
from airflow_provider_sparklineage.model.credentials import scrub, scrub_name
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

    from airflow_provider_sparklineage.event.event_parts import OpenLineageParts
    from airflow_provider_sparklineage.lineage.columns import Edges
    from airflow_provider_sparklineage.lineage.dataset import LineageDataset, TaskLineage
    from airflow_provider_sparklineage.lineage.partitions.selection import Selected

HIDDEN = "?"
"""Stands for a literal."""


# --- texts ----------------------------------------------------------------------------------------


def without_literals(text: str) -> str:
    """Hide the literals of an SQL expression; all of it where it cannot be read as one."""
    from sqlglot.dialects.spark import Spark  # half a second, for those who want it
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


# --- before facets are made -----------------------------------------------------------------------


def private(lineage: TaskLineage, mask: Callable[[str], str], *, literals: bool) -> TaskLineage:
    """Hide secrets in the texts of a task's lineage that facets may cut, and literals on request.

    :param mask: hides the secrets in a text
    :param literals: whether literals are hidden as well
    """
    clean = cache(lambda text: mask(scrub(text)))
    hidden = cache(lambda text: without_literals(clean(text))) if literals else clean

    def dataset(said: LineageDataset) -> LineageDataset:
        columns = said.columns and ColumnLineage(
            {name: _described(edges, hidden) for name, edges in said.columns.fields.items()},
            _described(said.columns.dataset, hidden),
        )
        expected = said.expected and replace(
            said.expected,
            sources=tuple(
                replace(s, template=clean(s.template), value=clean(s.value))
                for s in said.expected.sources
            ),
        )
        selected = _without_literals(said.selected, hidden) if literals else said.selected
        return replace(said, columns=columns, expected=expected, selected=selected)

    return replace(
        lineage,
        inputs=tuple(map(dataset, lineage.inputs)),
        outputs=tuple(map(dataset, lineage.outputs)),
    )


def _described(edges: Edges, hidden: Callable[[str], str]) -> Edges:
    return {
        column: tuple(
            t._replace(description=hidden(t.description)) if t.description else t for t in said
        )
        for column, said in edges.items()
    }


def _without_literals(selected: Selected, hidden: Callable[[str], str]) -> Selected:
    """Hide the literals of a filter; partitions and locations are what the event is about."""
    condition = selected.condition
    if condition is None or (
        selected.partitions is not None
        and condition == Description(extent(selected.partitions).summary)
    ):
        return selected
    return replace(selected, condition=_condition_without_literals(condition, hidden))


def _condition_without_literals(condition: Condition, hidden: Callable[[str], str]) -> Condition:
    match condition:
        case Partitions() | Locations():
            return condition
        case Compare():
            return replace(condition, value=HIDDEN)
        case Description(text):
            return Description(hidden(text))
        case Binary(operator, left, right):
            return Binary(
                operator,
                _condition_without_literals(left, hidden),
                _condition_without_literals(right, hidden),
            )
        case _:
            assert_never(condition)


# --- after they are made --------------------------------------------------------------------------

# Identities, and words of the specification.
_UNMASKED = frozenset(
    {
        "_producer",
        "_schemaURL",
        "namespace",
        "name",
        "field",
        "fields",
        "type",
        "subtype",
        "transformationType",
        "comparison",
        "operator",
        "transform",
        "kind",
        "code",
        "column",
    }
)


# What a part of a dataset is called: a partition ``token=5`` is no credential.
_PARTITION_NAMES = frozenset({"identifier", "summary", "first", "last", "locations"})


def redacted(said: OpenLineageParts, mask: Callable[[str], str]) -> OpenLineageParts:
    """Strip credentials, and hide secrets in all that is not a name; what is given is kept.

    :param mask: hides the secrets in a text
    """
    # What begins with an underscore in a facet of OpenLineage's client is not in this text: URLs.
    text = msgspec.json.encode((said.inputs, said.outputs, said.run_facets, said.job_facets))
    if _is_clean(text.decode(), mask):
        return said
    clean = _Masking(mask)
    return replace(
        said,
        inputs=clean.value(said.inputs),
        outputs=clean.value(said.outputs),
        run_facets=clean.value(said.run_facets),
        job_facets=clean.value(said.job_facets),
    )


def cleaned(value: Any, mask: Callable[[str], str]) -> Any:
    """Do the same for facets, or lists of datasets, as JSON has them."""
    return _Masking(mask).value(value)


def _is_clean(text: str, mask: Callable[[str], str]) -> bool:
    """Whether a JSON text has neither secret nor credential; no for texts that are escaped."""
    return "\\" not in text and scrub(text) == text and mask(text) == text


class _Masking(Cleaning):
    def __init__(self, mask: Callable[[str], str]) -> None:
        # Names and descriptions come again with each edge.
        self._name = cache(scrub_name)
        self._partition = cache(lambda text: mask(scrub_name(text)))
        self._text = cache(lambda text: mask(scrub(text)))

    def text(self, text: str, key: str, /) -> str:
        if key in _UNMASKED:
            return self._name(text)
        return self._partition(text) if key in _PARTITION_NAMES else self._text(text)
