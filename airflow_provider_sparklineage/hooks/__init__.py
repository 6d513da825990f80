"""What comes from Airflow: connections and configuration."""
