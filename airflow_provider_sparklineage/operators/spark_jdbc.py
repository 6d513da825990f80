"""SparkJDBCOperator with lineage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_jdbc import SparkJDBCOperator

from airflow_provider_sparklineage.operators.spark_submit import SparkLineageMixin

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAME = "-name"


class SparkJDBCLineageMixin(SparkLineageMixin):
    """
    Give a SparkJDBCOperator, or a subclass of it, the lineage of the rows that it moves.

    In the bases of a class, the mixin comes before the operator:
    ``class ShopJDBCOperator(SparkJDBCLineageMixin, ShopSparkJDBCOperator)``.

    .. seealso::
        :class:`SparkLineageJDBCOperator` for a description.
    """

    __slots__ = ()

    lineage_adapter = "spark_jdbc"
    lineage_traced_fields = ()  # no template field of the operator reaches its job
    lineage_injected_fields = ("_openlineage_inject_transport_info",)

    @property
    def lineage_properties(self) -> Mapping[str, Any]:
        """The properties that the operator passes to spark-submit by ``--conf``."""
        operator: Any = self
        return operator._spark_conf or {}  # noqa: SLF001  (its argument)

    def _get_hook(self) -> Any:
        """Make the hook, whose script gets the name of the application unless it has one.

        Without it, the script of Airflow's provider (6.3) calls ``appName(None)``, with which no
        Spark since 3.5 starts. An adopted task ends as its DAG's own operator does.
        """
        hook: Any = super()._get_hook()  # type: ignore[misc]
        if not self.is_adopted:
            # Private, but only this method of Airflow's makes the script's arguments.
            of_stock = hook._build_jdbc_application_arguments  # noqa: SLF001
            name = hook._name  # noqa: SLF001

            def named(connection: Mapping[str, Any]) -> list[str]:
                arguments: list[str] = of_stock(connection)
                return arguments if _NAME in arguments else [*arguments, _NAME, name]

            hook._build_jdbc_application_arguments = named  # noqa: SLF001
        return hook


class SparkLineageJDBCOperator(SparkJDBCLineageMixin, SparkJDBCOperator):
    """
    Move rows between a table of Spark and a database, and report both as this task's lineage.

    A drop-in for SparkJDBCOperator, of which it differs in one argument, also with
    ``lineage=False``: the provider's script gets ``spark_app_name`` as its ``-name``. Without a
    name the script ends with an error in Spark 3.5 and newer.

    .. seealso::
        :class:`~airflow.providers.apache.spark.operators.spark_jdbc.SparkJDBCOperator` for all
        further arguments, and
        :class:`~airflow_provider_sparklineage.operators.spark_submit.SparkLineageSubmitOperator`
        for those of lineage, which are the same.
    """
