"""The listener and the observer in a driver that is this process: PySpark without spark-submit."""
