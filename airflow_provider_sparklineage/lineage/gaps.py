"""Report why columns of an output have no known sources, by evidence of listener and observer.

Spark's own plan of a write shows the origin of each column. Without a plan, a reason is given only
if there is evidence for it: a literal in the statement, a write without any input. Otherwise the
message says that the reason is not known, and names the Python functions that ran.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.lineage.application.repairs import moves_table
from airflow_provider_sparklineage.lineage.columns.edges import ColumnLineage, Edges, lists, mapped
from airflow_provider_sparklineage.lineage.columns.reported import is_incomplete
from airflow_provider_sparklineage.model import predicates
from airflow_provider_sparklineage.model.allowance import UNLIMITED, Allowance, Stage
from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode
from airflow_provider_sparklineage.model.texts import some

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from airflow_provider_sparklineage.lineage.application.accumulation import Action
    from airflow_provider_sparklineage.lineage.columns.plans.commands import PlannedColumns
    from airflow_provider_sparklineage.lineage.dataset import LineageDataset
    from airflow_provider_sparklineage.lineage.observed.accesses import PythonFunction

SCHEMA_LIMIT = 1000
"""The listener reports no column lineage for more output columns (``schemaSizeLimit``)."""

_GROUPING_SETS = re.compile(r"\b(ROLLUP|CUBE|GROUPING\s+SETS)\b", re.IGNORECASE)
# A FILTER clause and a scalar subquery, as Spark writes them in the texts of expressions.
_FILTERED = ") FILTER (WHERE "
_SUBQUERY = "scalarsubquery("
_NAMED = 10
_UNSEEN = (
    "into which the listener does not look; the datasets that only the subquery reads are missing "
    "from the inputs."
)


class ColumnWrite(NamedTuple):
    """The write of an output by an action, with the column lineage of the write.

    :param reported: the column lineage as the listener reported it; columns of intermediate
        datasets are not yet replaced by their sources
    :param planned: the column lineage by each plan of the write; () where there is no plan
    """

    action: Action
    reported: ColumnLineage
    planned: tuple[PlannedColumns, ...] = ()

    def is_known(self, column: str | None = None) -> bool:
        """Whether the plans give all sources of a column.

        :param column: name of the column; None for the sources that filter, join, group or sort
            the rows
        """
        if column is None:
            return bool(self.planned) and all(plan.is_whole for plan in self.planned)
        return bool(self.planned) and not any(column in plan.incomplete for plan in self.planned)

    def leaves(self, column: str) -> bool:
        """Whether the write is a MERGE, UPDATE or DELETE that keeps the values of a column."""
        return bool(self.planned) and all(
            plan.made_of.get(column) == frozenset() for plan in self.planned
        )


def gaps(
    dataset: LineageDataset,
    writes: Sequence[ColumnWrite],
    functions: Sequence[PythonFunction] | None,
    allowance: Allowance = UNLIMITED,
) -> Iterator[Degradation]:
    """Report the columns of an output of which not all sources are known, and the reasons.

    :param writes: the writes of the output
    :param functions: the Python functions that were observed; None where there was no observer
    :param allowance: when no time is left, no SQL is parsed to find reasons or hidden sources
    """
    name, lineage = dataset.name, dataset.columns
    writes = [write for write in writes if not moves_table(write.action)]
    # A write without inputs may only have created the table that other writes filled.
    writes = [write for write in writes if write.action.inputs] or writes
    columns = dataset.column_names

    def writers(column: str) -> list[ColumnWrite]:
        return [write for write in writes if not write.leaves(column)]

    if not writes or (columns and not any(map(writers, columns))):
        return  # rows were deleted, or were there before, and no column set
    if lineage is None or not any(lineage.fields.values()):
        reasons = dict.fromkeys(_why_nothing(dataset, write) for write in writes)
        why = f": {'; '.join(r for r in reasons if r)}" if any(reasons) else ""
        message = f"The listener reported no column lineage for {name}{why}."
        yield Degradation(DegradationCode.COLUMN_LINEAGE_MISSING, message, name)
        return
    incomplete = mapped(lineage.fields, is_incomplete)
    # A column of a relation that is not a known dataset is not lost: the listener reports it.
    plans = [plan for write in writes for plan in write.planned]
    lost = {column for plan in plans for column in plan.incomplete - plan.elsewhere}
    for column in columns:
        if not lineage.fields.get(column):
            if not (setting := writers(column)):
                continue
            late = allowance.is_over(Stage.MERGING)
            reasons = dict.fromkeys(
                "" if late else _why(column, columns, write, functions) for write in setting
            )
            known = [reason for reason in reasons if reason]
            why = f"it is {' or '.join(known)}" if known and all(reasons) else _perhaps(functions)
            message = f"{name}: no sources of column {column} are known; {why}."
            yield Degradation(DegradationCode.COLUMN_WITHOUT_SOURCES, message, name, column)
        elif incomplete[column]:
            seen = [text for write in writes for text in _ran(write.action, functions)]
            which = f" ({', '.join(dict.fromkeys(seen))})" if seen else ""
            message = (
                f"{name}: column {column} goes through a Python UDF{which}, whose arguments are "
                "not among its sources."
            )
            yield Degradation(DegradationCode.COLUMN_INCOMPLETE, message, name, column)
        elif column in lost:
            message = (
                f"{name}: column {column} could not be followed through all of Spark's plan; not "
                "all of its sources may be known."
            )
            yield Degradation(DegradationCode.COLUMN_INCOMPLETE, message, name, column)
    yield from _guessed(dataset, plans)
    if not allowance.is_over(Stage.MERGING):
        yield from _hidden(dataset, columns, writes)


def _guessed(dataset: LineageDataset, plans: Sequence[PlannedColumns]) -> Iterator[Degradation]:
    """Report the columns that functions of whole rows, such as ``mapInPandas``, have made.

    Their sources are guessed: all columns that the function was given.

    :param dataset: the output that has the columns
    :param plans: the columns of all its writes, as the plans show them
    """
    guesses: dict[str, dict[str, None]] = {}
    for plan in plans:
        for column, function in plan.guesses.items():
            guesses.setdefault(function, {})[column] = None
    for function, columns in sorted(guesses.items()):
        message = (
            f"{dataset.name}: {some(list(columns), _NAMED)} were made of full rows by {function}. "
            "Nobody can see into such a function, so every column that it was given is named as a "
            "source of each: some may be none."
        )
        yield Degradation(DegradationCode.COLUMN_INCOMPLETE, message, dataset.name)


def _hidden(
    dataset: LineageDataset, columns: Sequence[str], writes: Sequence[ColumnWrite]
) -> Iterator[Degradation]:
    """Report columns that may have sources which neither the listener nor a plan gives.

    Such sources stand in a MERGE, an UPDATE, a FILTER clause or a scalar subquery.

    :param columns: the names of all columns of the output ``dataset``
    :param writes: the writes of the output
    """
    name = dataset.name
    # The writes of a loop have one object of column lineage, which is searched once.
    differing = {(w.action.sql, id(w.reported), id(w.planned)): w for w in writes}
    writes = list(differing.values())
    pairs = ((column, w) for w in writes for column in predicates.changed(w.action.sql))
    changed = {column for column, w in pairs if not w.is_known(column)}
    filtered = {column for w in writes for column in _with(_FILTERED, w)}
    unseen = {column for w in writes for column in _with(_SUBQUERY, w)}
    for column in columns:
        if column.lower() in changed:
            message = (
                f"{name}: column {column} is changed by a MERGE or UPDATE, of whose expressions "
                "the listener says little; not all of its sources may be known."
            )
            yield Degradation(DegradationCode.COLUMN_INCOMPLETE, message, name, column)
        if column in filtered:
            message = (
                f"{name}: column {column} is an aggregate of the rows that a FILTER clause lets "
                "through; the columns of that clause are not among its sources."
            )
            yield Degradation(DegradationCode.COLUMN_INCOMPLETE, message, name, column)
        if column in unseen:
            message = f"{name}: column {column} is made of a scalar subquery too, {_UNSEEN}"
            yield Degradation(DegradationCode.SUBQUERY_UNSEEN, message, name, column)
    if any(_contain(w.reported.dataset, _SUBQUERY) for w in writes if not w.is_known()):
        message = f"{name}: rows were chosen by a scalar subquery, {_UNSEEN}"
        yield Degradation(DegradationCode.SUBQUERY_UNSEEN, message, name)


def _with(text: str, write: ColumnWrite) -> list[str]:
    """List the columns of a write that have ``text`` in a description by the listener.

    Columns of which the plans give all sources are left out.
    """
    found = mapped(write.reported.fields, lambda edges: _contain(edges, text))
    return [column for column, has_it in found.items() if has_it and not write.is_known(column)]


def _contain(edges: Edges, text: str) -> bool:
    return any(text in t.description for ts in lists(edges) for t in ts)


def _why_nothing(dataset: LineageDataset, write: ColumnWrite) -> str:
    columns = dataset.column_names
    if write.action.job_type == "RDD_JOB":
        return "it was written by RDD code, in which there are no columns"
    if not columns:
        return "it does not know the columns of the output"
    if len(columns) > SCHEMA_LIMIT:
        return f"of outputs with more than {SCHEMA_LIMIT} columns it says none"
    seen = {column: _observed(column, write) for column in columns}
    if all(seen.values()):
        return f"it is made of {' and '.join(dict.fromkeys(seen.values()))}"
    if not write.action.inputs:
        return "it knows of no dataset that was read for it"
    return ""


# Origins of a column that has no source columns, as the observer's plans name them.
_MADE_OF = {
    "literal": "a literal",
    "count": "a count of rows",
    "function": "a function of no column, such as rand() or row_number()",
    "rdd": "rows of an RDD or of createDataFrame",
    "local": "rows that the driver had in memory",
    "range": "numbers of range()",
    "python": "the result of Python that was given no column",
    "grouping_id": "the number of a grouping set, as grouping_id() gives it",
    "unpivot": "the name of a column that was unpivoted",
}
_METADATA = "metadata of what was read, such as the path of a file"
_OLDER = "a value that the output itself had before"
_ELSEWHERE = "a value of a relation that is no dataset known to be read"
_LOST = "the result of an operator of Spark's plan that could not be followed"


def _observed(column: str, write: ColumnWrite) -> str:
    """Describe the origin of a column without sources, as a write's plans show it; else ""."""
    found: list[str] = []
    for plan in write.planned:
        if column in plan.incomplete:
            found.append(_ELSEWHERE if column in plan.elsewhere else _LOST)
        elif edges := plan.lineage.fields.get(column):  # sources that were removed later
            of_files = all(source.field.startswith("_") for source in edges)
            found.append(_METADATA if of_files else _OLDER)
        else:
            known_reasons = sorted(plan.made_of.get(column, ()))
            found += [_MADE_OF[reason] for reason in known_reasons]
    return " and ".join(dict.fromkeys(found))


def _why(
    column: str,
    columns: Sequence[str],
    write: ColumnWrite,
    functions: Sequence[PythonFunction] | None,
) -> str:
    """Give the reason why a column of a write has no sources; "" if no reason has evidence.

    :param columns: the names of all columns of the output
    :param functions: the Python functions that were observed; None where there was no observer
    """
    action = write.action
    if column in dict(predicates.static_partition(action.sql)):
        return "the value of a static partition"
    if seen := _observed(column, write):
        return seen
    if action.sql:
        made = predicates.without_columns(action.sql, columns)
        if column in made:
            return made[column]
        if _GROUPING_SETS.search(action.sql):
            return "a column of a rollup or cube, of which Spark's plan has no sources"
    if not action.inputs:
        return "made without any dataset that the listener knows to be read"
    if ran := _ran(action, functions):
        return f"not known to be made of columns, and Python ran then: {', '.join(ran)}"
    return ""


def _perhaps(functions: Sequence[PythonFunction] | None) -> str:
    if functions == ():  # there was an observer, and it saw no Python function
        return "the reason is not known (literals, count(*) and rows of RDD code have none)"
    return "the reason is not known (literals, count(*) and results of Python UDFs have none)"


def _ran(action: Action, functions: Sequence[PythonFunction] | None) -> list[str]:
    """List the calls of Python functions in queries that ran during an action, as texts."""
    during = (
        function
        for function in functions or ()
        if function.ended >= action.started
        and (action.ended is None or function.started <= action.ended)
    )
    return sorted({function.text for function in during})
