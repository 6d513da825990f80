"""The engines that run the steps and the queries: DuckDB in this process, or Spark."""
