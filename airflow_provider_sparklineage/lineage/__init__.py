"""What came out of a Spark application to the lineage of its Airflow task."""
