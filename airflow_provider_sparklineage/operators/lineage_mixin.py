"""The mixin that gives an operator lineage: it adds arguments, traces fields and wraps the job.

Every parse of a DAG file with such an operator imports this module, so modules that only a running
task needs are imported in functions. The subclasses of the mixin put the listener into the driver:
:mod:`.spark_submit` and :mod:`.pyspark`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Mapping
from contextlib import contextmanager
from copy import copy
from functools import partial
from operator import is_, itemgetter
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from airflow.providers.common.compat.sdk import (
    AirflowFailException,
    AirflowTaskTimeout,
    TaskDeferred,
)
from airflow.sdk import BaseOperator, XComArg
from airflow.sdk.bases.operator import BaseOperatorMeta

from airflow_provider_sparklineage.expectations.declarations import DatasetSubset, listed
from airflow_provider_sparklineage.links.lineage import LINKS, push
from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.model.exceptions import SettingsError
from airflow_provider_sparklineage.model.partitioning import KEY_FIELD
from airflow_provider_sparklineage.operators.attempt.task_try import (
    Arguments,
    Try,
    importing_meanwhile,
)
from airflow_provider_sparklineage.settings.connection import DEFAULT_CONN_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from airflow.providers.common.compat.sdk import Context
    from airflow.providers.openlineage.extractors import OperatorLineage
    from jinja2 import Environment

    from airflow_provider_sparklineage.event.document import Event
    from airflow_provider_sparklineage.event.pipeline import Events
    from airflow_provider_sparklineage.lineage.dataset import TaskLineage
    from airflow_provider_sparklineage.operators.attempt.submit import Capture
    from airflow_provider_sparklineage.operators.partition_check import PartitionCheck

log = logger(__name__)


class OpenLineageHooks:
    """The OpenLineage hooks of an operator whose lineage is collected while it executes.

    A user's class may come before or after this class in an operator's method resolution order. To
    avoid clashes of names, each attribute here that is neither an argument nor a method of
    Airflow's has ``lineage`` in its name, and all state of a task is in one attribute. The listener
    is injected only into attributes of the operator that are passed to the job, such as ``conf``.
    After the job, only the injected parts are removed from them.
    """

    __slots__ = ()

    _lineage_try: Try | None = None

    @property
    def lineage_try(self) -> Try:
        """The try for which this operator runs; each rendering of the fields begins a new try.

        The try is made on first use, not by the constructor: Airflow runs a shallow copy of the
        operator, and the copy would share the try.
        """
        current = self._lineage_try
        if current is None:
            current = Try(self)
            self._set_lineage_try(current)
        current.arguments = Arguments.read(self)
        return current

    def _set_lineage_try(self, current: Try | None) -> None:
        # This is object's own method, because the __setattr__ of Airflow, or of the operator's
        # class, may refuse an attribute that it does not know.
        object.__setattr__(self, "_lineage_try", current)

    @property
    def doc(self) -> str | None:
        """The task's description for people; after the job, it begins with a summary of the run.

        Airflow's provider makes the job's facet ``documentation`` from this text, or from the DAG's
        text if the task has none. That facet wins over a ``documentation`` facet that an operator's
        hooks give, so the summary is in this text. The provider reads this text before it calls the
        hooks.
        """
        own: str | None = vars(self).get("doc")
        current = self._lineage_try
        return own if current is None else current.documentation(self, own)

    @doc.setter
    def doc(self, text: str | None) -> None:
        vars(self)["doc"] = text

    # Airflow takes its default extractor for every operator on which one of the following hooks is
    # callable. The hooks are properties, so that they can be None if lineage is switched off: then
    # the task's events are those of the stock operator.

    @property
    def get_openlineage_facets_on_start(self) -> Callable[[], OperatorLineage[Any, Any]] | None:
        """The OpenLineage hook that gives datasets known before the job; None if lineage is off."""
        return self._lineage_at_start if self.lineage_try.is_on else None

    @property
    def get_openlineage_facets_on_complete(
        self,
    ) -> Callable[[Any], OperatorLineage[Any, Any]] | None:
        """The OpenLineage hook that gives the merged lineage of the try; None if lineage is off."""
        return self._lineage_at_end if self.lineage_try.is_on else None

    @property
    def get_openlineage_facets_on_failure(
        self,
    ) -> Callable[[Any], OperatorLineage[Any, Any]] | None:
        """The OpenLineage hook that gives the lineage of a failed try; None if lineage is off."""
        return self._lineage_on_failure if self.lineage_try.is_on else None

    def _lineage_at_start(self) -> OperatorLineage[Any, Any]:
        return self._operator_lineage(self.lineage_try.at_start(self))[0]

    def _lineage_at_end(self, _task_instance: Any) -> OperatorLineage[Any, Any]:
        events = self.lineage_try.events
        if events is None:  # execute() did not get as far as submitting
            events = self.lineage_try.expected(self, has_ended=True)
        lineage, sent = self._operator_lineage(events)
        self.lineage_try.watch_delivery(sent)
        return lineage

    def _operator_lineage(self, events: Events) -> tuple[OperatorLineage[Any, Any], Event]:
        """Convert an event for Airflow's provider; give also the event that is sent, as JSON."""
        from airflow_provider_sparklineage.operators.attempt import prepare

        current = self.lineage_try
        how, prepared = current.adaptation, current.prepared
        sent = prepare.sent_event(events, how, prepared)
        return prepare.operator_lineage(events, how, prepared, self, sent), sent

    def _lineage_on_failure(self, task_instance: Any) -> OperatorLineage[Any, Any]:
        from airflow_provider_sparklineage.operators.attempt import prepare

        ended = self.lineage_try.ended
        if ended is not None and ended.state is not None:
            msg = f"Airflow has ended this try as {ended.state}, and sent its event."
            raise prepare.TryEndedError(msg)
        return self._lineage_at_end(task_instance)


MISMATCH_POLICIES = ("warn", "ignore", "fail")
_SIDES = ("reads", "writes")
# An author who writes one of these means a side, and as a glob it would match no dataset.
_LIKE_SIDE = re.compile(r"(read|write|input|output)s?", re.IGNORECASE)


def check_arguments(
    on_partition_mismatch: object,
    check_partitions_of: object,
    callback: object,
    record_asset_partitions: object,
) -> None:
    """Check arguments when the task is constructed, where the author of the DAG sees an error.

    Each parameter is the operator's argument of the same name.

    :param callback: the argument ``on_partition_mismatch_callback``
    :raise SettingsError: if an argument is wrong; the error names its possible values
    """

    def refuse(name: str, value: object, needed: str) -> NoReturn:
        problem = f"{name}={value!r}."
        raise SettingsError(problem, f"It must be {needed}.")

    if on_partition_mismatch not in MISMATCH_POLICIES:
        refuse("on_partition_mismatch", on_partition_mismatch, "'warn', 'ignore' or 'fail'")
    of = check_partitions_of
    chosen = [of] if isinstance(of, str) else of if isinstance(of, Collection) else []
    is_usable = of is None or (chosen and all(isinstance(c, str) and c.strip() for c in chosen))
    mistakes = [c for c in chosen if c not in _SIDES and _LIKE_SIDE.fullmatch(str(c).strip())]
    if mistakes or not is_usable:
        globs = "a glob of datasets such as '*/lake/revenue'"
        refuse("check_partitions_of", of, f"'reads', 'writes', {globs}, or a list of these")
    if callback is not None and not callable(callback):
        refuse("on_partition_mismatch_callback", callback, "a function")
    key = record_asset_partitions
    is_switch = key is None or isinstance(key, bool)
    if not is_switch and not (isinstance(key, str) and KEY_FIELD.search(key)):
        formats = "a format of keys such as '{dt}|{region}'"
        refuse("record_asset_partitions", key, f"True, False, None, or {formats}")


# At each assignment to an attribute Airflow looks for a method `_convert_<attribute>`: a hundred
# times for each task of a DAG file, mostly in vain, and through all classes of the operator, as
# Python caches no lookup of a name that was just put together. That takes a fifth of the time of
# making a task, and more with each base class. So each class stores the results of these lookups.


def note_converters(operator_class: type) -> None:
    """Set ``_convert_<attribute>`` on a class for each attribute that its constructors assign.

    Airflow looks for a method of this name at each assignment, and finds the attribute of the class
    itself fastest. The value is the inherited method, or None if there is none, which is usual.

    :param operator_class: the class; each name in the code of its constructors counts as an
        assigned attribute, because a name that is something else does no harm
    """
    classes = operator_class.__mro__
    constructors = (
        inspect.unwrap(vars(of)["__init__"]) for of in classes if "__init__" in vars(of)
    )
    assigned = {name for c in constructors if inspect.isfunction(c) for name in c.__code__.co_names}
    for name in (f"_convert_{attribute}" for attribute in assigned):
        # Not by getattr(): that may give the None that was set on a class before the one that
        # defines the converter.
        converters = (vars(of).get(name) for of in classes)
        type.__setattr__(operator_class, name, next(filter(None, converters), None))


_DECLARED = ("reads", "writes")
"""Template fields that lineage adds to those of the stock operator."""


def extend(operator_class: Any) -> None:
    """Add lineage's template fields and links to those of an operator class."""

    def put(name: str, value: object) -> None:
        # Not by the class's own way, which a metaclass may have changed.
        type.__setattr__(operator_class, name, value)

    put("template_fields", _with_declared(operator_class.template_fields))
    links = operator_class.operator_extra_links
    if isinstance(links, list | tuple):
        named = {link.name for link in links}
        more = (link for link in LINKS if link.name not in named)
        put("operator_extra_links", _longer(links, more))
    note_converters(operator_class)
    # If a subclass has a property in place of an argument, getattr() gives the property itself.
    # That equals no value, so the constructor always sets the argument.
    put("_lineage_defaults", tuple(getattr(operator_class, name) for name in ARGUMENTS))


def _with_declared(fields: Sequence[str]) -> Sequence[str]:
    return _longer(fields, (name for name in _DECLARED if name not in fields))


def _longer(values: Iterable[Any], more: Iterable[Any]) -> Sequence[Any]:
    """Give the values and then more, as a list if the values are one: code may add a list to it."""
    return [*values, *more] if isinstance(values, list) else (*values, *more)


# The mixin has Airflow's metaclass, because Airflow prepares only constructors that an operator
# class defines itself: default_args, partial() and expand() would not reach the constructor of a
# plain mixin.
class LineageMixin(OpenLineageHooks, metaclass=BaseOperatorMeta):
    """
    Gives an operator the lineage of the Spark job that it runs, however it starts the driver.

    .. seealso::
        :class:`~airflow_provider_sparklineage.operators.spark_submit.SparkLineageSubmitOperator`
        for the arguments.
    """

    # No slots, so that the class of a task can be changed to one with this mixin.
    __slots__ = ()

    lineage: bool = True
    reads: Sequence[Any] | None = None  # an empty list would be in each serialised DAG
    writes: Sequence[Any] | None = None
    strict: bool | None = None
    observe: bool | None = None
    partition_key_dimensions: str | Sequence[str] | None = None
    on_partition_mismatch: Literal["warn", "ignore", "fail"] = "warn"
    check_partitions_of: str | Sequence[str] | None = None
    on_partition_mismatch_callback: Callable[[list[PartitionCheck]], object] | None = None
    record_asset_partitions: bool | str | None = None
    listener_extensions: Sequence[str] | None = None
    lineage_conn_id: str = DEFAULT_CONN_ID
    relay_spark_events: bool | None = None

    is_adopted: bool = False
    """Whether a DAG made the task with an operator that has no lineage of its own."""
    lineage_traced_fields: tuple[str, ...] = ()
    """Template fields of the operator that can name data."""
    lineage_injected_fields: tuple[str, ...] = ()
    """Attributes of the operator that injection changes; after the job they are restored."""
    lineage_adapter: str = ""
    """The module of :mod:`.adapters` that reads and writes the operator's submission."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if issubclass(cls, BaseOperator):  # a mixin has no template fields or links yet
            extend(cls)

    def __init__(
        self,
        *,
        lineage: bool = True,
        reads: Sequence[Any] | None = None,
        writes: Sequence[Any] | None = None,
        strict: bool | None = None,
        observe: bool | None = None,
        partition_key_dimensions: str | Sequence[str] | None = None,
        on_partition_mismatch: Literal["warn", "ignore", "fail"] = "warn",
        check_partitions_of: str | Sequence[str] | None = None,
        on_partition_mismatch_callback: Callable[[list[PartitionCheck]], object] | None = None,
        record_asset_partitions: bool | str | None = None,
        listener_extensions: Sequence[str] | None = None,
        lineage_conn_id: str = DEFAULT_CONN_ID,
        relay_spark_events: bool | None = None,
        **kwargs: Any,
    ) -> None:
        values = _arguments_of(locals())  # nothing else has been assigned yet
        super().__init__(**kwargs)
        if self.is_adopted:  # a mapped task; the arguments are `default_args` of other operators
            return
        defaults: tuple[object, ...] = self._lineage_defaults  # type: ignore[attr-defined]
        if all(map(is_, values, defaults)):  # as for most tasks
            return
        check_arguments(
            on_partition_mismatch,
            check_partitions_of,
            on_partition_mismatch_callback,
            record_asset_partitions,
        )
        for name, value, default in zip(ARGUMENTS, values, defaults, strict=True):
            if value is not default:
                setattr(self, name, value)
        if reads or writes:
            self._depend_on_declared_lineage()

    def _depend_on_declared_lineage(self) -> None:
        """Make this task depend on the tasks whose results ``reads`` and ``writes`` contain.

        Airflow looks for such results (``XComArg``) in lists and dicts, but not in a DatasetSubset.
        """
        operator: Any = self
        for entry in (*listed(self.reads), *listed(self.writes)):
            if isinstance(entry, DatasetSubset):
                XComArg.apply_upstream_relationship(operator, [entry.dataset, entry.partitions])

    def _do_render_template_fields(
        self,
        parent: Any,
        template_fields: Iterable[str],
        context: Context,
        jinja_env: Environment,
        seen_oids: set[int],
    ) -> None:
        """Render the fields as Airflow does, then find the dates of the run in their texts.

        Airflow calls this method for mapped tasks, too. The parameters are Airflow's own.
        """
        render = super()._do_render_template_fields  # type: ignore[misc]
        is_over = self._lineage_try is not None and self._lineage_try.is_over(context)
        # A callback may render the fields after the job. No new try begins then, because Airflow
        # has yet to ask for the event of this try.
        if parent is not self or is_over:
            render(parent, template_fields, context, jinja_env, seen_oids)
            return
        of_the_job = [name for name in template_fields if name not in _DECLARED]
        self._set_lineage_try(None)
        current = self.lineage_try
        if not current.is_on:
            render(parent, of_the_job, context, jinja_env, seen_oids)
            return
        with current.cost.before_job:
            self._prepare_lineage(context)
            # No copies are needed: rendering does not change containers, but makes new ones.
            templates = {name: getattr(self, name, None) for name in self._lineage_fields}
        render(parent, of_the_job, context, jinja_env, seen_oids)
        with current.cost.before_job:
            self._trace_lineage(templates, context, jinja_env, seen_oids)

    @property
    def _lineage_fields(self) -> tuple[str, ...]:
        return (*self.lineage_traced_fields, *_DECLARED)

    def _prepare_lineage(self, context: Context) -> None:
        """Ask Airflow for settings and other runs' events; set an adopted task's arguments.

        The arguments are those of ``[sparklineage] declarations``. This never raises.
        """
        # The provider forks a process for START. A module that is imported before the fork need not
        # be imported a second time.
        from airflow_provider_sparklineage.operators.attempt import prepare

        with _harmless("Asking Airflow for settings and the last run"):
            self.lineage_try.prepare(context)
        if self.is_adopted:
            with _harmless("Reading declarations"):
                prepare.declare(self)
                if self.reads or self.writes:  # so that Airflow's "Rendered Templates" have them
                    vars(self)["template_fields"] = _with_declared(self.template_fields)  # type: ignore[attr-defined]

    def follow_rendering(
        self,
        templates: Mapping[str, object],
        context: Context,
        environment: Environment,
        problem: str = "",
    ) -> None:
        """Prepare and trace the lineage of a task that was adopted after rendering; never raises.

        Airflow had rendered the job's fields before the task was adopted (:attr:`is_adopted`). This
        calls :meth:`_prepare_lineage`, and then :meth:`_trace_lineage`, which renders ``reads`` and
        ``writes``.

        :param templates: by field name, the templates of the job's fields; a field without an entry
            counts as a field without a template
        :param environment: a Jinja environment like the one that the fields were rendered with
        :param problem: a sentence for the event if a template is not known; else empty
        """
        current = self.lineage_try
        if not current.is_on:
            return
        with current.cost.before_job:
            self._prepare_lineage(context)
            if problem:
                current.note_unrendered(problem)
            fields = {name: getattr(self, name, None) for name in self._lineage_fields}
            self._trace_lineage(fields | {**templates}, context, environment, set())

    def _trace_lineage(
        self,
        templates: Mapping[str, object],
        context: Context,
        environment: Environment,
        seen_oids: set[int],
    ) -> None:
        """Render ``reads`` and ``writes``, and trace these and the job's fields; never raises.

        :param templates: by field name, the values of all these fields before rendering
        :param environment: the Jinja environment to render with
        :param seen_oids: ids of the objects that Airflow skips when it renders
        """
        from airflow_provider_sparklineage.operators.attempt import prepare

        current = self.lineage_try
        with _harmless("Hiding secrets among the properties"):
            prepare.hide_secrets(self)
        render = super()._do_render_template_fields  # type: ignore[misc]
        for name in _DECLARED:
            try:
                render(self, [name], context, environment, seen_oids)
            # The job runs without these fields, only lineage needs them.
            except (Exception, SystemExit) as error:
                setattr(self, name, ())
                current.note_unrendered(
                    f"{name} cannot be rendered ({type(error).__name__}: {error})."
                )
        with _harmless("Tracing templates"):
            current.note_rendered(texts=prepare.traces(self, templates, environment, context))
        with _harmless("Describing what the job is expected to access"):
            current.prepare_start(self)

    def execute(self, context: Context, *args: Any, **kwargs: Any) -> Any:
        """Run the job with the listener in it, then collect the driver's reports.

        Further arguments are the operator's own, such as the event of a trigger if the task has
        waited in the triggerer before its job.
        """
        current = self.lineage_try
        execute = partial(super().execute, context, *args, **kwargs)  # type: ignore[misc]
        if not current.is_on or not current.is_sent():
            return execute()
        from airflow_provider_sparklineage.operators.attempt import prepare

        with current.cost.before_job:
            capture, put_back = self._begin_lineage(context)
        if capture is None:
            return execute()
        with current.cost.before_job:
            push(self, context)
            prepare.push_expected(capture.bundle.manifest, context, current.prepared)
        return self._run_with_lineage(execute, capture, put_back, context)

    def resume_execution(
        self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context
    ) -> Any:
        """Go on with a task that was deferred, then collect the reports of the driver.

        This may be another process than that of :meth:`execute`, on another worker. A trigger that
        failed or took too long raises an error here.
        """
        current = self.lineage_try
        resume = partial(super().resume_execution, next_method, next_kwargs, context)  # type: ignore[misc]
        is_first = next_method == "execute"  # the task has only waited for its service to start
        if is_first or not current.is_on or not current.is_sent():
            return resume()
        with current.cost.before_job:
            capture = current.resume(context)
        if capture is None:
            return resume()
        return self._run_with_lineage(resume, capture, lambda: None, context)

    def _run_with_lineage(
        self,
        run: Callable[[], Any],
        capture: Capture,
        put_back: Callable[[], None],
        context: Context,
    ) -> Any:
        """Run the job, and collect what its driver reports, unless the task is deferred.

        :param run: runs the job, or waits for its end
        :param capture: the capture of the try
        :param put_back: removes the injected parts from the operator's arguments
        """
        from airflow_provider_sparklineage.model.terms import Outcome

        current, manifest = self.lineage_try, capture.bundle.manifest
        outcome, is_deferred = Outcome.FAIL, False
        failures: list[AirflowFailException] = []

        def has_failed(lineage: TaskLineage) -> bool:
            if outcome is Outcome.COMPLETE:
                from airflow_provider_sparklineage.operators import partition_check

                locator = manifest.locator
                failures.extend(partition_check.follow_up(self, lineage, context, locator))
            return bool(failures)

        try:
            with self._lineage_running(context):
                result = run()
            outcome = Outcome.COMPLETE
        except TaskDeferred:
            is_deferred = True
            raise
        except AirflowTaskTimeout:
            # Spark still runs, and Airflow stops it only when execute() has returned, so collecting
            # has to be quick.
            current.deadline.killed()
            raise
        finally:
            if is_deferred:
                current.leave()
            else:
                if not capture.is_taken_up:
                    self._note_failed_lineage_submission()
                # Lineage is collected here and not in the hooks, because Airflow stops a hook after
                # ten seconds and loses the event.
                with current.cost.after_job:
                    current.finish(outcome, has_failed, context)
                log.info("Lineage took %s.", current.cost)
            put_back()
        if failures:
            raise failures[0]
        return result

    def _note_failed_lineage_submission(self) -> None:
        """Note in the capture if no job was started, or if its submission failed."""
        if self._is_lineage_refused():  # there is no job to wait for
            self.lineage_try.note(is_refused=True, is_awaited=True)
        elif changes := self._failed_lineage_submission():
            self.lineage_try.note(**changes)

    def _begin_lineage(self, context: Context) -> tuple[Capture | None, Callable[[], None]]:
        """Put the listener into the job; give the capture, and a function that undoes the change.

        The capture is None if nothing can be captured. The function removes the injected parts from
        the operator's arguments.

        :raise Exception: if the listener cannot be put into the job, and the try is strict
        """
        own = self._arguments_before_lineage()
        try:
            capture = self.lineage_try.begin(
                self,
                context,
                lambda capture: self._inject_lineage(capture, context),
                is_found_by_name=bool(getattr(self, "deferrable", False)),
            )
        except BaseException:  # the job is not started
            for name, value in own.items():
                setattr(self, name, value)
            raise
        passed = {name: getattr(self, name) for name in own}
        # Copies, because the job's own code may add entries to the arguments that it gets.
        injected = {name: _copied(value) for name, value in passed.items()}

        def put_back() -> None:
            for name, value in own.items():
                with _harmless(f"Putting {name} back"):
                    _put_back(self, name, value, passed[name], injected[name])

        return capture, put_back

    def on_kill(self) -> None:
        """Stop the job, and leave only a few seconds for collecting its lineage."""
        self.lineage_try.deadline.killed()
        super().on_kill()  # type: ignore[misc]

    def _arguments_before_lineage(self) -> dict[str, Any]:
        """Give the arguments that injection changes, by name, with their present values."""
        return {
            name: getattr(self, name)
            for name in self.lineage_injected_fields
            if hasattr(self, name)
        }

    @property
    def lineage_properties(self) -> Mapping[str, Any]:
        """Spark properties among the operator's own arguments."""
        raise NotImplementedError

    def _inject_lineage(self, capture: Capture, context: Context) -> Capture:
        """Put the listener into the arguments of the job that is about to be started.

        :return: the capture, changed by this
        """
        from airflow_provider_sparklineage.operators.adapters import adapter
        from airflow_provider_sparklineage.operators.attempt.submit import (
            named_unheard,
            submittable,
        )

        of_service = adapter(self.lineage_adapter)
        submissions, target = of_service.read(self, context)
        changed = []
        for submission in submissions:
            capture, after = submittable(capture, submission, target, context)
            changed.append(after)
        if changed != submissions:
            of_service.write(self, changed)
        return named_unheard(capture, changed)

    def _lineage_running(self, context: Context) -> AbstractContextManager[None]:  # noqa: ARG002  (for those that need it)
        """Give a context manager in which the job runs.

        This one imports, meanwhile, the modules that are needed after the job.
        """
        return importing_meanwhile()

    def _is_lineage_refused(self) -> bool:
        """Whether it is certain that no job was started, and that no earlier try's job was resumed.

        Here this is not known, so it is False; a subclass may know it.
        """
        return False

    def _failed_lineage_submission(self) -> Mapping[str, Any]:
        """Give what a failed spark-submit says of a driver in a cluster, as fields of the capture.

        Here this is not known, so there are none; a subclass may know it.
        """
        return {}


class ResumableLineageMixin(LineageMixin):
    """
    Gives lineage to an operator that resumes the job which an earlier try submitted.

    That is an operator with Airflow's ``ResumableJobMixin``.
    """

    __slots__ = ()

    def submit_job(self, context: Context) -> Any:
        """Submit the job, and note that this try submits it: there is no earlier job to resume."""
        self.lineage_try.note(is_submitted=True)
        return super().submit_job(context)  # type: ignore[misc]

    def execute_resumable(self, context: Context) -> Any:
        """Submit the job, or wait for the end of the job that an earlier try submitted."""
        self.lineage_try.note(is_resumable=True)
        return super().execute_resumable(context)  # type: ignore[misc]

    def get_job_status(self, external_id: Any, context: Context) -> str:
        """Give the state of the job that an earlier try submitted, and note the job's id.

        Airflow resumes the job if it still runs.

        :param external_id: the id by which Airflow knows the job
        """
        self.lineage_try.note(resumed_id=str(external_id))
        status: str = super().get_job_status(external_id, context)  # type: ignore[misc]
        return status


@contextmanager
def _harmless(what: str) -> Iterator[None]:
    """Log an exception of the block, and go on: a defect in lineage must not stop the task.

    The block may call code of the user's, which may end the process by ``sys.exit()``.

    :param what: the work of the block, as a noun for the log
    """
    try:
        yield
    except (Exception, SystemExit):
        log.debug("%s failed.", what, exc_info=True)


def _copied(value: Any) -> Any:
    """Copy an argument, and the mappings and lists in it."""
    if isinstance(value, dict):
        return {key: _copied(each) for key, each in value.items()}
    return [_copied(each) for each in value] if isinstance(value, list) else copy(value)


def _put_back(operator: Any, name: str, own: Any, passed: Any, injected: Any) -> None:
    """Remove the injected part from an argument, but keep changes that the job's code has made.

    :param name: the name of the argument, which is an attribute of the operator
    :param own: the argument before injection: a mapping, a list, or a text of entries with commas
        between
    :param passed: the argument with the injected part, as it was passed to the job
    :param injected: a copy of ``passed`` from before the job
    """
    now = getattr(operator, name, own)  # a subclass may have removed it
    if now is own:
        return
    value = own if now == injected else _without_injected(own, injected, now)
    if now is passed and isinstance(own, dict) and isinstance(value, dict) and value != own:
        # The job's code changed the mapping in place. Without lineage it would have changed the
        # user's own mapping, to which other code may have a reference, so that is changed too.
        own.clear()
        own.update(value)
        value = own
    setattr(operator, name, value)


def _without_injected(own: Any, injected: Any, now: Any) -> Any:
    if isinstance(now, Mapping) and isinstance(injected, Mapping):
        return _mapping_without(own or {}, injected, now)
    if isinstance(now, list) and isinstance(injected, list):
        before = own or []
        left = [entry for entry in now if entry in before or entry not in injected]
        return own if left == before else left
    if isinstance(now, str) and isinstance(injected, str) and isinstance(own, str | None):
        before = {entry.strip(): entry for entry in own.split(",")} if own else {}
        ours = {e for e in injected.split(",") if e.strip() not in before}
        entries = (e for e in now.split(",") if e not in ours)
        return ",".join(before.get(entry.strip(), entry) for entry in entries)
    return now


def _mapping_without(
    own: Mapping[Any, Any], injected: Mapping[Any, Any], now: Mapping[Any, Any]
) -> Mapping[Any, Any]:
    ours = {key for key, value in injected.items() if key not in own or own[key] != value}
    if injected and injected.keys().isdisjoint(now):  # the job's code replaced the whole mapping
        return now
    kept = {}
    for key, value in now.items():
        if key not in ours:
            kept[key] = value
        elif value != injected[key]:
            kept[key] = _without_injected(own.get(key), injected[key], value)
    # These are the user's own entries that injection extended, or moved to another argument, and
    # that the job's code did not change.
    changed = {key for key in own if key not in kept and (key in now or key not in injected)}
    first = {key: kept.get(key, own[key]) for key in own if key in kept or key in changed}
    return first | kept


ARGUMENTS = tuple(inspect.unwrap(LineageMixin.__init__).__kwdefaults__)
"""Names of the arguments that the mixin adds to an operator."""

_arguments_of = itemgetter(*ARGUMENTS)
