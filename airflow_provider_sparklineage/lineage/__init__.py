"""Derive the lineage of an Airflow task from the events and records of its Spark application."""
