"""Open the history for one request of the page: one state of a store, and the queries on it.

DuckDB reads the store. Answers are in JSON's own types, as the commands' ``--json`` has them, so
that permissions are applied to all answers in one way. A question names a dataset by its namespace
and name, and a partition by its text (``dt=2024-10-15/region=eu``), or by None for all of the
dataset.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import contextmanager, suppress
from functools import wraps
from threading import RLock
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar
from zlib import compress, decompress

import msgspec

from airflow_provider_sparklineage.history import bounds
from airflow_provider_sparklineage.history.engines import duckdb
from airflow_provider_sparklineage.history.facts import cells
from airflow_provider_sparklineage.history.queries.answers import Stale
from airflow_provider_sparklineage.history.queries.datasets import names_in
from airflow_provider_sparklineage.history.queries.drift import drift
from airflow_provider_sparklineage.history.queries.failed_writes import FailedWrite, failed_parts
from airflow_provider_sparklineage.history.queries.gaps import Gap, completeness, gaps_of
from airflow_provider_sparklineage.history.queries.impact import impact
from airflow_provider_sparklineage.history.queries.plan import with_gaps
from airflow_provider_sparklineage.history.queries.stale import plan_of, stale, stale_alone
from airflow_provider_sparklineage.history.queries.trace import trace
from airflow_provider_sparklineage.history.queries.unjudged import sentences, unseen_by_stale
from airflow_provider_sparklineage.history.store import Store
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.exceptions import LimitError
from airflow_provider_sparklineage.model.partitioning import Partition

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

    Dimensions = Mapping[str, str | None] | None


# Two texts of a partition: one that the page shows and asks with, and one on which the tables are
# joined.


def partition_of(dimensions: Dimensions) -> str:
    """Give the name of a partition, e.g. ``dt=2024-10-15/region=eu``; "" for all of a dataset.

    :param dimensions: values by dimension; None for all of a dataset
    """
    return str(Partition.from_values((dimensions or {}).items()))


def cell_of(dimensions: Dimensions) -> str | None:
    """Give a partition's canonical text, by which tables are joined; None for all of a dataset.

    :param dimensions: values by dimension; None for all of a dataset
    """
    return cells.cell_of(dimensions).cell if dimensions else None


# Whether a partition is stale depends on all reads and writes ever; whether one is due, on all runs
# of a task. In a large history such a query takes seconds, and its answer is the same for every
# user until the history is built again. So each query is run once for all requests. One query runs
# at a time, because DuckDB uses all cores; a second request for the same answer waits and gets it.

MAX_STATES = 2
"""The most states of stores with cached answers: a request may still use an older one."""
MAX_ANSWERS = 100
"""The most cached answers of one state; nearly each answer is on one dataset."""


class AnswerCache:
    """A cache of answers by question; it drops the answer that was not used for the longest time.

    :param most: the most answers in the cache
    """

    def __init__(self, most: int = MAX_ANSWERS) -> None:
        self._answers: OrderedDict[Hashable, Any] = OrderedDict()
        self._most = most
        self._working = RLock()

    def answer(self, question: Hashable, work_out: Callable[[], Any]) -> Any:
        """Give the answer to a question; the answer is worked out only once.

        :param work_out: gives the answer, which must not be None
        :raise LimitError: if the time is over before other threads have worked out theirs
        """
        if (answer := self.known(question)) is None:
            with self._alone():
                if (answer := self.known(question)) is None:
                    answer = self._answers[question] = work_out()
                    while len(self._answers) > self._most:
                        self._answers.popitem(last=False)
        return answer

    @contextmanager
    def _alone(self) -> Iterator[None]:
        while not self._working.acquire(timeout=-1 if (left := bounds.left()) is None else left):
            bounds.check()
        try:
            yield
        finally:
            self._working.release()

    def known(self, question: Hashable) -> Any:
        """Give the answer to a question if it is cached; else None."""
        with suppress(KeyError):  # it is not there, or another thread has just dropped it
            self._answers.move_to_end(question)
        return self._answers.get(question)


_STATES = AnswerCache(MAX_STATES)


def cache_of(history: OpenedHistory) -> AnswerCache:
    """Give the cache of the answers on the state of the store that ``history`` has opened."""
    cache: AnswerCache = _STATES.answer((history.url, history.generation), AnswerCache)
    return cache


Answer = TypeVar("Answer")
Parameters = ParamSpec("Parameters")

SECONDS = 30
"""The time of all questions of a request; a thread of the API server must be free again then."""
MEMORY = "700MB"
"""DuckDB's limit of memory for a request."""
SPILLED = "4GB"
"""The most data of a request in temporary files, where DuckDB's memory does not suffice."""
_FIX_TIME = "Ask for less, or on the command line, which has more time: airflow sparklineage."


def _bounded(
    method: Callable[Concatenate[OpenedHistory, Parameters], Answer],
) -> Callable[Concatenate[OpenedHistory, Parameters], Answer]:
    """Let a method end by the end of the request's time."""

    @wraps(method)
    def within(
        self: OpenedHistory, /, *args: Parameters.args, **settings: Parameters.kwargs
    ) -> Answer:
        with bounds.within(self.bound):
            return method(self, *args, **settings)

    return within


class OpenedHistory:
    """One state of a store, and its queries, until it is closed.

    Its methods raise :exc:`.LimitError` if all of them together take longer than :data:`SECONDS`.
    """

    def __init__(self, url: str) -> None:
        """Open the store's present state.

        :param url: path or URL of the store
        :raise HistoryError: if there is no store, or it cannot be read
        """
        self._history = duckdb.History(
            Store.open(url), memory_limit=MEMORY, max_temp_directory_size=SPILLED
        )
        self.bound = bounds.Bound.of(SECONDS, _FIX_TIME)
        self.url = url
        self.built_at = str(msgspec.to_builtins(self._history.manifest.built_at))
        # The time is added, because the generations of a store that is removed and built anew
        # begin at the first number again.
        self.generation = f"{self._history.manifest.generation} {self.built_at}"
        self._cache = cache_of(self)

    def close(self) -> None:
        """Close the files of the store."""
        self._history.close()

    @_bounded
    def rows(
        self, sql: str, parameters: Mapping[str, object] | None = None
    ) -> list[dict[str, Any]]:
        """Run a query on the tables; give each row as a mapping from column names to values.

        :param sql: the query, in DuckDB's dialect
        :param parameters: values of ``$name`` in the query
        """
        return self._history.rows(sql, parameters)

    @_bounded
    def trace(
        self, dataset: DatasetName, partition: str | None, column: str | None, depth: int
    ) -> list[dict[str, Any]]:
        """List the versions of partitions from which a partition or column was made.

        :param partition: text of the partition; None for all of the dataset
        :param column: name of the column; None for all columns
        :param depth: the most runs in a row that are followed
        :return: a hop for each version, with the fields of
            :class:`~airflow_provider_sparklineage.history.queries.answers.Hop`
        """
        return _plain_list(trace(self._history, dataset, partition, column, depth=depth))

    @_bounded
    def downstream(
        self, dataset: DatasetName, partition: str | None, column: str | None, depth: int
    ) -> list[dict[str, Any]]:
        """List the versions of partitions that were made from a partition or a column.

        The parameters and the result are as for :meth:`trace`.
        """
        answer = impact(self._history, dataset, partition, column, depth=depth, is_planned=False)
        return _plain_list(answer.hops)

    @_bounded
    def plan(
        self, dataset: DatasetName, partition: str | None, column: str | None
    ) -> dict[str, Any]:
        """Give the plan that repeats all runs that used a partition or column, directly or not.

        :param partition: text of the partition; None for all of the dataset
        :param column: name of the column; None for all columns
        :return: the fields of :class:`~airflow_provider_sparklineage.history.queries.answers.Plan`,
            and ``left_out``: of how many datasets what was never written may be missing, because
            there was no time to look for it
        """
        answer = impact(self._history, dataset, partition, column)
        left_out = sum(one.count for one in answer.unjudged if one.reason == "left_out")
        return {**_plain_dict(answer.plan), "left_out": left_out}

    @_bounded
    def stale(self, dataset: DatasetName) -> list[dict[str, Any]]:
        """List the stale partitions of a dataset, with causes.

        :return: for each partition, the fields of
            :class:`~airflow_provider_sparklineage.history.queries.answers.Stale`
        """
        return _plain_list(self._stale(dataset))

    @_bounded
    def failed_parts(self) -> list[FailedWrite]:
        """List the parts whose last write failed, of all datasets: they are few."""
        found: list[FailedWrite] = self._cache.answer(
            "failed writes", lambda: failed_parts(self._history)
        )
        return found

    @_bounded
    def stale_of_all(self) -> list[Stale] | None:
        """List the stale partitions of all datasets; None if they are too many."""
        of_all = self._cache.answer("stale", self._stale_of_all)
        if of_all is _TOO_MANY:
            return None
        return [one for packed in of_all.values() for one in _unpacked(packed, list[Stale])]

    @_bounded
    def plan_of_all(self, gaps: list[Gap]) -> dict[str, Any]:
        """Give the plan of runs to repeat so that nothing is stale, and gaps are filled.

        :param gaps: partitions that were never written
        :return: the fields of :class:`~airflow_provider_sparklineage.history.queries.answers.Plan`
        """
        plan = plan_of(self._history, self.stale_of_all() or [])
        return _plain_dict(with_gaps(self._history, plan, gaps))

    @_bounded
    def refresh(
        self, dataset: DatasetName, is_wanted: Callable[[Mapping[str, str] | None], bool]
    ) -> dict[str, Any]:
        """Give the plan of runs to repeat so that partitions of a dataset are not stale.

        :param is_wanted: tells whether a partition, given by its dimensions, is to be fresh
        :return: the fields of :class:`~airflow_provider_sparklineage.history.queries.answers.Plan`
        """
        versions = [one for one in self._stale(dataset) if is_wanted(one.partition)]
        return _plain_dict(plan_of(self._history, versions))

    @_bounded
    def gaps(self, dataset: DatasetName) -> list[dict[str, Any]]:
        """List the partitions of a dataset that are expected and not there.

        :return: for each partition, the fields of
            :class:`~airflow_provider_sparklineage.history.queries.gaps.Gap`
        """
        return self._completeness(dataset)[0]

    @_bounded
    def gaps_of(self, datasets: Sequence[DatasetName]) -> list[Gap]:
        """List the partitions of some datasets that are expected and not there; nothing is cached.

        It takes less time than to ask for each of the datasets.

        :raise LimitError: also if half of the time that is left is over
        """
        with bounds.within_share(0.5):
            return gaps_of(self._history, datasets)

    @_bounded
    def unjudged(self, dataset: DatasetName) -> list[dict[str, Any]]:
        """List what is not known about the gaps of a dataset.

        :return: for each sentence, the fields of
            :class:`~airflow_provider_sparklineage.history.queries.answers.Unjudged`
        """
        return self._completeness(dataset)[1]

    @_bounded
    def unjudged_of_stale(
        self, dataset: DatasetName, is_shown: Callable[[DatasetName], bool]
    ) -> list[str]:
        """List, as sentences, the sources of a dataset whose changes :meth:`stale` cannot see.

        :param is_shown: tells whether a sentence may name a dataset
        """
        unseen = self._cache.answer(
            ("unseen", dataset), lambda: unseen_by_stale(self._history, dataset)
        )
        shown = [one for one in unseen if is_shown(one[1])]
        return [one.text for one in sentences(shown, names_in(self._history))]

    @_bounded
    def drift(self, task: str) -> list[dict[str, Any]]:
        """List the differences between each run of a task and the run before it.

        :param task: name of the task's job
        :return: for each difference, the fields of
            :class:`~airflow_provider_sparklineage.history.queries.drift.Drift`
        """
        answer = self._cache.answer(("drift", task), lambda: _packed(drift(self._history, task)))
        return _unpacked(answer, list[dict[str, Any]])

    def _completeness(self, dataset: DatasetName) -> list[list[dict[str, Any]]]:
        question = ("gaps", dataset)
        answer = self._cache.answer(question, lambda: _packed(completeness(self._history, dataset)))
        return _unpacked(answer, list[list[dict[str, Any]]])

    def _stale(self, dataset: DatasetName) -> list[Stale]:
        # Whether one dataset is stale depends on all others, so all are worked out at once.
        of_all = self._cache.answer("stale", self._stale_of_all)
        if of_all is not _TOO_MANY:
            return _unpacked(of_all[dataset], list[Stale]) if dataset in of_all else []
        question = ("stale", dataset)
        answer = self._cache.answer(question, lambda: _packed(stale_alone(self._history, dataset)))
        return _unpacked(answer, list[Stale])

    def _stale_of_all(self) -> dict[DatasetName, bytes]:
        versions: dict[DatasetName, list[Stale]] = {}
        try:
            with bounds.within_share(0.4):
                found = stale(self._history)
        except LimitError:
            bounds.check()
            return _TOO_MANY
        for one in found:
            dataset = DatasetName(one.dataset.namespace, one.dataset.name)
            versions.setdefault(dataset, []).append(one)
        return {dataset: _packed(of_dataset) for dataset, of_dataset in versions.items()}


_TOO_MANY: dict[DatasetName, bytes] = {}
"""The answer on all datasets if too many runs are stale, or if to find them takes too much time or
memory: then each dataset is asked for alone."""


def _packed(answer: object) -> bytes:
    """Compress an answer for the cache: a hundred thousand stale partitions become 3 MB."""
    return compress(msgspec.json.encode(answer), 1)


def _unpacked(packed: bytes, kind: type[Answer]) -> Answer:
    return msgspec.json.decode(decompress(packed), type=kind)


def _plain_list(answer: object) -> list[dict[str, Any]]:
    plain: list[dict[str, Any]] = msgspec.to_builtins(answer)
    return plain


def _plain_dict(answer: object) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(answer)
    return plain
