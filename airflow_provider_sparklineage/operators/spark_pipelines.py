"""SparkPipelinesOperator with lineage."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_pipelines import SparkPipelinesOperator

from airflow_provider_sparklineage.operators.lineage_mixin import LineageMixin

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sparklineage.operators.attempt.submit import Capture


class SparkPipelinesLineageMixin(LineageMixin):
    """
    Give a SparkPipelinesOperator, or a subclass of it, the lineage of its pipeline.

    In the bases of a class, the mixin comes before the operator:
    ``class ShopPipelinesOperator(SparkPipelinesLineageMixin, ShopOperator)``.

    .. seealso::
        :class:`SparkLineagePipelinesOperator` for a description.
    """

    __slots__ = ()

    lineage_adapter = "spark_pipelines"
    lineage_traced_fields = ("conf", "env_vars")
    lineage_injected_fields = ("conf", "env_vars", "_openlineage_inject_transport_info")

    @property
    def lineage_properties(self) -> Mapping[str, Any]:
        """The properties that the operator passes to spark-pipelines by ``--conf``."""
        operator: Any = self
        return operator.conf or {}

    @cached_property
    def hook(self) -> Any:
        """The hook, which runs spark-pipelines with a local master as its remote.

        The hook of Airflow's provider (6.3) gives ``--master`` and ``--name``, and spark-pipelines
        of Spark 4.1 and 4.2 refuses both. An adopted task ends as its DAG's own operator does.
        """
        hook: Any = super().hook  # type: ignore[misc]
        # Private, but only these members of Airflow's know the master and make the flags.
        master = str(hook._connection["master"])  # noqa: SLF001
        if not self.is_adopted and master.startswith("local"):
            of_stock = hook._build_spark_common_args  # noqa: SLF001
            hook._build_spark_common_args = lambda: with_remote(of_stock())  # noqa: SLF001
        return hook

    def _inject_lineage(self, capture: Capture, context: Context) -> Capture:
        """Put the listener into a pipeline that runs here; else note why it gets none."""
        from airflow_provider_sparklineage.model.degradations import DegradationCode
        from airflow_provider_sparklineage.model.exceptions import ListenerError
        from airflow_provider_sparklineage.operators.adapters import spark_pipelines
        from airflow_provider_sparklineage.operators.attempt.submit import refused

        operator: Any = self
        if operator.pipeline_command != "run":
            what = f"`{operator.pipeline_command}` reads and writes no data, so it has no lineage."
            return capture.degraded(DegradationCode.LISTENER_UNAVAILABLE, what)
        if refusal := spark_pipelines.refusal(self):
            return refused(capture, ListenerError(refusal))
        return super()._inject_lineage(capture, context)


def with_remote(arguments: list[str]) -> list[str]:
    """Give arguments of spark-submit as spark-pipelines takes them, for a local master."""
    kept = ["--remote" if word == "--master" else word for word in arguments]
    if "--name" in kept:
        at = kept.index("--name")
        del kept[at : at + 2]
    return kept


class SparkLineagePipelinesOperator(SparkPipelinesLineageMixin, SparkPipelinesOperator):
    """
    Run a declarative pipeline, and report the data that it read and wrote as this task's lineage.

    A drop-in for SparkPipelinesOperator, which runs pipelines in Spark Connect servers alone. A
    server that was started before is not changed: the event has the datasets of ``reads`` and
    ``writes``, and says so. With a Spark connection whose master is ``local[…]``, where the stock
    operator ends with an error, the pipeline runs on the worker and its lineage is complete.

    .. seealso::
        :class:`~airflow.providers.apache.spark.operators.spark_pipelines.SparkPipelinesOperator`
        for all further arguments, and
        :class:`~airflow_provider_sparklineage.operators.spark_submit.SparkLineageSubmitOperator`
        for those of lineage, which are the same.
    """
