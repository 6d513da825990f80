"""Adopt tasks whose DAG was written without lineage: change their class, unless rules forbid it."""
