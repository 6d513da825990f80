"""Adopt tasks whose DAG was written without lineage: rules choose them, and their class changes."""
