"""What goes into a Spark application and what comes out of it."""
