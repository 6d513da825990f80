"""The code that adds lineage to a Spark application, and the readers of the reports it writes."""
