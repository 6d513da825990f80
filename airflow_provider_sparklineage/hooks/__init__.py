"""Connections and configuration, read from Airflow."""
