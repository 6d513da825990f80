"""The way into a Spark application, and the reports that come out of it."""
