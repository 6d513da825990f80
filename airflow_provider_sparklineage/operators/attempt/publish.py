"""Make the event of a try and publish it: to XCom, archive and backend, and for later commands.

XCom and archive have the event before it is adapted to a backend
(:func:`~airflow_provider_sparklineage.event.pipeline.adapted`), and without the additions of
Airflow's OpenLineage provider (ownership, run facets of Airflow). These additions are kept next to
the event, for the commands ``resend`` and ``collect``.
"""

from __future__ import annotations

import json
import time
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowTaskTimeout
from msgspec.structs import replace

from airflow_provider_sparklineage.event import sending, xcom
from airflow_provider_sparklineage.event.archive import (
    RETENTION,
    archive_of,
    content_of,
    name_of,
)
from airflow_provider_sparklineage.event.descriptions import Descriptions
from airflow_provider_sparklineage.event.document import Written, empty, header
from airflow_provider_sparklineage.event.emitter import failures, timed
from airflow_provider_sparklineage.event.model import DOCUMENTATION_KEY
from airflow_provider_sparklineage.event.pipeline import (
    Events,
    asked,
    events_of_bundle,
    shows_descriptions,
)
from airflow_provider_sparklineage.event.steps.size import ever_smaller
from airflow_provider_sparklineage.history import incoming, merging_process
from airflow_provider_sparklineage.hooks import sources
from airflow_provider_sparklineage.lineage.declared_and_last_known import without_datasets
from airflow_provider_sparklineage.links.lineage import tab_page
from airflow_provider_sparklineage.model.allowance import Stage, garbage_collector_paused
from airflow_provider_sparklineage.model.credentials import logger, scrub
from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode
from airflow_provider_sparklineage.model.exceptions import (
    ArchiveError,
    CaptureError,
    HistoryError,
    SparkLineageError,
)
from airflow_provider_sparklineage.model.pages import with_line
from airflow_provider_sparklineage.operators.attempt.collect import Collected, given_up
from airflow_provider_sparklineage.operators.masking import masked, redacted
from airflow_provider_sparklineage.settings.connection import DATAHUB_TRANSPORT, types_of
from airflow_provider_sparklineage.settings.option_kinds import HistoryMerger
from airflow_provider_sparklineage.spark.capture.remote import SENDING
from airflow_provider_sparklineage.storage.bounded import reason, within
from airflow_provider_sparklineage.storage.objects import Objects

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sparklineage.event.archive import Archive
    from airflow_provider_sparklineage.event.document import Event, Facets
    from airflow_provider_sparklineage.lineage.dataset import TaskLineage
    from airflow_provider_sparklineage.model.last_run import BothForms
    from airflow_provider_sparklineage.model.representation import Adaptation, Answered
    from airflow_provider_sparklineage.operators.attempt.submit import Capture
    from airflow_provider_sparklineage.operators.attempt.timing import Deadline
    from airflow_provider_sparklineage.settings.resolution import Settings
    from airflow_provider_sparklineage.spark.capture.bundle import (
        CaptureBundle,
        Manifest,
        TaskIdentity,
    )

log = logger(__name__)


# --- the event ------------------------------------------------------------------------------------


def with_events(
    collected: Collected, last_known: BothForms, task: Any, deadline: Deadline
) -> tuple[Collected, Events]:
    """Make the event of a collected lineage in two forms: for XCom and archive, and to send.

    Before that, Spark's own events are sent if ``relay_spark_events`` is on. If the event cannot be
    made of the collected lineage, it is made of the declared datasets and those of the last
    successful run; if that fails, it has only the degradations; if that fails too, only the header.

    :param collected: the outcome of collecting
    :param last_known: the last successful run
    :param task: the operator, for which Airflow's emission policy is asked
    :param deadline: the time limit; this function starts its clock anew
    :return: the lineage of which the event was made, and the event in both forms
    """
    capture, outcome = collected.capture, collected.merged.lineage.outcome
    try:
        if capture.settings.relay_spark_events:
            # Relaying gets time of its own: merging may have used all of it.
            deadline.begin(capture.settings.collect_timeout.total_seconds())
            lineage = relayed(collected.merged.lineage, capture.bundle, task, deadline)
            collected = Collected(capture, collected.merged._replace(lineage=lineage))
        return collected, _events(collected, deadline)
    except (Exception, AirflowTaskTimeout) as error:
        collected = given_up(capture, outcome, last_known, error)
    try:
        return collected, _events(collected, deadline)
    except (Exception, AirflowTaskTimeout):  # a declaration may be the reason
        log.debug("The declared datasets cannot be reported.", exc_info=True)
    manifest = collected.capture.bundle.manifest
    collected = collected._replace(merged=without_datasets(manifest, outcome))
    try:
        return collected, _events(collected, deadline)
    except (Exception, AirflowTaskTimeout):  # a defect in making facets
        log.warning("The lineage of this try cannot be reported.", exc_info=True)
        bare = empty(header(manifest, None), outcome)
        return collected, Events(bare, bare)


def _events(collected: Collected, deadline: Deadline) -> Events:
    bundle, settings = collected.capture.bundle, collected.capture.settings
    # Making the event always has its part of the time, even if a callback or the relaying has used
    # up more than all.
    timeout_s = settings.collect_timeout.total_seconds()
    deadline.begin(max(deadline.left, timeout_s * (1 - Stage.MERGING)))
    left = deadline.allowance(Stage.MERGING)
    return events_of_bundle(bundle, collected.merged, settings.adaptation, masked, left)


# --- its description ------------------------------------------------------------------------------


# In the backend, the description of a task's job is a summary of its run, then the user's own text.


def described(event: Event, how: Adaptation, ti: Any, *, is_logged: bool) -> str:
    """Describe the run of an event in a readable text; empty if the backend does not show it.

    :param event: the event of the try, adapted to the backend, because the one that is kept may be
        many times larger
    :param how: the settings by which events are adapted to the backend
    :param ti: the task instance
    :param is_logged: whether to log where Airflow shows the lineage of the try, and the data that
        the try read and wrote
    """
    descriptions = Descriptions(event)
    if is_logged:
        log.info("Lineage: %s", tab_page(ti) or "in the task's tab Spark lineage")
        for line in descriptions.of_log():
            log.info("  %s", line)
    if not shows_descriptions(how):
        return ""
    return with_line(descriptions.of_run(), tab_page(ti) if how.airflow_url else "")


def documentation_of_job(operator: Any, own: str | None, run: str) -> str | None:
    """Put the description of the run in front of the text that Airflow would send.

    :param own: the operator's ``doc``
    :param run: the description of the run
    :return: the description of the job; only ``own`` if ``run`` is empty
    """
    if not run:
        return own
    texts = [run, next(filter(None, _doc_texts(operator, own)), "")]
    return _BETWEEN_DOCS.join(filter(None, texts))


def own_documentation(task: Any) -> Facets | None:
    """Make the job facet ``documentation`` from the user's own text; None if there is no text.

    The description of the run, with which the operator's ``doc`` begins after the job, is left out.

    :param task: the operator, or None if it is not known
    """
    if task is None:
        return None
    from openlineage.client.serde import Serde

    texts = {name: getattr(task, name, None) for name in _DOC_FIELDS}
    own = SimpleNamespace(**texts | {"doc": vars(task).get("doc")})
    documentation = _documentation(own, task)
    safe: Facets = redacted({key: Serde.to_dict(facet) for key, facet in documentation.items()})
    return safe.get(DOCUMENTATION_KEY)


def _documentation(described: Any, task: Any) -> dict[str, Any]:
    """Make the facet of a task's own text, or of its DAG's text; ``{}`` if there is none.

    :param described: the object with the task's texts: the operator, or a copy of its fields
    :param task: the operator, by which the DAG is found
    """
    from airflow.providers.openlineage.utils import utils
    from openlineage.client.facet_v2 import documentation_job

    text, kind = utils.get_task_documentation(described)
    if not text and getattr(task, "dag", None):
        text, kind = utils.get_dag_documentation(task.dag)
    return {DOCUMENTATION_KEY: documentation_job.DocumentationJobFacet(text, kind)} if text else {}


_BETWEEN_DOCS = "\n\n—\n\n"
"""A visible line between the two texts, because Marquez shows both as one paragraph."""


_DOC_FIELDS = ("doc_md", "doc_json", "doc_yaml", "doc_rst")


def _doc_texts(operator: Any, own: str | None) -> Iterator[str | None]:
    """Yield the texts that Airflow's OpenLineage provider tries as a description, in its order.

    Texts that operator and DAG do not have are None or empty.

    :param own: the operator's ``doc``
    """
    yield own
    for name in _DOC_FIELDS:
        yield getattr(operator, name, None)
    dag = getattr(operator, "dag", None)
    for name in ("doc_md", "description"):
        yield getattr(dag, name, None)


# An event that is not sent yet has a mark in the archive. The mark is made with the archive's
# entry, before anything is sent, and it is removed when Airflow's client has returned from sending
# this run's event. So the mark stays if the process is killed, if Airflow stops the hook, if the
# client gives up, and if one of the several places that a composite transport sends to did not take
# the event. With a transport that sends later, the client cannot know whether an event arrived, so
# no event is marked.


_WATCHED = frozenset({"http", "file", "console", DATAHUB_TRANSPORT})
"""Transports that return when the event has arrived, and raise if it has not."""

_clock = time.monotonic
_MARK_TIMEOUT_S = 2.0  # to remove a mark; short, as it counts into Airflow's own limit for a hook


def airflow_additions(manifest: Manifest, context: Context) -> dict[str, Any] | None:
    """Give the parts that Airflow's OpenLineage provider would add to a try's event.

    :return: start time, run facets, job facets, and the facet with the user's own text, each by its
        key; None if the manifest names no task, or if Airflow's emission policy holds the event
        back
    """
    if manifest.task is None or not _is_emitted(context.get("task"), manifest.task):
        return None
    ti: Any = context["ti"]
    started = getattr(ti, "start_date", None) or manifest.started
    return {
        sending.STARTED: started.isoformat() if started else "",
        sending.RUN_FACETS: _run_facets(manifest.task.dag_id, manifest.run_id, context),
        sending.JOB_FACETS: _job_facets(context.get("task")),
        sending.OWN_TEXT: own_documentation(context.get("task")),
    }


def _is_emitted(task: Any, identity: TaskIdentity) -> bool:
    from airflow.providers.openlineage.utils.emission_policy import resolve_task_emission_policy

    if task is None:
        return True
    policy = resolve_task_emission_policy(task, identity.dag_id, identity.task_id)
    return bool(policy.emit and policy.extract_operator_metadata)


def _run_facets(dag_id: str, run_id: str, context: Context) -> dict[str, Any]:
    from airflow.providers.openlineage.plugins.adapter import OpenLineageAdapter
    from airflow.providers.openlineage.utils.utils import get_task_parent_run_facet
    from openlineage.client.facet_v2 import nominal_time_run

    dag_run: Any = context["dag_run"]
    above = OpenLineageAdapter.build_dag_run_id(
        dag_id, dag_run.logical_date or dag_run.run_after, dag_run.clear_number
    )
    facets = get_task_parent_run_facet(above, dag_id, dr_conf=dag_run.conf or {})
    facets |= _airflow_facet(run_id, context)
    start, end = (getattr(dag_run, f"data_interval_{side}", None) for side in ("start", "end"))
    if start is not None:
        facets["nominalTime"] = nominal_time_run.NominalTimeRunFacet(
            start.isoformat(), end and end.isoformat()
        )
    return _as_sent(facets)


def _airflow_facet(run_id: str, context: Context) -> dict[str, Any]:
    """Make Airflow's own run facet ``airflow``, which describes the DAG run and the try.

    :param run_id: the OpenLineage run id of the try, which is not the id of Airflow's DAG run
    :return: the facet by its key; ``{}`` if it cannot be made
    """
    from airflow.providers.openlineage.utils.utils import get_airflow_run_facet

    dag_run, dag, ti, task = (context.get(key) for key in ("dag_run", "dag", "ti", "task"))
    with suppress(Exception):  # the facet only describes, and Airflow may need more context
        made: dict[str, Any] = get_airflow_run_facet(dag_run, dag, ti, task, run_id)  # type: ignore[arg-type]
        return made
    return {}


def _job_facets(task: Any) -> dict[str, Any]:
    from openlineage.client.facet_v2 import job_type_job

    kind = job_type_job.JobTypeJobFacet("BATCH", "AIRFLOW", "TASK")
    # For a task whose job has ended, its text begins with a description of its run.
    return _as_sent({"jobType": kind, **_documentation(task, task)})


def _as_sent(facets: dict[str, Any]) -> dict[str, Any]:
    """Convert Airflow's facets to JSON types, and hide the secrets that Airflow hides in them."""
    from openlineage.client.serde import Serde

    hidden = redacted({key: Serde.to_dict(facet) for key, facet in facets.items()})
    # By way of JSON, because executor_config may hold objects of any class.
    made: dict[str, Any] = json.loads(Serde.to_json(hidden))
    return made


def can_be_watched() -> bool:
    """Whether this process can tell if an event has arrived; False if Airflow sends no events.

    It can with a transport that returns only after the event has arrived. It can also if Airflow's
    OpenLineage client cannot be made: then it is certain that the event has not arrived.
    """
    if sources.why_not_sent() is not None:
        return False  # Airflow sends no events, so there is nothing to watch
    try:
        transport, _ = sources.transport()
    except SparkLineageError:
        return True  # Airflow's client cannot be made, so the event is not sent
    return transport is not None and _WATCHED.issuperset(types_of(transport))


def watch_delivery(capture: Capture, events: Events, sent: Event, how: Adaptation) -> None:
    """Watch Airflow's OpenLineage client, to note in the archive when it has sent a try's event.

    Until then the event in the archive is marked as not sent. The time of the backend's answer is
    noted, too. Call this in the process, or the thread, in which the provider then sends the event.
    It never raises.

    :param events: the event of the try in both forms
    :param sent: the event in the form that is sent
    :param how: the settings by which the event was adapted to the backend
    """
    try:
        _watch_client(capture, asked(events.adapted, sent, how))
    except Exception:  # no client can be made; the provider fails for the same reason when it sends
        log.debug("It is not watched whether the event is sent.", exc_info=True)


def _watch_client(capture: Capture, columns: Answered | None) -> None:
    from airflow.providers.openlineage.plugins.listener import get_openlineage_listener

    task, run_id = capture.bundle.manifest.task, capture.bundle.manifest.run_id
    archive = archive_of(capture.settings, _MARK_TIMEOUT_S)
    if archive is None or not archive.has_marks or task is None:
        return
    client = get_openlineage_listener().adapter.get_or_create_openlineage_client()
    emit = client.emit

    def watched(event: Any) -> None:
        if getattr(getattr(event, "run", None), "runId", None) != run_id:
            emit(event)
            return
        name = name_of(task)
        transport = client.transport
        with _noting_time(archive, name, columns, transport), failures(transport) as missed:
            emit(event)  # raises if no transport took it
        vars(client)["emit"] = emit
        if not missed:
            with suppress(ArchiveError):  # sending it twice does no harm
                archive.unmark(name)

    vars(client)["emit"] = watched


@contextmanager
def _noting_time(
    archive: Archive, name: str, columns: Answered | None, transport: Any
) -> Iterator[None]:
    """Measure the time in which the backend answers, and keep it for the task's next event.

    If Airflow ends this process because there is no answer, the next run finds the event without a
    time. If the backend cannot be reached, the time of the event before stays.

    :param name: name of the event in the archive
    :param columns: the number of columns in the event; None to do nothing
    """
    if columns is None:
        yield
        return
    before = archive.answered(name)
    _note_answered(archive, name, columns)
    seconds: list[float] = []
    try:
        with timed(transport, _clock) as seconds:
            yield
    finally:
        measured = replace(columns, seconds=max(seconds)) if seconds else before
        _note_answered(archive, name, measured)


def _note_answered(archive: Archive, name: str, answered: Answered | None) -> None:
    with suppress(ArchiveError):  # then the next event has the limit that this one had
        archive.note_answered(name, answered)


ARCHIVE_TIMEOUT_S = 10.0
_HISTORY_TIMEOUT_S = 5.0
_MERGE_TIMEOUT_S = 60.0
_KILLED_TIMEOUT_S = 1.0  # Airflow sends SIGKILL 5 s after SIGTERM, and collecting had 3 of them


def publish(
    capture: Capture,
    deadline: Deadline,
    event: Event,
    context: Context,
    *,
    is_for_sending: bool = True,
) -> None:
    """Push the XCom, write the archive, and deliver the event to the history; never raise.

    For each that fails, one warning is logged.

    :param deadline: tells whether Airflow is ending the process: then the archive gets less time
    :param event: the event in the form for XCom and archive
    :param is_for_sending: whether Airflow's OpenLineage provider is going to ask for the event
    """
    written = Written(event)
    with (
        _warning("The lineage of this try is not shown in Airflow"),
        garbage_collector_paused(),
    ):
        _push(written, context)
    task, sending = capture.bundle.manifest.task, None
    if task is None:
        return
    with _warning("The event of this try is not in the archive"):
        is_killed = deadline.is_killed
        sending = _sending(capture, context) if is_for_sending else None
        timeout_s = _KILLED_TIMEOUT_S if is_killed else ARCHIVE_TIMEOUT_S
        archive = archive_of(capture.settings, timeout_s)
        if archive is not None:
            is_unsent = sending is not None and archive.has_marks and can_be_watched()
            archive.write(task, written, sending, is_unsent=is_unsent)
            if not is_killed:  # a killed process has no time; the next try sweeps
                with suppress(ArchiveError):  # the next try sweeps
                    archive.sweep_at_times(older_than=RETENTION, now=datetime.now(UTC))
    with _warning("The event of this try was not delivered to the history"):
        timeout_s = _KILLED_TIMEOUT_S if deadline.is_killed else _HISTORY_TIMEOUT_S
        is_delivered = deliver(capture.settings, task, content_of(written, sending), timeout_s)
    with _warning("The event of this try is not merged into the history yet"):
        is_merger = capture.settings.history_merged_by is HistoryMerger.TASKS
        if is_merger and not deadline.is_killed and is_delivered:
            _merge(capture.settings.history)


def deliver(settings: Settings, task: TaskIdentity, content: bytes, timeout_s: float) -> bool:
    """Deliver an event to the history, if there is one.

    :param content: the content of the event's file in the archive
    :param timeout_s: time limit, in seconds
    :return: whether the event was delivered
    :raise HistoryError: if the store did not take it in time
    """
    if not settings.history:
        return False
    archive = archive_of(settings)
    place = archive.place(task) if archive else ""
    sender = incoming.Sender(
        task.dag_id, task.task_id, task.run_id, task.map_index, task.try_number, place
    )
    return incoming.deliver(settings.history, sender, content, timeout_s)


def _merge(url: str) -> None:
    if problem := merging_process.merge(url, _MERGE_TIMEOUT_S):
        raise HistoryError(problem)


@contextmanager
def _warning(what: str) -> Iterator[None]:
    try:
        yield
    except (Exception, SystemExit, AirflowTaskTimeout) as error:
        # Spark has ended, and its end alone decides the task's outcome.
        log.warning("%s (%s: %s).", what, type(error).__name__, error)
        log.debug("Publishing lineage failed.", exc_info=True)


def xcom_of(written: Written) -> dict[str, Any] | None:
    """Make the XCom of an event, with as much detail as fits; None if not even the names fit.

    :param written: the event, with its JSON
    """
    return xcom.encode(written, xcom.MAX_BYTES, ever_smaller(written.event, xcom.BOUND))


def _push(written: Written, context: Context) -> None:
    value = xcom_of(written)
    if value is None:
        log.warning(
            "The lineage of this try is not shown in Airflow: even without detail it is more than "
            "%s allows.",
            xcom.BOUND,
        )
        return
    context["ti"].xcom_push(key=xcom.KEY, value=value)


def _sending(capture: Capture, context: Context) -> dict[str, Any] | None:
    if not (capture.settings.archive_url or capture.settings.history):
        return None
    try:
        return airflow_additions(capture.bundle.manifest, context)
    except Exception:  # an unknown version of the provider may lack the functions used here
        log.debug("What Airflow adds to the event is not known.", exc_info=True)
        return None


# Additions that are kept for `airflow sparklineage collect`, for a try that cannot collect its
# lineage itself.


_STORE_TIMEOUT_S = 5.0  # the job waits for it
_MAX_ADDITIONS_BYTES = 16 * 1024 * 1024


def keep_additions(capture: Capture, context: Context) -> None:
    """Store, in a try's bundle, the facets that Airflow adds to the try's event; never raises.

    ``null`` is stored if Airflow's emission policy holds the event back.
    """
    manifest, path = capture.bundle.manifest, capture.bundle.path
    if path is None:
        return
    try:
        content = json.dumps(airflow_additions(manifest, context)).encode()
        store = Objects(manifest.remote or f"file://{path}", is_for_group=True)
        within(_STORE_TIMEOUT_S, lambda: store.write(SENDING, content), "sparklineage-sending")
    except Exception:
        log.debug("What Airflow adds to the event was not kept.", exc_info=True)


def kept_additions(url: str) -> dict[str, Any] | None:
    """Read the facets that :func:`keep_additions` stored in a bundle.

    :param url: URL of the bundle's folder
    :return: the facets; None if Airflow's emission policy holds the event back
    :raise CaptureError: if the additions cannot be read
    """
    try:
        content = within(
            _STORE_TIMEOUT_S,
            lambda: Objects(url).read(SENDING, _MAX_ADDITIONS_BYTES),
            "sparklineage-sending",
        )
        found = json.loads(content)
    except Exception as error:  # each store's library raises errors of its own
        problem = scrub(f"{url}/{SENDING} cannot be read ({reason(error, _STORE_TIMEOUT_S)}).")
        raise CaptureError(problem) from error
    return found if isinstance(found, dict) else None


# Relaying Spark's events needs Airflow to know whether they may be sent on, and by which transport.


def relayed(
    lineage: TaskLineage, bundle: CaptureBundle, task: Any, deadline: Deadline
) -> TaskLineage:
    """Send Spark's own events through Airflow's OpenLineage transport; never raises.

    If some events were not sent, the returned lineage has one more degradation.

    :param lineage: the collected lineage of the try
    :param bundle: the bundle of the try, which has the file of Spark's events
    :param task: the operator, whose events Airflow's emission policy may hold back
    :param deadline: the time by which sending has to end
    """
    path = bundle.events_path
    if path is None or lineage.application is None:
        return lineage  # there are no events, which is a degradation already
    try:
        missing = _relay(path, bundle.manifest, task, deadline)
    except AirflowTaskTimeout:
        missing = (
            "The task's execution_timeout fired while Spark's events were being sent on; give the "
            "task a little more time."
        )
    except Exception as error:
        log.debug("Relaying failed.", exc_info=True)
        missing = masked(f"Spark's events were not sent on ({type(error).__name__}: {error}).")
    if not missing:
        return lineage
    entry = Degradation(DegradationCode.RELAY_INCOMPLETE, missing)
    return replace(lineage, degradations=(*lineage.degradations, entry))


def _relay(path: Path, manifest: Manifest, task: Any, deadline: Deadline) -> str:
    # The provider's API alone takes longer to import than all of this module.
    from airflow.providers.openlineage.api import is_openlineage_active
    from airflow.providers.openlineage.plugins.adapter import OpenLineageAdapter
    from airflow.providers.openlineage.utils.emission_policy import resolve_task_emission_policy

    from airflow_provider_sparklineage.event.relay import relay

    def is_over() -> bool:
        return deadline.is_killed or not deadline.left

    if not is_openlineage_active():
        return "Spark's events were not sent on, because Airflow's OpenLineage provider is off."
    identity = manifest.task
    if identity and not resolve_task_emission_policy(task, identity.dag_id, identity.task_id).emit:
        return ""  # neither are the task's own events
    if is_over():
        # When a task is killed, Airflow's server may have sent the event of its end already.
        return "Spark's events were not sent on, because there was no time left."
    configuration = OpenLineageAdapter().get_openlineage_config()
    missing, sent = relay(
        path,
        configuration,
        masked,
        seconds=deadline.left,
        literals=manifest.redact_literals,
        past_deadline=is_over,
    )
    for line in sent.printed.splitlines():  # events of the console transport, warnings of others
        log.info("%s", line)
    if not missing:
        log.info(
            "%d Spark events were sent on through Airflow's OpenLineage transport", sent.events
        )
    return missing
