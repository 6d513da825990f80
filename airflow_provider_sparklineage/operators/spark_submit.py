"""SparkSubmitOperator with lineage."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

from airflow_provider_sparklineage.operators.lineage_mixin import ResumableLineageMixin

if TYPE_CHECKING:
    from collections.abc import Mapping

# Attributes of Airflow's hook with the ids that it has read in spark-submit's output. YARN's is
# there before the application is submitted: the paths of uploaded files have it.
_ID_OF_YARN = "_yarn_application_id"
_IDS_OF_DRIVERS = ("_driver_id", "_kubernetes_application_id", "_kubernetes_driver_pod")
_SUBMITTED = re.compile(r"Submitted application|Application report for|finished with")


class SparkLineageMixin(ResumableLineageMixin):
    """
    Give a SparkSubmitOperator, or a subclass of it, the lineage of the job that it runs.

    In the bases of a class, the mixin comes before the operator:
    ``class ShopSubmitOperator(SparkLineageMixin, ShopSparkSubmitOperator)``.

    .. seealso::
        :class:`SparkLineageSubmitOperator` for a description, and for the arguments.
    """

    __slots__ = ()

    lineage_adapter = "spark_submit"
    lineage_traced_fields: tuple[str, ...] = ("application_args", "conf", "env_vars")
    lineage_injected_fields: tuple[str, ...] = (
        *("conf", "jars", "py_files", "env_vars", "properties_file"),
        "_openlineage_inject_transport_info",  # the operator's own way, as an argument
    )

    @property
    def lineage_properties(self) -> Mapping[str, Any]:
        """The properties that the operator passes to spark-submit by ``--conf``."""
        operator: Any = self
        return operator.conf or {}

    def _arguments_before_lineage(self) -> dict[str, Any]:
        """Give the arguments that injection changes, by name; ``conf`` is ``{}`` and never None.

        The stock ``execute()`` replaces a ``conf`` of None by ``{}``, too.
        """
        own = super()._arguments_before_lineage()
        # The stock execute() begins with this line, and the user's code may rely on a dict here.
        return own | {"conf": own.get("conf") or {}}

    def _is_lineage_refused(self) -> bool:
        """Whether Airflow never started spark-submit, and resumed no job of an earlier try.

        It is False if this is not known.
        """
        capture, hook = self.lineage_try.capture, getattr(self, "_hook", None)
        is_resumed = capture is not None and capture.is_resumed
        return not is_resumed and getattr(hook, "_submit_sp", "unknown") is None

    def _failed_lineage_submission(self) -> Mapping[str, Any]:
        """Give the changes of the capture if spark-submit failed and the driver is in a cluster.

        Spark-submit may fail before or after it has started an application. Its output tells which,
        unless somebody has configured its log to be silent.
        """
        capture, hook = self.lineage_try.capture, getattr(self, "_hook", None)
        code = getattr(getattr(hook, "_submit_sp", None), "returncode", None) or 0
        if capture is None or capture.is_resumed or code <= 0:  # below 0 a signal ended it
            return {}
        if capture.is_awaited and not capture.bundle.manifest.remote:  # the driver was here
            return {}
        failed = f"spark-submit failed (exit code {code})"
        known = [getattr(hook, name, None) for name in _IDS_OF_DRIVERS]
        if _SUBMITTED.search("\n".join(getattr(hook, "_last_submit_log_lines", ()))):
            known.append(getattr(hook, _ID_OF_YARN, None))
        application = next(filter(None, known), None)
        if application is None:
            text = (
                f"{failed}, and its output names no application that was submitted, so none is "
                "known to have started. The log of the task has that output."
            )
            return {"unsubmitted": text, "is_awaited": True}
        text = f"{failed} after it had submitted {application}, of whose end nothing is known."
        return {} if capture.is_awaited else {"unsubmitted": text}


class SparkLineageSubmitOperator(SparkLineageMixin, SparkSubmitOperator):
    """
    Run spark-submit and report the data that the job read and wrote as the lineage of this task.

    A drop-in for SparkSubmitOperator: the job is not changed. The OpenLineage listener is added to
    the submission, its events are collected on the worker, and when the job has ended they are
    merged into one lineage (datasets, schemas, column lineage composed across the job's actions),
    which Airflow's OpenLineage provider sends with the task's own event. A problem with lineage
    does not fail the task, unless ``strict`` is on; the event (run facet ``sparkLineage_capture``)
    and one warning name the parts that could not be collected.

    .. seealso::
        :class:`~airflow.providers.apache.spark.operators.spark_submit.SparkSubmitOperator` for all
        further arguments.

    :param lineage: False gives exactly the stock SparkSubmitOperator.
    :param reads: The data that the job is expected to read: URIs, paths, tables, assets, or a
        :class:`~airflow_provider_sparklineage.expectations.DatasetSubset` of one. (templated)
    :param writes: The data that the job is expected to write, in the same forms. (templated)
    :param partition_key_dimensions: Partition columns that the run's partition key stands for:
        ``["dt"]``, or a pattern such as ``"{dt}|{region}"``.
    :param on_partition_mismatch: The consequence if the job accessed other partitions than
        expected: ``warn``, ``ignore``, or ``fail`` the task without a retry when the job has ended.
    :param check_partitions_of: The datasets whose partitions are checked: ``reads``, ``writes``,
        globs; all if None.
    :param on_partition_mismatch_callback: Called with the list of mismatches.
    :param record_asset_partitions: Record, on the outlet asset for each output, the partitions that
        the job wrote; a text is the format of the keys, e.g. ``"{dt}|{region}"``. None does
        so if the DAG's schedule is ``PartitionedAtRuntime`` and the run has no key of its own.
    :param observe: Observe in the PySpark driver which partitions are really read and written;
        ``[sparklineage] observe`` if None.
    :param strict: Fail before submitting when lineage cannot be collected;
        ``[sparklineage] strict`` if None.
    :param listener_extensions: Jars on the worker that extend the OpenLineage listener;
        ``[sparklineage] listener_extensions`` if None.
    :param lineage_conn_id: Connection of type ``sparklineage`` with settings; the default
        connection need not exist.
    :param relay_spark_events: Send Spark's own events as well, through Airflow's transport;
        ``[sparklineage] relay_spark_events`` if None.
    """
