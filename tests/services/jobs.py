"""The ten jobs that have the same lineage, in whichever way Airflow starts Spark."""

JOBS = (
    "staging_chain",  # filters, a join, an aggregation, a staging folder read back
    "partitioned_writes",  # appended, and overwritten statically and dynamically; five outputs
    "append_then_read",  # paths and tables that an earlier application wrote
    "catalog_tables",  # CREATE TABLE AS SELECT, saveAsTable
    "self_overwrite",  # an input that is the output
    "union_diamond",  # one source by two ways
    "rewritten_staging",  # staging that is overwritten between two reads
    "python_udf",
    "writes_nothing",
    "failing_action",  # in the middle
)
