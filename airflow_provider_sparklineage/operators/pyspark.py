"""PySparkOperator with lineage: the driver is the task's own process; nothing is submitted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_pyspark import PySparkOperator

from airflow_provider_sparklineage.operators.lineage_mixin import LineageMixin

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from airflow.providers.common.compat.sdk import Context


class PySparkLineageMixin(LineageMixin):
    """
    Give a PySparkOperator, or a subclass of it, the lineage of its function's work with Spark.

    In the bases of a class, the mixin comes before the operator:
    ``class ShopOperator(PySparkLineageMixin, ShopPySparkOperator)``.

    .. seealso::
        :class:`SparkLineagePySparkOperator` for a description, and for the arguments.
    """

    __slots__ = ()

    lineage_adapter = "pyspark"
    lineage_traced_fields = ("op_args", "op_kwargs", "templates_dict", "config_kwargs")

    @property
    def lineage_properties(self) -> Mapping[str, Any]:
        """The operator's session properties; they override the properties of its connection."""
        operator: Any = self
        return operator.config_kwargs or {}

    def _lineage_running(self, context: Context) -> AbstractContextManager[None]:
        """Listen to Spark while the function runs: this process becomes the driver."""
        current = self.lineage_try
        if current.capture is None or not current.capture.is_in_process:
            return super()._lineage_running(context)
        from airflow_provider_sparklineage.operators.attempt.task_driver import TaskDriver

        return TaskDriver(current, context).running()


class SparkLineagePySparkOperator(PySparkLineageMixin, PySparkOperator):
    """
    Run a function that uses PySpark, and report the data it read and wrote as the task's lineage.

    A drop-in for PySparkOperator: the function, its result and its exceptions are not changed. The
    OpenLineage listener and the observer are added to the driver, which is the task's process.

    .. seealso::
        :class:`~airflow.providers.apache.spark.operators.spark_pyspark.PySparkOperator` for all
        further arguments, and
        :class:`~airflow_provider_sparklineage.operators.spark_submit.SparkLineageSubmitOperator`
        for the way from the collected events to the lineage.

    :param lineage: False gives exactly the stock PySparkOperator.
    :param reads: The data that the function is expected to read: URIs, paths, tables, assets, or a
        :class:`~airflow_provider_sparklineage.expectations.DatasetSubset` of one. (templated)
    :param writes: The data that the function is expected to write, in the same forms. (templated)
    :param partition_key_dimensions: Partition columns that the run's partition key stands for:
        ``["dt"]``, or a pattern such as ``"{dt}|{region}"``.
    :param on_partition_mismatch: The consequence if the function accessed other partitions than
        expected: ``warn``, ``ignore``, or ``fail`` the task without a retry when it has returned.
    :param check_partitions_of: The datasets whose partitions are checked: ``reads``, ``writes``,
        globs; all if None.
    :param on_partition_mismatch_callback: Called with the list of mismatches.
    :param record_asset_partitions: Record, on the outlet asset for each output, the partitions that
        the function wrote; a text is the format of the keys, e.g. ``"{dt}|{region}"``. None does
        so if the DAG's schedule is ``PartitionedAtRuntime`` and the run has no key of its own.
    :param observe: Observe which partitions are really read and written;
        ``[sparklineage] observe`` if None.
    :param strict: Fail before the function is called when lineage cannot be collected;
        ``[sparklineage] strict`` if None.
    :param listener_extensions: Jars on the worker that extend the OpenLineage listener;
        ``[sparklineage] listener_extensions`` if None.
    :param lineage_conn_id: Connection of type ``sparklineage`` with settings; the default
        connection need not exist.
    :param relay_spark_events: Send Spark's own events as well, through Airflow's transport;
        ``[sparklineage] relay_spark_events`` if None.
    """
