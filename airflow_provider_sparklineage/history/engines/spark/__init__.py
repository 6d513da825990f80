"""Spark 3.5 and newer: builds the same tables as DuckDB from the same SQL, and answers queries.

The modules import PySpark only inside functions, when a job calls them.
"""

from __future__ import annotations

from airflow_provider_sparklineage.history.engines.spark.asking import History

__all__ = ["History"]
