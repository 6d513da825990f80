"""SparkSubmitOperator with lineage: injection before, collection after, OpenLineage's hooks."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.common.compat.sdk import conf as airflow_conf
from airflow.sdk.bases.operator import BaseOperatorMeta

from airflow_provider_sparklineage import settings
from airflow_provider_sparklineage.exceptions import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from airflow.providers.common.compat.sdk import Context
    from airflow.providers.openlineage.extractors import OperatorLineage

    from airflow_provider_sparklineage.datasets import DatasetName
    from airflow_provider_sparklineage.lineage.merge import TaskLineage
    from airflow_provider_sparklineage.operators.attempt import Attempt
    from airflow_provider_sparklineage.spark.events import ReadReport

log = logging.getLogger(__name__)

_TEMPLATED = ("reads", "writes")


# Airflow's metaclass, because Airflow prepares only constructors that an operator class defines
# itself: default_args, partial() and expand() would not reach those of a plain mixin.
class SparkLineageMixin(metaclass=BaseOperatorMeta):
    """
    Give a SparkSubmitOperator, or a subclass of it, the lineage of the job that it runs.

    Put it before the operator:
    ``class ShopSubmitOperator(SparkLineageMixin, ShopSparkSubmitOperator)``.

    .. seealso::
        :class:`SparkLineageSubmitOperator` for what it does.

    :param lineage: False gives exactly the operator without this mixin.
    :param reads: URIs, paths or assets that the job reads although Spark cannot report it.
        (templated)
    :param writes: URIs, paths or assets that the job writes although Spark cannot report it.
        (templated)
    :param observe: Observe in the PySpark driver which partitions are really read and written;
        ``[sparklineage] observe`` if None.
    :param strict: Fail before submitting when lineage cannot be collected;
        ``[sparklineage] strict`` if None.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        fields = tuple(getattr(cls, "template_fields", ()))
        missing = tuple(name for name in _TEMPLATED if name not in fields)
        cls.template_fields = (*fields, *missing)  # type: ignore[attr-defined]

    def __init__(
        self,
        *,
        lineage: bool = True,
        reads: Sequence[Any] = (),
        writes: Sequence[Any] = (),
        strict: bool | None = None,
        observe: bool | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.lineage = lineage
        self.reads = reads
        self.writes = writes
        self.strict = strict
        self.observe = observe
        self._attempt: Attempt | None = None
        self._collected: tuple[TaskLineage, ReadReport] | None = None

    def execute(self, context: Context) -> Any:
        """Run spark-submit with the listener in it, then collect what it reported."""
        self._attempt = self._begin(context)
        if self._attempt is None:
            return super().execute(context)  # type: ignore[misc]
        from airflow_provider_sparklineage.lineage.merge import Outcome

        outcome = Outcome.FAIL
        try:
            result = super().execute(context)  # type: ignore[misc]
            outcome = Outcome.COMPLETE
            return result
        finally:
            # Not in the hooks: Airflow cuts those off after ten seconds and loses the event.
            lineage = self._attempt.finish(outcome)
            self._collected = (lineage, self._attempt.bundle.report)

    def on_kill(self) -> None:
        """Stop spark-submit; what lineage is left to collect has to be quick."""
        if self._attempt is not None:
            self._attempt.killed()
        super().on_kill()  # type: ignore[misc]

    def _begin(self, context: Context) -> Attempt | None:
        if not self.lineage:
            return None
        try:
            resolved = settings.resolve(_option, strict=self.strict, observe=self.observe)
        except SettingsError as error:
            if self.strict:
                raise
            log.warning("%s The job runs without lineage.", error)
            return None
        if resolved.disabled:
            return None
        try:
            return self._injected(context, resolved)
        except Exception as error:
            if resolved.strict:
                raise
            log.warning(
                "Spark lineage could not be set up, so the job runs without it (%s: %s).",
                type(error).__name__,
                error,
                exc_info=log.isEnabledFor(logging.DEBUG),
            )
            return None

    def _injected(self, context: Context, resolved: settings.Settings) -> Attempt:
        from airflow_provider_sparklineage.operators.attempt import Attempt, SubmitTarget
        from airflow_provider_sparklineage.spark.conf import Submission

        operator: Any = self
        attempt = Attempt.begin(
            context, resolved, self._declared("inputs"), self._declared("outputs")
        )
        connection = (
            operator._get_hook()._connection
        )  # the one place that knows master and deploy mode
        target = SubmitTarget(
            connection["spark_binary"],
            connection["master"],
            connection["deploy_mode"],
            operator.properties_file,
        )
        submission = Submission(
            conf=dict(operator.conf or {}),
            jars=operator.jars,
            packages=operator.packages,
            py_files=operator.py_files,
            application=operator.application or "",
            env_vars=dict(operator.env_vars or {}),
        )
        after = attempt.inject(submission, target, context)
        if after is not submission:
            properties_file = attempt.properties_file(after)
            operator.conf = dict(after.conf)
            operator.jars = after.jars
            operator.py_files = after.py_files
            operator.env_vars = dict(after.env_vars) or operator.env_vars
            operator.properties_file = properties_file or operator.properties_file
        return attempt

    def _declared(self, side: str) -> tuple[DatasetName, ...]:
        from airflow_provider_sparklineage.operators.declared import dataset_names

        operator: Any = self
        if side == "inputs":
            return dataset_names([*operator.inlets, *_listed(self.reads)])
        return dataset_names([*operator.outlets, *_listed(self.writes)])

    # --- OpenLineage ------------------------------------------------------------------------------
    # Airflow takes its default extractor for every operator that has one of these as a callable.
    # They are properties so that they are none where lineage is switched off: then the task's
    # events are the stock ones.

    @property
    def get_openlineage_facets_on_start(self) -> Callable[[], OperatorLineage[Any, Any]] | None:
        """Hook of Airflow's OpenLineage provider: datasets known before the job runs."""
        return self._facets_on_start if self._has_lineage() else None

    @property
    def get_openlineage_facets_on_complete(
        self,
    ) -> Callable[[Any], OperatorLineage[Any, Any]] | None:
        """Hook of Airflow's OpenLineage provider: the merged lineage of the try."""
        return self._facets_at_end if self._has_lineage() else None

    @property
    def get_openlineage_facets_on_failure(
        self,
    ) -> Callable[[Any], OperatorLineage[Any, Any]] | None:
        """Hook of Airflow's OpenLineage provider: what had been done until the try failed."""
        return self._facets_at_end if self._has_lineage() else None

    def _has_lineage(self) -> bool:
        if not self.lineage:
            return False
        try:
            return not settings.resolve(_option, strict=self.strict, observe=self.observe).disabled
        except SettingsError:
            return False

    def _facets_on_start(self) -> OperatorLineage[Any, Any]:
        from airflow_provider_sparklineage.lineage import facets
        from airflow_provider_sparklineage.lineage.merge import LineageDataset, Outcome, TaskLineage

        declared = TaskLineage(
            Outcome.COMPLETE,
            tuple(LineageDataset(name) for name in self._declared("inputs")),
            tuple(LineageDataset(name) for name in self._declared("outputs")),
        )
        return _operator_lineage(facets.parts(declared))

    def _facets_at_end(self, task_instance: Any) -> OperatorLineage[Any, Any]:  # noqa: ARG002  (Airflow's call)
        from airflow_provider_sparklineage.lineage import facets

        if self._collected is None:  # execute() did not get as far as submitting
            return self._facets_on_start()
        return _operator_lineage(facets.parts(*self._collected))


def _operator_lineage(parts: Any) -> OperatorLineage[Any, Any]:
    from airflow.providers.openlineage.extractors import OperatorLineage

    return OperatorLineage(
        inputs=parts.inputs,
        outputs=parts.outputs,
        run_facets=parts.run_facets,
        job_facets=parts.job_facets,
    )


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple, set)) else [value]


def _option(name: str) -> str | None:
    value = airflow_conf.get(settings.SECTION, name, fallback=None)
    return None if value is None else str(value)


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
    :param reads: URIs, paths or assets that the job reads although Spark cannot report it.
        (templated)
    :param writes: URIs, paths or assets that the job writes although Spark cannot report it.
        (templated)
    :param observe: Observe in the PySpark driver which partitions are really read and written;
        ``[sparklineage] observe`` if None.
    :param strict: Fail before submitting when lineage cannot be collected;
        ``[sparklineage] strict`` if None.
    """
