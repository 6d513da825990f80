"""SparkSqlOperator with lineage."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_sql import SparkSqlOperator

from airflow_provider_sparklineage.operators.lineage_mixin import LineageMixin

if TYPE_CHECKING:
    from collections.abc import Mapping


class SparkSqlLineageMixin(LineageMixin):
    """
    Give a SparkSqlOperator, or a subclass of it, the lineage of its statements.

    In the bases of a class, the mixin comes before the operator:
    ``class ShopSqlOperator(SparkSqlLineageMixin, ShopSparkSqlOperator)``.

    .. seealso::
        :class:`SparkLineageSqlOperator` for a description.
    """

    __slots__ = ()

    lineage_adapter = "spark_sql"
    lineage_traced_fields = ("sql",)
    lineage_injected_fields = ("_conf",)

    @property
    def lineage_properties(self) -> Mapping[str, Any]:
        """The properties that the operator passes to spark-sql by ``--conf``."""
        from airflow_provider_sparklineage.operators.adapters.spark_sql import properties

        with suppress(Exception):  # a text of another form, of which execute() reports
            return properties(self)
        return {}


class SparkLineageSqlOperator(SparkSqlLineageMixin, SparkSqlOperator):
    """
    Run ``spark-sql`` and report the data that its statements read and wrote as this task's lineage.

    A drop-in for SparkSqlOperator: the statements are not changed. The driver of ``spark-sql`` has
    no Python, so it is not observed: datasets and columns are those of the OpenLineage listener,
    and the event says that the partitions are not known.

    .. seealso::
        :class:`~airflow.providers.apache.spark.operators.spark_sql.SparkSqlOperator` for all
        further arguments, and
        :class:`~airflow_provider_sparklineage.operators.spark_submit.SparkLineageSubmitOperator`
        for those of lineage, which are the same.
    """
