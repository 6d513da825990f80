"""Queries: answers to questions that span runs, from the tables of a store."""
