"""Spark jobs whose cost is measured."""
