"""Lineage for tasks whose DAG was written without it: the rules, the obstacles, and the change."""
