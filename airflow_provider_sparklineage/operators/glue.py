"""GlueJobOperator with lineage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowOptionalProviderFeatureException

from airflow_provider_sparklineage.operators.lineage_mixin import ResumableLineageMixin

try:
    from airflow.providers.amazon.aws.operators.glue import GlueJobOperator
except ImportError as error:
    msg = (
        "SparkLineageGlueOperator needs Airflow's provider for Amazon. "
        "Install it: pip install 'airflow-provider-sparklineage[amazon]'"
    )
    raise AirflowOptionalProviderFeatureException(msg) from error

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow.providers.common.compat.sdk import Context


class GlueLineageMixin(ResumableLineageMixin):
    """
    Give a GlueJobOperator, or a subclass of it, the lineage of the run that it starts.

    In the bases of a class, the mixin comes before the operator:
    ``class ShopGlueOperator(GlueLineageMixin, ShopOperator)``.

    .. seealso::
        :class:`SparkLineageGlueOperator` for a description.
    """

    __slots__ = ()

    lineage_adapter = "glue"
    lineage_traced_fields = ("script_args",)
    lineage_injected_fields = ("script_args", "openlineage_inject_transport_info")

    @property
    def lineage_properties(self) -> Mapping[str, Any]:
        """The properties of the run, or else those of the job that the operator makes."""
        from airflow_provider_sparklineage.operators.adapters import glue

        operator: Any = self
        defaults = (operator.create_job_kwargs or {}).get("DefaultArguments") or {}
        return glue.properties({**defaults, **operator.script_args})

    def _is_lineage_refused(self) -> bool:
        """Whether Glue gave no id of a run, and no run of an earlier try was resumed."""
        capture, operator = self.lineage_try.capture, self
        is_resumed = capture is not None and capture.is_resumed
        return not is_resumed and getattr(operator, "_job_run_id", "unknown") is None

    def _find_previous_job_run(self, context: Context, task_uuid: str) -> str | None:
        """Find a run that an earlier try started, and note that this try does not start one."""
        found: str | None = super()._find_previous_job_run(context, task_uuid)  # type: ignore[misc]
        if found:
            self.lineage_try.note(is_resumable=True, is_submitted=False, resumed_id=found)
        return found


class SparkLineageGlueOperator(GlueLineageMixin, GlueJobOperator):
    """
    Run a job of AWS Glue and report the data that it read and wrote as this task's lineage.

    A drop-in for GlueJobOperator: the run is not changed, but for the configuration of the
    OpenLineage listener and the observer, which Glue gets from the capture location. So that
    location has to be a URL that the job's role and the workers reach. Up to Glue 4.0 the listener
    comes from there, too; Glue 5 has its own.

    .. seealso::
        :class:`~airflow.providers.amazon.aws.operators.glue.GlueJobOperator` for all further
        arguments, and
        :class:`~airflow_provider_sparklineage.operators.spark_submit.SparkLineageSubmitOperator`
        for those of lineage, which are the same.
    """
