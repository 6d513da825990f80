"""The object that holds the lineage of one try, from rendering to the event that is sent.

The operator has this object in one attribute. OpenLineage's hooks, the links, ``explain`` and all
other code of this package that asks about a try ask this object.
"""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowTaskTimeout
from msgspec.structs import replace

from airflow_provider_sparklineage.hooks import sources
from airflow_provider_sparklineage.model.allowance import garbage_collector_paused
from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode
from airflow_provider_sparklineage.model.exceptions import SettingsError
from airflow_provider_sparklineage.model.last_run import BothForms
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.operators.attempt.timing import Cost, Deadline
from airflow_provider_sparklineage.operators.masking import masked_message
from airflow_provider_sparklineage.settings import resolution
from airflow_provider_sparklineage.settings.options import OPTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sparklineage.event.document import Event
    from airflow_provider_sparklineage.event.pipeline import Events
    from airflow_provider_sparklineage.expectations.declared import Declared
    from airflow_provider_sparklineage.lineage.dataset import TaskLineage
    from airflow_provider_sparklineage.model.representation import Adaptation
    from airflow_provider_sparklineage.model.rules import PartitionRules
    from airflow_provider_sparklineage.model.terms import Outcome
    from airflow_provider_sparklineage.operators.attempt.collect import Collected
    from airflow_provider_sparklineage.operators.attempt.prepare import Prepared
    from airflow_provider_sparklineage.operators.attempt.submit import Capture
    from airflow_provider_sparklineage.templates import TracedText


log = logger(__name__)

_KEPT = (
    "The lineage of this try is kept for its tab and for `airflow sparklineage`; to send it to a "
    "backend as well, set AIRFLOW__OPENLINEAGE__TRANSPORT, or AIRFLOW__OPENLINEAGE__CONFIG_CONN_ID "
    "to the id of a connection with a transport."
)


def _no_try() -> None:
    """Give None in place of a copied try: the copy of an operator begins a try of its own."""


class Arguments(Frozen, frozen=True):
    """The lineage arguments of an operator.

    :param is_wanted: the argument ``lineage``
    :param conn_id: the argument ``lineage_conn_id``
    :param options: by name, the arguments that are also options of ``[sparklineage]``
    """

    is_wanted: bool
    conn_id: str
    options: Mapping[str, Any]

    @classmethod
    def read(cls, operator: Any) -> Arguments:
        """Read the arguments from an operator, or from an object with the same attributes."""
        options = {o.name: getattr(operator, o.name) for o in OPTIONS if o.in_operator}
        return cls(bool(operator.lineage), operator.lineage_conn_id, options)

    def ask_airflow(self) -> tuple[resolution.Source, ...]:
        """Read the settings from Airflow's connection and configuration, by a remote call.

        :raise SettingsError: if a setting cannot be read, or the connection is missing
        """
        return sources.for_settings(sources.connection(self.conn_id))

    def settings(self, others: tuple[resolution.Source, ...]) -> resolution.Settings:
        """Resolve the settings: an argument wins over the other sources.

        :param others: the result of :meth:`ask_airflow`
        :raise SettingsError: if a setting has an impossible value
        """
        return resolution.resolve(
            resolution.Source(resolution.Origin.ARGUMENT, self.options), *others
        )


class Rendered(Frozen, frozen=True):
    """The outcome of rendering the operator's fields.

    :param texts: the traced texts; None if rendering failed or has not happened: then the fields
        still have templates, which name no data
    :param problems: sentences on fields that could not be rendered, and on declarations that could
        not be read
    :param start: the event for START; None if it is not made yet, or if Airflow sends no events
    """

    texts: tuple[TracedText, ...] | None = None
    problems: tuple[str, ...] = ()
    start: Events | None = None


class Ended(Frozen, frozen=True):
    """The outcome of a try whose job has ended.

    :param ti: the task instance, which has the number of the latest try; None if it is not known
    :param try_number: number of the try that has ended
    :param events: the event, in the form for XCom and archive and in the form for the backend; None
        while it is being made
    :param description: the readable description of the run; empty if the backend shows none
    :param state: the state in which Airflow has ended the try while its job ran; None if it has not
    """

    ti: Any
    try_number: int
    events: Events | None = None
    description: str = ""
    state: str | None = None


class Try:
    """The state of one try: the operator's arguments, and the outcomes of the stages.

    The try refers to the operator's arguments and not to the operator, because Airflow copies the
    operator.

    :param operator: the operator; only its lineage arguments are read
    """

    def __init__(self, operator: Any) -> None:
        self.arguments = Arguments.read(operator)
        """The arguments as they were when this try was last asked for: a subclass of the operator
        may render them as template fields, or may set them in its ``execute()``."""
        self.prepared: Prepared | None = None
        """Airflow's answers during rendering; None before the rendering."""
        self.rendered = Rendered()
        self.capture: Capture | None = None
        """The bundle and the course of the job; None before ``execute()``, or if none was begun."""
        self.uncaptured: Degradation | None = None
        """The reason why the job runs without a capture and a manifest; None if it has these."""
        self.ended: Ended | None = None
        """The outcome of the try; None until the job has ended."""
        self.deadline = Deadline()
        self.cost = Cost()

    def __reduce__(self) -> tuple[Any, tuple[()]]:
        """Replace a copied or pickled try by None, because a try may hold a lock and a socket."""
        return _no_try, ()

    # --- settings ---------------------------------------------------------------------------------

    @property
    def is_on(self) -> bool:
        """Whether lineage is on; a setting with an impossible value does not switch it off."""
        if not self.arguments.is_wanted:
            return False
        with suppress(Exception):
            return not resolution.value("disabled", sources.configuration("disabled"))
        return True

    @property
    def is_strict(self) -> bool:
        """Whether the argument ``strict`` is true; read it only if settings cannot be resolved."""
        return bool(self.arguments.options["strict"])

    def settings(self) -> resolution.Settings:
        """Resolve the settings.

        :raise SettingsError: if a setting cannot be read, or the connection is missing
        """
        known = self.prepared.sources if self.prepared else None
        return self.arguments.settings(known or self.arguments.ask_airflow())

    def prepare(self, context: Mapping[str, Any]) -> None:
        """Ask Airflow for the settings and for other runs' events; call this once for each try."""
        self.prepared = self._asked(context)

    def _asked(self, context: Mapping[str, Any]) -> Prepared:
        from airflow_provider_sparklineage.operators.attempt import prepare

        others = None
        try:
            others = self.arguments.ask_airflow()
            resolved = self.arguments.settings(others)
        except SettingsError:  # execute() reports it
            resolved = resolution.resolve()
        return prepare.prepared(resolved, others, context)

    @property
    def events(self) -> Events | None:
        """The event in both forms: for XCom and archive, and for the backend.

        None until the job has ended, and while the event is being made.
        """
        return None if self.ended is None else self.ended.events

    @property
    def collected(self) -> Event | None:
        """The event in the form for XCom and archive; None if :attr:`events` is None."""
        return self.events and self.events.kept

    @property
    def adaptation(self) -> Adaptation:
        """The settings by which this try's events are adapted to the backend."""
        known = self.capture or self.prepared
        how = (known.settings if known else resolution.resolve()).adaptation
        return replace(how, answered=self.prepared.answered) if self.prepared else how

    def documentation(self, operator: Any, own: str | None) -> str | None:
        """Give the description of the task's job for the backend; never raises.

        :param own: the operator's ``doc``
        :return: a description of the run and the text of the operator or the DAG; only ``own``
            before the job has ended, and for a backend that shows no description of the run
        """
        if self.ended is None or not self.ended.description:
            return own
        try:
            from airflow_provider_sparklineage.operators.attempt import publish

            return publish.documentation_of_job(operator, own, self.ended.description)
        except Exception:
            log.debug("What the job did is not described.", exc_info=True)
            return own

    def prepare_start(self, operator: Any) -> None:
        """Make the event for START in advance, if Airflow sends events.

        The provider forks a process for START and waits for it. If that process made the event, its
        new objects would cost copies of memory, and this process would later have to import the
        same modules again.

        :param operator: the operator, with its fields rendered
        """
        if sources.why_not_sent() is None:
            self.note_rendered(start=self.expected(operator))

    def note_unrendered(self, problem: str) -> None:
        """Note, for the event, a sentence on a field or a declaration that is not known."""
        self.note_rendered(problems=(*self.rendered.problems, problem))

    def note_rendered(self, **changes: Any) -> None:
        """Change fields of :attr:`rendered`.

        :param changes: fields of :class:`Rendered`
        """
        self.rendered = replace(self.rendered, **changes)

    def at_start(self, operator: Any) -> Events:
        """Give the event for START: it has the datasets that the try is expected to access.

        :param operator: the operator, with its fields rendered
        """
        return self.rendered.start or self.expected(operator)

    def is_sent(self) -> bool:
        """Whether lineage is sent by Airflow or, if it is not, at least kept in the archive.

        If lineage is neither sent nor archived, a warning is logged, once for each try: an XCom
        alone is not worth a listener in every job. The default archive does not count if
        OpenLineage is switched off, or if the task is strict.

        :raise SettingsError: if lineage is neither sent nor archived, and the task is strict
        """
        reason, kept_level = sources.why_not_sent(), logging.INFO
        if reason is None:  # nobody has chosen that
            reason, kept_level = sources.why_not_loaded(), logging.WARNING
        if reason is None:
            return True
        try:
            resolved = self.settings()
            strict = resolved.strict
            if sources.is_kept_unsent(resolved):
                if sources.is_unset():
                    log.info(_KEPT)
                else:
                    text = "The lineage of this try is kept in the archive, not sent: %s"
                    log.log(kept_level, text, reason)
                return True
        except Exception:
            strict = self.is_strict
        if strict:
            raise reason
        self._without_lineage(str(reason))
        return False

    # --- before the job runs ----------------------------------------------------------------------

    def declared(
        self,
        operator: Any,
        rules: PartitionRules,
        partition_key: str | None = None,
        spark_properties: Mapping[str, str] | None = None,
    ) -> Declared:
        """Give the datasets that the task's fields declare or name; never raises.

        A field that cannot be understood is listed in the answer's ``problems``.

        :param operator: the operator, with its fields rendered
        :param rules: the user's partitioning rules
        :param partition_key: partition key of the run; None if it has none
        :param spark_properties: properties of the submission; None to take those of the operator
        """
        from airflow_provider_sparklineage.expectations.declared import Declared
        from airflow_provider_sparklineage.operators.attempt.prepare import declared_in_fields

        try:
            declared = declared_in_fields(
                operator, self.rendered.texts or (), rules, partition_key, spark_properties
            )
        except Exception as error:
            log.debug("Declarations cannot be understood.", exc_info=True)
            declared = Declared(problems=(f"{type(error).__name__}: {error}",))
        return replace(declared, problems=(*self.rendered.problems, *declared.problems))

    def expected(self, operator: Any, *, has_ended: bool = False) -> Events:
        """Make the event of the datasets that the try is expected to read and write.

        :param operator: the operator, with its fields rendered
        :param has_ended: whether the try is over, and its job has not run
        """
        from airflow_provider_sparklineage.operators.attempt import prepare

        prepared = self.prepared or self._asked({})
        declared = self.declared(operator, prepared.settings.partitioning)
        ended = (self.uncaptured or prepare.NOT_SUBMITTED) if has_ended else None
        return prepare.expected_event(declared, prepared, ended)

    @garbage_collector_paused()  # the job waits for many imports, such as those of a store
    def begin(
        self,
        operator: Any,
        context: Context,
        inject: Callable[[Capture], Capture],
        *,
        of_command: bool = False,
        is_found_by_name: bool = False,
    ) -> Capture | None:
        """Begin the try's capture before the job is submitted; raises only if the try is strict.

        :param operator: the operator, with its fields rendered
        :param inject: puts the listener into the operator's submission; without a bundle it only
            moves secrets out of the arguments
        :param of_command: whether spark-submit is in a command of the user's own
        :param is_found_by_name: whether another process has to find the bundle: the task may be
            deferred
        :return: the capture; None if there is not even a manifest: a warning has the reason
        """
        # Also the modules that finish() needs: Airflow's task timeout must not fire in an import
        # after the job.
        from airflow_provider_sparklineage.operators.attempt import (  # noqa: F401
            collect,
            prepare,
            submit,
        )

        self.capture, self.deadline = None, Deadline()
        strict = self.is_strict
        try:
            resolved, wrong = self._usable_settings()
            strict = resolved.strict
            capture = submit.begun(
                context,
                resolved,
                self.arguments.conn_id,
                of_command=of_command,
                is_found_by_name=is_found_by_name,
            )
        except Exception as error:
            if strict:
                raise
            self._without_lineage(f"It could not be set up ({type(error).__name__}: {error}).")
            return None
        capture = submit.injected(capture, inject, wrong)
        key, properties = context.get("partition_key"), capture.spark_properties
        known = self.declared(operator, resolved.partitioning, key, properties)
        capture = submit.declared(capture, known)
        try:
            capture, is_announced = submit.announced(capture)
        except Exception:
            capture.abandon()
            raise
        # If the store did not take the manifest, do not wait for it a second time.
        if is_announced and (capture.bundle.manifest.remote or not capture.is_awaited):
            from airflow_provider_sparklineage.operators.attempt import publish

            publish.keep_additions(capture, context)
        if is_announced and capture.is_awaited and not is_found_by_name:
            capture.own_files.follow(capture.bundle)
        self.capture = capture
        return capture

    def leave(self) -> None:
        """Give up what this process has of the capture, because the task is deferred.

        Its driver delivers to the remote folder, which the process finds that ends the task.
        """
        if self.capture is not None:
            self.capture.abandon()
            self.capture = None

    def resume(self, context: Context) -> Capture | None:
        """Take up the capture of this try, which another process has begun; never raises.

        :return: the capture; None if there is not even a manifest: a warning has the reason
        """
        from airflow_provider_sparklineage.operators.attempt import collect, submit  # noqa: F401

        self.capture, self.deadline = None, Deadline()
        try:
            resolved, _ = self._usable_settings()
            self.capture = submit.taken_up(context, resolved, self.arguments.conn_id)
        except Exception as error:
            self._without_lineage(f"It could not be taken up ({type(error).__name__}: {error}).")
        return self.capture

    def _usable_settings(self) -> tuple[resolution.Settings, SettingsError | None]:
        """Resolve the settings; if that fails, give the defaults and the error.

        :raise SettingsError: if the settings cannot be resolved and the try is strict
        """
        try:
            return self.settings(), None
        except SettingsError as error:
            if self.is_strict:
                raise
            return resolution.resolve(), error

    # --- while it runs ----------------------------------------------------------------------------

    def note(self, **changes: Any) -> None:
        """Change fields of the capture, if there is one.

        :param changes: fields of :class:`~.submit.Capture`
        """
        if self.capture is not None:
            self.capture = replace(self.capture, **changes)

    def _without_lineage(self, reason: str) -> None:
        """Warn, and note for the event, that the job runs and its lineage is not captured.

        :param reason: a sentence with the reason
        """
        problem = masked_message(f"The job runs without lineage. {reason}")
        log.warning("%s", problem)
        self.uncaptured = Degradation(DegradationCode.INJECTION_FAILED, problem)

    # --- after it ---------------------------------------------------------------------------------

    def is_over(self, context: Mapping[str, Any]) -> bool:
        """Whether the job of this try has ended, and ``context`` is the context of this try."""
        ended = self.ended
        if ended is None:
            return False
        ti = context.get("ti")
        return ti is ended.ti and getattr(ti, "try_number", 0) == ended.try_number

    def finish(
        self, outcome: Outcome, has_failed: Callable[[TaskLineage], bool], context: Context
    ) -> None:
        """Collect the driver's reports into the event, and publish the event; never raises.

        :param outcome: outcome of the job
        :param has_failed: called with the collected lineage; gives whether the task fails because
            of that lineage
        """
        if self.capture is None:
            return
        from airflow_provider_sparklineage.operators.attempt import collect, prepare

        if self.is_over(context):
            self.capture = self.capture.degraded(
                DegradationCode.FOREIGN_EVENTS,
                "The task's own execute() ran more than one job in this try; this event has what "
                "the last one did.",
            )
        ti = context.get("ti")
        # Noted first: a callback of has_failed() may render the fields, which begins no new try.
        self.ended = Ended(ti, getattr(ti, "try_number", 0), self.events)
        backend = self.capture.settings.backend
        known = self.prepared.last(backend) if self.prepared else BothForms()
        task, deadline = context.get("task"), self.deadline
        try:
            collected = collect.collect(self.capture, outcome, has_failed, known, deadline)
            collected, events = self._with_events(collected, known, task)
        except AirflowTaskTimeout as error:  # it fired in a fallback, or between two steps
            collected = collect.given_up(self.capture, outcome, known, error)
            collected, events = self._with_events(collected, known, task)
        self.capture = collected.capture
        self.ended = replace(self.ended, events=events)
        with suppress(Exception, AirflowTaskTimeout):  # the next try sweeps
            collect.clean_up(collected, events.kept, deadline)
        del collected  # the events are to be written, and the lineage of a large job is large, too
        with suppress(Exception, AirflowTaskTimeout):  # the timeout can fire in the import, too
            from airflow_provider_sparklineage.operators.attempt import publish

            text = publish.described(
                events.adapted, self.adaptation, ti, is_logged=not deadline.is_killed
            )
            self.ended = replace(self.ended, description=text)
        with suppress(Exception, AirflowTaskTimeout):
            from airflow_provider_sparklineage.operators.attempt import publish

            if deadline.is_killed:
                self.ended = replace(self.ended, state=prepare.ended_as(context["ti"]))
            publish.publish(
                self.capture,
                deadline,
                events.kept,
                context,
                is_for_sending=self.ended.state is None,
            )

    def _with_events(
        self, collected: Collected, known: BothForms, task: Any
    ) -> tuple[Collected, Events]:
        # The task's timeout can fire in this import, too.
        from airflow_provider_sparklineage.operators.attempt import publish

        return publish.with_events(collected, known, task, self.deadline)

    def watch_delivery(self, sent: Event) -> None:
        """Watch whether Airflow's client delivers this try's event, and how long that takes.

        :param sent: the event of this try in the form that is sent
        """
        from airflow_provider_sparklineage.operators.attempt import publish

        if self.capture is not None and self.events is not None:
            publish.watch_delivery(self.capture, self.events, sent, self.adaptation)


# --- imports while the job runs -------------------------------------------------------------------


# Modules that are needed after the job are imported while it runs, when the task only waits for it,
# in a thread. That is safe: the task would import these modules anyway, and an import that fails in
# the thread fails again, and is reported, where the module is needed. The thread is joined before
# the task goes on: Airflow's OpenLineage provider forks then, and a lock that an import holds would
# never be released in the child.


IMPORT_DELAY_S = 1.0
"""Seconds to wait before importing: spark-submit, which the imports must not delay, has started by
then, and no Spark job has ended."""


@contextmanager
def importing_meanwhile() -> Iterator[None]:
    """Import the modules for collecting, in a thread, while the block with the job runs.

    A block that ends before :data:`IMPORT_DELAY_S` imports nothing. An exception of the block is
    raised as it is.
    """
    timer = threading.Timer(IMPORT_DELAY_S, _import_for_collecting)
    timer.daemon = True
    with suppress(RuntimeError):  # there may be no more threads
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
        with suppress(AirflowTaskTimeout):  # the job has ended
            if timer.is_alive():
                timer.join()


def _import_for_collecting() -> None:
    with suppress(Exception):
        from airflow_provider_sparklineage.event import (  # noqa: F401
            archive,
            column_lineage,
            pipeline,
        )
        from airflow_provider_sparklineage.event.steps import fitting  # noqa: F401
        from airflow_provider_sparklineage.lineage import bundle  # noqa: F401
        from airflow_provider_sparklineage.operators import partition_check  # noqa: F401
        from airflow_provider_sparklineage.operators.attempt import publish  # noqa: F401
        from airflow_provider_sparklineage.spark.capture import events, remote_bundles  # noqa: F401
