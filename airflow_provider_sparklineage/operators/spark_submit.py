"""SparkSubmitOperator with lineage: what is rendered, injection before, collection after."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Literal

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.common.compat.sdk import AirflowFailException, AirflowTaskTimeout
from airflow.sdk import XComArg
from airflow.sdk.bases.operator import BaseOperatorMeta

from airflow_provider_sparklineage.links.lineage import LINKS, push
from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.model.exceptions import SettingsError
from airflow_provider_sparklineage.model.last_run import NO_LAST_RUN
from airflow_provider_sparklineage.operators import arguments
from airflow_provider_sparklineage.operators.openlineage_hooks import OpenLineageHooks
from airflow_provider_sparklineage.settings import resolution
from airflow_provider_sparklineage.settings.connection import DEFAULT_CONN_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from airflow.providers.common.compat.sdk import Context
    from jinja2 import Environment

    from airflow_provider_sparklineage.event.event_parts import OpenLineageParts
    from airflow_provider_sparklineage.lineage.dataset import TaskLineage
    from airflow_provider_sparklineage.operators.attempt import Attempt
    from airflow_provider_sparklineage.operators.partition_check import PartitionCheck
    from airflow_provider_sparklineage.operators.reporting import Prepared
    from airflow_provider_sparklineage.templates import TracedText

log = logger(__name__)

_TEMPLATED = ("reads", "writes")
_INJECTED = (
    *("conf", "jars", "py_files", "env_vars", "properties_file"),
    "_openlineage_inject_transport_info",  # the operator's own way, as an argument
)


# Airflow's metaclass, because Airflow prepares only constructors that an operator class defines
# itself: default_args, partial() and expand() would not reach those of a plain mixin.
class SparkLineageMixin(OpenLineageHooks, metaclass=BaseOperatorMeta):
    """
    Give a SparkSubmitOperator, or a subclass of it, the lineage of the job that it runs.

    Put it before the operator:
    ``class ShopSubmitOperator(SparkLineageMixin, ShopSparkSubmitOperator)``.

    .. seealso::
        :class:`SparkLineageSubmitOperator` for what it does.

    :param lineage: False gives exactly the operator without this mixin.
    :param reads: What the job is meant to read: URIs, paths, tables, assets, or a
        :class:`~airflow_provider_sparklineage.expectations.DatasetSubset` of one. (templated)
    :param writes: What the job is meant to write, likewise. (templated)
    :param partition_key_dimensions: Partition columns that the run's partition key stands for:
        ``["dt"]``, or a pattern such as ``"{dt}|{region}"``.
    :param on_partition_mismatch: What to do if the job touched other partitions than it was meant
        to: ``warn``, ``ignore``, or ``fail`` the task without a retry when the job has ended.
    :param check_partitions_of: Which datasets that counts for: ``reads``, ``writes``, globs; all if
        None.
    :param on_partition_mismatch_callback: Called with the list of mismatches.
    :param record_asset_partitions: Record the partitions that were written on the outlet assets
        that are these outputs; a text is the format of the keys, e.g. ``"{dt}|{region}"``.
    :param observe: Observe in the PySpark driver which partitions are really read and written;
        ``[sparklineage] observe`` if None.
    :param strict: Fail before submitting when lineage cannot be collected;
        ``[sparklineage] strict`` if None.
    :param column_lineage: ``compact`` or ``legacy``: whether column lineage says once, or with
        every column, what influences all columns; ``[sparklineage] column_lineage`` if None.
    :param listener_extensions: Jars on the worker that extend the OpenLineage listener;
        ``[sparklineage] listener_extensions`` if None.
    :param lineage_conn_id: Connection of type ``sparklineage`` with settings; the default one need
        not be there.
    :param relay_spark_events: Send Spark's own events as well, through Airflow's transport;
        ``[sparklineage] relay_spark_events`` if None.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        fields = tuple(getattr(cls, "template_fields", ()))
        missing = tuple(name for name in _TEMPLATED if name not in fields)
        cls.template_fields = (*fields, *missing)  # type: ignore[attr-defined]
        links = getattr(cls, "operator_extra_links", ())
        if isinstance(links, list | tuple):
            named = {link.name for link in links}
            more = (link for link in LINKS if link.name not in named)
            cls.operator_extra_links = (*links, *more)  # type: ignore[attr-defined]

    def __init__(
        self,
        *,
        lineage: bool = True,
        reads: Sequence[Any] = (),
        writes: Sequence[Any] = (),
        strict: bool | None = None,
        observe: bool | None = None,
        partition_key_dimensions: str | Sequence[str] | None = None,
        on_partition_mismatch: Literal["warn", "ignore", "fail"] = "warn",
        check_partitions_of: str | Sequence[str] | None = None,
        on_partition_mismatch_callback: Callable[[list[PartitionCheck]], object] | None = None,
        record_asset_partitions: bool | str = False,
        column_lineage: str | None = None,
        listener_extensions: Sequence[str] | None = None,
        lineage_conn_id: str = DEFAULT_CONN_ID,
        relay_spark_events: bool | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        arguments.check(
            on_partition_mismatch,
            check_partitions_of,
            on_partition_mismatch_callback,
            record_asset_partitions,
        )
        self.lineage = lineage
        self.reads = reads
        self.writes = writes
        self.strict = strict
        self.observe = observe
        self.partition_key_dimensions = partition_key_dimensions
        self.on_partition_mismatch = on_partition_mismatch
        self.check_partitions_of = check_partitions_of
        self.on_partition_mismatch_callback = on_partition_mismatch_callback
        self.record_asset_partitions = record_asset_partitions
        self.column_lineage = column_lineage
        self.listener_extensions = listener_extensions
        self.lineage_conn_id = lineage_conn_id
        self.relay_spark_events = relay_spark_events
        if reads or writes:  # which is unusual, and only then is anything imported
            self._depend_on_declared()
        self._attempt: Attempt | None = None
        self._collected: OpenLineageParts | None = None
        # None: rendering failed or has not happened, so what the fields hold is no one's data.
        self._traces: tuple[TracedText, ...] | None = None
        self._unrendered: tuple[str, ...] = ()
        self._prepared: Prepared | None = None
        self._sources: tuple[resolution.Source, resolution.Source] | None = None
        self._ended_as: str | None = None

    def _depend_on_declared(self) -> None:
        """Make tasks upstream whose results are in declarations.

        Airflow looks for them in containers, and in no DatasetSubset.
        """
        from airflow_provider_sparklineage.expectations.declarations import DatasetSubset, listed

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
        """Render as Airflow does, for mapped tasks too, then trace which text is of which date."""
        render = super()._do_render_template_fields  # type: ignore[misc]
        if parent is not self:
            render(parent, template_fields, context, jinja_env, seen_oids)
            return
        ours = [name for name in template_fields if name in _TEMPLATED]
        of_the_job = [name for name in template_fields if name not in _TEMPLATED]
        if not self._has_lineage():
            render(parent, of_the_job, context, jinja_env, seen_oids)
            return
        # What START needs is imported before its process is forked, once for both.
        from airflow_provider_sparklineage.operators import declared, rendering, reporting  # noqa: F401

        self._traces = None
        self._unrendered = ()
        self._sources = None
        with _harmless("Asking Airflow for settings and the last run"):
            with suppress(SettingsError):  # execute() says so
                self._sources = self._ask_airflow()  # once for a try: it is asked over a wire
            self._prepared = reporting.prepared(self._settings, context)
        templates = rendering.unrendered(self)
        render(parent, of_the_job, context, jinja_env, seen_oids)
        with _harmless("Hiding secrets among the properties"):
            rendering.hide_secrets(self)
        for name in ours:
            try:
                render(parent, [name], context, jinja_env, seen_oids)
            except Exception as error:  # the job does not need what only lineage asks for
                setattr(self, name, ())
                said = f"{name} cannot be rendered ({type(error).__name__}: {error})."
                self._unrendered = (*self._unrendered, said)
        self._traces = rendering.traces(self, templates, jinja_env, context)

    def execute(self, context: Context) -> Any:
        """Run spark-submit with the listener in it, then collect what it reported."""
        if not self._has_lineage() or not self._is_sent():
            return super().execute(context)  # type: ignore[misc]
        from airflow_provider_sparklineage.model.outcome import Outcome
        from airflow_provider_sparklineage.operators import reporting

        operator: Any = self
        own = {name: getattr(operator, name) for name in _INJECTED if hasattr(operator, name)}
        self._attempt = attempt = self._begin(context)
        if attempt is None:
            return super().execute(context)  # type: ignore[misc]
        push(self, context)
        outcome = Outcome.FAIL
        failures: list[AirflowFailException] = []

        def has_failed(lineage: TaskLineage) -> bool:
            if outcome is Outcome.COMPLETE:
                from airflow_provider_sparklineage.operators import partition_check

                locator = attempt.bundle.manifest.locator
                failures.extend(partition_check.follow_up(self, lineage, context, locator))
            return bool(failures)

        try:
            result = super().execute(context)  # type: ignore[misc]
            outcome = Outcome.COMPLETE
        except AirflowTaskTimeout:
            # Spark still runs, and Airflow stops it only when this has returned.
            attempt.budget.killed()
            raise
        finally:
            # Here and not in the hooks: Airflow cuts those off after ten seconds, losing the event.
            self._collected = collected = attempt.finish(outcome, has_failed)
            for name, value in own.items():
                setattr(operator, name, value)
            if attempt.budget.is_killed:
                self._ended_as = reporting.ended_as(context["ti"])
            with suppress(Exception, AirflowTaskTimeout):  # which importing can meet as well
                from airflow_provider_sparklineage.operators.publishing import publish

                publish(attempt, collected, Outcome.FAIL if failures else outcome, context)
        if failures:
            raise failures[0]
        return result

    def submit_job(self, context: Context) -> Any:
        """Submit, where Airflow would go on with what an earlier try submitted if it still runs."""
        if self._attempt is not None:
            self._attempt.is_submitted = True
        return super().submit_job(context)  # type: ignore[misc]

    def execute_resumable(self, context: Context) -> Any:
        """Submit, or wait for the end of what an earlier try submitted."""
        try:
            return super().execute_resumable(context)  # type: ignore[misc]
        finally:
            if self._attempt is not None and not self._attempt.is_submitted:
                self._attempt.resumed()

    def on_kill(self) -> None:
        """Stop spark-submit; what lineage is left to collect has to be quick."""
        if self._attempt is not None:
            self._attempt.budget.killed()
        super().on_kill()  # type: ignore[misc]

    def _begin(self, context: Context) -> Attempt | None:
        """Start a try; raises only if it is strict, and then before anything is submitted.

        :return: None if there is not even enough for an attempt; a warning says why
        """
        from airflow_provider_sparklineage.operators.attempt import Attempt

        wrong: SettingsError | None = None
        strict = bool(self.strict)
        try:
            try:
                resolved = self._settings()
            except SettingsError as error:
                if strict:
                    raise
                resolved, wrong = resolution.resolve(), error
            strict = resolved.strict
            known = self._prepared.known if self._prepared else NO_LAST_RUN
            attempt = Attempt.begin(context, resolved, known)
        except Exception as error:
            if strict:
                raise
            log.warning("The job runs without lineage (%s: %s).", type(error).__name__, error)
            return None
        try:
            if wrong is None:
                self._inject(attempt, context)
            else:
                attempt.without_capture(wrong)
        except Exception as error:
            if resolved.strict:
                attempt.abandon()
                raise
            attempt.without_capture(error)
        key = context.get("partition_key")
        attempt.declare(self._declared(resolved.partitioning, key, attempt.spark_properties))
        return attempt

    def _inject(self, attempt: Attempt, context: Context) -> None:
        from airflow_provider_sparklineage.operators import airflow_transport
        from airflow_provider_sparklineage.operators.injection import SubmitTarget
        from airflow_provider_sparklineage.spark.submit.submission import Submission

        operator: Any = self
        connection = operator._get_hook()._connection  # the one place that knows master and mode
        target = SubmitTarget(
            connection["spark_binary"],
            connection["master"],
            connection["deploy_mode"],
            operator.properties_file,
            airflow_transport.properties(operator, context),
        )
        submission = Submission(
            conf=dict(operator.conf or {}),
            jars=operator.jars,
            packages=operator.packages,
            driver_class_path=operator.driver_class_path,
            py_files=operator.py_files,
            application=operator.application or "",
            env_vars=dict(operator.env_vars or {}),
        )
        after = attempt.inject(submission, target, context)
        if after is submission:
            return
        properties_file = attempt.properties_file(after)
        operator._hook = None  # one of an earlier execution has that one's arguments
        operator.conf = dict(after.conf)
        operator.jars = after.jars
        operator.py_files = after.py_files
        operator.env_vars = dict(after.env_vars) or operator.env_vars
        operator.properties_file = properties_file or operator.properties_file


@contextmanager
def _harmless(what: str) -> Iterator[None]:
    """Let no defect of what is done in here keep the task from running."""
    try:
        yield
    except Exception:
        log.debug("%s failed.", what, exc_info=True)


class SparkLineageSubmitOperator(SparkLineageMixin, SparkSubmitOperator):
    """
    Run spark-submit and report what the job read and wrote as the lineage of this task.

    A drop-in for SparkSubmitOperator: the job is not changed. The OpenLineage listener is added to
    the submission, its events are collected on the worker, and when the job has ended they are
    merged into one lineage (datasets, schemas, column lineage composed across the job's actions),
    which Airflow's OpenLineage provider sends with the task's own event. Lineage never fails the
    task; what could not be collected is said in the event (run facet ``sparkLineage_capture``) and
    in one warning.

    .. seealso::
        :class:`~airflow.providers.apache.spark.operators.spark_submit.SparkSubmitOperator` for all
        further arguments.

    :param lineage: False gives exactly the stock SparkSubmitOperator.
    :param reads: What the job is meant to read: URIs, paths, tables, assets, or a
        :class:`~airflow_provider_sparklineage.expectations.DatasetSubset` of one. (templated)
    :param writes: What the job is meant to write, likewise. (templated)
    :param partition_key_dimensions: Partition columns that the run's partition key stands for:
        ``["dt"]``, or a pattern such as ``"{dt}|{region}"``.
    :param on_partition_mismatch: What to do if the job touched other partitions than it was meant
        to: ``warn``, ``ignore``, or ``fail`` the task without a retry when the job has ended.
    :param check_partitions_of: Which datasets that counts for: ``reads``, ``writes``, globs; all if
        None.
    :param on_partition_mismatch_callback: Called with the list of mismatches.
    :param record_asset_partitions: Record the partitions that were written on the outlet assets
        that are these outputs; a text is the format of the keys, e.g. ``"{dt}|{region}"``.
    :param observe: Observe in the PySpark driver which partitions are really read and written;
        ``[sparklineage] observe`` if None.
    :param strict: Fail before submitting when lineage cannot be collected;
        ``[sparklineage] strict`` if None.
    :param column_lineage: ``compact`` or ``legacy``: whether column lineage says once, or with
        every column, what influences all columns; ``[sparklineage] column_lineage`` if None.
    :param listener_extensions: Jars on the worker that extend the OpenLineage listener;
        ``[sparklineage] listener_extensions`` if None.
    :param lineage_conn_id: Connection of type ``sparklineage`` with settings; the default one need
        not be there.
    :param relay_spark_events: Send Spark's own events as well, through Airflow's transport;
        ``[sparklineage] relay_spark_events`` if None.
    """
