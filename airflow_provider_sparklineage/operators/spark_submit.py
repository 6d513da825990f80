"""SparkSubmitOperator with lineage: what is rendered, injection before, collection after."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.common.compat.sdk import AirflowFailException, AirflowTaskTimeout
from airflow.sdk import XComArg
from airflow.sdk.bases.operator import BaseOperatorMeta

from airflow_provider_sparklineage.links.lineage import LINKS, push
from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.operators import arguments, converters
from airflow_provider_sparklineage.operators.openlineage_hooks import OpenLineageHooks
from airflow_provider_sparklineage.settings.connection import DEFAULT_CONN_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from airflow.providers.common.compat.sdk import Context
    from jinja2 import Environment

    from airflow_provider_sparklineage.lineage.dataset import TaskLineage
    from airflow_provider_sparklineage.operators.partition_check import PartitionCheck
    from airflow_provider_sparklineage.operators.try_capture import TryCapture

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
    :param reads: What the job is expected to read: URIs, paths, tables, assets, or a
        :class:`~airflow_provider_sparklineage.expectations.DatasetSubset` of one. (templated)
    :param writes: What the job is expected to write, in the same forms. (templated)
    :param partition_key_dimensions: Partition columns that the run's partition key stands for:
        ``["dt"]``, or a pattern such as ``"{dt}|{region}"``.
    :param on_partition_mismatch: What to do if the job accessed other partitions than
        expected: ``warn``, ``ignore``, or ``fail`` the task without a retry when the job has ended.
    :param check_partitions_of: Which datasets that counts for: ``reads``, ``writes``, globs; all if
        None.
    :param on_partition_mismatch_callback: Called with the list of mismatches.
    :param record_asset_partitions: Record the partitions that were written on the outlet assets
        that are these outputs; a text is the format of the keys, e.g. ``"{dt}|{region}"``.
    :param observe: Observe in the PySpark driver which partitions are really read and written;
        ``[sparklineage] observe`` if None.
    :param strict: Fail before submitting when lineage cannot be collected;
        ``[sparklineage] strict`` if None.
    :param column_lineage: ``compact`` or ``legacy``: whether column lineage lists once, or with
        every column, what influences all columns; ``[sparklineage] column_lineage`` if None.
    :param listener_extensions: Jars on the worker that extend the OpenLineage listener;
        ``[sparklineage] listener_extensions`` if None.
    :param lineage_conn_id: Connection of type ``sparklineage`` with settings; the default one need
        not be there.
    :param relay_spark_events: Send Spark's own events as well, through Airflow's transport;
        ``[sparklineage] relay_spark_events`` if None.
    """

    lineage: bool = True
    reads: Sequence[Any] | None = None  # an empty list would be in each serialised DAG
    writes: Sequence[Any] | None = None
    strict: bool | None = None
    observe: bool | None = None
    partition_key_dimensions: str | Sequence[str] | None = None
    on_partition_mismatch: Literal["warn", "ignore", "fail"] = "warn"
    check_partitions_of: str | Sequence[str] | None = None
    on_partition_mismatch_callback: Callable[[list[PartitionCheck]], object] | None = None
    record_asset_partitions: bool | str = False
    column_lineage: str | None = None
    listener_extensions: Sequence[str] | None = None
    lineage_conn_id: str = DEFAULT_CONN_ID
    relay_spark_events: bool | None = None

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
        converters.note(cls)
        # A property of a subclass is no default, and so is set.
        of_each = {name: getattr(cls, name) for name in SparkLineageMixin.__annotations__}
        cls._defaults = of_each  # type: ignore[attr-defined]

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
        values = {
            "lineage": lineage,
            "reads": reads,
            "writes": writes,
            "strict": strict,
            "observe": observe,
            "partition_key_dimensions": partition_key_dimensions,
            "on_partition_mismatch": on_partition_mismatch,
            "check_partitions_of": check_partitions_of,
            "on_partition_mismatch_callback": on_partition_mismatch_callback,
            "record_asset_partitions": record_asset_partitions,
            "column_lineage": column_lineage,
            "listener_extensions": listener_extensions,
            "lineage_conn_id": lineage_conn_id,
            "relay_spark_events": relay_spark_events,
        }
        defaults: dict[str, object] = self._defaults  # type: ignore[attr-defined]
        for name, value in values.items():
            if value is not defaults[name]:
                setattr(self, name, value)
        if reads or writes:  # which is unusual, and only then is anything imported
            self._depend_on_declared()

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
        is_over = self._try is not None and self._try.is_over(context)
        if parent is not self or is_over:  # by a callback, before Airflow asks for the event
            render(parent, template_fields, context, jinja_env, seen_oids)
            return
        ours = [name for name in template_fields if name in _TEMPLATED]
        of_the_job = [name for name in template_fields if name not in _TEMPLATED]
        self._try = None
        current = self.lineage_try
        if not current.is_on:
            render(parent, of_the_job, context, jinja_env, seen_oids)
            return
        # What START needs is imported before its process is forked, once for both.
        from airflow_provider_sparklineage.operators import declared, rendering, reporting  # noqa: F401

        with _harmless("Asking Airflow for settings and the last run"):
            current.prepare(context)
        templates = rendering.unrendered(self)
        render(parent, of_the_job, context, jinja_env, seen_oids)
        with _harmless("Hiding secrets among the properties"):
            rendering.hide_secrets(self)
        for name in ours:
            try:
                render(parent, [name], context, jinja_env, seen_oids)
            except Exception as error:  # the job does not need what only lineage asks for
                setattr(self, name, ())
                problem = f"{name} cannot be rendered ({type(error).__name__}: {error})."
                current.unrendered = (*current.unrendered, problem)
        with _harmless("Tracing templates"):
            current.traces = rendering.traces(self, templates, jinja_env, context)
        with _harmless("Describing what the job is expected to access"):
            current.prepare_start(self)

    def execute(self, context: Context) -> Any:
        """Run spark-submit with the listener in it, then collect what it reported."""
        current = self.lineage_try
        if not current.is_on or not current.is_sent():
            return super().execute(context)  # type: ignore[misc]
        from airflow_provider_sparklineage.model.outcome import Outcome
        from airflow_provider_sparklineage.operators import expecting, importing

        own = {name: getattr(self, name) for name in _INJECTED if hasattr(self, name)}
        capture = current.begin(self, context, lambda capture: self._inject(capture, context))
        if capture is None:
            return super().execute(context)  # type: ignore[misc]
        push(self, context)
        expecting.push(capture, context)
        outcome = Outcome.FAIL
        failures: list[AirflowFailException] = []

        def has_failed(lineage: TaskLineage) -> bool:
            if outcome is Outcome.COMPLETE:
                from airflow_provider_sparklineage.operators import partition_check

                locator = capture.bundle.manifest.locator
                failures.extend(partition_check.follow_up(self, lineage, context, locator))
            return bool(failures)

        try:
            with importing.meanwhile():
                result = super().execute(context)  # type: ignore[misc]
            outcome = Outcome.COMPLETE
        except AirflowTaskTimeout:
            # Spark still runs, and Airflow stops it only when this has returned.
            current.deadline.killed()
            raise
        finally:
            if self._is_refused():
                capture.refused()
            # Here and not in the hooks: Airflow cuts those off after ten seconds, losing the event.
            current.finish(outcome, has_failed, context)
            for name, value in own.items():
                setattr(self, name, value)
        if failures:
            raise failures[0]
        return result

    def submit_job(self, context: Context) -> Any:
        """Submit, where Airflow would go on with what an earlier try submitted if it still runs."""
        capture = self.lineage_try.capture
        if capture is not None:
            capture.is_submitted = True
        return super().submit_job(context)  # type: ignore[misc]

    def execute_resumable(self, context: Context) -> Any:
        """Submit, or wait for the end of what an earlier try submitted."""
        try:
            return super().execute_resumable(context)  # type: ignore[misc]
        finally:
            current = self.lineage_try
            if current.capture is not None and not current.capture.is_submitted:
                current.capture.resumed(current.deadline)

    def get_job_status(self, external_id: Any, context: Context) -> str:
        """Ask for the state of a job, before going on with it: the job of an earlier try."""
        capture = self.lineage_try.capture
        if capture is not None:
            capture.resumed_id = str(external_id)
        status: str = super().get_job_status(external_id, context)  # type: ignore[misc]
        return status

    def on_kill(self) -> None:
        """Stop spark-submit; what lineage is left to collect has to be quick."""
        self.lineage_try.deadline.killed()
        super().on_kill()  # type: ignore[misc]

    def _is_refused(self) -> bool:
        """Whether Airflow has refused to start spark-submit, and nothing was started before."""
        capture, hook = self.lineage_try.capture, getattr(self, "_hook", None)
        is_resumed = capture is not None and capture.is_resumed
        return not is_resumed and getattr(hook, "_submit_sp", "unknown") is None

    def _inject(self, capture: TryCapture, context: Context) -> None:
        """Put the listener into this operator's own submission."""
        from airflow_provider_sparklineage.operators import airflow_transport
        from airflow_provider_sparklineage.operators.injection import SubmitTarget
        from airflow_provider_sparklineage.spark.submit.submission import Submission

        operator: Any = self
        # Private, and the only ones of Airflow's that know master, deploy mode, and whether it asks
        # the cluster for the end of the application.
        hook = operator._get_hook()  # noqa: SLF001
        connection = hook._connection  # noqa: SLF001
        target = SubmitTarget(
            connection["spark_binary"],
            connection["master"],
            connection["deploy_mode"],
            operator.properties_file,
            airflow_transport.properties(operator, context),
            is_polled=hook._should_track_driver_status  # noqa: SLF001
            or hook._should_track_driver_via_k8s_api()  # noqa: SLF001
            or hook._should_track_yarn_application_via_rm_api(),  # noqa: SLF001
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
        after, properties_file = capture.inject(submission, target, context)
        if after is submission:
            return
        operator._hook = None  # noqa: SLF001  (an earlier execution's has that one's arguments)
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
    task; what could not be collected is named in the event (run facet ``sparkLineage_capture``) and
    in one warning.

    .. seealso::
        :class:`~airflow.providers.apache.spark.operators.spark_submit.SparkSubmitOperator` for all
        further arguments.

    :param lineage: False gives exactly the stock SparkSubmitOperator.
    :param reads: What the job is expected to read: URIs, paths, tables, assets, or a
        :class:`~airflow_provider_sparklineage.expectations.DatasetSubset` of one. (templated)
    :param writes: What the job is expected to write, in the same forms. (templated)
    :param partition_key_dimensions: Partition columns that the run's partition key stands for:
        ``["dt"]``, or a pattern such as ``"{dt}|{region}"``.
    :param on_partition_mismatch: What to do if the job accessed other partitions than
        expected: ``warn``, ``ignore``, or ``fail`` the task without a retry when the job has ended.
    :param check_partitions_of: Which datasets that counts for: ``reads``, ``writes``, globs; all if
        None.
    :param on_partition_mismatch_callback: Called with the list of mismatches.
    :param record_asset_partitions: Record the partitions that were written on the outlet assets
        that are these outputs; a text is the format of the keys, e.g. ``"{dt}|{region}"``.
    :param observe: Observe in the PySpark driver which partitions are really read and written;
        ``[sparklineage] observe`` if None.
    :param strict: Fail before submitting when lineage cannot be collected;
        ``[sparklineage] strict`` if None.
    :param column_lineage: ``compact`` or ``legacy``: whether column lineage lists once, or with
        every column, what influences all columns; ``[sparklineage] column_lineage`` if None.
    :param listener_extensions: Jars on the worker that extend the OpenLineage listener;
        ``[sparklineage] listener_extensions`` if None.
    :param lineage_conn_id: Connection of type ``sparklineage`` with settings; the default one need
        not be there.
    :param relay_spark_events: Send Spark's own events as well, through Airflow's transport;
        ``[sparklineage] relay_spark_events`` if None.
    """
