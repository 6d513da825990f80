"""The description of this provider, which Airflow loads by ``apache_airflow_provider``.

That is the group of the package's entry point.
"""

from __future__ import annotations

from typing import Any

from airflow_provider_sparklineage.settings.connection import connection_type
from airflow_provider_sparklineage.settings.options import OPTIONS, SECTION


def get_provider_info() -> dict[str, Any]:
    """Describe the provider; the shape is that of Airflow's ``provider_info.schema.json``."""
    return {
        "package-name": "airflow-provider-sparklineage",
        "name": "Spark Lineage",
        "description": "OpenLineage of Spark jobs run by Airflow, merged into one event per task.",
        "integrations": [
            {
                "integration-name": "Spark Lineage",
                "external-doc-url": "https://openlineage.io/docs/integrations/spark/",
                "tags": ["apache"],
            }
        ],
        "operators": [
            {
                "integration-name": "Spark Lineage",
                "python-modules": [
                    "airflow_provider_sparklineage.operators.databricks",
                    "airflow_provider_sparklineage.operators.dataproc",
                    "airflow_provider_sparklineage.operators.emr",
                    "airflow_provider_sparklineage.operators.freshness_check",
                    "airflow_provider_sparklineage.operators.glue",
                    "airflow_provider_sparklineage.operators.livy",
                    "airflow_provider_sparklineage.operators.pyspark",
                    "airflow_provider_sparklineage.operators.spark_jdbc",
                    "airflow_provider_sparklineage.operators.spark_kubernetes",
                    "airflow_provider_sparklineage.operators.spark_pipelines",
                    "airflow_provider_sparklineage.operators.spark_sql",
                    "airflow_provider_sparklineage.operators.spark_submit",
                    "airflow_provider_sparklineage.operators.synapse",
                ],
            }
        ],
        "hooks": [
            {
                "integration-name": "Spark Lineage",
                "python-modules": ["airflow_provider_sparklineage.hooks.sparklineage"],
            }
        ],
        "filesystems": ["airflow_provider_sparklineage.storage.hdfs"],
        "extra-links": [
            "airflow_provider_sparklineage.links.lineage.LineageJobLink",
            "airflow_provider_sparklineage.links.lineage.OutputColumnsLink",
        ],
        "connection-types": [connection_type()],
        "cli": ["airflow_provider_sparklineage.cli.airflow_commands"],
        "config": {
            SECTION: {
                "description": "Lineage of Spark jobs run by Airflow.",
                "options": {
                    option.name: {
                        "description": option.description,
                        "version_added": "0.1.0",
                        "type": option.kind.airflow_type,
                        "example": option.example,
                        "default": option.default,
                    }
                    for option in OPTIONS
                },
            }
        },
    }
