"""From the events and records of a Spark application to the lineage of its Airflow task."""
