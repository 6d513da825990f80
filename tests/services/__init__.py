"""Services that start Spark: what they are given runs on a real Spark of this machine."""
