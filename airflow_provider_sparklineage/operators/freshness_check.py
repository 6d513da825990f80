"""SparkLineageFreshnessCheck: a task that checks in the history if partitions are up to date.

The task's OpenLineage event has the dataset as an input, with the result as an assertion on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from airflow.providers.common.compat.sdk import (
    AirflowException,
    AirflowSkipException,
    BaseOperator,
    Stats,
)

from airflow_provider_sparklineage.hooks import sources
from airflow_provider_sparklineage.lineage.partitions.comparison import MISMATCHES
from airflow_provider_sparklineage.links.lineage import dataset_page
from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.model.exceptions import DeclarationError
from airflow_provider_sparklineage.model.terms import Outcome
from airflow_provider_sparklineage.model.texts import some
from airflow_provider_sparklineage.operators.masking import masked

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from airflow.providers.common.compat.sdk import Context
    from airflow.providers.openlineage.extractors import OperatorLineage

    from airflow_provider_sparklineage.history.queries.answers import Stale
    from airflow_provider_sparklineage.history.queries.sql import Rows
    from airflow_provider_sparklineage.model.datasets import DatasetName

log = logger(__name__)

SECONDS = 600.0
"""The longest time that the history may be asked, in seconds."""
_FIX = "Ask with `sparklineage stale --seconds 0`, which says how long it takes."
_MAX_SHOWN = 10
_POLICIES = ("fail", "skip")
_THERE = """
SELECT c.cell, r.check_status FROM changes AS c JOIN runs AS r ON r.run_id = c.run_id
WHERE c.namespace = $namespace AND c.name = $name AND c.valid_to IS NULL
    AND c.extent <> 'unknown'
"""


class SparkLineageFreshnessCheck(BaseOperator):
    """
    Fail or skip this task unless partitions of a dataset are up to date.

    A partition is not up to date if it was made of data that has changed since, if the run that
    wrote it failed, or read or wrote other partitions than expected, or if the history knows no run
    that wrote it. Runs after the last build of the history are not in the history, so they do not
    count. A retry asks the history anew. The task sets two gauges of the dataset in Airflow's
    metrics: ``sparklineage.stale_partitions``, and ``sparklineage.gaps`` for partitions that are
    expected and that no run wrote.

    The result is in the task's OpenLineage event, too: as an assertion on the dataset, and in the
    run facet ``test``.

    .. seealso::
        ``sparklineage stale`` for the same on the command line, with the runs to repeat.

    :param dataset: the dataset to check: ``namespace:name``, its URI, or the end of its name
        (templated)
    :param partitions: the partitions to check, written as on the command line, such as
        ``["dt={{ ds }}"]``; None checks all partitions of the dataset in the history (templated)
    :param on_finding: the consequence if a partition is not up to date: ``fail`` or ``skip``
    :param store: URL of the history; by default the URL in the configuration (templated)
    """

    template_fields: Sequence[str] = ("dataset", "partitions", "store")

    def __init__(
        self,
        *,
        dataset: str,
        partitions: Collection[str] | None = None,
        on_finding: Literal["fail", "skip"] = "fail",
        store: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.dataset = dataset
        self.partitions = partitions
        self.on_finding = on_finding
        self.store = store
        self._lineage: OperatorLineage[Any, Any] | None = None

    @property
    def get_openlineage_facets_on_complete(
        self,
    ) -> Callable[[Any], OperatorLineage[Any, Any]] | None:
        """The OpenLineage hook that gives the result; None if the history gave no answer."""
        lineage = self._lineage
        return None if lineage is None else lambda _task_instance: lineage

    def execute(self, context: Context) -> None:
        """
        Ask the history whether the partitions are up to date.

        :raise AirflowException: if a partition is not up to date and ``on_finding`` is ``fail``
        :raise AirflowSkipException: if a partition is not up to date and ``on_finding`` is ``skip``
        :raise DeclarationError: if ``on_finding`` or ``partitions`` cannot be understood
        :raise LimitError: if the answer takes longer than :data:`SECONDS`
        """
        from airflow_provider_sparklineage.history.bounds import Bound, within
        from airflow_provider_sparklineage.history.engines.duckdb import History
        from airflow_provider_sparklineage.history.queries.datasets import dataset_of
        from airflow_provider_sparklineage.history.store import Store

        if self.on_finding not in _POLICIES:
            problem = f"on_finding is {self.on_finding!r}."
            raise DeclarationError(problem, "It must be fail or skip.")
        wanted = _wanted(self.partitions)
        bound = Bound.of(SECONDS, _FIX)
        with History(Store.open(self.store or sources.history_url())) as history, within(bound):
            self.log.info("The history was built at %s.", history.manifest.built_at)
            dataset = dataset_of(history, self.dataset)
            outdated = findings(history, dataset, wanted)
        shown = some(outdated, _MAX_SHOWN) if outdated else ""
        severity = "warn" if self.on_finding == "skip" else "error"
        self._lineage = _lineage_of(dataset, shown, severity, _listed(self.partitions))
        if not outdated:
            self.log.info("%s is up to date.", self.dataset)
            return
        message = f"{self.dataset} is not up to date: {shown}."
        if page := dataset_page(context.get("ti"), dataset, "smwn"):
            message += f" See {page}"
        raise (AirflowSkipException if self.on_finding == "skip" else AirflowException)(message)


def _lineage_of(
    dataset: DatasetName, findings: str, severity: str, partitions: Sequence[str]
) -> OperatorLineage[Any, Any] | None:
    """Make the lineage of a check for Airflow's OpenLineage provider.

    :param findings: the partitions that are not up to date; empty if all are
    :param partitions: the partitions that were checked; () for all
    :return: None if lineage is off, or if the lineage cannot be made
    """
    try:
        return _made_lineage(dataset, findings, severity, partitions)
    except Exception:
        log.warning("The result of the check is not in the task's event.", exc_info=True)
        return None


def _made_lineage(
    dataset: DatasetName, findings: str, severity: str, partitions: Sequence[str]
) -> OperatorLineage[Any, Any] | None:
    # Imported here, because a DAG's file needs none of it.
    from airflow.providers.openlineage.extractors import OperatorLineage

    from airflow_provider_sparklineage.event import openlineage, pipeline
    from airflow_provider_sparklineage.event.assertions import (
        facets_of_dataset,
        facets_of_run,
        freshness_check,
    )
    from airflow_provider_sparklineage.event.document import empty, replaced
    from airflow_provider_sparklineage.settings import resolution
    from airflow_provider_sparklineage.settings.connection import DEFAULT_CONN_ID, is_converted

    settings = resolution.resolve(*sources.for_settings(sources.connection(DEFAULT_CONN_ID)))
    if settings.disabled:
        return None
    check = freshness_check(dataset, masked(findings), severity, list(map(masked, partitions)))
    read = {**dataset._asdict(), "facets": {}, "inputFacets": facets_of_dataset([check])}
    of_run = facets_of_run([check])
    event = replaced(empty(None, Outcome.COMPLETE), inputs=[read], run_facets=of_run)
    parts = openlineage.parts(pipeline.adapted(event, settings.adaptation))
    if is_converted(sources.ready_client()):
        parts = parts._replace(run_facets=openlineage.with_neutral(parts.run_facets, event))
    return OperatorLineage(**parts._asdict())


Values = dict[str, str]


def _listed(partitions: Collection[str] | None) -> tuple[str, ...]:
    return (partitions,) if isinstance(partitions, str) else tuple(partitions or ())


def _wanted(partitions: Collection[str] | None) -> list[Values] | None:
    """Parse partitions that are written as on the command line; give None for None.

    :return: for each partition, its values by dimension
    :raise DeclarationError: if a text is not a partition
    """
    from airflow_provider_sparklineage.history.facts.cells import cell_of_text
    from airflow_provider_sparklineage.history.queries.answers import values_of

    if partitions is None:
        return None
    wanted = []
    for text in _listed(partitions):
        cell = cell_of_text(text)
        if cell is None:
            problem = f"{text!r} is no partition."
            raise DeclarationError(problem, "Write dt=2024-10-15, or dt=2024-10-15/region=eu.")
        wanted.append(values_of(cell.cell) or {})
    return wanted


def findings(history: Rows, dataset: DatasetName, wanted: list[Values] | None) -> list[str]:
    """Give a sentence for each partition that is not up to date, and set the dataset's two gauges.

    :param history: the opened history
    :param wanted: for each partition to check, its values by dimension; None checks all partitions
    """
    from airflow_provider_sparklineage.history.queries.gaps import gaps
    from airflow_provider_sparklineage.history.queries.stale import stale

    of_dataset = stale(history, dataset)
    _measure(dataset, {"stale_partitions": len(of_dataset), "gaps": len(gaps(history, dataset))})
    return [
        *(_stale(one) for one in of_dataset if _is_wanted(one.partition, wanted)),
        *_of_runs(history, dataset, wanted),
    ]


def _measure(dataset: DatasetName, counts: Mapping[str, int]) -> None:
    try:
        for name, count in counts.items():
            tags = {"dataset": f"{dataset.namespace}:{dataset.name}"}
            Stats.gauge(f"sparklineage.{name}", count, tags=tags)
    except Exception:  # most often the metrics backend cannot be reached
        log.warning("What is stale was not counted in Airflow's metrics.", exc_info=True)


def _stale(one: Stale) -> str:
    cause = one.cause
    what = f"{cause.dataset.name} {_text(cause.partition)} changed at {cause.at:%Y-%m-%d %H:%M}"
    return f"{_text(one.partition)} is stale, as {what}"


def _of_runs(history: Rows, dataset: DatasetName, wanted: list[Values] | None) -> Iterator[str]:
    """Yield a sentence for each partition that a failed or mismatched run wrote, or no known run.

    A run mismatches if it read or wrote other partitions than expected. The last kind of sentence
    can only be on an entry of ``wanted``.

    :param history: the opened history
    :param wanted: as for :func:`findings`
    """
    from airflow_provider_sparklineage.history.queries.answers import values_of
    from airflow_provider_sparklineage.history.queries.failed_writes import failed_parts

    failed = {one.cell: values_of(one.cell) for one in failed_parts(history, dataset)}
    for values in failed.values():
        if _is_wanted(values, wanted):
            yield f"{_text(values)} was written by a run that failed, and by none since"
    there = [
        (values_of(row["cell"]), row["check_status"])
        for row in history.rows(_THERE, dataset._asdict())
        if row["cell"] not in failed
    ]
    for values, status in there:
        if status in MISMATCHES and _is_wanted(values, wanted):
            yield f"{_text(values)} was written by a run whose partitions mismatched"
    known = [*failed.values(), *(values for values, _ in there)]
    for values in wanted or ():
        if not any(_is_wanted(one, [values]) for one in known):
            yield f"nobody is known to have written {_text(values)}"


def _is_wanted(partition: Values | None, wanted: list[Values] | None) -> bool:
    """Whether a partition is to be checked: it has all values of an entry of ``wanted``.

    :param partition: the partition's values; None for the whole dataset, which is always checked
    :param wanted: None if all partitions are to be checked
    """
    if partition is None or wanted is None:
        return True
    return any(one.items() <= partition.items() for one in wanted)


def _text(partition: Values | None) -> str:
    return "/".join(f"{k}={v}" for k, v in partition.items()) if partition else "the whole dataset"
