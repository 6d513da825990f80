"""Lineage for tasks whose DAG was written without it: which, why not, and how they get it."""
