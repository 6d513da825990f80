"""What Airflow's OpenLineage provider gets where nothing was collected (yet), and when nothing.

START has the inputs and outputs of the last successful run, with what is declared of this one. An
event without datasets would make a backend that shows the latest run show nothing, until the end of
this one or, if it fails, of the next. So does the event at the end of a try whose job did not run.
If there is no such run, something else stands in for it (:mod:`.previous_run`), but only of a side
of which nothing is declared: to a backend, what START names is what the run writes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from airflow.providers.openlineage.extractors import OperatorLineage
from msgspec.structs import replace

from airflow_provider_sparklineage.event import openlineage
from airflow_provider_sparklineage.event.leaving import (
    NO_OTHERS,
    Others,
    leaving,
    shows_descriptions,
)
from airflow_provider_sparklineage.event.pipeline import event_of
from airflow_provider_sparklineage.hooks import sources
from airflow_provider_sparklineage.lineage.declared import declared_lineage
from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode
from airflow_provider_sparklineage.model.exceptions import SettingsError
from airflow_provider_sparklineage.operators import previous_run, upstream
from airflow_provider_sparklineage.operators.masking import masked
from airflow_provider_sparklineage.operators.previous_run import NOTHING_KNOWN, Known
from airflow_provider_sparklineage.settings import resolution as settings
from airflow_provider_sparklineage.spark.capture.reports import ReadReport

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from airflow_provider_sparklineage.event.archive import Archive
    from airflow_provider_sparklineage.event.document import Event
    from airflow_provider_sparklineage.expectations.declared import Declared
    from airflow_provider_sparklineage.model.representation import Leaving
    from airflow_provider_sparklineage.settings.resolution import Settings

log = logger(__name__)


class Prepared(NamedTuple):
    """What the OpenLineage hooks need of Airflow.

    It is asked for while the task's fields are rendered. The hooks run in a process that the
    provider forks, in which ``airflow dags test`` and ``dag.test()`` answer nothing: the hook would
    wait until the provider ends it, and the event would be lost.
    """

    settings: Settings
    known: Known = NOTHING_KNOWN
    upstream: tuple[Event, ...] = ()
    """Events of the tasks before this one, for a backend that shows descriptions."""


def prepared(resolve: Callable[[], Settings], context: Mapping[str, Any]) -> Prepared:
    """Ask Airflow for settings and for what is known of earlier runs; never raises.

    :param context: of the template fields; without a task instance nothing is known
    """
    try:
        resolved = resolve()
    except SettingsError:  # execute() reports it
        resolved = settings.resolve()
    sources.ready_client()
    ti = context.get("ti")
    archive = _archive(resolved)
    is_dated = context.get("logical_date") is not None
    known = NOTHING_KNOWN
    if ti is not None:
        known = previous_run.last_known(ti, archive, is_dated=is_dated)
    written: tuple[Event, ...] = ()
    if ti is not None and shows_descriptions(resolved.leaving):
        written = upstream.events(ti, context.get("task") or getattr(ti, "task", None))
    return Prepared(resolved, known, written)


def _archive(resolved: Settings) -> Archive | None:
    if not resolved.archive_url:
        return None
    from airflow_provider_sparklineage.event.archive import archive_of

    return archive_of(resolved)


class TryEndedError(BaseException):
    """Raised in an OpenLineage hook to send no event: Airflow has ended the try and sent one.

    Not an ``Exception``: for those the provider sends the event without datasets.
    """


NOT_SUBMITTED = Degradation(
    DegradationCode.NOT_SUBMITTED,
    "The try ended before its job was submitted. The event has the datasets that are declared and "
    "those of the last successful run, so that backends keep showing them.",
)


def expected(declared: Declared, prepared: Prepared, ended: Degradation | None = None) -> Event:
    """Describe what a try is going to read and write, as far as that is known.

    :param ended: why no more is known of a try that is over
    """
    resolved, (last, stand_in, _), _ = prepared
    if not last.has_datasets:
        last = stand_in.only(inputs=not declared.inputs, outputs=not declared.outputs)
    lineage = declared_lineage(
        declared.inputs,
        declared.outputs,
        declared.expectations,
        resolved.partitioning,
        resolved.limits,
        last,
    )
    if ended is None:
        return event_of(lineage, representation=resolved.representation, mask=masked)
    lineage = replace(lineage, degradations=(*lineage.degradations, ended))
    return event_of(lineage, ReadReport(), resolved.representation, masked)


def operator_lineage(
    event: Event, how: Leaving, prepared: Prepared | None = None
) -> OperatorLineage[Any, Any]:
    """Hand an event to Airflow's OpenLineage provider, which makes its header itself.

    :param prepared: what is known of other runs
    """
    others = Others(prepared.known.event, prepared.upstream) if prepared else NO_OTHERS
    for known in (others, NO_OTHERS):  # what was kept of another run may be damaged
        try:
            event = leaving(event, how, known)
            break
        except Exception:  # the provider would send the event without datasets
            log.warning("The lineage is sent with less than its backend shows.", exc_info=True)
    return OperatorLineage(**openlineage.parts(event)._asdict())


_ENDED = frozenset({"success", "failed", "skipped", "removed"})


def ended_as(ti: Any) -> str | None:
    """Find out how Airflow has ended a try while its job ran, if it has; never raises.

    A person may have marked the task. The API server sends an event of that, and the worker learns
    it by being stopped, which looks like a failure of the job. Airflow's task runner reports a
    failure of its own only after ``execute()``.
    """
    map_index = None if ti.map_index in (None, -1) else ti.map_index
    try:
        states = ti.get_task_states(
            dag_id=ti.dag_id, task_ids=[ti.task_id], run_ids=[ti.run_id], map_index=map_index
        )
        state = str(next(iter(states[ti.run_id].values())))
    except Exception:
        log.debug("The task's state is not known.", exc_info=True)
        return None
    return state if state in _ENDED else None
