"""Makes the event of a task's lineage, and the event that is sent, in steps.

The event is made once (:mod:`.make`). Then it goes through a list of steps, each ``event ->
event``; a step with nothing to do gives the same event. A step declares in the event the parts that
it removes (:func:`.facets.declared`). The result is for XCom, archive, tab and commands. It is
neutral: no part of it was changed for one backend.

=============================  =====================================================================
:func:`event_of`
``without_credentials``        users and passwords of URIs are stripped, in names too
``masked``                     secrets that Airflow masks in logs are masked, but not in names
``shortened``                  long texts are truncated, after secrets are masked: half a secret
                               would not be recognised
``with_lines``                 the partition check gets a line for each dataset
``fitted``                     detail is dropped until the event has at most 64 MiB
=============================  =====================================================================

The event in XCom and archive, the *kept* event of a try, has all known lineage, under the original
names, however few bytes a backend takes. The tab, the commands and the next run read this event,
and a transport for another product gets it, as far as it may be sent
(:mod:`airflow_provider_sparklineage.datahub`). A backend may be unable to hold some names or to
take some facets, may need texts to show, or may take fewer bytes. So the event that is sent is made
for the backend, by pure functions, when an event is given to Airflow's OpenLineage provider or is
sent again.

=============================  =====================================================================
:func:`adapted`
``renamed``                    names that the backend cannot hold are replaced
``Backend.repaired``           parts that the backend cannot take are changed
``with_lines``                 the lines of the partition check get these names
:func:`sendable`               detail is dropped until the event has at most ``max_event_bytes``
:func:`ready_to_send`
``described``                  job, datasets and columns get descriptions
``with_few_columns``           columns are dropped that the backend has no time for
=============================  =====================================================================

Names and repairs come before the last two steps, because they change the length of a line and the
amount of detail to drop. So the kept event and the adapted one are both made of the event before
those two steps (:func:`events_of`); they are one object if the backend needs no change and takes as
many bytes.

Adapting a large event takes seconds, and is done while Airflow waits for the task. The steps of
:func:`ready_to_send` need other runs, and are done in the hooks, which Airflow ends after a few
seconds.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from airflow_provider_sparklineage.event.backends import backend_of
from airflow_provider_sparklineage.event.descriptions import described
from airflow_provider_sparklineage.event.document import header as header_of
from airflow_provider_sparklineage.event.facets import declared, with_lines
from airflow_provider_sparklineage.event.make import made
from airflow_provider_sparklineage.event.steps.rename import renamed
from airflow_provider_sparklineage.event.steps.size import (
    count_columns,
    fitted,
    limit_of,
    slow_columns,
    with_few_columns,
)
from airflow_provider_sparklineage.event.steps.texts import (
    masked,
    shortened,
    without_credentials,
)
from airflow_provider_sparklineage.model.allowance import (
    UNLIMITED,
    Allowance,
    Stage,
    cut_short,
    garbage_collector_paused,
)
from airflow_provider_sparklineage.model.representation import (
    DEFAULT_REPRESENTATION,
    Adaptation,
    Answered,
    Representation,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from airflow_provider_sparklineage.event.document import Event, Header
    from airflow_provider_sparklineage.lineage.dataset import TaskLineage
    from airflow_provider_sparklineage.lineage.declared_and_last_known import Completed
    from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle
    from airflow_provider_sparklineage.spark.capture.lines import ReadReport


# --- the event for a backend ----------------------------------------------------------------------


class Others(NamedTuple):
    """Events of other runs; they have facts on this run's datasets that its own event lacks.

    They are :func:`adapted` to the same backend, so that a dataset has the same name in all.

    :param last: event of the task's last successful run
    :param upstream: events of the tasks before this run's task in the same DAG run, the nearest
        first
    """

    last: Event | None = None
    upstream: Sequence[Event] = ()


NO_OTHERS = Others()


def adapted(event: Event, how: Adaptation, is_late: Callable[[], bool] = lambda: False) -> Event:
    """Adapt an event to its backend: rename datasets and columns, repair it, and reduce its size.

    :param event: the event for XCom and archive
    :param how: the backend, and the settings for it
    :param is_late: tells whether time is short; then column lineage and facets are dropped as a
        whole, which is faster
    :return: the same object if the backend needs no change and takes as many bytes
    """
    held = _held(event, how)
    return sendable(event if held is event else with_lines(held), how, is_late)


def _held(event: Event, how: Adaptation) -> Event:
    """Rename and repair an event; the same object if its backend needs no change."""
    backend = backend_of(how.backend)
    return backend.repaired(renamed(event, backend))


def sendable(event: Event, how: Adaptation, is_late: Callable[[], bool] = lambda: False) -> Event:
    """Drop detail of an event until it has as many bytes as may be sent.

    :param how: the settings for the backend, with the limit
    :param is_late: as for :func:`adapted`
    :return: the same object if it is small enough
    """
    return fitted(event, how.max_event_bytes, _SIZE_OPTION, is_late)


_SIZE_OPTION = "[sparklineage] max_event_bytes"


def sent_of(kept: Event, how: Adaptation, last: Event | None = None) -> Event:
    """Make the event for the backend from the one in XCom or archive.

    :param kept: the event as XCom or archive have it
    :param how: the backend, and the settings for it
    :param last: such an event of the task's last successful run; None if there is none
    """
    return ready_to_send(adapted(kept, how), how, Others(last and adapted(last, how)))


def ready_to_send(event: Event, how: Adaptation, others: Others = NO_OTHERS) -> Event:
    """Add descriptions to an adapted event, and limit its columns, as far as its backend needs it.

    :param event: the result of :func:`adapted`; the event of a START has no header
    :param how: the backend, and the settings for it
    :param others: events of other runs, with facts for descriptions and columns
    :return: the same object if there is nothing to do
    """
    if shows_descriptions(how):
        airflow_url = how.airflow_url if how.has_history else ""
        event = described(event, others.last, others.upstream, airflow_url)
    backend = backend_of(how.backend)
    if backend.pays_per_column:
        event = with_few_columns(event, limit_of(how, backend.title), others.last)
    return event


def asked(adapted: Event, sent: Event, how: Adaptation) -> Answered | None:
    """Count the columns that a backend is asked to store, for the limit of the next event.

    :param adapted: the event of :func:`adapted`
    :param sent: the event of :func:`ready_to_send`
    :param how: the backend, and the settings for it
    :return: without the time, which is not known yet; None if the limit does not follow the time
    """
    backend = backend_of(how.backend)
    if not (how.is_timed and backend.pays_per_column):
        return None
    columns = count_columns(sent)
    return Answered(
        columns,
        datasets=len(sent["inputs"]) + len(sent["outputs"]),
        limit=limit_of(how, backend.title).columns,
        is_whole=columns == count_columns(adapted),
        slow=slow_columns(how.answered),
    )


def shows_descriptions(how: Adaptation) -> bool:
    """Whether jobs, datasets and columns get descriptions before an event is sent.

    :param how: the backend, and the settings for it
    """
    return how.describe_datasets and backend_of(how.backend).shows_descriptions


# --- the event of a lineage -----------------------------------------------------------------------


class Events(NamedTuple):
    """The two events of a task's lineage: for XCom and archive, and for the backend.

    :param kept: the event for XCom and archive, which is not changed for a backend
    :param adapted: the event for the backend, see :func:`adapted`; the same object if the backend
        needs no change and takes as many bytes
    """

    kept: Event
    adapted: Event


def event_of(
    lineage: TaskLineage,
    report: ReadReport | None = None,
    representation: Representation = DEFAULT_REPRESENTATION,
    mask: Callable[[str], str] = str,
    header: Header | None = None,
) -> Event:
    """Make the event of a task's lineage for XCom and archive.

    :param report: result of reading the listener's events; None before the job has run
    :param representation: the parts that the event has or leaves out
    :param mask: hides the secrets in a text; Airflow knows them
    :param header: None for Airflow's hooks, which fill it in themselves
    """
    with garbage_collector_paused():
        whole = _bounded(lineage, report, representation.max_event_bytes, _KEPT_BOUND)
        return _kept(_clean(whole, report, representation, mask, header), representation)


_KEPT_BOUND = "the limit of a kept event"
"""The name of this limit in messages: 64 MiB, or less by ``sparklineage merge
--max-event-bytes``."""


def _bounded(
    lineage: TaskLineage, report: ReadReport | None, max_bytes: int, option: str
) -> TaskLineage:
    """Leave out column lineage that cannot fit into an event, before its facets are made.

    :param report: None before the job has run: then there are no columns yet, and no facet to
        declare losses in
    :param option: the limit as sentences name it
    :return: the same object if all of it may fit
    """
    if report is None:
        return lineage
    # Imported here so that START does not wait for it.
    from airflow_provider_sparklineage.event.column_lineage import bounded

    return bounded(lineage, max_bytes, option)


def _clean(
    lineage: TaskLineage,
    report: ReadReport | None,
    representation: Representation,
    mask: Callable[[str], str],
    header: Header | None,
    allowance: Allowance = UNLIMITED,
) -> Event:
    """Make the event of a lineage, without credentials and secrets, and with short texts.

    The parameters are those of :func:`events_of`.
    """
    event = made(lineage, report, representation, header, allowance)
    return shortened(masked(without_credentials(event), mask))


def _kept(
    event: Event, representation: Representation, is_late: Callable[[], bool] = lambda: False
) -> Event:
    """Do the last two steps of the kept event.

    :param is_late: as for :func:`adapted`
    """
    return fitted(with_lines(event), representation.max_event_bytes, _KEPT_BOUND, is_late)


@garbage_collector_paused()
def events_of(
    lineage: TaskLineage,
    how: Adaptation,
    report: ReadReport | None = None,
    representation: Representation = DEFAULT_REPRESENTATION,
    mask: Callable[[str], str] = str,
    header: Header | None = None,
    allowance: Allowance = UNLIMITED,
    as_sent: TaskLineage | None = None,
) -> Events:
    """Make the events of a task's lineage: for XCom and archive, and for a backend.

    The parameters that are not listed here are those of :func:`event_of`.

    :param how: the backend, and the settings for it
    :param allowance: once its time for facets is over, the remaining datasets get no facets
    :param as_sent: the lineage for the backend; None if it is the same
    """
    clean = partial(
        _clean,
        report=report,
        representation=representation,
        mask=mask,
        header=header,
        allowance=allowance,
    )
    few = _bounded(lineage, report, how.max_event_bytes, _SIZE_OPTION)
    whole = _bounded(lineage, report, representation.max_event_bytes, _KEPT_BOUND)
    before = neutral = clean(few)
    if as_sent is not None:
        before = clean(_bounded(as_sent, report, how.max_event_bytes, _SIZE_OPTION))
    held = _held(before, how)
    is_late = partial(allowance.is_over, Stage.EVENT_OF_BACKEND)
    sent = None if held is neutral else sendable(with_lines(held), how, is_late)
    if whole is not few:
        sent = sendable(with_lines(neutral), how, is_late) if sent is None else sent
        del before, held  # a second event of this size may not fit into memory
        # It takes seconds to make, and cannot be cut short meanwhile, so it is not begun late.
        neutral = clean(whole) if not allowance.is_over(Stage.FACETS) else _without_rest(neutral)
    kept = _kept(neutral, representation, partial(allowance.is_over, Stage.EVENT))
    return Events(kept, sendable(kept, how, is_late) if sent is None else sent)


def _without_rest(event: Event) -> Event:
    """Declare that there was no time to make more of an event than may be sent."""
    text = "Making the event took too long, so that Airflow keeps no more of it than may be sent"
    return declared(event, [cut_short(text)])


# --- the event of a bundle ------------------------------------------------------------------------


def events_of_bundle(
    bundle: CaptureBundle,
    completed: Completed,
    how: Adaptation,
    mask: Callable[[str], str],
    allowance: Allowance,
) -> Events:
    """Make the events of a bundle as :func:`events_of` does: for XCom and archive, and to send.

    The parameters that are not listed here are those of :func:`events_of`.

    :param completed: the lineage for XCom and archive, and that for the backend if they differ
    """
    lineage, as_sent, _ = completed
    if as_sent is not None:
        as_sent = replace(as_sent, degradations=lineage.degradations)
    manifest, header = bundle.manifest, header_of(bundle.manifest, lineage.application)
    form = manifest.representation
    return events_of(lineage, how, bundle.report, form, mask, header, allowance, as_sent)


@garbage_collector_paused()
def merged_event(
    bundle: CaptureBundle, lineage: TaskLineage, mask: Callable[[str], str] = str
) -> Event:
    """Make the merged RunEvent of a bundle for XCom and archive.

    :param lineage: the lineage of the bundle's try
    :param mask: hides the secrets in a text; Airflow knows them
    """
    manifest = bundle.manifest
    header = header_of(manifest, lineage.application)
    return event_of(lineage, bundle.report, manifest.representation, mask, header)
