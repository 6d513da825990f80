"""Column lineage out of Spark's plans."""
