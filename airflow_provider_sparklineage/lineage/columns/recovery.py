"""What the listener lost of a write's column lineage, recovered from what the observer saw."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.lineage.columns.edges import (
    DIRECT,
    Column,
    ColumnLineage,
    Transformation,
    joined,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from airflow_provider_sparklineage.lineage.application.untraced_columns import (
        PythonCall,
        UntracedColumn,
        UntracedColumns,
    )
    from airflow_provider_sparklineage.lineage.columns.edges import Edges

_PYTHON_UDF = re.compile(r"\bpythonUDF\d+\b")
_SOME_PYTHON = "a Python function"


def is_incomplete(edges: Edges) -> bool:
    """Whether a Python UDF stands between: its arguments are not, or not all, in the edges."""
    return any(_PYTHON_UDF.search(t.description) for ts in edges.values() for t in ts)


def recovered(reported: ColumnLineage, untraced: Iterable[UntracedColumns]) -> ColumnLineage:
    """Add the sources that the listener lost, as DIRECT transformations.

    What the listener reports of a source stays, but that the call of a Python function stands in
    the description for its number; where sources stay unknown, the number stays, by which an
    incomplete column is known.
    """
    fields = dict(reported.fields)
    for write in untraced:
        for name, column in write.columns.items():
            fields[name] = _with(fields.get(name, {}), column, write.calls)
    return ColumnLineage({name: edges for name, edges in fields.items() if edges}, reported.dataset)


def _with(edges: Edges, untraced: UntracedColumn, calls: Mapping[str, PythonCall]) -> Edges:
    def called(text: str) -> str:
        if not untraced.complete:
            return text
        return _PYTHON_UDF.sub(lambda m: calls[m[0]].text if m[0] in calls else _SOME_PYTHON, text)

    found = {
        column: tuple(t._replace(description=called(t.description)) for t in ts)
        for column, ts in edges.items()
    }
    texts = {t.description for ts in edges.values() for t in ts if t.type == DIRECT}
    full_text = next((called(t) for t in sorted(texts) if _PYTHON_UDF.search(t)), "")
    for source in sorted(untraced.sources):
        column = Column(*source)
        known = found.get(column, ())
        if any(t.type == DIRECT and t.subtype != "IDENTITY" for t in known):
            continue
        text = full_text or _call_of(column.field, calls)
        if not untraced.complete:
            text = next(iter(sorted(calls)), "pythonUDF0")
        found[column] = joined(known, (Transformation(DIRECT, "TRANSFORMATION", text),))
    return found


def _call_of(column: str, calls: Mapping[str, PythonCall]) -> str:
    """Give the text of the call that was given a column; empty where it could be one of several."""
    given = {call.text for call in calls.values() if column in call.columns}
    return given.pop() if len(given) == 1 else ""
