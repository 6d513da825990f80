"""What runs the steps and the queries: DuckDB in this process, or Spark."""
