"""The limits of an event's size, and the order in which a larger event loses detail.

Consumers refuse large events (one of them at 5 MB), and then the whole event is lost. So detail is
dropped, kind by kind, until the rest fits: columns of schemas dataset by dataset, the widest first,
and each other kind as a whole.

1. columns of inputs that no edge of column lineage names,
2. descriptions of column lineage,
3. transformations of INDIRECT column lineage: the edges stay, and stay INDIRECT,
4. transformations of DIRECT column lineage that the output column's ``transformationType`` repeats,
5. statistics,
6. comments of schemas,
7. INDIRECT column lineage, and then columns of inputs that it alone named,
8. the reporter of each access (``datasets`` of ``sparkLineage_capture``),
9. columns of outputs that have no column lineage,
10. column lineage of full outputs, the largest first; after each, the columns that it alone named,
11. other facets, the largest first.

So columns that no edge names are dropped before the column lineage of full outputs, and no column
is dropped that an edge names: backends draw edges between columns of schemas only.

For each dropped kind there is a degradation with the number of dropped parts; that for the tenth
kind also names a few outputs. The names of the datasets always stay. So does the facet
``sparkLineage_capture``, except for its ``datasets``: it lists the degradations, those for dropped
parts first. An event without that facet is not reduced, so that no loss is silent.

The order is the same for each limit: of a backend, of a database that keeps the event, of a server
that takes fewer bytes. The limits do not count the facets that Airflow adds to a task's event, some
KB.

Few events are too large. So this module, for whose import a START waits, only checks whether an
event is; :mod:`.fitting` does the reduction, and is imported only for an event that is too large.
"""

from __future__ import annotations

from itertools import starmap
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sparklineage.event.document import is_surely_within, replaced
from airflow_provider_sparklineage.event.model import CAPTURE_KEY, COLUMNS_KEY, name_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_sparklineage.event.document import Event
    from airflow_provider_sparklineage.model.degradations import Degradation
    from airflow_provider_sparklineage.model.representation import Adaptation, Answered


# --- bytes ----------------------------------------------------------------------------------------


def fitted(
    event: Event, max_bytes: int, option: str, is_late: Callable[[], bool] = lambda: False
) -> Event:
    """Drop detail of an event until it fits into ``max_bytes``; add degradations for the losses.

    :param max_bytes: limit of the event as OpenLineage's client writes it in JSON
    :param option: the setting that allows more, as a sentence names it:
        ``[sparklineage] max_event_bytes``
    :param is_late: tells whether time is short; then column lineage and facets are dropped as a
        whole, which is faster
    :return: the same object if it fits, or has no facet for degradations
    """
    if CAPTURE_KEY not in event["run"]["facets"]:
        return event
    return reduced(event, max_bytes, option, is_late)[0]


def ever_smaller(event: Event, option: str) -> Callable[[int], Event]:
    """Give a function that reduces the event to at most a given number of bytes.

    The number must fall with each call. Each call goes on where the one before stopped, because the
    order of dropping is always the same. An event without the facet for degradations stays as it
    is.

    :param option: the setting that allows more, as for :func:`fitted`
    """
    if CAPTURE_KEY not in event["run"]["facets"]:
        return lambda _: event
    from airflow_provider_sparklineage.event.steps.fitting import Fitting  # few are too large

    return Fitting(event, option).within


def reduced(
    event: Event, max_bytes: int, option: str, is_late: Callable[[], bool] = lambda: False
) -> tuple[Event, tuple[Degradation, ...]]:
    """Drop detail as :func:`fitted` does, also of an event without the facet for degradations.

    The parameters are those of :func:`fitted`.

    :return: the event, which is the same object if it fits, and the degradations for the losses
    """
    if is_surely_within(event, max_bytes):
        return event, ()
    from airflow_provider_sparklineage.event.steps.fitting import Fitting  # few are too large

    fitting = Fitting(event, option, is_late)
    return fitting.within(max_bytes), fitting.dropped


# --- columns --------------------------------------------------------------------------------------
#
# Marquez stores each column of a schema, and each edge between two columns, by SQL statements of
# its own. For an event of moderate size that may take it longer than OpenLineage's client waits. So
# a backend that needs time for each of them gets an event with a limited number. The order of
# dropping is the same as for bytes, without the kinds that are neither columns nor edges.
#
# A column of a schema counts as one, and once more if it is in column lineage; four edges count as
# a column. Datasets do not count, because their names always stay.


_COLUMNS_OPTION = "[sparklineage] max_columns"
_COLUMN = 4
"""The cost of a column, in edges."""


class Limit(NamedTuple):
    """The most columns of an event.

    :param columns: the most columns; four edges count as one
    :param option: the limit as a sentence names it: the setting, or the time of the backend
    :param reason: reason for a limit that is no setting, as :func:`.fitting.too_large` takes it
    """

    columns: int
    option: str = _COLUMNS_OPTION
    reason: str = ""


def with_few_columns(event: Event, limit: Limit | int, last: Event | None = None) -> Event:
    """Leave out columns and edges beyond a limit; add degradations for these.

    The event of a job that has not run has no column lineage yet. It gets only the columns with
    which the event of the last run was sent: the event at the end of this run will have the same,
    and an output with other columns would be another version of the dataset.

    :param limit: the limit; a number is that of the setting
    :param last: event of the task's last successful run, with all its columns; None without one
    :return: the same object if there is nothing to do
    """
    limit = Limit(limit) if isinstance(limit, int) else limit
    if CAPTURE_KEY in event["run"]["facets"]:
        return _within_columns(event, limit)
    if last is None or (sent := _within_columns(last, limit)) is last:
        return event
    inputs, outputs = (_as_in(sent[side], event[side]) for side in ("inputs", "outputs"))
    return replaced(event, inputs=inputs, outputs=outputs)


def _within_columns(event: Event, limit: Limit) -> Event:
    most = limit.columns * _COLUMN
    if _edges_of(event) <= most:
        return event
    from airflow_provider_sparklineage.event.steps.fitting import Fitting  # few are too large

    fitting = Fitting(event, limit.option, cost=_cost_in_edges, reason=limit.reason)
    return fitting.within(most)


def _edges_of(event: Event) -> int:
    facets = (facet for d in (*event["inputs"], *event["outputs"]) for facet in d["facets"].items())
    return sum(starmap(_cost_in_edges, facets))


def _cost_in_edges(key: str, facet: Any) -> int:
    """Give the cost of a facet's columns and edges; 0 for facets that have neither.

    An edge costs 1, and a column as much as four edges.

    :param key: key of the facet; only ``schema`` and ``columnLineage`` have a cost
    """
    if key == "schema":
        fields = facet.get("fields")
        return _COLUMN * len(fields) if isinstance(fields, list) else 0
    if key == COLUMNS_KEY:
        sources = sum(len(field["inputFields"]) for field in facet["fields"].values())
        return _COLUMN * len(facet["fields"]) + sources + len(facet["dataset"])
    return 0


def _as_in(sent: list[dict[str, Any]], datasets: list[dict[str, Any]]) -> list[dict[str, Any]]:
    from airflow_provider_sparklineage.event.steps.fitting import left_of

    def fewer(dataset: dict[str, Any]) -> dict[str, Any]:
        facets = dataset["facets"]
        columns = known.get(name_of(dataset))
        if columns is None or "schema" not in facets:
            return dataset
        schema, gone = left_of(facets["schema"], columns.__contains__)
        if not gone:
            return dataset
        others = {key: facet for key, facet in facets.items() if key != "schema"}
        return {**dataset, "facets": others | ({"schema": schema} if schema else {})}

    known = {name_of(d): {f["name"] for f in _fields(d)} for d in sent}
    return [fewer(dataset) for dataset in datasets]


def _fields(dataset: dict[str, Any]) -> list[dict[str, Any]]:
    fields: list[dict[str, Any]] = dataset["facets"].get("schema", {}).get("fields", [])
    return fields


# --- columns that a backend answers in time -------------------------------------------------------
#
# The time for a column differs between machines, and with their other work. So the limit of an
# event follows from the time for the task's event before, as far as that was measured
# (:class:`~airflow_provider_sparklineage.model.representation.Answered`).


ANSWER_S = 4.0
"""The time that an event may take: OpenLineage's client gives up after 5 s."""
UNANSWERED_S = 10.0
"""The time that counts for an event whose process was ended: Airflow ends it after 10 s."""
_DATASET = 7
"""The time that Marquez takes for a dataset, in columns."""
_GROWTH = 2
"""The most by which the limit grows from one event to the next: the time for more columns is a
guess."""
_WORTH = 1.25
"""The least by which it grows: with another limit each day, datasets would have other columns."""
_FORGETTING = 1.05
"""The growth of :attr:`~.Answered.slow` by an answer in time: a backend may be slow just once."""
_LEAST = 10
"""The part of ``max_columns`` that is always sent: below it, other things take the time."""


def limit_of(how: Adaptation, title: str) -> Limit:
    """Give the most columns that the next event of a task may have.

    :param how: the settings for the backend, with its time for the event before
    :param title: the name of the backend in sentences
    """
    if how.answered is None or not how.is_timed:
        return Limit(how.max_columns)
    columns = columns_in_time(how.answered, how.max_columns)
    return Limit(columns, f"the time of {title}", _reason(how.answered, columns))


def columns_in_time(answered: Answered, max_columns: int) -> int:
    """Give the number of columns that a backend answers in :data:`ANSWER_S`, by its last answer.

    The time of an answer is taken to be proportional to the columns, with a dataset as seven of
    them, and the next event to have as many datasets. A slow answer lowers the limit to the columns
    that would have taken :data:`ANSWER_S`. An answer in time raises the limit if columns were left
    out of the event; else nobody needs more. The limit grows at most to twice as much, and at most
    half the way to the columns that took too long before.

    :param max_columns: the limit of the first event
    """
    of_datasets = _DATASET * answered.datasets
    in_time = int((answered.columns + of_datasets) * ANSWER_S / _seconds(answered)) - of_datasets
    if _is_slow(answered):
        return max(in_time, max_columns // _LEAST)
    limit = answered.limit
    more = min(in_time, _GROWTH * limit)
    if answered.slow:
        more = min(more, (limit + answered.slow) // 2)
    return more if not answered.is_whole and more >= _WORTH * limit else limit


def slow_columns(last: Answered | None) -> int:
    """Give the number of columns that took too long before, as the next event's answer has it.

    :param last: the answer to the event before; None if it is not known
    """
    if last is None:
        return 0
    return last.columns if _is_slow(last) else int(_FORGETTING * last.slow)


def _seconds(answered: Answered) -> float:
    return UNANSWERED_S if answered.seconds is None else max(answered.seconds, 0.001)


def _is_slow(answered: Answered) -> bool:
    return _seconds(answered) > ANSWER_S


def count_columns(event: Event) -> int:
    """Count the columns of an event as ``max_columns`` does: four edges are a column."""
    return -(-_edges_of(event) // _COLUMN)


def _reason(answered: Answered, columns: int) -> str:
    took = (
        f"took {answered.seconds:.1f} s for" if answered.seconds is not None else "did not answer"
    )
    return (
        f"in the run before it {took} {answered.columns:,} columns, so this event has at most "
        f"{columns:,}, and the archive and the tab have all of them"
    )
